//! Objects whose names begin alike.

use crate::error::ObjectError;
use crate::location::Location;
use crate::object::Listed;
use crate::runtime;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, Result};
use std::thread;
use tokio::sync::mpsc;

/// Objects that are listed and not taken yet.
const AHEAD: usize = 4096;

/// Object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// URI under which it is opened.
    pub uri: String,
    /// State in which it was listed.
    pub listed: Listed,
}

/// The objects beneath `prefix`, a URI, in the order of the store, listed while they are taken. An
/// error is the last.
pub fn list(
    prefix: &str,
) -> Box<dyn Iterator<Item = std::result::Result<ListedObject, ObjectError>> + Send> {
    let location = match Location::parse(prefix) {
        Ok(location) => location,
        Err(e) => return Box::new(std::iter::once(Err(e))),
    };
    let (send, receive) = mpsc::channel(AHEAD);
    let (prefix, place) = (prefix.to_owned(), location.clone());
    // The listing goes on while workers wait for their objects. It ends with its channel.
    thread::spawn(move || {
        let all = runtime::wait(async {
            let beneath = Some(&place.path).filter(|path| **path != Path::ROOT);
            let mut listing = place.store.list(beneath);
            while let Some(found) = listing.next().await {
                let ends = found.is_err();
                if send.send(found).await.is_err() || ends {
                    break;
                }
            }
        });
        // Without a runtime nothing can be said through the channel: the receiver sees no entry,
        // and the first object that is opened says why.
        drop(all);
    });
    Box::new(Listing { receive, location, prefix })
}

/// A listing under way.
struct Listing {
    receive: mpsc::Receiver<Result<ObjectMeta>>,
    location: Location,
    prefix: String,
}

impl Iterator for Listing {
    type Item = std::result::Result<ListedObject, ObjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.receive.blocking_recv()?;
        Some(match found {
            Ok(meta) => Ok(ListedObject {
                uri: self.location.uri(&meta.location),
                listed: Listed { size: meta.size, etag: meta.e_tag.unwrap_or_default() },
            }),
            Err(e) => Err(ObjectError::from_store(&self.prefix, &e)),
        })
    }
}
