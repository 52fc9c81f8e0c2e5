//! Apple Data Compression (ADC), as old images of macOS have it: bytes as they are, and copies of
//! what was unpacked before, at most 64 KiB back.
//!
//! # Sources
//! libmodi "Mac OS disk image types", ADC compressed data; 7-Zip `DmgHandler.cpp`, which agrees.

use crate::base::error::Errno;

/// Fills `block` with what `stored` unpacks to.
///
/// Errors: [`Errno::Io`] for a copy of what is before the block, and for too few bytes.
pub(super) fn unpack(stored: &[u8], block: &mut [u8]) -> Result<(), Errno> {
    let (mut source, mut done) = (stored, 0);
    while done < block.len() {
        let code = usize::from(take(&mut source)?);
        let room = block.len() - done;
        if code & 0x80 != 0 {
            let length = ((code & 0x7f) + 1).min(room);
            let plain = source.split_off(..length).ok_or(Errno::Io)?;
            block[done..done + length].copy_from_slice(plain);
            done += length;
            continue;
        }
        let (length, back) = if code & 0x40 != 0 {
            let high = usize::from(take(&mut source)?);
            ((code & 0x3f) + 4, high << 8 | usize::from(take(&mut source)?))
        } else {
            ((code >> 2) + 3, (code & 3) << 8 | usize::from(take(&mut source)?))
        };
        let from = done.checked_sub(back + 1).ok_or(Errno::Io)?;
        // Byte by byte: a copy may go on in what it has made itself.
        for nth in 0..length.min(room) {
            block[done + nth] = block[from + nth];
        }
        done += length.min(room);
    }
    Ok(())
}

/// The first byte of `source`, taken off it.
fn take(source: &mut &[u8]) -> Result<u8, Errno> {
    source.split_off_first().copied().ok_or(Errno::Io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_copies_are_unpacked() {
        let mut block = [0; 21];
        // Three bytes, 4 of them from 2 back, 10 from 6 back by a long code, and 4 bytes more.
        let stored = b"\x82abc\x04\x01\x46\0\x05\x83wxyz";
        assert_eq!(unpack(stored, &mut block), Ok(()));
        assert_eq!(&block, b"abcbcbcbcbcbcbcbcwxyz");
        assert_eq!(unpack(stored, &mut block[..20]), Ok(()));
        assert_eq!(unpack(stored, &mut block[..5]), Ok(()));
        assert_eq!(unpack(stored, &mut [0; 22]), Err(Errno::Io));
        for length in 0..stored.len() {
            assert_eq!(unpack(&stored[..length], &mut block), Err(Errno::Io), "{length}");
        }
        // A copy from before the first byte.
        assert_eq!(unpack(b"\x80a\x00\x01", &mut block), Err(Errno::Io));
        assert_eq!(unpack(b"\x40\xff\xff", &mut block), Err(Errno::Io));
    }
}
