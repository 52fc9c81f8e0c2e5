//! Reads model files; what is a model makes a drive, which is given some commands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::models::model_holds;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        model_holds(text, data.len() as u64);
    }
});
