//! Requests of a network block device client against a model of the bytes; every fourth input is
//! noise behind a handshake.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::nbd;
use trueline_host::nbd::wire::Headers;

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    let headers = if kind & 4 == 0 { Headers::Structured } else { Headers::Extended };
    if kind % 4 == 0 { nbd::noise(headers, data) } else { nbd::transmit(headers, data) }
});
