//! Opens a LUKS volume whose header says anything. Checksums are made right, and the key's digest
//! is that of material of zeros.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::volume::volume_holds;

fuzz_target!(|data: &[u8]| {
    volume_holds(data);
});
