//! Reads what people type and pipe: backups, scripts for sfdisk, uses, options of newfs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::texts::texts_hold;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        texts_hold(text);
    }
});
