//! First sector of a journal that is not complete yet.
//!
//! # On disk
//! One part of 512 bytes at the beginning of the file: the magic with the version, the identity of
//! the move or the conversion, a CRC-32 of both, and the meaning in words. It is written before
//! anything else of the journal. The head takes its place at last: the rest of the head is flushed
//! before, and such a part is written whole or not at all. So a journal with a draft was
//! never gone by: nothing on the disk had changed.

use crate::base::error::Errno;
use crate::base::store::Store;

const MAGIC: &[u8; 8] = b"TLDRAFT\x01";
/// Bytes that a medium writes whole or not at all.
const ATOM: usize = 512;
/// Bytes of the part, for addresses.
pub(super) const LENGTH: u64 = ATOM as u64;
const WORDS: &[u8] = b"\nThis journal was not complete when its move was interrupted, and nothing \
    on the disk had changed. It may be removed.\n";

/// The first part of a journal for the move or the conversion `id`, as long as it has no head.
pub fn draft(id: &[u8; 16]) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], id].concat();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(WORDS);
    bytes.resize(ATOM, 0);
    bytes
}

/// True if the file in `store` is a journal that was never complete: one with a draft, or a file
/// that was made and not written to.
pub fn is_draft(store: &dyn Store) -> Result<bool, Errno> {
    let length = usize::try_from(store.length()).unwrap_or(usize::MAX).min(ATOM);
    let mut bytes = vec![0; length];
    if length > 0 {
        store.read_at(&mut bytes, 0)?;
    }
    let is_empty = store.length() <= LENGTH && bytes.iter().all(|&byte| byte == 0);
    let covered = MAGIC.len() + 16;
    let is_sound = bytes
        .split_at_checked(covered)
        .is_some_and(|(covered, rest)| rest.starts_with(&crc32fast::hash(covered).to_le_bytes()));
    Ok(is_empty || bytes.starts_with(MAGIC) && is_sound)
}

/// Writes `head` to the beginning of `store`, and flushes it. Until all of it is on the medium, its
/// first part is not.
pub fn write_head(store: &dyn Store, head: &[u8]) -> Result<(), Errno> {
    let (first, rest) = head.split_at(head.len().min(ATOM));
    if !rest.is_empty() {
        store.write_at(rest, LENGTH)?;
    }
    store.flush()?;
    store.write_at(first, 0)?;
    store.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::store::Sparse;

    fn file(bytes: &[u8], length: u64) -> Sparse {
        let mut file = Sparse::new(length);
        file.put(0, bytes);
        file
    }

    #[test]
    fn a_journal_without_a_head_is_known() {
        let bytes = draft(&[5; 16]);
        assert_eq!(bytes.len(), ATOM);
        for (bytes, length, wanted) in [
            (bytes.clone(), 1 << 20, true),
            (bytes.clone(), 512, true),
            (Vec::new(), 0, true),
            (vec![0; 512], 512, true),
            // A disk that begins with zeros is none.
            (vec![0; 512], 4096, false),
            (b"TLDRAFT\x02".to_vec(), 4096, false),
            (b"TLMOVE\0\x04".to_vec(), 4096, false),
            (b"TLDRAFT\x01".to_vec(), 20, false),
        ] {
            assert_eq!(is_draft(&file(&bytes, length)), Ok(wanted), "{bytes:?}");
        }
        let mut other = bytes;
        other[10] ^= 1;
        assert_eq!(is_draft(&file(&other, 4096)), Ok(false));
    }
}
