//! Writes to a qcow2 in which anything may be wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::qcow2;

fuzz_target!(|data: &[u8]| qcow2::run(data));
