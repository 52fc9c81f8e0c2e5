//! Shingled tracks: whole bands go straight to their place, all else through the media cache.

use super::*;

const K: u64 = 1024;
const M: u64 = 1 << 20;

/// A small drive with tracks of one length, a media cache of `log` bytes and bands of `band`.
fn small(log: u64, band: u64, more: &[(&str, Value)]) -> Model {
    let mut set = vec![
        ("size", i(4 << 30)),
        ("full_size_bytes", i(4 << 30)),
        ("zones", i(1)),
        ("inner_outer_ratio", f(1.0)),
        ("rpm_spread_percent", f(0.0)),
        ("log_bytes", i(log.cast_signed())),
        ("band_bytes", i(band.cast_signed())),
    ];
    set.extend(more.iter().map(|(key, value)| (*key, value.clone())));
    model("smr-8tb", &set)
}

/// A write of a sector to each of `count` bands, in an order that jumps about.
fn scatter(bench: &mut Bench, band: u64, count: u64, offset: u64) {
    for nth in 0..count {
        bench.submit(Op::Write, nth * 37 % count * band + offset, 4096, false);
        bench.wait(8);
    }
    // A flush does not wait for commands that are not done before it.
    bench.wait(0);
    bench.flush();
}

#[test]
fn a_stream_of_whole_bands_is_written_once_and_at_the_rate_of_the_tracks() {
    // From the boundary of a band, and off it.
    for (start, pieces) in [(0, 0), (4 * M, 2)] {
        // A band is more than the high mark of the cache: its data wait all the same.
        let mut bench = Bench::new(&small(64 * M, 48 * M, &[]), 1);
        let length = 480 * M;
        for at in (start..start + length).step_by(512 * 1024) {
            bench.submit(Op::Write, at, 512 * K, false);
            bench.wait(4);
        }
        bench.wait(0);
        bench.flush();
        let counters = bench.counters();
        assert_eq!((counters.media_written, counters.rmw), (length, 0));
        // A track of 2134016 bytes takes a revolution and a switch of heads.
        let tracks = length / 2_134_016;
        let least = tracks * 10_033_444_816;
        let most = tracks * (10_033_444_816 + 1_300 * crate::time::US);
        assert!(bench.now > least && bench.now < most + 300 * MS, "{} of {least}", bench.now);
        // Pieces of bands at the ends are in the media cache, and merged while the host is idle.
        bench.pass(10 * S);
        let counters = bench.counters();
        assert_eq!((counters.media_written, counters.rmw), (length + pieces * 48 * M, pieces));
    }
}

#[test]
fn random_writes_are_fast_until_the_media_cache_is_full_and_then_cost_a_band_each() {
    const BAND: u64 = 32 * M;
    // Room for 64 sectors, and 113 bands with one written sector each.
    let model = small(64 * 4 * K, BAND, &[]);
    let mut bench = Bench::new(&model, 1);
    scatter(&mut bench, BAND, 64, 0);
    let fast = bench.now;
    assert_eq!((bench.counters().rmw, bench.counters().media_written), (0, 64 * 4 * K));
    assert!(fast < 64 * 3 * MS, "{fast}: not a revolution each");
    let more = 49;
    for nth in 0..more {
        bench.submit(Op::Write, (64 + nth) * BAND, 4096, false);
        bench.wait(8);
    }
    // A flush does not wait for commands that are not done before it.
    bench.wait(0);
    bench.flush();
    let counters = bench.counters();
    assert_eq!(counters.rmw, more, "one band for each sector that finds no room");
    assert_eq!(counters.media_written, (64 + more) * 4 * K + more * BAND);
    // The band is read, a sector of the cache is read, the band is written, and the new sector goes
    // to the cache: the arm moves four times, with half a revolution and a set-up. A band has 15.7
    // tracks of a revolution and a switch of heads.
    let (rev, switch, seek, setup) = (10.033, 1.2, 12.0, 0.5);
    let tracks = 33_554_432.0 / 2_134_016.0;
    let by_hand = 2.0 * tracks * (rev + switch) + 4.0 * (seek + rev / 2.0 + setup);
    let found = crate::time::seconds(bench.now - fast) * 1e3 / 49.0;
    assert!((found / by_hand - 1.0).abs() < 0.05, "{found} ms a band, by hand {by_hand}");
}

#[test]
fn an_idle_drive_cleans_each_band_once() {
    let mut bench = Bench::new(&small(M, 8 * M, &[]), 1);
    scatter(&mut bench, 8 * M, 20, 0);
    scatter(&mut bench, 8 * M, 20, 64 * K);
    let written = bench.counters();
    bench.pass(900 * MS);
    assert_eq!(bench.counters().rmw, 0, "not yet idle for a second");
    bench.pass(20 * S);
    let counters = bench.counters();
    // Two sectors of a band leave the cache together.
    assert_eq!((counters.rmw, counters.media_written - written.media_written), (20, 160 * M));
    assert_eq!(bench.drive.next(), None, "nothing is left to do");
    // All data are at home, and the whole cache is free again.
    scatter(&mut bench, 8 * M, 250, 0);
    assert_eq!(bench.counters().rmw, 20);
}

#[test]
fn a_band_that_is_in_the_cache_as_a_whole_is_not_read() {
    let mut bench = Bench::new(&small(8 * M, M, &[]), 1);
    for half in [512 * K, 0] {
        bench.submit(Op::Write, half, 512 * K, false);
        bench.flush();
    }
    bench.pass(10 * S);
    let counters = bench.counters();
    assert_eq!((counters.rmw, counters.media_written), (0, 2 * M));
}

#[test]
fn what_is_in_the_media_cache_is_read_there() {
    let model = small(8 * M, 8 * M, &[("read_segments", i(0)), ("read_ahead_bytes", i(0))]);
    let mut bench = Bench::new(&model, 1);
    scatter(&mut bench, 8 * M, 400, 0);
    let before = bench.counters();
    for nth in 0..20 {
        bench.finish(Op::Read, nth * 20 * 8 * M, 4096);
    }
    let counters = bench.counters();
    assert_eq!(counters.media_ops - before.media_ops, 20);
    assert!(counters.seek - before.seek < 20 * 3 * MS, "{}", counters.seek - before.seek);
}

#[test]
fn a_write_through_goes_to_the_media_cache_and_makes_room_in_it() {
    let mut bench = Bench::new(&small(4 * 4 * K, M, &[]), 1);
    for nth in 0..6 {
        bench.submit(Op::Write, nth * M, 4096, true);
        bench.wait(0);
    }
    assert_eq!((bench.counters().rmw, bench.counters().media_written), (2, 24 * K + 2 * M));
    // One that is larger than the media cache.
    bench.submit(Op::Write, 10 * M, 64 * K, true);
    bench.wait(0);
    assert!(bench.counters().rmw > 2);
}

#[test]
fn any_commands_are_done_and_every_moment_is_explained() {
    let mut random = Random::new(11);
    for (log, entries, band) in [(16 * K, 3, 64 * K), (256 * K, 40, M), (4 * K, 1, 12 * K)] {
        let model = small(log, band, &[("log_entries", i(entries)), ("slots", i(6))]);
        let mut bench = Bench::new(&model, 1);
        for _ in 0..400 {
            let offset = random.below(1 << 12) * 512;
            let offset =
                if random.below(8) == 0 { model.size - (2 << 20) + offset } else { offset };
            let length = (512 + random.below(120) * 512).min(model.size - offset);
            match random.below(10) {
                0 => bench.submit(Op::Flush, 0, 0, false),
                1 | 2 => bench.submit(Op::Read, offset, length, false),
                n => bench.submit(Op::Write, offset, length, n == 3),
            }
            bench.wait(8);
        }
        bench.wait(0);
        while let Some(next) = bench.drive.next() {
            bench.pass(next - bench.now);
        }
        let c = bench.counters();
        assert_eq!(c.setup + c.seek + c.rotate + c.transfer + c.idle, bench.now);
    }
}

/// Published measurements of a ST8000AS0002 that nothing was calibrated to: the figures of
/// decision 0072. Chunks at random, each flushed (aicodix/smr), and a stream (borgbackup 2252).
#[test]
#[ignore = "a comparison that asserts nothing; see decision 0072"]
#[allow(clippy::disallowed_macros, reason = "the figures are for people")]
fn a_st8000as0002_beside_smr_8tb() {
    let model = model("smr-8tb", &[]);
    for at in [0, model.size / 2, model.size - (4 << 30)] {
        let mut bench = Bench::new(&model, 1);
        let at = trueline_geom::base::topology::round_down(at, 32 * M);
        for nth in 0..4096 {
            bench.submit(Op::Write, at + nth * 512 * K, 512 * K, false);
            bench.wait(8);
        }
        bench.wait(0);
        bench.flush();
        println!("stream at {at}: {:.1} MB/s", 2147.5 / crate::time::seconds(bench.now));
    }
    let (mut bench, mut random, mut begun) = (Bench::new(&model, 1), Random::new(5), 0);
    for chunk in 0..1920 {
        let at = random.below(238_465) * 32 * M;
        for nth in 0..64 {
            bench.submit(Op::Write, at + nth * 512 * K, 512 * K, false);
            bench.wait(2);
        }
        bench.wait(0);
        bench.flush();
        if chunk % 240 == 239 {
            let mb = 240.0 * 33.554 / crate::time::seconds(bench.now - begun);
            println!("after {} GiB of chunks: {mb:.1} MB/s", (chunk + 1) / 32);
            begun = bench.now;
        }
    }
    for (name, count) in [("until the map is full", 240_000_u64), ("after", 400)] {
        let (mut bench, mut random) = (Bench::new(&model, 1), Random::new(6));
        let before = if name == "after" { 252_000 } else { 0 };
        for _ in 0..before {
            bench.submit(Op::Write, random.below(1 << 30) * 4096, 4096, false);
            bench.wait(31);
        }
        let begun = bench.now;
        for _ in 0..count {
            bench.submit(Op::Write, random.below(1 << 30) * 4096, 4096, false);
            bench.wait(31);
        }
        #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = count as f64 / crate::time::seconds(bench.now - begun);
        println!("4 KiB at random, {name}: {rate:.1} a second");
    }
}
