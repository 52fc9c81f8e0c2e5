//! Keys of encrypted volumes, as tasting asks for them. No cryptography is here: what opens a
//! volume is given to the graph.

use super::Blind;
use std::sync::Arc;

/// Opener of encrypted volumes with the keys that the user gave.
pub trait Unlock: Send + Sync {
    /// The payload of the LUKS volume on a provider of `length` bytes, whose header and key slots
    /// `read` reads. Asked again each time the provider is tasted.
    ///
    /// Errors: the reason for which it stays closed.
    fn luks(&self, length: u64, read: &mut ReadHeader<'_>) -> Result<Payload, Locked>;
}

/// A reader of a provider: buffer, and first byte there.
pub type ReadHeader<'a> = dyn FnMut(&mut [u8], u64) -> Result<(), Blind> + 'a;

/// Reason for which a volume stays closed, in words: "no key in FILE opens it".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked(pub String);

/// Encrypted payload and its cipher. Its numbers are those of the disk, and not checked.
pub struct Payload {
    /// Its first byte, from the provider's byte 0.
    pub offset: u64,
    /// Length in bytes; `None` reaches to the provider's end.
    pub length: Option<u64>,
    /// Bytes that are encrypted at once.
    pub sector: u64,
    /// True if dm-integrity keeps a tag for each sector between them: its superblock begins the
    /// payload.
    pub tagged: bool,
    /// The cipher with its key.
    pub cipher: Arc<dyn Decrypt>,
}

/// A cipher with its key.
pub trait Decrypt: Send + Sync {
    /// Decrypts whole encryption sectors in place; the first begins at `offset` of the payload.
    fn decrypt(&self, offset: u64, sectors: &mut [u8]);
}
