//! LUKS volumes made at random: one that opens is a provider as any other, any other says why.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

#[path = "../../../geom/tests/hostile/conversions.rs"]
pub mod conversions;
#[path = "../../../geom/tests/hostile/invariants.rs"]
pub mod invariants;
pub mod volume;

use volume::{TEXT, header_1, tags, volume_holds};

/// The input of a volume of LUKS1 (1) or LUKS2 with this header or JSON.
fn input(kind: u8, head: &[u8], payload: &[u8]) -> Vec<u8> {
    let between: &[u8] = if kind == 1 { &[] } else { &[0] };
    [&[kind], head, between, payload].concat()
}

#[test]
fn volumes_as_they_should_be_open() {
    assert!(volume_holds(&input(0, TEXT.as_bytes(), &[])));
    assert!(volume_holds(&input(1, &header_1(), &[])));
    // Its key has no part for tags.
    let tagged = TEXT.replace(
        r#""sector_size":512"#,
        r#""sector_size":512,"integrity":{"type":"hmac(sha256)"}"#,
    );
    assert!(!volume_holds(&input(0, tagged.as_bytes(), &tags())));
}

#[test]
fn every_byte_may_be_another() {
    let (text, header) = (TEXT.as_bytes(), header_1());
    for (kind, head) in [(0, text), (1, &header[..256])] {
        let head = head.to_vec();
        for at in 0..head.len() {
            for byte in [0, b'9', 0xff] {
                let mut head = [head.clone(), header[256..].to_vec()].concat();
                head[at] = byte;
                if kind == 0 {
                    head.truncate(text.len());
                }
                volume_holds(&input(kind, &head, &[]));
            }
        }
    }
}

#[test]
fn a_header_that_is_cut_anywhere_opens_nothing_or_is_whole() {
    for end in (0..TEXT.len()).step_by(7) {
        assert!(!volume_holds(&input(0, &TEXT.as_bytes()[..end], &[])), "{end}");
    }
}
