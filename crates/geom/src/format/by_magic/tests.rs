use super::super::tests::{disk, recognised};
use super::*;
use std::collections::BTreeSet;

/// Bytes of the disks here: every place is within them.
const LENGTH: u64 = 64 << 20;

/// Names whose magic is enough.
fn alone() -> impl Iterator<Item = &'static Known> {
    let checked = [
        "atari",
        "cs_fvault2",
        "xfs_external_log",
        "exfs",
        "hfs",
        "hpfs",
        "squashfs3",
        "gfs",
        "gfs2",
        "befs",
        "via_raid_member",
        "silicon_medley_raid_member",
        "adaptec_raid_member",
        "jmicron_raid_member",
    ];
    KNOWN
        .iter()
        .chain(COMPRESSED)
        .chain(RAIDS)
        .filter(move |known| !checked.contains(&known.kind.name))
}

#[test]
fn every_magic_is_found_at_every_place() {
    for known in alone() {
        for (at, magic) in known.magics {
            let at = at.byte(LENGTH).expect("a place");
            let format: &dyn Format =
                if RAIDS.iter().any(|raid| raid.kind == known.kind) { &Firmware } else { &ByMagic };
            let found = recognised(format, disk(LENGTH, &[(at, magic)]))
                .map(|sign| (sign.kind, sign.magic));
            assert_eq!(found, Some((known.kind, at)), "{magic:?}");
        }
    }
}

#[test]
fn every_kind_of_compressed_file_has_an_ending() {
    let compressed: Vec<FormatKind> = COMPRESSED.iter().map(|known| known.kind).collect();
    assert_eq!(ENDINGS.map(|(kind, _)| kind).to_vec(), compressed);
}

#[test]
fn a_short_magic_alone_is_nothing() {
    let names: BTreeSet<&str> = alone().map(|known| known.kind.name).collect();
    for known in KNOWN.iter().chain(RAIDS).filter(|known| !names.contains(known.kind.name)) {
        for (at, magic) in known.magics {
            let at = at.byte(LENGTH).expect("a place");
            for format in [&ByMagic as &dyn Format, &Firmware] {
                let found = recognised(format, disk(LENGTH, &[(at, magic)]));
                assert_eq!(found.map(|sign| sign.kind), None, "{}", known.kind);
            }
        }
    }
}

#[test]
fn every_name_is_there_once_and_tells_something() {
    let names: Vec<&str> = KNOWN.iter().chain(RAIDS).map(|known| known.kind.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for format in [&ByMagic as &dyn Format, &Firmware] {
        assert!(format.kinds().into_iter().all(|kind| format.by_name(kind, None).is_some()));
    }
}

/// Bytes of a generator that is the same on every machine.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(|_| next()).take(length).collect()
}

#[test]
fn noise_is_nothing() {
    for seed in 0..500 {
        let bytes = noise(seed, 128 << 10);
        for format in [&ByMagic as &dyn Format, &Firmware] {
            let found = recognised(format, disk(128 << 10, &[(0, &bytes)]));
            assert_eq!(found, None, "{seed}");
        }
    }
}

#[test]
fn numbers_in_front_of_short_disks_are_survived() {
    for length in [0, 1, 511, 512, 1023, 4096, 65535, 65536, 65537] {
        for fill in [0, 1, 0xff] {
            let bytes = vec![fill; usize::try_from(length).expect("small")];
            for known in KNOWN.iter().chain(RAIDS) {
                for (at, magic) in known.magics {
                    let at = at.byte(length).filter(|&at| at + magic.len() as u64 <= length);
                    let Some(at) = at else { continue };
                    recognised(&ByMagic, disk(length, &[(0, &bytes), (at, magic)]));
                    recognised(&Firmware, disk(length, &[(0, &bytes), (at, magic)]));
                }
            }
        }
    }
}
