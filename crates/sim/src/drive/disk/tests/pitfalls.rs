//! Mistakes that a model of this kind made before, each held off by a test of its own.

use super::*;
use crate::time::seconds;

/// Writes of 4 KiB at random places, each after the host read the pages: what a page cache makes of
/// a misaligned write.
fn page_cache(model: &Model) -> f64 {
    let (mut bench, mut random) = (Bench::new(model, 1), Random::new(5));
    for _ in 0..600 {
        let at = random.below(model.size / 4096 - 2) * 4096;
        bench.finish(Op::Read, at, 4096);
        bench.finish(Op::Read, at + 4096, 4096);
        bench.finish(Op::Write, at, 8192);
    }
    seconds(bench.now)
}

#[test]
fn destaging_at_once_would_be_one_revolution_late_each_time() {
    let (waits, eager) = (
        page_cache(&model("wd10ears", &[])),
        page_cache(&model("wd10ears", &[("idle_ms", f(0.0))])),
    );
    assert!(eager > waits * 1.15, "{eager} s, {waits} s with a wait");
}

#[test]
fn a_continuation_is_not_set_up_again_neither_when_done_nor_when_chosen() {
    for personality in ["command", "stream"] {
        let model = model("wd10ears", &[("personality", t(personality)), ("setup_ms", f(2.0))]);
        let mut bench = Bench::new(&model, 1);
        let commands = 3000;
        for k in 0..commands {
            bench.finish(Op::Write, k * 65_536, 65_536);
        }
        let counters = bench.counters();
        assert!(
            counters.setup < 200 * MS,
            "{personality}: {} set-ups of 2 ms",
            counters.setup / (2 * MS)
        );
        assert!(counters.lost_revolutions < 10, "{personality}: {}", counters.lost_revolutions);
    }
}

#[test]
fn once_it_destages_it_goes_on_to_the_low_mark() {
    // One write too many for the slots, then one more from time to time: without hysteresis each
    // would be written alone, late.
    let model = model("wd10ears", &[("personality", t("command"))]);
    let mut bench = Bench::new(&model, 1);
    for k in 0..400 {
        bench.finish(Op::Write, k * 65_536, 65_536);
        bench.pass(MS / 2);
    }
    let counters = bench.counters();
    assert!(
        counters.lost_revolutions < 40,
        "{} of {} operations",
        counters.lost_revolutions,
        counters.media_ops
    );
    assert!(counters.rotate < S / 2, "{} ms of waits", counters.rotate / MS);
}

#[test]
fn the_tail_of_a_single_write_does_not_wait_for_another_half() {
    let model = model("wd10ears", &[("personality", t("stream"))]);
    let (mut bench, mut random) = (Bench::new(&model, 1), Random::new(6));
    for _ in 0..300 {
        bench.finish(Op::Write, random.below(model.size / 4096 - 9) * 4096 + 512, 8192);
    }
    bench.flush();
    let counters = bench.counters();
    assert_eq!((counters.rmw_reads, counters.media_ops), (300, 600));
}

#[test]
fn the_tail_of_a_live_stream_does_wait() {
    let stream = |personality| {
        let mut bench = Bench::new(&model("wd10ears", &[("personality", t(personality))]), 1);
        for k in 0..1000 {
            bench.finish(Op::Write, 512 + k * 65_536, 65_536);
        }
        bench.flush();
        (bench.counters(), seconds(bench.now))
    };
    let ((waits, fast), (alone, slow)) = (stream("stream"), stream("command"));
    assert!(waits.rmw_reads < 8, "{}", waits.rmw_reads);
    assert!(
        alone.rmw_reads > 500 && slow > 8.0 * fast,
        "{} reads, {slow} s after {fast} s",
        alone.rmw_reads
    );
}

#[test]
fn a_short_run_measures_the_cache() {
    let (model, mut random) = (model("wd10ears", &[]), Random::new(7));
    let mut bench = Bench::new(&model, 1);
    let mut each = |bench: &mut Bench, count: u32| {
        let begun = bench.now;
        for _ in 0..count {
            bench.finish(Op::Write, random.below(model.size / 4096) * 4096, 4096);
        }
        seconds(bench.now - begun) * 1000.0 / f64::from(count)
    };
    let (short, long) = (each(&mut bench, 20), each(&mut bench, 600));
    assert!(short < 0.2 && long > 6.0, "{short} ms, then {long} ms");
}

#[test]
fn spindles_are_not_synchronised() {
    let drives: Vec<Disk> = (0..8)
        .map(|seed| {
            let model = model("wd10ears", &[]);
            Disk::new(&model, model.disk.as_ref().unwrap(), seed)
        })
        .collect();
    let mut revolutions: Vec<Ps> =
        drives.iter().map(|drive| drive.mechanism.geometry.rev).collect();
    revolutions.sort_unstable();
    revolutions.dedup();
    assert_eq!(revolutions.len(), 8, "each turns at its own speed");
    let within = 11_111_111_111_u64
        .abs_diff(revolutions[0])
        .max(11_111_111_111_u64.abs_diff(revolutions[7]));
    assert!(within < 11_111_111_111 * 138 / 100_000, "{within} ps");
}
