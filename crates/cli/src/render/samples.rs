//! Reports made by hand, for the tests of every output.

use crate::command::serve::summary::{Export, Latencies, Served};
use crate::report::{Finding, Grain, Provider, Range, Report, Table, Target, Verdict};
use crate::traffic::{Blame, Bucket, Deeds, Latency, Layer, Operations, Requests, Verdicts};
use crate::words;
use std::io::Write;
use trueline_geom::base::finding::Severity;
use trueline_geom::base::topology::{Grain as At, Source, Trust, Why, largest_grain};

const SECTOR: u64 = 512;

/// A provider of `length` bytes at `start` on a disk with 4096-byte physical sectors.
fn provider(
    name: &str,
    parent: Option<&str>,
    class: &'static str,
    start: u64,
    length: u64,
) -> Provider {
    let physical = At::new(4096, 0).unwrap().shift(start);
    let grain = |at: At, why, source| Grain {
        size: at.size(),
        phase: at.phase(),
        why,
        source,
        trust: Trust::Assumed,
    };
    Provider {
        provider: name.into(),
        parent: parent.map(str::to_owned),
        class,
        sign: None,
        start: Some(start),
        length,
        sector_size: SECTOR,
        stripe_size: 4096,
        stripe_offset: physical.remainder(0),
        grains: vec![
            grain(At::new(SECTOR, 0).unwrap(), Why::Logical, Source::Image),
            grain(physical, Why::Physical, Source::Assumed),
        ],
        largest_grain: largest_grain(start),
        verdict: Verdict::Aligned,
        data_bearing: true,
        base: start,
        root: String::new(),
        signs: Vec::new(),
        table: None,
        members: Vec::new(),
        container: None,
        details: Vec::new(),
        arrangement: None,
        kind: None,
        label: None,
        uuid: None,
        block_size: None,
        mountpoint: None,
        placed: true,
    }
}

fn carrier(
    mut p: Provider,
    scheme: &'static str,
    verdict: Verdict,
    free: &[(u64, u64)],
) -> Provider {
    (p.data_bearing, p.verdict) = (false, verdict);
    let free = free.iter().map(|&(start, length)| Range { start, length }).collect();
    p.table = Some(Table { scheme, first: SECTOR, end: p.length, free });
    p
}

fn signed(mut p: Provider, sign: &str, kind: &str, block: u64, verdict: Verdict) -> Provider {
    (p.sign, p.kind, p.verdict) = (Some(sign.into()), Some(kind.into()), verdict);
    p.block_size = (block > 0).then_some(block);
    p
}

fn finding(
    rule: &'static str,
    severity: Severity,
    provider: &str,
    offset: u64,
    unit: u64,
    remainder: u64,
) -> Finding {
    let message = format!(
        "starts at byte {offset} (LBA {}), {remainder} bytes past a {unit}-byte physical unit",
        offset / SECTOR
    );
    let better = At::new(unit, 0).unwrap().next(offset).unwrap();
    let fix = vec![format!("start it at byte {better} (LBA {}) of the disk", better / SECTOR)];
    let provider = provider.into();
    Finding {
        rule,
        severity,
        provider,
        offset,
        unit,
        remainder,
        straddle: 0.0,
        rmw_factor: 1.0,
        message,
        fix,
        commands: Vec::new(),
    }
}

fn costing(mut f: Finding, straddle: f64, rmw_factor: f64) -> Finding {
    (f.straddle, f.rmw_factor) = (straddle, rmw_factor);
    f
}

/// The OpenBSD disk of seed 000: an MBR slice at LBA 63 with a disklabel of absolute offsets.
pub(crate) fn openbsd() -> Target {
    let (lba, gib) = (|n: u64| n * SECTOR, 1u64 << 30);
    let whole = lba(156_301_488);
    let off = Verdict::Misaligned;
    let disk = carrier(provider("", None, "disk", 0, whole), "mbr", off, &[(lba(1), lba(62))]);
    let mut s4 =
        carrier(provider("s4", Some(""), "mbr", lba(63), whole - lba(63)), "bsd", off, &[]);
    s4.kind = Some("OpenBSD".into());
    let ufs = |name: &str, start, length, verdict| {
        signed(provider(name, Some("s4"), "bsd", start, length), "ufs", "4.2BSD", 16384, verdict)
    };
    let mut a = ufs("s4a", lba(63), gib, off);
    a.label = Some("root <script>&\u{1b}[31m".into());
    let b =
        signed(provider("s4b", Some("s4"), "bsd", lba(63) + gib, gib), "swap", "swap", 4096, off);
    let d = ufs("s4d", 4 * gib, 20 * gib, Verdict::Aligned);
    let e = ufs("s4e", 24 * gib + lba(7), whole - 24 * gib - lba(7), off);
    let findings = vec![
        costing(finding("TL0001", Severity::Error, "s4a", lba(63), 4096, 3584), 1.0, 1.5),
        costing(finding("TL0001", Severity::Error, "s4b", lba(63) + gib, 4096, 3584), 1.0, 4.0),
        costing(finding("TL0001", Severity::Error, "s4e", 24 * gib + lba(7), 4096, 3584), 1.0, 1.5),
        finding("TL0017", Severity::Note, "s4", lba(63), 4096, 3584),
    ];
    Target {
        target: "openbsd.img".into(),
        judged: None,
        incomplete: Vec::new(),
        verdict: off,
        providers: vec![disk, s4, a, b, d, e],
        findings,
    }
}

/// Seed 003: a gstripe of two disks in chunks of 16 KiB, an MBR on it, a file system 79 sectors in.
pub(crate) fn stripe() -> Target {
    let (gib, lba) = (1u64 << 30, |n: u64| n * SECTOR);
    let off = Verdict::Misaligned;
    let member = |name: &str| {
        let mut p = provider(name, None, "disk", 0, 500 * gib);
        (p.data_bearing, p.verdict, p.root) = (false, off, name.into());
        p
    };
    let on_set = |mut p: Provider| {
        let chunk = At::new(16384, 0).unwrap().shift(p.base);
        let row = At::new(32768, 0).unwrap().shift(p.base);
        for (at, why) in [(chunk, Why::Chunk), (row, Why::FullStripe)] {
            p.grains.push(Grain {
                size: at.size(),
                phase: at.phase(),
                why,
                source: Source::Label,
                trust: Trust::Trusted,
            });
        }
        (p.start, p.largest_grain, p.root) = (None, None, "stripe/data".into());
        (p.stripe_size, p.stripe_offset) = (16384, chunk.remainder(0));
        p
    };
    let whole = 1000 * gib - 32768;
    let mut set = on_set(carrier(
        provider("stripe/data", None, "stripe", 0, whole),
        "mbr",
        off,
        &[(SECTOR, lba(62))],
    ));
    set.members = vec!["ada0".into(), "ada1".into()];
    let mut s1 = on_set(carrier(
        provider("stripe/datas1", Some("stripe/data"), "mbr", lba(63), whole - lba(63)),
        "bsd",
        off,
        &[(0, lba(16))],
    ));
    s1.kind = Some("FreeBSD".into());
    let a = provider("stripe/datas1a", Some("stripe/datas1"), "bsd", lba(79), whole - lba(79));
    let a = on_set(signed(a, "ufs", "4.2BSD", 16384, off));
    let findings = vec![
        costing(
            finding("TL0001", Severity::Error, "stripe/datas1a", lba(79), 16384, 7680),
            1.0,
            2.0,
        ),
        costing(
            finding("TL0001", Severity::Error, "stripe/datas1a", lba(79), 4096, 3584),
            1.0,
            1.5,
        ),
    ];
    Target {
        target: "ada0.img,ada1.img".into(),
        judged: None,
        incomplete: Vec::new(),
        verdict: off,
        providers: vec![member("ada0"), member("ada1"), set, s1, a],
        findings,
    }
}

/// A GPT SSD with everything on 1 MiB.
pub(crate) fn gpt() -> Target {
    let (gib, mib) = (1u64 << 30, 1u64 << 20);
    let whole = 256 * gib;
    let end = 33 * SECTOR;
    let disk = carrier(
        provider("", None, "disk", 0, whole),
        "gpt",
        Verdict::Aligned,
        &[(17408, mib - 17408), (whole - mib, mib - end)],
    );
    let mut p1 = signed(
        provider("p1", Some(""), "gpt", mib, 512 * mib),
        "vfat",
        "efi",
        4096,
        Verdict::Aligned,
    );
    (p1.label, p1.mountpoint) = (Some("EFI".into()), Some("/boot/efi".into()));
    let mut data = provider("p1.data", Some("p1"), "vfat", 2 * mib, 511 * mib);
    data.block_size = Some(4096);
    let mut p2 = signed(
        provider("p2", Some(""), "gpt", 513 * mib, whole - 514 * mib),
        "ext4",
        "linux",
        4096,
        Verdict::Aligned,
    );
    (p2.label, p2.mountpoint) = (Some("root".into()), Some("/".into()));
    Target {
        target: "/dev/nvme0n1".into(),
        judged: None,
        incomplete: Vec::new(),
        verdict: Verdict::Aligned,
        providers: vec![disk, p1, data, p2],
        findings: vec![],
    }
}

/// A FAT whose partition is on the grain and whose data area is not.
pub(crate) fn fat() -> Target {
    let (gib, mib) = (1u64 << 30, 1u64 << 20);
    let off = Verdict::Misaligned;
    let disk =
        carrier(provider("", None, "disk", 0, 8 * gib), "mbr", off, &[(SECTOR, mib - SECTOR)]);
    let s1 = signed(
        provider("s1", Some(""), "mbr", mib, 8 * gib - mib),
        "vfat",
        "fat32lba",
        4096,
        Verdict::Aligned,
    );
    let at = mib + 4_194_816;
    let mut data = provider("s1.data", Some("s1"), "vfat", at, 8 * gib - at);
    (data.verdict, data.block_size) = (off, Some(32768));
    let findings =
        vec![costing(finding("TL0003", Severity::Warning, "s1.data", at, 4096, 512), 1.0, 1.25)];
    Target {
        target: "fat & co#1.img".into(),
        judged: None,
        incomplete: Vec::new(),
        verdict: off,
        providers: vec![disk, s1, data],
        findings,
    }
}

/// A disk with `slices` overlapping slices.
pub(crate) fn crowded(slices: u64) -> Target {
    let disk = carrier(provider("", None, "disk", 0, 1 << 40), "gpt", Verdict::Aligned, &[]);
    let slice = |i| provider(&format!("p{i}"), Some(""), "gpt", i << 20, 1 << 24);
    let providers = std::iter::once(disk).chain((1..=slices).map(slice)).collect();
    Target {
        target: "crowded.img".into(),
        judged: None,
        incomplete: Vec::new(),
        verdict: Verdict::Aligned,
        providers,
        findings: vec![],
    }
}

/// The counters of a `serve` run on [`openbsd`]: its swap was written off the grain, its disk read
/// in sectors.
pub(crate) fn served() -> (Served, Target) {
    let stack = openbsd();
    let (none, no_requests) = (Verdicts::default(), Requests::default());
    let swap = Layer {
        provider: "s4b".into(),
        id: 3,
        gone: false,
        content: words::content(&stack, &stack.providers[3]),
        export: Some(String::new()),
        disk: String::new(),
        unit: 4096,
        phase: 0,
        why: Some("physical"),
        members: Vec::new(),
        requests: Requests {
            writes: Verdicts { misaligned: 98, partial: 2, ..none },
            zeroes: Verdicts { aligned: 1, ..none },
            ..no_requests
        },
        request_bytes: Deeds { writes: 98 * 4096 + 1024, zeroes: 4096, ..Deeds::default() },
        blamed_requests: Deeds { writes: 90, ..Deeds::default() },
        reads: Verdicts::default(),
        writes: Verdicts { misaligned: 98, partial: 2, ..Verdicts::default() },
        trims: Verdicts::default(),
        zeroes: Verdicts { aligned: 1, ..Verdicts::default() },
        bytes: Deeds { writes: 98 * 4096 + 1024, zeroes: 4096, ..Deeds::default() },
        blame: Some(Blame { provider: "s4".into(), remainder: 3584, chunk: None, rule: "TL0001" }),
        blamed: Deeds { writes: 90, ..Deeds::default() },
        device_operations: Operations { writes: 396, writes_needed: 100, ..Operations::default() },
        rmw_factor: 3.96,
        histogram: vec![
            Bucket { op: "write", verdict: "misaligned", size: 4096, alignment: 512, count: 98 },
            Bucket { op: "write", verdict: "partial", size: 512, alignment: 512, count: 2 },
        ],
    };
    let disk = Layer {
        provider: String::new(),
        id: 0,
        content: words::content(&stack, &stack.providers[0]),
        requests: Requests { reads: Verdicts { aligned: 1, partial: 3, ..none }, ..no_requests },
        request_bytes: Deeds { reads: 4096 + 1536, ..Deeds::default() },
        blamed_requests: Deeds::default(),
        reads: Verdicts { aligned: 1, partial: 3, ..Verdicts::default() },
        writes: Verdicts::default(),
        zeroes: Verdicts::default(),
        bytes: Deeds { reads: 4096 + 1536, ..Deeds::default() },
        blame: None,
        blamed: Deeds::default(),
        device_operations: Operations { reads: 4, reads_needed: 4, ..Operations::default() },
        rmw_factor: 1.0,
        histogram: vec![Bucket {
            op: "read",
            verdict: "partial",
            size: 512,
            alignment: 0,
            count: 3,
        }],
        ..swap.clone()
    };
    let errors = Deeds { reads: 1, ..Deeds::default() };
    let requests = Deeds { reads: 4, writes: 100, zeroes: 1, trims: 0 };
    let waited =
        Latency { count: 4, mean: 1_200_000, p50: 1_000_000, p99: 3_000_000, max: 3_100_000 };
    let latency_ns = Latencies { reads: Some(waited), ..Latencies::default() };
    let bytes = swap.request_bytes.merge(disk.request_bytes);
    let export = Export {
        provider: String::new(),
        requests,
        pieces: requests,
        bytes,
        flushes: 2,
        most_waiting: 7,
        errors,
        flush_errors: 0,
        latency_ns,
    };
    let (target, layers) = (stack.target.clone(), vec![disk, swap]);
    (
        Served {
            format: "trueline/serve/1",
            target,
            judged: None,
            duration_ns: 2_000_000_000,
            generation: 0,
            layers,
            exports: vec![export],
            emulation: None,
        },
        stack,
    )
}

/// A report of the given targets.
pub(crate) fn report(targets: Vec<Target>) -> Report {
    let verdict = targets.iter().map(|t| t.verdict).max().unwrap_or(Verdict::Aligned);
    Report { format: "trueline/check/1", verdict, targets, errors: Vec::new() }
}

/// The text that `write` writes, without colours.
pub(crate) fn text(write: impl Fn(&mut dyn Write) -> std::io::Result<()>) -> String {
    let mut out = anstream::StripStream::new(Vec::new());
    write(&mut out).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

/// Asserts that `text` equals the file of that name in `tests/out`; with `TRUELINE_BLESS` in the
/// environment, writes the file first.
pub(crate) fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/out").join(name);
    if std::env::var_os("TRUELINE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(
        text,
        std::fs::read_to_string(&path).unwrap(),
        "{name}; TRUELINE_BLESS=1 accepts it"
    );
}
