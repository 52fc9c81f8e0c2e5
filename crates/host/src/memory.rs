//! Memory as a disk: what is not written is zero and takes no room.

use crate::buffers::Buffers;
use crate::error::Error;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use trueline_geom::error::Errno;
use trueline_geom::store::Store;

/// A disk in memory.
#[derive(Debug)]
pub struct Memory {
    length: u64,
    bytes: RwLock<Buffers>,
}

impl Memory {
    /// `length` zero bytes.
    pub fn new(length: u64) -> Result<Memory, Error> {
        let bytes = Buffers::zeros(length).map_err(|e| Error::os("reserve", Path::new(&format!("{length} bytes of memory")), e))?;
        Ok(Memory { length, bytes: RwLock::new(bytes) })
    }

    /// The place of `length` bytes at `offset`.
    fn place(&self, offset: u64, length: usize) -> Result<usize, Errno> {
        let end = u64::try_from(length).ok().and_then(|length| offset.checked_add(length));
        let inside = end.is_some_and(|end| end <= self.length);
        usize::try_from(offset).ok().filter(|_| inside).ok_or(Errno::Range)
    }
}

impl Store for Memory {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let at = self.place(offset, buffer.len())?;
        // Who panicked while writing left bytes, and any bytes are a disk's.
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        buffer.copy_from_slice(bytes.bytes(at, buffer.len()));
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let at = self.place(offset, bytes.len())?;
        let mut own = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        own.bytes_mut(at, bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_and_holds_what_is_written() {
        let memory = Memory::new(10_000).unwrap();
        let mut all = vec![9; 10_000];
        memory.read_at(&mut all, 0).unwrap();
        assert!(all.iter().all(|&byte| byte == 0));
        memory.write_at(&[1, 2, 3], 9_997).unwrap();
        let mut end = [0; 4];
        memory.read_at(&mut end, 9_996).unwrap();
        assert_eq!((memory.length(), end), (10_000, [0, 1, 2, 3]));
        // The mapping is whole pages, the disk is not.
        for offset in [9_998, 10_000, u64::MAX] {
            assert_eq!(memory.write_at(&[0; 3], offset), Err(Errno::Range));
            assert_eq!(memory.read_at(&mut end, offset), Err(Errno::Range));
        }
        assert_eq!(memory.read_at(&mut [], 10_000), Ok(()));
        assert!(Memory::new(u64::MAX).is_err());
    }

    /// More than there is: only what is written takes room.
    #[test]
    fn a_large_one_costs_nothing() {
        let Ok(memory) = Memory::new(1 << 40) else { return println!("skipped: this kernel promises no more memory than it has") };
        memory.write_at(&[7], (1 << 40) - 1).unwrap();
        let mut end = [0; 2];
        memory.read_at(&mut end, (1 << 40) - 2).unwrap();
        assert_eq!(end, [0, 7]);
    }
}
