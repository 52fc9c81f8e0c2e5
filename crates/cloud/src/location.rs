//! URIs of objects: the store that has one, and its path there.

use crate::error::{ErrorClass, ObjectError};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Schemes of objects, with the mark behind them.
const SCHEMES: [&str; 5] = ["s3://", "gs://", "az://", "http://", "https://"];

/// True if `text` begins like the URI of an object.
pub fn is_meant(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Place of an object, or of those whose names begin alike.
#[derive(Clone)]
pub(crate) struct Location {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// URI of the store, which the name of an object follows.
    pub(crate) root: String,
    /// True if the store answers a request for the last bytes of an object of unknown length.
    pub(crate) has_suffixes: bool,
}

/// Stores by their root, each with the connections that it keeps.
static STORES: LazyLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> = LazyLock::new(|| {
    // One that is there already is as good: the program chose it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Mutex::default()
});

/// Retries of a request that a busy server refused, with jitter.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            base: 2.0,
        },
        max_retries: 8,
        retry_timeout: Duration::from_secs(60),
    }
}

impl Location {
    /// The place that `uri` names. Reads the environment of the process, as the store's own tools
    /// do: `AWS_*`, `GOOGLE_*`, `AZURE_*`.
    ///
    /// Errors: a URI that is none of an object, or settings from which no store can be made.
    pub(crate) fn parse(uri: &str) -> Result<Location, ObjectError> {
        let wrong = |why: &str| ObjectError::new(uri, ErrorClass::Name, why);
        let (scheme, rest) = uri.split_once("://").ok_or_else(|| wrong("it is no URI"))?;
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() {
            return Err(wrong("it names no bucket and no server"));
        }
        let is_http = matches!(scheme, "http" | "https");
        // What is behind the name, as a signature is, belongs to every request.
        let (name, query) = match name.split_once('?').filter(|_| is_http) {
            Some((name, query)) => (name, format!("?{query}")),
            None => (name, String::new()),
        };
        let root = format!("{scheme}://{authority}/");
        let path = if is_http { Path::from_url_path(name) } else { Path::parse(name) };
        let path = path.map_err(|e| wrong(&e.to_string()))?;
        let key = format!("{root}{query}");
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match stores.get(&key) {
            Some(store) => store.clone(),
            None => {
                let store = made(scheme, authority, &key)
                    .map_err(|e| ObjectError::from_store(uri, &e))?
                    .ok_or_else(|| wrong("it is no URI of an object"))?;
                stores.insert(key, store.clone());
                store
            }
        };
        Ok(Location { store, path, root, has_suffixes: scheme != "az" })
    }

    /// The URI of another object of the same store.
    pub(crate) fn uri(&self, path: &Path) -> String {
        format!("{}{path}", self.root)
    }
}

/// A store of that scheme; `None` if it is not known.
fn made(
    scheme: &str,
    authority: &str,
    root: &str,
) -> object_store::Result<Option<Arc<dyn ObjectStore>>> {
    Ok(Some(match scheme {
        "s3" => {
            let store = AmazonS3Builder::from_env().with_bucket_name(authority);
            Arc::new(store.with_retry(retries()).build()?)
        }
        "gs" => {
            let store = GoogleCloudStorageBuilder::from_env().with_bucket_name(authority);
            Arc::new(store.with_retry(retries()).build()?)
        }
        "az" => {
            let store = MicrosoftAzureBuilder::from_env().with_container_name(authority);
            Arc::new(store.with_retry(retries()).build()?)
        }
        "http" | "https" => {
            let options = ClientOptions::new().with_allow_http(true);
            let store = HttpBuilder::new().with_url(root).with_client_options(options);
            Arc::new(store.with_retry(retries()).build()?)
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_a_store_and_a_name() {
        for (uri, is) in [
            ("s3://b/k", true),
            ("gs://b", true),
            ("az://c/k", true),
            ("http://h/k", true),
            ("https://h/k", true),
            ("nbd://h/k", false),
            ("ftp://h/k", false),
            ("file.img", false),
            ("/a/s3://b", false),
        ] {
            assert_eq!(is_meant(uri), is, "{uri}");
        }
        let found = Location::parse("http://localhost:1/a%20b/c.img?sig=1").expect("a place");
        assert_eq!(
            (found.path.as_ref(), found.root.as_str()),
            ("a b/c.img", "http://localhost:1/")
        );
        for uri in ["s3:///k", "http://h/a//b", "s3://bucket/a//b", "s3://bucket/../b", "ftp://h/k"]
        {
            let class = Location::parse(uri).err().map(|e| e.class);
            assert_eq!(class, Some(ErrorClass::Name), "{uri}");
        }
    }
}
