//! A disk in memory, for examples that are measured.

use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;

/// A disk in memory without a hole in it, so that nothing but the route is measured.
#[derive(Clone)]
pub struct Memory(pub Arc<Vec<u8>>);

impl Store for Memory {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let at = usize::try_from(offset).map_err(|_| Errno::Range)?;
        let end = at.checked_add(buffer.len()).ok_or(Errno::Range)?;
        buffer.copy_from_slice(self.0.get(at..end).ok_or(Errno::Range)?);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}
