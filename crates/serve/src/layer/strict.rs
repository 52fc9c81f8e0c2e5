//! A store that refuses misaligned requests: a test for software that must keep to the grain.
//!
//! A write or zeroing that is not whole units fails with [`Errno::Unaligned`], without an effect;
//! reads too, on request. Misaligned discards cost nothing, and are done.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{Action, Filter, Request};
use trueline_geom::base::store::{Properties, Store};
use trueline_geom::base::topology::Grain;
use trueline_host::lock::lock;

/// The refused requests of several stores.
#[derive(Debug, Default)]
pub struct Refused {
    count: AtomicU64,
    first: Mutex<Option<MisalignedRequest>>,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisalignedRequest {
    /// The operation: `read`, `write` or `zeros`.
    pub what: &'static str,
    /// The name of the provider.
    pub provider: String,
    /// The offset of its first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// The grain that it is off.
    pub grain: Grain,
}

impl fmt::Display for MisalignedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MisalignedRequest { what, provider, offset, length, grain } = self;
        write!(
            f,
            "{what} of {length} bytes at {offset} of {provider}, whose {}-byte units begin at byte {}",
            grain.size(),
            grain.phase()
        )
    }
}

impl Refused {
    /// The number of refused requests, and the first of them.
    pub fn told(&self) -> (u64, Option<MisalignedRequest>) {
        let first = lock(&self.first).clone();
        (self.count.load(Ordering::Relaxed), first)
    }
}

/// A store that refuses misaligned requests.
pub struct Strict {
    below: Arc<dyn Store>,
    /// The name of the provider in messages.
    name: String,
    grain: Grain,
    /// The end of the medium, where a request may end off the grain.
    end: Option<u64>,
    reads: bool,
    refused: Arc<Refused>,
}

impl Strict {
    /// The store `below` named `name`, with units `grain`. `last`: the medium ends with it.
    /// `reads`: reads are refused too.
    pub fn new(
        below: Arc<dyn Store>,
        name: String,
        grain: Grain,
        last: bool,
        reads: bool,
        refused: Arc<Refused>,
    ) -> Strict {
        let end = last.then(|| below.length());
        Strict { below, name, grain, end, reads, refused }
    }

    /// Refuses a request that is not whole units.
    fn check(&self, request: &Request) -> Result<(), Errno> {
        let what = match request.action {
            Action::Read if self.reads => "read",
            Action::Write => "write",
            Action::Zero => "zeros",
            Action::Read | Action::Discard | Action::Flush => return Ok(()),
        };
        let Request { offset, length, .. } = *request;
        let end = offset.checked_add(length).ok_or(Errno::Range)?;
        if length == 0
            || self.grain.contains(offset) && (self.grain.contains(end) || self.end == Some(end))
        {
            return Ok(());
        }
        self.refused.count.fetch_add(1, Ordering::Relaxed);
        let mut first = lock(&self.refused.first);
        first.get_or_insert_with(|| MisalignedRequest {
            what,
            provider: self.name.clone(),
            offset,
            length,
            grain: self.grain,
        });
        Err(Errno::Unaligned)
    }
}

impl Filter for Strict {
    fn inner(&self) -> &dyn Store {
        &*self.below
    }

    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.check(request)?;
        run()
    }

    fn attempt<T>(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        self.check(request)?;
        run()
    }

    fn offered(&self) -> Properties {
        self.below.properties()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_host::disk::memory::Memory;

    #[test]
    fn what_is_off_the_grain_is_refused_and_not_done() {
        let (memory, refused) =
            (Arc::new(Memory::new(10_000).unwrap()), Arc::new(Refused::default()));
        let grain = Grain::new(4096, 512).unwrap();
        let strict = |last, reads| {
            Strict::new(memory.clone(), "p1".into(), grain, last, reads, refused.clone())
        };
        let (inner, disk) = (strict(false, false), strict(true, true));
        for (offset, length, good) in [
            (512, 4096, true),
            (512, 8192, true),
            (0, 4096, false),
            (512, 512, false),
            (4608, 5392, false),
        ] {
            let want = if good { Ok(()) } else { Err(Errno::Unaligned) };
            let bytes = vec![1; length];
            assert_eq!(inner.write_at(&bytes, offset), want);
            assert_eq!(inner.write_through(&bytes, offset), want);
            assert_eq!(inner.try_zero(offset, length as u64, false), want);
            assert_eq!(inner.read_at(&mut bytes.clone(), offset), Ok(()));
        }
        assert_eq!((inner.discard(0, 10), inner.write_at(&[], 3)), (Ok(()), Ok(())));
        // Nothing follows the end of a disk.
        assert_eq!(disk.write_at(&vec![1; 5392], 4608), Ok(()));
        assert_eq!(
            (disk.read_at(&mut [0; 512], 0), disk.try_read(&mut [0; 4096], 512)),
            (Err(Errno::Unaligned), Ok(true))
        );
        let (count, first) = refused.told();
        assert_eq!(count, 10);
        assert_eq!(
            first.unwrap().to_string(),
            "write of 4096 bytes at 0 of p1, whose 4096-byte units begin at byte 512"
        );
        let mut read = [9; 512];
        memory.read_at(&mut read, 0).unwrap();
        assert_eq!(read, [0; 512]);
    }
}
