use super::nvme::Namespace;
use super::{Limits, Stacking};
use crate::base::finding::{CLASH, Finding, LIMITS, Severity};
use crate::base::topology::{Source, Topology, Trust, Why};

const LENGTH: u64 = 1 << 40;

/// A disk with 512-byte sectors over 4096-byte ones (512e).
fn disk() -> Limits {
    Limits {
        logical_block_size: 512,
        physical_block_size: 4096,
        minimum_io_size: 4096,
        ..Limits::default()
    }
}

/// Size, phase and trust of the boundaries for `why`.
fn facts_for(t: &Topology, why: Why) -> Vec<(u64, u64, Trust)> {
    t.facts
        .iter()
        .filter(|f| f.why == why)
        .map(|f| (f.grain.size(), f.grain.phase(), f.trust))
        .collect()
}

/// The only boundary for `why` is untrusted, and one finding says so in these words.
fn lie(limits: &Limits, why: Why, size: u64, words: &str) {
    let (t, findings) = limits.topology(LENGTH);
    assert_eq!(
        facts_for(&t, why).iter().map(|f| (f.0, f.2)).collect::<Vec<_>>(),
        [(size, Trust::Untrusted)]
    );
    let found: Vec<&Finding> = findings.iter().filter(|f| f.rule == &LIMITS).collect();
    assert!(
        found.len() == 1 && found[0].message.contains(words) && found[0].unit == size,
        "{found:?}"
    );
}

#[test]
fn a_plain_512e_disk() {
    let (t, findings) = disk().topology(LENGTH);
    assert_eq!((t.sector, t.length, findings), (512, LENGTH, vec![]));
    assert_eq!(facts_for(&t, Why::Physical), [(4096, 0, Trust::Claimed)]);
    assert_eq!(t.facts.iter().map(|f| f.why).collect::<Vec<_>>(), [Why::Logical, Why::Physical]);
    assert!(t.facts.iter().all(|f| f.source == Source::Sysfs));
}

#[test]
fn the_jumper_moves_every_boundary_of_the_medium() {
    let limits = Limits {
        alignment_offset: 3584,
        optimal_io_size: 1 << 20,
        discard_granularity: 4096,
        discard_alignment: 3584,
        ..disk()
    };
    let (t, findings) = limits.topology(LENGTH);
    assert_eq!(findings, []);
    assert_eq!(facts_for(&t, Why::Physical), [(4096, 3584, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Optimal), [(1 << 20, 3584, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Discard), [(4096, 3584, Trust::Claimed)]);
    assert_eq!(facts_for(&t.shift(63 * 512, 1 << 20), Why::Physical), [(4096, 0, Trust::Claimed)]);
}

#[test]
fn sizes_that_cannot_be_true_are_kept_and_explained() {
    let opt = |size| Limits { optimal_io_size: size, ..disk() };
    lie(&opt(33_553_920), Why::Optimal, 33_553_920, "65535 blocks of 512 bytes");
    // The same, rounded down by the kernel to whole physical blocks.
    lie(&opt(33_550_336), Why::Optimal, 33_550_336, "65535 blocks of 512 bytes");
    let native = Limits { physical_block_size: 512, minimum_io_size: 512, ..opt(33_550_336) };
    lie(&native, Why::Optimal, 33_550_336, "65535 blocks of 512 bytes");
    lie(&opt(268_431_360), Why::Optimal, 268_431_360, "65535 blocks of 4096 bytes");
    lie(&opt(0xffff_fe00), Why::Optimal, 0xffff_fe00, "physical blocks of 4096 bytes");
    lie(&opt(513), Why::Optimal, 513, "logical blocks of 512 bytes");
    lie(&opt(2 << 40), Why::Optimal, 2 << 40, "larger than the device");
    let io = |min, opt| Limits { minimum_io_size: min, optimal_io_size: opt, ..disk() };
    lie(&io(65536, 16384), Why::Optimal, 16384, "not a multiple of minimum_io_size 65536");
    lie(&io(5000, 0), Why::Preferred, 5000, "logical blocks");
    let physical = |size| Limits { physical_block_size: size, minimum_io_size: 0, ..disk() };
    lie(&physical(256), Why::Physical, 256, "smaller than the logical block");
    lie(&physical(5120), Why::Physical, 5120, "not a power of two");
    lie(&physical(2 << 40), Why::Physical, 2 << 40, "larger than the device");
    lie(
        &Limits { logical_block_size: 520, physical_block_size: 0, ..disk() },
        Why::Logical,
        520,
        "a power of two",
    );
    lie(&Limits { discard_granularity: 1000, ..disk() }, Why::Discard, 1000, "logical blocks");
    lie(&Limits { chunk_sectors: 3, ..disk() }, Why::Chunk, 1536, "physical blocks");
    lie(
        &Limits { atomic_write_unit_min_bytes: 8192, atomic_write_unit_max_bytes: 4096, ..disk() },
        Why::Atomic,
        4096,
        "smaller than",
    );
}

#[test]
fn an_atomic_write_keeps_within_its_boundary() {
    let atomic = |boundary| Limits {
        atomic_write_unit_max_bytes: 8192,
        atomic_write_boundary_bytes: boundary,
        ..disk()
    };
    assert_eq!(
        facts_for(&atomic(65536).topology(LENGTH).0, Why::Atomic),
        [(8192, 0, Trust::Claimed)]
    );
    lie(&atomic(4096), Why::Atomic, 8192, "does not divide atomic_write_boundary_bytes 4096");
}

#[test]
fn a_zone_is_no_chunk_and_what_does_not_discard_has_no_unit() {
    let limits = Limits { chunk_sectors: 524_288, discard_granularity: 4096, ..disk() };
    let found = |limits: &Limits| {
        [Why::Chunk, Why::Discard].map(|why| facts_for(&limits.topology(LENGTH).0, why).len())
    };
    assert_eq!(found(&limits), [1, 1]);
    let none =
        Limits { zoned: Some("none".into()), discard_max_bytes: Some(1 << 30), ..limits.clone() };
    assert_eq!(found(&none), [1, 1]);
    assert_eq!(
        found(&Limits { zoned: Some("host-managed".into()), discard_max_bytes: Some(0), ..limits }),
        [0, 0]
    );
}

#[test]
fn a_drive_that_claims_pages_needs_no_hint() {
    let hints = |size| {
        facts_for(
            &Limits { logical_block_size: size, physical_block_size: size, ..Limits::default() }
                .topology(LENGTH)
                .0,
            Why::Convention,
        )
    };
    assert_eq!((hints(512), hints(4096)), (vec![(4096, 0, Trust::Assumed)], vec![]));
}

#[test]
fn a_discard_may_be_smaller_than_a_physical_block() {
    let (t, findings) = Limits { discard_granularity: 512, ..disk() }.topology(LENGTH);
    assert_eq!((facts_for(&t, Why::Discard), findings), (vec![(512, 0, Trust::Claimed)], vec![]));
}

#[test]
fn a_lie_about_the_physical_block_is_not_what_the_rest_is_judged_by() {
    let (t, findings) =
        Limits { physical_block_size: 5120, optimal_io_size: 65536, minimum_io_size: 0, ..disk() }
            .topology(LENGTH);
    assert_eq!(facts_for(&t, Why::Optimal), [(65536, 0, Trust::Claimed)]);
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Warning));
}

#[test]
fn an_impossible_phase_makes_what_depends_on_it_untrusted() {
    for (offset, rule) in [(4096, &LIMITS), (100, &LIMITS), (-1, &CLASH), (i64::MIN, &CLASH)] {
        let (t, findings) =
            Limits { alignment_offset: offset, optimal_io_size: 65536, ..disk() }.topology(LENGTH);
        assert_eq!(findings.iter().map(|f| f.rule).collect::<Vec<_>>(), [rule], "{offset}");
        assert_eq!(
            (facts_for(&t, Why::Physical)[0].2, facts_for(&t, Why::Optimal)[0].2),
            (Trust::Untrusted, Trust::Untrusted)
        );
    }
    // Where every logical block is a physical one there is no phase to get wrong.
    let (t, _) =
        Limits { physical_block_size: 512, minimum_io_size: 65536, alignment_offset: -1, ..disk() }
            .topology(LENGTH);
    assert_eq!(
        (facts_for(&t, Why::Physical)[0].2, facts_for(&t, Why::Preferred)[0].2),
        (Trust::Claimed, Trust::Untrusted)
    );
}

#[test]
fn a_striped_set_says_chunk_and_row() {
    let shape = Stacking::Striped { chunk: 65536, row: 131_072, parity: true };
    let limits = Limits {
        shape,
        minimum_io_size: 65536,
        optimal_io_size: 131_072,
        chunk_sectors: 128,
        ..disk()
    };
    let (t, findings) = limits.topology(LENGTH);
    assert_eq!(findings, []);
    assert_eq!(facts_for(&t, Why::Chunk), [(65536, 0, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::FullStripe), [(131_072, 0, Trust::Claimed)]);
    assert_eq!((facts_for(&t, Why::Preferred), facts_for(&t, Why::Optimal)), (vec![], vec![]));
    // The kernel's optimal size is the least common multiple with the members': with a liar among
    // them, nonsense.
    lie(
        &Limits { optimal_io_size: 131_072 * 65535 / 2, ..limits },
        Why::Optimal,
        4_294_901_760,
        "largest transfer",
    );
}

#[test]
fn above_a_set_the_phase_of_the_row_is_unknown() {
    let limits = Limits {
        shape: Stacking::Stacked,
        minimum_io_size: 65536,
        optimal_io_size: 196_608,
        alignment_offset: 4096,
        ..disk()
    };
    let (t, findings) = limits.topology(LENGTH);
    assert_eq!(facts_for(&t, Why::Preferred), [(65536, 4096, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Physical), [(4096, 0, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Optimal), [(196_608, 0, Trust::Untrusted)]);
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Note));
}

#[test]
fn hostile_numbers_do_not_overflow() {
    for n in [1, 511, 1 << 63, u64::MAX - 1, u64::MAX] {
        let limits = Limits {
            logical_block_size: n,
            physical_block_size: n,
            minimum_io_size: n,
            optimal_io_size: n,
            alignment_offset: i64::MAX,
            discard_granularity: n,
            discard_alignment: n,
            chunk_sectors: n,
            atomic_write_unit_max_bytes: n,
            atomic_write_boundary_bytes: n,
            shape: Stacking::Striped { chunk: n, row: n, parity: true },
            ..Limits::default()
        };
        for length in [0, 1, u64::MAX] {
            let (t, _) = limits.topology(length);
            assert!(
                t.sector == 512
                    && t.facts.iter().all(|f| f.trust == Trust::Untrusted || n == 1 << 63),
                "{n} {length}"
            );
        }
    }
}

/// An NVMe drive of 1 TiB in 4 KiB blocks.
fn namespace() -> Namespace {
    Namespace { nsze: 1 << 28, lbads: 12, ..Namespace::default() }
}

#[test]
fn nvme_sizes_count_only_where_the_features_say_so() {
    let fields =
        Namespace { npwg: 3, npwa: 3, npdg: 3, npda: 3, nows: 63, nawupf: 3, ..namespace() };
    let (t, findings) = fields.topology().unwrap();
    assert_eq!((t.sector, t.length, t.facts.len(), findings), (4096, 1 << 40, 1, vec![]));
    let (t, findings) = Namespace { nsfeat: 0x12, ..fields.clone() }.topology().unwrap();
    assert_eq!(findings, []);
    assert_eq!(facts_for(&t, Why::Preferred), [(16384, 0, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Optimal), [(262_144, 0, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Discard), [(16384, 0, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Atomic), [(16384, 0, Trust::Claimed)]);
    assert!(t.facts.iter().all(|f| f.source == Source::Nvme));
    // OPTPERF 10b: NPDG is not valid.
    let (t, _) = Namespace { nsfeat: 0x20, ..fields }.topology().unwrap();
    assert_eq!((facts_for(&t, Why::Discard), facts_for(&t, Why::Preferred).len()), (vec![], 1));
}

#[test]
fn nvme_granularity_above_its_alignment_is_assumed() {
    // Samsung 980, 512-byte format.
    let drive = Namespace {
        nsze: 1 << 31,
        lbads: 9,
        nsfeat: 0x10,
        npwa: 7,
        npwg: 31,
        nows: 31,
        ..namespace()
    };
    let (t, findings) = drive.topology().unwrap();
    assert_eq!(
        facts_for(&t, Why::Preferred),
        [(4096, 0, Trust::Claimed), (16384, 0, Trust::Assumed)]
    );
    assert_eq!(findings, []);
}

#[test]
fn nvme_boundaries() {
    let (t, findings) =
        Namespace { noiob: 32, nabspf: 7, nabo: 2, ..namespace() }.topology().unwrap();
    assert_eq!(findings, []);
    assert_eq!(facts_for(&t, Why::Chunk), [(131_072, 0, Trust::Claimed)]);
    assert_eq!(facts_for(&t, Why::Atomic), [(32768, 8192, Trust::Claimed)]);
    // Linux ignores a boundary that is no power of two.
    let (t, findings) = Namespace { noiob: 255, ..namespace() }.topology().unwrap();
    assert_eq!(
        (facts_for(&t, Why::Chunk), findings.len()),
        (vec![(255 * 4096, 0, Trust::Untrusted)], 1)
    );
    assert!(findings[0].message.ends_with("not a power of two: Linux ignores it"), "{findings:?}");
    let (t, findings) =
        Namespace { nsfeat: 0x10, npwg: 2, npwa: 1, nows: 3, nabspf: 1, nabo: 9, ..namespace() }
            .topology()
            .unwrap();
    assert_eq!((findings.len(), facts_for(&t, Why::Atomic)[0].2), (4, Trust::Untrusted));
    assert_eq!(Namespace { lbads: 0, ..namespace() }.topology(), None);
    assert_eq!(Namespace { nsze: u64::MAX, ..namespace() }.topology(), None);
    assert_eq!(
        (Namespace::format(0x10), Namespace::format(0x64), Namespace::format(0x21)),
        (0, 0x34, 0x11)
    );
}
