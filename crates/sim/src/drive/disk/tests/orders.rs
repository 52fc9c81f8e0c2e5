//! The orders in which waiting work is done.

use super::*;

/// Reads of 4 KiB at these multiples of 10 GiB, all at once: in what order they are done.
fn order(order: &str, places: &[u64]) -> Vec<u64> {
    let set = [
        ("order", t(order)),
        ("read_ahead_bytes", i(0)),
        ("age_limit_ms", f(100_000.0)),
        ("command_overhead_ms", f(0.0)),
    ];
    let mut bench = Bench::new(&model("wd10ears", &set), 1);
    for place in places {
        bench.submit(Op::Read, place * (10 << 30), 4096, false);
    }
    bench.wait(0);
    bench.done.iter().map(|done| places[done.tag as usize - 1]).collect()
}

#[test]
fn commands_are_done_as_they_came_or_upwards_and_from_the_lowest_again() {
    // The first is under way when the others come.
    let places = [50, 70, 10, 90, 60, 20, 80, 40, 30];
    assert_eq!(order("fifo", &places), places);
    assert_eq!(order("c-look", &places), [50, 60, 70, 80, 90, 10, 20, 30, 40]);
    assert_eq!(order("clook", &places), order("c-look", &places));
    let sptf = order("sptf", &places);
    assert!(sptf != places && sptf != order("c-look", &places), "{sptf:?}");
}

#[test]
fn dirty_data_are_destaged_as_they_came_or_upwards_and_from_the_lowest_again() {
    let destaged = |order| {
        let model = model("wd10ears", &[]);
        let mut disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
        for (seq, block) in (1..).zip([50_u64, 70, 10, 90, 60]) {
            let start = block << 30;
            disk.writes.insert(start, start + 4096, seq, &|_| false, &disk.mechanism.geometry);
        }
        let sector = (65 << 30) / 4096;
        disk.mechanism.pass(0, sector, sector + 1, true, false);
        let mut chosen = Vec::new();
        while let Some(start) = disk.writes.choose(order, 0, &disk.mechanism, &|_, _| true) {
            chosen.push(start >> 30);
            disk.writes.take(start, u64::MAX, &disk.mechanism.geometry, &mut Vec::new());
            disk.mechanism.pass(0, start / 4096, start / 4096 + 1, true, false);
        }
        chosen
    };
    assert_eq!(destaged(Order::Fifo), [50, 70, 10, 90, 60]);
    assert_eq!(destaged(Order::CLook), [70, 90, 10, 50, 60]);
}

/// The longest wait of one read far away among eight that are always near.
fn far_among_near(limit: f64) -> Ps {
    let mut bench = Bench::new(
        &model("wd10ears", &[("age_limit_ms", f(limit)), ("read_ahead_bytes", i(0))]),
        1,
    );
    let mut random = Random::new(2);
    let mut near =
        |bench: &mut Bench| bench.submit(Op::Read, random.below(100_000) * 4096, 4096, false);
    near(&mut bench);
    // The first is under way: of those that wait it is the oldest.
    bench.submit(Op::Read, 900 << 30, 4096, false);
    (0..7).for_each(|_| near(&mut bench));
    for _ in 0..400 {
        bench.wait(8);
        if let Some(done) = bench.done.iter().find(|done| done.tag == 2) {
            return done.at;
        }
        near(&mut bench);
    }
    Ps::MAX
}

#[test]
fn no_command_waits_longer_than_its_limit_and_one_service() {
    // The longest service: from end to end, and a revolution.
    let service = 40 * MS;
    for limit in [50_u64, 200, 1000] {
        #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
        let waited = far_among_near(limit as f64);
        assert!(
            (limit * MS..limit * MS + service).contains(&waited),
            "{} ms, limit {limit} ms",
            waited / MS
        );
    }
    assert!(
        far_among_near(100_000.0) > 1500 * MS,
        "without one it would wait as long as there is something near"
    );
    assert!(far_among_near(0.0) < 9 * service, "0: as they came");
}
