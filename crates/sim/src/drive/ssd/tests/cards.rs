//! Cards: what an allocation unit of each style costs, in closed form and as published.

use super::*;

const M: u64 = 1 << 20;
const UNIT: u64 = 4 * M;
const STYLES: [&str; 3] = ["mapped", "log", "linear"];

fn card(name: &str, style: &str, set: &[(&str, i64)]) -> Model {
    let numbers = set.iter().map(|&(key, value)| (key.to_owned(), Value::Integer(value)));
    let style = [("unit_style".to_owned(), Value::String(style.to_owned()))];
    let set: Vec<(String, Value)> = style.into_iter().chain(numbers).collect();
    Model::parse_with(Model::named(name).unwrap(), &set).unwrap()
}

/// Bytes that were copied for each that was written.
#[allow(clippy::cast_precision_loss, reason = "a ratio for a test")]
fn copied(model: &Model, offsets: impl IntoIterator<Item = u64>, length: u64) -> f64 {
    let (_, counters) = run(model, 1, writes(offsets, length));
    (counters.media_written - counters.bytes_written) as f64 / counters.bytes_written as f64
}

/// The rate in bytes a second of writes of `length`.
#[allow(clippy::cast_precision_loss, reason = "a rate for a test")]
fn rate(model: &Model, offsets: impl IntoIterator<Item = u64>, length: u64) -> f64 {
    let (last, counters) = run(model, 1, writes(offsets, length));
    counters.bytes_written as f64 / crate::time::seconds(last)
}

/// The numbers below `count` in an order that is not theirs.
fn shuffled(count: u64, seed: u64) -> Vec<u64> {
    let (mut numbers, mut random) = ((0..count).collect::<Vec<_>>(), Random::new(seed));
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap());
    }
    numbers
}

#[test]
fn as_many_streams_as_open_units_cost_nothing_and_one_more_copies_a_unit_a_write() {
    let block = M / 2;
    let turns = |units: u64| {
        (0..UNIT / block).flat_map(move |nth| (0..units).map(move |u| u * UNIT + nth * block))
    };
    for style in STYLES {
        let model = card("sd-4m", style, &[("open_units", 3)]);
        for units in 1..=3 {
            assert!(copied(&model, turns(units), block) < 1e-9, "{units} of {style}");
        }
        // Every write finds its unit closed, and closes another: seven eighths are copied, or the
        // whole unit where a log does not begin with it. Three stay open at the end.
        let found = copied(&model, turns(4), block);
        let (whole, seven) = (8.0, 7.0);
        let closings: f64 = match style {
            "mapped" => seven * 29.0 / 32.0,
            "log" => (4.0 * seven + 25.0 * whole) / 32.0,
            // What comes before a block is copied as it is opened, what comes after as it is
            // closed. A unit that ends so leaves room, and the last two go on where they were.
            _ => (30.0 * seven - 2.0) / 32.0,
        };
        assert!((found - closings).abs() < 1e-9, "{style}: {found}, and by hand {closings}");
    }
}

#[test]
fn blocks_in_random_order_within_a_unit_cost_a_merge_or_a_copy_each() {
    let blocks = UNIT / (16 * K);
    let order = |unit: u64| {
        shuffled(blocks, 5 + unit).into_iter().map(move |nth| unit * UNIT + nth * 16 * K)
    };
    let random = || (0..4).flat_map(order);
    let of = |style: &str| copied(&card("sd-4m", style, &[]), random(), 16 * K);
    assert!(of("mapped") < 1e-9);
    // Of four units two are still open at the end.
    assert!((of("log") - 2.0 / 4.0).abs() < 1e-9, "{}", of("log"));
    assert!(of("linear") > 50.0, "{}", of("linear"));
    // From the last block to the first all others are copied for each, but for what the last block
    // of all leaves open.
    let down = |unit: u64| (0..blocks).rev().map(move |nth| unit * UNIT + nth * 16 * K);
    let linear = copied(&card("sd-4m", "linear", &[]), down(0), 16 * K);
    #[allow(clippy::cast_precision_loss, reason = "a count of blocks")]
    let by_hand = (blocks - 1) as f64 * (1.0 - 1.0 / blocks as f64);
    assert!((linear - by_hand).abs() < 1e-9, "{linear}, and by hand {by_hand}");
}

#[test]
fn a_partition_off_the_allocation_unit_pays_where_whole_units_are_written() {
    // Units in random order, far apart, on the boundary and half a unit off it.
    let places = |shift: u64| shuffled(64, 9).into_iter().map(move |n| n * 3 * UNIT + shift);
    for (style, off) in [("mapped", 1.0), ("log", 1.5), ("linear", 1.0)] {
        let model = card("sd-4m", style, &[("open_units", 1)]);
        assert!(copied(&model, places(0), UNIT) < 1e-9, "{style}");
        let found = copied(&model, places(UNIT / 2), UNIT);
        // The last half of a unit is not closed.
        assert!((found - off + 0.5 / 64.0).abs() < 1e-9, "{style}: {found}");
        // In order nothing is copied but at the ends.
        let stream = copied(&model, (0..16).map(|n| n * UNIT + UNIT / 2), UNIT);
        assert!(stream < 1.0 / 16.0 + 1e-9, "{style}: {stream}");
    }
}

/// CrystalDiskMark on a Corsair Padlock 2 of 16 GB (pastebin.com/bwpMKtDL), in commands of 64 KiB.
#[test]
fn a_stick_with_a_log_writes_as_published() {
    let mut random = Random::new(8);
    let mut places = |count: u64, block: u64, each: u64| -> Vec<u64> {
        let starts: Vec<u64> = (0..count).map(|_| random.below(1_000_000_000 / block)).collect();
        starts.into_iter().flat_map(|n| (0..each).map(move |k| n * block + k * 64 * K)).collect()
    };
    let (small, large) = (places(60, 4 * K, 1), places(60, 512 * K, 8));
    let model = card("usb-4m", "log", &[]);
    let reads = |offsets: &[u64], length| {
        let all: Vec<_> = offsets.iter().map(|&offset| (Op::Read, offset, length)).collect();
        let (last, counters) = run(&model, 1, all);
        #[allow(clippy::cast_precision_loss, reason = "a rate for a test")]
        let rate = counters.bytes_read as f64 / crate::time::seconds(last);
        rate
    };
    let stream: Vec<u64> = (0..512).map(|n| n * 64 * K).collect();
    // Calibrated.
    for (found, published) in [
        (rate(&model, stream.clone(), 64 * K), 8.616e6),
        (reads(&stream, 64 * K), 13.546e6),
        (reads(&small, 4 * K), 1163.8 * 4096.0),
        (rate(&model, small, 4 * K), 1.75 * 4096.0),
    ] {
        assert!((found / published - 1.0).abs() < 0.03, "{found} bytes/s, published {published}");
    }
    // Not calibrated: 512 KiB at random, by style.
    let of = |style: &str| rate(&card("usb-4m", style, &[]), large.clone(), 64 * K) / 0.803e6 - 1.0;
    let errors = STYLES.map(of);
    assert!(errors[1].abs() < 0.10 && errors[1] < errors[0] && errors[1] < errors[2], "{errors:?}");
}

/// Random writes within open units on a Lexar of 16 GB (pctips.click, April 2020), which `sd-4m`
/// was not made for: the figures of decision 0072.
#[test]
#[ignore = "a comparison with another card, which asserts nothing; see decision 0072"]
#[allow(clippy::disallowed_macros, reason = "the figures are for people")]
fn another_card_beside_sd_4m() {
    for (block, published) in [(4 * K, 1.20), (16 * K, 4.54), (64 * K, 8.78), (512 * K, 12.07)] {
        for style in STYLES {
            let model = card("sd-4m", style, &[("open_units", 5)]);
            let order = (0..20).flat_map(|unit| {
                let blocks = shuffled(UNIT / block, unit).into_iter();
                blocks.map(move |nth| unit * UNIT + nth * block)
            });
            let found = rate(&model, order, block) / 1e6;
            println!("{} KiB {style}: {found:.2} MB/s, published {published}", block / K);
        }
    }
}
