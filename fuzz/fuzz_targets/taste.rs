//! Tastes and audits some disks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::{input, invariants};

fuzz_target!(|data: &[u8]| invariants::graph_holds(&input::decode(data), invariants::SHORT));
