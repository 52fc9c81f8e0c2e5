//! The same commands under every personality.

use super::super::firmware::{Firmware, Reason, Target, personality};
use super::super::write_cache::{Extent, Taken, WriteCache};
use super::*;
use crate::time::seconds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PERSONALITIES: [&str; 4] = ["command", "stream", "window", "log"];

/// Megabytes a second of `count` writes, one behind the other from `offset` on, with `depth` of
/// them in the drive, and a flush.
#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn writes(
    model: &Model,
    offset: u64,
    (length, count): (u64, u64),
    depth: usize,
) -> (f64, Counters) {
    let mut bench = Bench::new(model, 1);
    for k in 0..count {
        bench.submit(Op::Write, offset + k * length, length, false);
        bench.wait(depth - 1);
    }
    bench.wait(0);
    bench.flush();
    ((length * count) as f64 / seconds(bench.now) / 1e6, bench.counters())
}

/// The drive of the gpart thread with sectors of 4096 bytes, as the lab of 2013 has it.
fn gpart(personality: &str) -> Model {
    model("seed-004", &[("physical_block_size", i(4096)), ("personality", t(personality))])
}

#[test]
fn a_stream_of_ragged_commands_costs_a_revolution_each_or_none_by_personality() {
    let (clusters, offset) = ((131_072, 800), (1 << 30) + 3072);
    let rate = |personality| writes(&gpart(personality), offset, clusters, 4);
    let [(alone, each), (stream, few), (window, cut)] = ["command", "stream", "window"].map(rate);
    let (whole, none) = writes(&gpart("command"), 1 << 30, clusters, 4);
    assert_eq!(none.rmw_reads, 0);
    // A revolution of 8.3 ms for each cluster of 1 ms.
    assert_eq!(each.rmw_reads, 800);
    assert!(alone < whole / 6.0, "{alone} of {whole} MB/s");
    assert!(
        few.rmw_reads < 16 && stream > 0.85 * whole,
        "{} reads, {stream} of {whole} MB/s",
        few.rmw_reads
    );
    // Windows are cut between sectors: where one ends the next begins, and nothing is lost.
    assert!(
        cut.rmw_reads < 16 && window > 0.85 * whole,
        "{} reads, {window} of {whole} MB/s",
        cut.rmw_reads
    );
}

#[test]
fn a_window_takes_whole_what_does_not_go_on_from_it() {
    // Writes of 48 KiB every 64 KiB, ragged: three of them and no part of the fourth lie in a
    // window of 192 KiB.
    let set =
        [("personality", t("window")), ("window_bytes", i(3 << 16)), ("destage_order", t("clook"))];
    let mut bench = Bench::new(&model("wd10ears", &set), 1);
    for k in 0..12 {
        bench.submit(Op::Write, 512 + (k << 16), 3 << 14, false);
    }
    bench.wait(0);
    bench.flush();
    let counters = bench.counters();
    assert_eq!((counters.rmw_reads, counters.rmw), (4, 24), "four windows, two edges a write");
}

#[test]
fn random_writes_far_apart_are_the_same_to_all_but_a_log() {
    // One at a time or many: nothing adjoins, and no two lie in one window.
    let run = |personality, depth: usize| {
        let (mut bench, mut random) = (Bench::new(&gpart(personality), 1), Random::new(4));
        for _ in 0..300 {
            bench.submit(Op::Write, random.below(40_000) * (1 << 22) + 3072, 4096, false);
            bench.wait(depth - 1);
        }
        bench.wait(0);
        bench.flush();
        (bench.now, bench.counters())
    };
    for depth in [1, 31] {
        let [command, stream, window, log] =
            PERSONALITIES.map(|personality| run(personality, depth));
        assert_eq!(command.1.rmw_reads, 300);
        assert_eq!((stream, window), (command, command));
        assert!(log.0 < command.0 / 5, "a log does not seek, and reads nothing first");
    }
}

#[test]
fn a_stream_closed_every_so_often_loses_a_revolution_there() {
    // 6 MB cost .84 of what aligned clusters of 64 KiB come to.
    let rate = |offset, segment| {
        let set = [("personality", t("stream")), ("segment_bytes", i(segment))];
        writes(&model("wd10ears", &set), offset, (65_536, 3000), 1)
    };
    let ((aligned, _), (open, few), (closed, cut)) =
        (rate(0, 6_000_000), rate(512, 0), rate(512, 6_000_000));
    assert!(
        open / aligned > 0.97 && few.rmw_reads < 8,
        "{open} of {aligned} MB/s, {} reads",
        few.rmw_reads
    );
    // 196.6 MB are 32 segments of 92 commands and a bit, with two ends each, one of which the edge
    // cache knows.
    assert!((30..=70).contains(&cut.rmw_reads), "{} reads", cut.rmw_reads);
    assert!((0.80..0.88).contains(&(closed / aligned)), "{closed} of {aligned} MB/s");
}

#[test]
fn tails_that_wait_for_their_other_half_leave_room_for_other_writes() {
    // Streams of two writes that end within a sector, and after them a write of a whole sector.
    let model = model("wd10ears", &[("personality", t("stream"))]);
    let destaged_first = |streams: u64| {
        let mut disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
        let mut write = |start: u64, end: u64| {
            disk.arrivals += 1;
            disk.ledger.written += end - start;
            disk.writes.insert(start, end, disk.arrivals, &|_| true, &disk.mechanism.geometry);
        };
        for start in (0..streams).map(|stream| stream << 31) {
            write(start, start + 1024);
            write(start + 1024, start + 2048);
        }
        let newest = streams << 31;
        write(newest, newest + 4096);
        disk.urgent = true;
        disk.dispatch(0);
        match disk.running {
            Some(Running { work: Work::Destage { taken, .. }, .. }) => taken[0].start == newest,
            other => panic!("{other:?}"),
        }
    };
    // Half of the 24 slots are theirs.
    assert!(destaged_first(12), "twelve wait");
    assert!(!destaged_first(13) && !destaged_first(22), "the newest goes before more than twelve");
}

/// A drive with a log of `bytes` that remembers nothing it read.
fn logging(bytes: i64) -> Model {
    let remembers =
        ["read_segments", "read_ahead_bytes", "edge_cache_sectors"].map(|key| (key, i(0)));
    model(
        "wd10ears",
        &[&[("personality", t("log")), ("log_bytes", i(bytes))], &remembers[..]].concat(),
    )
}

#[test]
fn what_is_in_the_log_is_read_there() {
    let mut bench = Bench::new(&logging(1 << 24), 1);
    // Far apart and ragged, so that each would have to be read first at home.
    let place = |k: u64| k * (20 << 30) + 512;
    for k in 0..20 {
        bench.submit(Op::Write, place(k), 8192, false);
    }
    bench.wait(0);
    bench.flush();
    let logged = bench.counters();
    assert_eq!((logged.rmw, logged.rmw_reads), (0, 0), "nothing was read to write it");
    let begun = bench.now;
    for k in 0..20 {
        bench.submit(Op::Read, place(k), 8192, false);
    }
    bench.wait(0);
    let counters = bench.counters();
    // They lie side by side: 20 reads, and the arm hardly moves.
    assert_eq!(counters.media_ops - logged.media_ops, 20);
    assert!(
        counters.seek - logged.seek < 30 * MS,
        "{} ms of seeks",
        (counters.seek - logged.seek) / MS
    );
    assert!(bench.now - begun < 300 * MS, "{} ms", (bench.now - begun) / MS);
    // A read of what is partly there takes two passes; behind it nothing else lies in the log.
    bench.finish(Op::Read, place(3), 16_384);
    assert_eq!(bench.counters().media_ops - counters.media_ops, 2);
}

#[test]
fn an_idle_drive_rewrites_the_log_at_home_and_begins_it_again() {
    let model = logging(1 << 18);
    let mut disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
    let (mut now, mut done) = (0, Vec::new());
    for round in 0..5 {
        for k in 0..20 {
            let offset = k * (1 << 30) + 512;
            disk.submit(
                now,
                Command { tag: round * 100 + k, op: Op::Write, offset, length: 8192, fua: false },
            );
        }
        disk.submit(
            now,
            Command { tag: round * 100 + 99, op: Op::Flush, offset: 0, length: 0, fua: false },
        );
        while done.len() < 21 {
            now = disk.next().unwrap();
            disk.advance(now, &mut done);
        }
        done.clear();
        assert_eq!((disk.log.len(), disk.writes.len()), (20, 0), "round {round}");
        assert_eq!(disk.counters.rmw_reads, round * 20, "deferred to idle");
        while let Some(at) = disk.next() {
            now = at;
            disk.advance(now, &mut done);
        }
        assert!(disk.log.is_empty() && disk.log_next == disk.log_first, "round {round}");
        assert_eq!(disk.counters.rmw_reads, (round + 1) * 20);
    }
}

#[test]
fn a_full_log_lets_writes_go_home_and_is_not_written_over() {
    let model = logging(1 << 16);
    let mut disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
    let (mut now, mut done, mut open, mut random) = (0, Vec::new(), 0, Random::new(9));
    for tag in 0..200 {
        let offset = random.below(60) * (1 << 30) + 512 * random.below(8);
        disk.submit(now, Command { tag, op: Op::Write, offset, length: 4096, fua: false });
        open += 1;
        while open > 0 {
            now = disk.next().unwrap();
            disk.advance(now, &mut done);
            open -= done.drain(..).count();
            let mut places: Vec<(u64, u64)> = disk
                .log
                .within(0, u64::MAX)
                .map(|(start, extent)| (extent.at, extent.at + (extent.end - start)))
                .collect();
            places.sort_unstable();
            assert!(
                places.windows(2).all(|pair| pair[0].1 <= pair[1].0),
                "two in one place of the log"
            );
            let (first, end) = (disk.log_first * 4096, (disk.log_first + disk.log_sectors) * 4096);
            assert!(
                places.iter().all(|&(at, until)| first <= at && until <= end),
                "outside the log"
            );
        }
    }
    assert!(disk.counters.rmw_reads > 50, "{} went home", disk.counters.rmw_reads);
}

/// A personality that counts the extents that it is asked about.
#[derive(Debug)]
struct Asked {
    of: Box<dyn Firmware>,
    count: Arc<AtomicU64>,
}

impl Firmware for Asked {
    fn merges(&self, before: &Extent) -> bool {
        self.of.merges(before)
    }

    fn waits(&self, start: u64, extent: &Extent) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.of.waits(start, extent)
    }

    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        reason: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target {
        self.of.gather(writes, start, reason, geometry, taken)
    }
}

/// Thousands of dirty extents of which none is a stream's: a destage that went through all of them
/// would make the simulation slower by their number.
#[test]
fn a_destage_asks_about_few_of_the_extents() {
    let model = model("wd10ears", &[("slots", i(4096)), ("cache_bytes", i(1 << 30))]);
    let parameters = model.disk.as_ref().unwrap();
    let mut disk = Disk::new(&model, parameters, 1);
    let asked = Arc::new(AtomicU64::new(0));
    let of = personality(parameters, disk.sector, None);
    disk.firmware = Box::new(Asked { of, count: asked.clone() });
    let mut bench = Bench { drive: Box::new(disk), now: 0, next: 0, open: 0, done: Vec::new() };
    let mut random = Random::new(1);
    for _ in 0..8000 {
        bench.submit(Op::Write, random.below(1 << 27) * 4096, 4096, false);
        bench.wait(0);
    }
    let destages = bench.counters().media_ops;
    let asked = asked.load(Ordering::Relaxed);
    assert!(destages > 3000 && asked < 64 * destages, "{asked} of {destages} destages");
}
