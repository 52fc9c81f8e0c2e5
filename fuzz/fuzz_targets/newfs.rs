//! Makes file systems: numbers for the provider, then options as newfs takes them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::{input, newfs::newfs_holds};
use trueline_geom::newfs::Options;

fuzz_target!(|data: &[u8]| {
    let (numbers, words) = data.split_at(data.len().min(12));
    let mut number = input::numbers(numbers);
    // Small ones are written, the others only decided upon.
    let shift = number(64);
    let length = number(u64::MAX) >> shift;
    let sector = [512, 4096][usize::from(number(2) == 1)];
    let unit = Some(1 << number(24)).filter(|&unit| unit > 256);
    let words: Vec<String> =
        String::from_utf8_lossy(words).split_whitespace().map(String::from).collect();
    if let Ok(options) = Options::parse(&words, sector) {
        newfs_holds(length, sector, unit, &options);
    }
});
