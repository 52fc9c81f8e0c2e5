//! The JSON of LUKS2, as far as a volume is opened by it ("LUKS2 On-Disk Format Specification" 1.1,
//! section 3). Numbers that may be of 64 bits are text there.

use crate::{Fault, refused};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// The whole; objects are looked into where they are used, so that one of an unknown kind is in
/// nothing's way.
#[derive(Deserialize)]
pub(super) struct Metadata {
    keyslots: BTreeMap<String, Value>,
    segments: BTreeMap<String, Value>,
    digests: BTreeMap<String, Value>,
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    requirements: Option<Requirements>,
}

#[derive(Deserialize)]
struct Requirements {
    #[serde(default)]
    mandatory: Vec<String>,
}

/// A segment of data.
#[derive(Deserialize)]
pub(super) struct Segment {
    #[serde(rename = "type")]
    kind: String,
    pub(super) offset: String,
    pub(super) size: String,
    pub(super) iv_tweak: String,
    pub(super) encryption: String,
    pub(super) sector_size: u64,
    integrity: Option<Tags>,
}

/// Tags of a segment's sectors.
#[derive(Deserialize)]
struct Tags {
    #[serde(rename = "type")]
    kind: String,
}

/// Key slot: where a volume key is, and how it is reached.
#[derive(Deserialize)]
pub(super) struct Slot {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Bytes of the volume key.
    pub(super) key_size: usize,
    pub(super) area: Area,
    pub(super) kdf: Kdf,
    pub(super) af: AntiForensic,
}

/// Place and cipher of a slot's material.
#[derive(Deserialize)]
pub(super) struct Area {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) offset: String,
    pub(super) size: String,
    pub(super) encryption: String,
    /// Bytes of the key that the passphrase makes.
    pub(super) key_size: usize,
}

/// The function that makes a key of a passphrase.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Kdf {
    Pbkdf2 { hash: String, iterations: u64, salt: String },
    Argon2i { time: u32, memory: u32, cpus: u32, salt: String },
    Argon2id { time: u32, memory: u32, cpus: u32, salt: String },
}

/// Spreading of the key over stripes.
#[derive(Deserialize)]
pub(super) struct AntiForensic {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) stripes: u64,
    pub(super) hash: String,
}

/// Digest of a volume key.
#[derive(Deserialize)]
pub(super) struct Digest {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) keyslots: Vec<String>,
    segments: Vec<String>,
    pub(super) hash: String,
    pub(super) iterations: u64,
    pub(super) salt: String,
    pub(super) digest: String,
}

/// Longest JSON that is parsed, in bytes: cryptsetup fills some thousand. Parsed it is larger by
/// far.
const LONGEST_TEXT: usize = 256 << 10;

impl Metadata {
    /// Parses the JSON area, whose rest is zero. Errors: damage.
    pub(super) fn parse(area: &[u8]) -> Result<Metadata, Fault> {
        let end = area.iter().position(|&byte| byte == 0).unwrap_or(area.len());
        if end > LONGEST_TEXT {
            return refused(format!("its JSON is longer than {LONGEST_TEXT} bytes"));
        }
        serde_json::from_slice(&area[..end])
            .or_else(|error| refused(format!("its JSON cannot be understood: {error}")))
    }

    /// Checks that nothing is demanded of a reader. Errors: a requirement, none of which is known.
    pub(super) fn demands_nothing(&self) -> Result<(), Fault> {
        let mandatory = self.config.requirements.iter().flat_map(|r| &r.mandatory);
        match mandatory.into_iter().next() {
            Some(what) => refused(format!("it needs {what:?}, which is not known here")),
            None => Ok(()),
        }
    }

    /// The one segment, and its name. Errors: there are several; it is not encryption.
    pub(super) fn segment(&self) -> Result<(&str, Segment), Fault> {
        let mut segments = self.segments.iter();
        let (Some((name, value)), None) = (segments.next(), segments.next()) else {
            return refused(format!("its data are in {} segments", self.segments.len()));
        };
        let segment: Segment = object("segment", value)?;
        if segment.kind != "crypt" {
            return refused(format!("its data are a segment {:?}", segment.kind));
        }
        Ok((name, segment))
    }

    /// The digest of the key of `segment`.
    pub(super) fn digest(&self, segment: &str) -> Result<Digest, Fault> {
        for value in self.digests.values() {
            let digest: Digest = object("digest", value)?;
            if digest.segments.iter().any(|own| own == segment) {
                return Ok(digest);
            }
        }
        refused("its data have no digest of their key")
    }

    /// The key slot called `id`; `None` if there is none.
    pub(super) fn slot(&self, id: &str) -> Result<Option<Slot>, Fault> {
        self.keyslots.get(id).map(|value| object("key slot", value)).transpose()
    }
}

impl Segment {
    /// Bytes of the volume key, behind those of the cipher, that make the tags; `None` for sectors
    /// without. Errors: tags that change what is encrypted, or how.
    pub(super) fn tag_key(&self) -> Result<Option<usize>, Fault> {
        let Some(tags) = &self.integrity else { return Ok(None) };
        match tags.kind.as_str() {
            "hmac(sha1)" => Ok(Some(20)),
            "hmac(sha256)" => Ok(Some(32)),
            "hmac(sha512)" => Ok(Some(64)),
            kind => refused(format!("its data have tags by {kind:?}, which are not known here")),
        }
    }
}

/// The object `value`. Errors: it is no `what`.
fn object<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, Fault> {
    T::deserialize(value)
        .or_else(|error| refused(format!("a {what} is not as it should be: {error}")))
}
