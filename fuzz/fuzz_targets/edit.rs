//! Edits the tables of a disk: the first bytes say how, the rest is the disk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::{input, sequence};

fuzz_target!(|data: &[u8]| {
    let (script, disk) = data.split_at(data.len().min(input::SCRIPT));
    sequence::sequences_hold(&input::decode(disk)[0], &mut input::numbers(script));
});
