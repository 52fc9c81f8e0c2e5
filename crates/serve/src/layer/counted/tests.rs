use super::*;
use std::sync::Barrier;
use trueline_geom::base::topology::{Fact, Grain, Placement, Source, Topology, Trust, Why};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;
use trueline_host::disk::memory::Memory;

const LENGTH: u64 = 1 << 20;

fn graph() -> Graph {
    let fact = Fact {
        grain: Grain::new(4096, 0).unwrap(),
        why: Why::Physical,
        source: Source::User,
        trust: Trust::Trusted,
    };
    let store = Box::new(Memory::new(LENGTH).unwrap());
    Graph::taste(
        vec![Disk::new("", store, Topology::new(512, LENGTH).with(fact))],
        Limits::default(),
    )
}

fn counted() -> (Counted, Arc<Counters>) {
    let graph = graph();
    let counters = Arc::new(Counters::new(
        IoAudit::new(&graph, 0),
        Arc::new(RetasteTrigger::new(graph.read_set())),
    ));
    (Counted::new(Arc::new(Through::new(&graph, 0)), counters.clone(), Box::new(|| ())), counters)
}

#[test]
fn every_way_to_ask_is_counted_once() {
    let (store, counters) = counted();
    assert_eq!(counters.counts(), Counts::default());
    let mut buffer = [0; 4096];
    assert_eq!(store.try_read(&mut buffer, 0), Ok(true));
    store.read_at(&mut buffer, 512).unwrap();
    store.write_at(&buffer, 8192).unwrap();
    store.write_through(&buffer[..512], 0).unwrap();
    store.zero(4096, 4096).unwrap();
    store.discard(0, LENGTH).unwrap();
    store.flush().unwrap();
    store.try_zero(0, 4096, false).unwrap();
    assert_eq!(store.borrow(4096, 4096).map(|lent| lent.map(<[_]>::len)), Ok(Some(4096)));
    assert!(matches!(store.borrow(LENGTH, 1), Ok(None)));
    let counts = counters.counts();
    let [(LayerOnDisk { nth: 0, .. }, tally)] = &counts.cells[..] else { panic!("{counts:?}") };
    let all = IoKind::ALL.map(|deed| Placement::ALL.map(|fit| tally.count(deed, fit)));
    assert_eq!(all, [[2, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0], [2, 0, 0, 0]]);
    assert_eq!(IoKind::ALL.map(|deed| tally.bytes(deed)), [12_288, 4608, LENGTH, 8192]);
    assert_eq!((counts.flushes, counts.failed, counts.most_waiting), (1, [0; 4], 1));
    // What is answered from memory at once has no latency: a read, the write, what is lent.
    assert_eq!(counts.latencies.map(|waits| waits.count()), [1, 1, 1, 2, 1]);
}

#[test]
fn what_is_refused_is_an_error() {
    let (store, counters) = counted();
    counters.refused(IoKind::Write, LENGTH, 512);
    store.write_at(&[0; 512], 0).unwrap();
    assert_eq!(
        (counters.counts().failed, counters.counts().cells[0].1.pieces(IoKind::Write)),
        ([0, 1, 0, 0], 1)
    );
}

#[test]
fn what_fails_is_an_error_and_nothing_else() {
    let (store, counters) = counted();
    assert!(
        store.read_at(&mut [0; 512], LENGTH).is_err()
            && store.try_read(&mut [0; 512], LENGTH).is_err()
    );
    assert!(store.write_at(&[0; 512], LENGTH - 1).is_err() && store.discard(LENGTH, 512).is_err());
    let counts = counters.counts();
    assert_eq!((counts.failed, counts.cells.len()), ([2, 1, 1, 0], 0));
}

#[test]
fn threads_lose_nothing() {
    let (store, counters) = counted();
    // More at a time than there are seats, each of which waits until all have one; and as many
    // again when they have gone.
    let (at_once, gone) = (SHARDS + 4, Barrier::new(SHARDS + 4));
    for _ in 0..2 {
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    LOG_SLOT.with(|_| gone.wait());
                    (0..1000).for_each(|i| store.write_at(&[0; 4096], i % 100 * 512).unwrap());
                });
            }
        });
    }
    let (place, tally) = &counters.counts().cells[0];
    let threads = 2 * at_once as u64;
    assert_eq!(
        (place.layer.provider, tally.pieces(IoKind::Write), tally.bytes(IoKind::Write)),
        (0, threads * 1000, threads * 4_096_000)
    );
    // 0, 8, 16 … of every hundred begin on the grain.
    assert_eq!(tally.count(IoKind::Write, Placement::Aligned), threads * 130);
}

/// A boot sector with a partition from sector 63 on.
fn table() -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[450] = 0x83;
    sector[454..458].copy_from_slice(&63_u32.to_le_bytes());
    sector[458..462].copy_from_slice(&1000_u32.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[test]
fn what_is_found_later_is_counted_from_then_on_and_nothing_is_lost() {
    let graph = Arc::new(std::sync::Mutex::new(graph()));
    let first = graph.lock().unwrap();
    let tasted = Arc::new(RetasteTrigger::new(first.read_set()));
    let counters = Arc::new(Counters::new(IoAudit::new(&first, 0), tasted.clone()));
    let through = Arc::new(Through::new(&first, 0));
    drop(first);
    let (again, known, following) = (graph.clone(), tasted.clone(), counters.clone());
    let settled = move || {
        known.again(|| {
            let graph = again.lock().unwrap().again();
            assert!(known.looked(&graph.read_set()) && following.follow(IoAudit::new(&graph, 0)));
        });
    };
    let store = Counted::new(through, counters.clone(), Box::new(settled));
    let count = || {
        let of = |(place, tally): &(LayerOnDisk, Tally)| {
            (place.layer.provider, tally.pieces(IoKind::Write), tally.blamed(IoKind::Write))
        };
        counters.counts().cells.iter().map(of).collect::<Vec<_>>()
    };
    // Not a tasted range, or only read.
    store.write_at(&[1; 4096], 200 << 10).unwrap();
    store.read_at(&mut [0; 512], 0).unwrap();
    store.flush().unwrap();
    assert!(!tasted.is_stale() && counters.generations.iter().count() == 1);
    // Tasted again at the flush, and not before.
    store.write_at(&table(), 0).unwrap();
    store.write_at(&[0; 4096], 63 * 512).unwrap();
    assert_eq!(count(), [(0, 3, 0)]);
    store.flush().unwrap();
    store.write_at(&[0; 4096], 63 * 512).unwrap();
    store.write_at(&[0; 512], 512).unwrap();
    assert_eq!(count(), [(0, 4, 0), (1, 1, 1)]);
    // The table goes, and comes back as it was.
    store.write_through(&[0; 512], 0).unwrap();
    store.write_at(&[0; 4096], 63 * 512).unwrap();
    assert_eq!(count(), [(0, 6, 0), (1, 1, 1)]);
    store.write_through(&table(), 0).unwrap();
    store.write_at(&[0; 4096], 63 * 512).unwrap();
    assert_eq!(count(), [(0, 7, 0), (1, 2, 2)]);
}
