//! Asks every format for the free space of a Btrfs that says anything. Every checksum is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::free_ranges;

fuzz_target!(|data: &[u8]| {
    free_ranges::hold(&free_ranges::disk(data));
});
