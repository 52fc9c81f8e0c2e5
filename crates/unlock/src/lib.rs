//! Opens encrypted volumes for reading: LUKS1 and LUKS2, with the contents of key files.
//!
//! [`Keys`] is what a graph asks ([`trueline_geom::probe::unlock::Unlock`]): it derives keys from
//! passphrases, reads the volume key from a key slot, proves it by the header's digest, and answers
//! with a cipher. All numbers come from a disk that is not trusted: memory, iterations and what is
//! read are bounded, and what is passed over says why.
//!
//! Passphrases and the ciphers' key schedules are wiped when the graph goes; derived keys, key
//! material and the memory of Argon2 as soon as they have been used, as far as the crates beneath
//! allow it.

#![forbid(unsafe_code)]

mod antiforensic;
mod cipher;
mod derive;
mod luks1;
mod luks2;

use derive::Effort;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use trueline_geom::format::luks::MAGIC;
use trueline_geom::probe::Blind;
use trueline_geom::probe::unlock::{Decrypt, Locked, Payload, ReadHeader, Unlock};
use zeroize::Zeroizing;

/// A secret in memory, which is wiped when it goes.
pub type Secret = Zeroizing<Vec<u8>>;

/// A passphrase and its source.
#[derive(Clone)]
pub struct Key {
    /// The source, for messages: the name of a file.
    pub source: String,
    /// The passphrase: all bytes of the file, newlines included.
    pub passphrase: Arc<Secret>,
}

/// Largest passphrase in bytes, `DEFAULT_KEYFILE_SIZE_MAXKB` of cryptsetup.
pub const LONGEST_PASSPHRASE: usize = 8 << 20;

/// Keys that volumes are opened with, and what they have opened.
pub struct Keys {
    keys: Vec<Key>,
    known: Mutex<Known>,
}

/// Answers so far, by the digest of the header that they are about: deriving a key takes seconds.
#[derive(Default)]
struct Known {
    answers: BTreeMap<[u8; 32], Result<Opened, Locked>>,
    effort: Effort,
}

/// An opened volume, as a header says it.
#[derive(Clone)]
struct Opened {
    offset: u64,
    length: Option<u64>,
    sector: u64,
    tagged: bool,
    cipher: Arc<dyn Decrypt>,
}

/// Reason for which a header or a slot leads to no key.
enum Fault {
    /// A sentence's rest, about the volume.
    Refused(String),
    /// A part of the provider that cannot be read.
    Blind(Blind),
}

impl From<Blind> for Fault {
    fn from(blind: Blind) -> Fault {
        Fault::Blind(blind)
    }
}

/// Longest reason in characters: some have words of the header, which may be as long as it likes.
const LONGEST_REASON: usize = 200;
/// Most answers that are remembered.
const MOST_ANSWERS: usize = 1024;

/// The fault that `why` says.
fn refused<T>(why: impl Into<String>) -> Result<T, Fault> {
    let why: String = why.into();
    Err(Fault::Refused(match why.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", &why[..end]),
        None => why,
    }))
}

/// The first key that `slots` lead to; `None` if none does. What cannot be read ends the search, a
/// slot that is refused does not, and is the fault if no other leads to one.
fn first_key(
    slots: impl Iterator<Item = Result<Option<Secret>, Fault>>,
) -> Result<Option<Secret>, Fault> {
    let mut fault = None;
    for found in slots {
        match found {
            Ok(None) => {}
            Ok(Some(key)) => return Ok(Some(key)),
            Err(Fault::Blind(blind)) => return Err(Fault::Blind(blind)),
            Err(refused) => fault = fault.or(Some(refused)),
        }
    }
    fault.map_or(Ok(None), Err)
}

impl Keys {
    /// Opens with each of `keys`, in order.
    pub fn new(keys: Vec<Key>) -> Keys {
        Keys { keys, known: Mutex::default() }
    }

    /// Opens with each of `keys`, in order, as long as all volumes together ask for at most so much
    /// work, in iterations of PBKDF2; 400 million are usual.
    pub fn with_work(keys: Vec<Key>, work: u64) -> Keys {
        let known = Known { effort: Effort::of(work), ..Known::default() };
        Keys { keys, known: Mutex::new(known) }
    }

    /// The answer for the header with this digest: the one known, else that of `open`. What could
    /// not be read is asked again.
    fn remembered(
        &self,
        digest: [u8; 32],
        open: impl FnOnce(&mut Effort) -> Result<Option<Opened>, Fault>,
    ) -> Result<Opened, Locked> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known.answers.get(&digest) {
            return answer.clone();
        }
        let answer = match open(&mut known.effort) {
            Ok(Some(opened)) => Ok(opened),
            Ok(None) => Err(Locked(self.no_key())),
            Err(Fault::Refused(why)) => Err(Locked(why)),
            Err(Fault::Blind(blind)) => return Err(unread(blind)),
        };
        if known.answers.len() >= MOST_ANSWERS {
            known.answers.clear();
        }
        known.answers.insert(digest, answer.clone());
        answer
    }

    fn no_key(&self) -> String {
        let sources: Vec<&str> = self.keys.iter().map(|key| key.source.as_str()).collect();
        format!("no key in {} opens it", sources.join(", "))
    }
}

impl Unlock for Keys {
    fn luks(&self, length: u64, read: &mut ReadHeader<'_>) -> Result<Payload, Locked> {
        let mut magic = [0; 8];
        read(&mut magic, 0).map_err(unread)?;
        let opened = if magic.starts_with(MAGIC) && magic.ends_with(&[0, 1]) {
            let header = luks1::header(read).map_err(said)?;
            self.remembered(digest(&header, length), |effort| {
                luks1::open(&header, &self.keys, effort, length, read)
            })
        } else {
            let header = luks2::header(read).map_err(said)?;
            self.remembered(digest(&header, length), |effort| {
                luks2::open(&header, &self.keys, effort, length, read)
            })
        }?;
        let Opened { offset, length, sector, tagged, cipher } = opened;
        Ok(Payload { offset, length, sector, tagged, cipher })
    }
}

/// The digest of a header on a provider of `length` bytes, on which the answer depends too.
fn digest(header: &[u8], length: u64) -> [u8; 32] {
    Sha256::new().chain_update(header).chain_update(length.to_le_bytes()).finalize().into()
}

fn said(fault: Fault) -> Locked {
    match fault {
        Fault::Refused(why) => Locked(why),
        Fault::Blind(blind) => unread(blind),
    }
}

fn unread(blind: Blind) -> Locked {
    Locked(match blind {
        Blind::Budget => "its header and key slots are more than is read of a disk".into(),
        Blind::Unreadable(offset, errno) => {
            format!("its header or a key slot cannot be read at byte {offset}: {errno}")
        }
    })
}
