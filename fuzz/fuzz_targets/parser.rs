//! Shows a disk to one parser: the first byte says which.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::{input, invariants};

fuzz_target!(|data: &[u8]| {
    let Some((&which, data)) = data.split_first() else { return };
    let which = usize::from(which) % invariants::parsers();
    invariants::parser_holds(which, &input::decode(data)[0]);
});
