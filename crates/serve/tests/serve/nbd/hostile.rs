//! Thousands of random clients, by seed, and what they must not do.

#[path = "../../hostile/nbd.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it as well")]
mod holds;

use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, Headers, command};

/// Marsaglia's xorshift: the same bytes for the same seed everywhere.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn options_of_any_form() {
    for seed in 0..4000 {
        holds::haggle(&bytes(seed, 20 + usize::try_from(seed % 400).unwrap()));
    }
}

#[test]
fn requests_of_any_form() {
    for seed in 0..150 {
        for headers in [Headers::Structured, Headers::Extended] {
            holds::transmit(headers, &bytes(seed, 600));
        }
    }
}

#[test]
fn noise_behind_a_handshake() {
    for (headers, magic) in [
        (Headers::Structured, wire::REQUEST_MAGIC),
        (Headers::Extended, wire::EXTENDED_REQUEST_MAGIC),
    ] {
        for seed in 0..300 {
            let mut noise = bytes(seed, 300);
            if seed % 2 == 0 {
                // Found as requests, as far as they go.
                for request in noise.chunks_exact_mut(headers.request()) {
                    request[..4].copy_from_slice(&magic.to_be_bytes());
                    request[6] = 0;
                    request[7] %= 9;
                }
            }
            holds::noise(headers, &noise);
        }
    }
}

#[test]
fn a_client_that_asks_while_it_ends_is_told_so() {
    let request = Request { flags: 0, command: command::READ, cookie: 5, offset: 0, length: 512 };
    let answer = holds::while_ending(Headers::Structured, &request);
    assert_eq!(
        answer,
        *b"\x66\x8e\x33\xef\0\x01\x80\x01\0\0\0\0\0\0\0\x05\0\0\0\x06\0\0\0\x6c\0\0"
    );
    let answer = holds::while_ending(Headers::Extended, &Request { offset: 9, ..request });
    let head =
        b"\x6e\x8a\x27\x8c\0\x01\x80\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x06";
    assert_eq!(answer, [&head[..], b"\0\0\0\x6c\0\0"].concat());
}
