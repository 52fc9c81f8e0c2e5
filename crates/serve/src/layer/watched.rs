//! A disk whose failed reads are told: where another copy or parity has the same bytes, the set
//! answers from there, and no client sees that a disk fails.

use crate::notice::{Notice, Tell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{Action, Filter, Request};
use trueline_geom::base::store::{Properties, Store};

/// A disk that is one of several.
pub struct Watched {
    below: Box<dyn Store>,
    /// Name of the disk, as the graph has it.
    disk: String,
    failed: AtomicU64,
    tell: Arc<Tell>,
}

impl Watched {
    /// The disk `below`; `tell` takes its failures: the first, the tenth, the hundredth and so on.
    pub fn new(below: Box<dyn Store>, disk: String, tell: Arc<Tell>) -> Watched {
        Watched { below, disk, failed: AtomicU64::new(0), tell }
    }
}

impl Filter for Watched {
    fn inner(&self) -> &dyn Store {
        &*self.below
    }

    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let done = run();
        if let (Err(error), Action::Read) = (done, request.action) {
            let count = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
            if count == 10u64.pow(count.ilog10()) {
                let (disk, offset, length) = (self.disk.clone(), request.offset, request.length);
                (self.tell)(&Notice::ReadFailed { disk, offset, length, error, count });
            }
        }
        done
    }

    fn attempt<T>(
        &self,
        _request: &Request,
        run: impl FnOnce() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        run()
    }

    fn offered(&self) -> Properties {
        self.below.properties()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A disk whose second page cannot be read.
    struct Bad;

    impl Store for Bad {
        fn length(&self) -> u64 {
            8192
        }

        fn read_at(&self, _buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
            if offset < 4096 { Ok(()) } else { Err(Errno::Io) }
        }

        fn write_at(&self, _bytes: &[u8], _offset: u64) -> Result<(), Errno> {
            Err(Errno::Io)
        }

        fn flush(&self) -> Result<(), Errno> {
            Ok(())
        }

        fn discard(&self, _offset: u64, _length: u64) -> Result<(), Errno> {
            Ok(())
        }
    }

    #[test]
    fn reads_that_fail_are_told_ever_more_seldom() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell: Arc<Tell> = {
            let told = told.clone();
            Arc::new(move |notice: &Notice| told.lock().unwrap().push(notice.to_string()))
        };
        let disk = Watched::new(Box::new(Bad), "disk1".into(), tell);
        let mut page = [0; 512];
        assert_eq!(disk.read_at(&mut page, 0), Ok(()));
        assert_eq!(disk.write_at(&page, 4096), Err(Errno::Io));
        assert!(told.lock().unwrap().is_empty());
        for _ in 0..105 {
            assert_eq!(disk.read_at(&mut page, 4096), Err(Errno::Io));
        }
        let told = told.lock().unwrap();
        let first = "disk1: read of 512 bytes at byte 4096: input/output error: another copy, or \
            parity, answers where there is one";
        assert_eq!(told[0], first);
        assert!(told[1].ends_with("; 10 reads have failed"), "{}", told[1]);
        assert_eq!(told.len(), 3);
    }
}
