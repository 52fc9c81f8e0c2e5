//! Options of a network block device client, as they are and as they should not be.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| trueline_fuzz::nbd::haggle(data));
