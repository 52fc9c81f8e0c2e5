//! Flushes at the end of serving.

use crate::failure::Reason;
use crate::target::{Source, Target};
use trueline_geom::graph::Graph;

/// Flushes every disk itself: no layer's fault or delay, nor another disk's error, holds back
/// written data. Errors: the first disk that fails, named as typed in `target`.
pub(super) fn disks(graph: &Graph, target: &Target) -> Result<(), Reason> {
    let typed = target.sources();
    // The disks come first, in the order in which they were typed; memory and zeroes have no store.
    let name = |store: usize| {
        let disk = graph
            .providers
            .iter()
            .zip(typed)
            .find(|(disk, _)| disk.route().medium() == Some(store));
        disk.map_or(target.typed(), |(_, source): (_, &Source)| source.typed())
    };
    let stores = graph.shared_stores();
    let flushed = stores.iter().enumerate().map(|(at, store)| {
        store.flush().map_err(|e| Reason::from(e).behind(format_args!("flush {}", name(at))))
    });
    flushed.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use trueline_geom::base::error::Errno;
    use trueline_geom::base::store::Store;
    use trueline_geom::base::topology::Topology;
    use trueline_geom::graph::Disk;
    use trueline_geom::probe::Limits;

    struct Flushed(Result<(), Errno>, Arc<AtomicUsize>);

    impl Store for Flushed {
        fn length(&self) -> u64 {
            1 << 20
        }

        fn read_at(&self, buffer: &mut [u8], _: u64) -> Result<(), Errno> {
            buffer.fill(0);
            Ok(())
        }

        fn flush(&self) -> Result<(), Errno> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0
        }

        fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
            Err(Errno::ReadOnly)
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Ok(())
        }
    }

    #[test]
    fn the_disk_that_fails_is_named_and_the_others_are_flushed() {
        let flushes = Arc::new(AtomicUsize::new(0));
        let disks = [Ok(()), Err(Errno::NoSpace), Err(Errno::Io)].map(|done| {
            let store = Box::new(Flushed(done, flushes.clone()));
            Disk::new("", store, Topology::new(512, 1 << 20))
        });
        let graph = Graph::taste(disks.into(), Limits::default());
        assert_eq!(
            super::disks(&graph, &Target::parse("/dev/sda,/dev/sdb,c.img#data")),
            Err(Reason("flush /dev/sdb: no space left".into()))
        );
        assert_eq!(flushes.load(Ordering::Relaxed), 3);
    }
}
