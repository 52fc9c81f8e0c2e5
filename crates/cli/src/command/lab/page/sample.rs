//! A document made by hand, for tests: a row of every kind.

use trueline_lab::result::{
    Alternative, LabDocument, LabResult, Layout, Nearer, NullModel, Ours, Published, Row, Spent,
    VariantResult,
};

pub(crate) fn document() -> LabDocument {
    LabDocument { format: "trueline/lab/1", labs: vec![stripe(), osnews(), layers(), here()] }
}

fn lab(name: &str, title: &str, source: Option<&str>, rows: Vec<Row>) -> LabResult {
    LabResult { lab: name.into(), title: title.into(), source: source.map(str::to_owned), rows }
}

fn row(
    seed: &str,
    id: &str,
    title: &str,
    unit: &str,
    published: (f64, f64),
    ours: Option<(f64, f64)>,
) -> Row {
    let ratio = |(a, u): (f64, f64)| Some(u / a);
    let published = Published {
        aligned: Some(published.0),
        unaligned: Some(published.1),
        ratio: ratio(published),
    };
    let ours = ours.map(|o| Ours {
        aligned: Some(o.0),
        unaligned: Some(o.1),
        ratio: ratio(o),
        low: ratio(o).map(|r| r * 0.93),
        high: ratio(o).map(|r| r * 1.06),
    });
    let error = ours.and_then(|ours| published.error(ours));
    let level_errors = ours.map(|ours| published.level_errors(ours)).unwrap_or_default();
    let null_model = ours.map(|_| null_of(published));
    Row {
        seed: Some(seed.into()),
        row: id.into(),
        title: title.into(),
        unit: unit.into(),
        more_is_better: unit != "s" && unit != "ns",
        published: Some(published),
        ours,
        error,
        level_errors,
        null_model,
        bound: None,
        predicted: ours.is_some(),
        skipped: false,
        note: String::new(),
        personality: None,
        alternatives: Vec::new(),
        variants: Vec::new(),
    }
}

/// A null model that is twice the published ratio.
fn null_of(published: Published) -> NullModel {
    let ratio = published.ratio.map_or(1.0, |ratio| ratio * 2.0);
    NullModel { ratio, error: published.ratio.map(|_| 1.0), nearer: Some(Nearer::Ours) }
}

/// Latencies from `least` on, with a tail.
fn latency(least: f64, spread: f64) -> Vec<(f64, u64)> {
    let at =
        |q: f64| least + spread * q + spread * 0.25 * (1.0 / (1.0 - q * 0.995) - 1.0).powf(0.7);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made by hand")]
    (0..=100).map(|i| f64::from(i) / 100.0).map(|q| (q, at(q) as u64)).collect()
}

fn variant(
    name: &str,
    seconds: f64,
    shape: (f64, f64),
    drives: Spent,
    layout: Layout,
) -> VariantResult {
    let latency = latency(shape.0, shape.1);
    VariantResult {
        name: name.into(),
        target: "drive:wd10ears".into(),
        seconds,
        ops: 1000,
        bytes: 4_096_000,
        latency,
        drives: Some(drives),
        layers: Vec::new(),
        layout: Some(layout),
    }
}

fn stripe() -> LabResult {
    let layout = |start: u64| Layout {
        unit: 16384,
        phase: 0,
        layers: vec![
            ("stripe/data".into(), 0),
            ("stripe/datas1".into(), 32256),
            ("stripe/datas1a".into(), start),
        ],
        requests: [3u64, 17, 40, 8, 1200, 77].iter().map(|n| (start + n * 16384, 16384)).collect(),
    };
    let spent = |seconds: f64, ops: u64| Spent {
        drives: 2,
        media_ops: ops,
        setup: seconds * 0.07,
        seek: seconds * 0.9,
        rotate: seconds * 0.55,
        transfer: seconds * 0.05,
        idle: seconds * 0.43,
        ..Spent::default()
    };
    let mut one = row(
        "003",
        "raidtest-n1",
        "16 KiB random reads, one process",
        "req/s",
        (133.0, 112.0),
        Some((137.7, 118.1)),
    );
    one.bound = Some(0.05);
    one.note = "Every 16 KiB block crosses a chunk, so both disks turn for it: the greater of two \
        waits for a sector is a sixth of a revolution longer than one."
        .into();
    one.variants = vec![
        variant("aligned", 7.26, (2.1e6, 9.0e6), spent(7.26, 1000), layout(32768)),
        variant("unaligned", 8.47, (3.1e6, 9.9e6), spent(8.47, 2000), layout(40448)),
    ];
    let mut many = row(
        "003",
        "raidtest-n64",
        "16 KiB random reads, 64 processes",
        "req/s",
        (594.0, 314.0),
        Some((660.0, 357.0)),
    );
    many.bound = Some(0.05);
    lab(
        "2009-gstripe",
        "A stripe of two disks, and a partition 79 sectors in",
        Some("FreeBSD wiki, gstripe and raidtest, 2009"),
        vec![one, many],
    )
}

fn osnews() -> LabResult {
    let layout = |start: u64, raw: u64| Layout {
        unit: 4096,
        phase: 0,
        layers: vec![("disk".into(), 0), ("s1".into(), start)],
        requests: [90_001u64, 12, 5_000_000, 777, 31]
            .iter()
            .map(|n| (n * 4096 + raw, 4096))
            .collect(),
    };
    let aligned = Spent {
        drives: 1,
        media_ops: 1000,
        setup: 0.5,
        seek: 3.6,
        rotate: 1.6,
        transfer: 0.2,
        idle: 0.3,
        write_amplification: Some(1.0),
        ..Spent::default()
    };
    let unaligned = Spent {
        media_ops: 4000,
        rmw: 2000,
        rmw_reads: 2000,
        lost_revolutions: 990,
        host_reads: 2000,
        rotate: 14.1,
        seek: 4.5,
        setup: 1.0,
        write_amplification: Some(2.0),
        ..aligned
    };
    let mut random = row(
        "001",
        "random-write",
        "1000 random 4 KiB writes, O_SYNC, page cache",
        "s",
        (7.5, 23.0),
        Some((6.29, 20.6)),
    );
    random.bound = Some(0.1);
    random.note = "Buffered: the kernel reads both pages before it can write a part of each. Most \
        of this cost is the page cache's, not the drive's; random-write-direct is the drive's."
        .into();
    random.variants = vec![
        variant("aligned", 6.29, (3.0e6, 6.0e6), aligned, layout(32768, 0)),
        variant("unaligned", 20.6, (11.0e6, 14.0e6), unaligned, layout(32256, 512)),
    ];
    let mut cp =
        row("001", "cp", "cp of a file of 18 GB", "s", (309.36, 806.943), Some((310.0, 742.0)));
    cp.bound = Some(0.1);
    cp.personality = Some("A".into());
    let other = Ours {
        aligned: Some(310.0),
        unaligned: Some(311.0),
        ratio: Some(1.003),
        low: Some(1.0),
        high: Some(1.01),
    };
    cp.alternatives =
        vec![Alternative { personality: "B".into(), ours: other, error: Some(-0.616) }];
    let mut direct = row(
        "001",
        "random-write-direct",
        "1000 random 4 KiB writes, O_DIRECT",
        "s",
        (1.0, 1.0),
        Some((6.3, 17.1)),
    );
    (direct.published, direct.error, direct.null_model) = (None, None, None);
    let mut tree = row("001", "cp-r", "cp -r of many small files", "s", (2529.602, 8334.61), None);
    tree.note = "The document does not say how many files there were, nor how large: nothing can \
        be predicted from that."
        .into();
    lab(
        "2010-osnews",
        "Two disks of 4096-byte sectors, one start at 63",
        Some("OSnews, Linux Hard Disk Performance, 2010"),
        vec![random, cp, direct, tree],
    )
}

fn layers() -> LabResult {
    let level = |id: &str, title: &str, published: f64, ours: f64| {
        let mut row = row("002", id, title, "ns", (published, published), Some((ours, ours)));
        let only = |v| Published { aligned: Some(v), unaligned: None, ratio: None };
        row.published = Some(only(published));
        row.ours =
            Some(Ours { aligned: Some(ours), unaligned: None, ratio: None, low: None, high: None });
        (row.bound, row.predicted, row.null_model) = (Some(0.03), false, None);
        row.error = row.published.zip(row.ours).and_then(|(theirs, own)| theirs.error(own));
        row.variants = vec![variant(
            "aligned",
            1e-3,
            (ours, 1.0),
            Spent { drives: 1, ..Spent::default() },
            Layout { unit: 512, phase: 0, layers: vec![], requests: vec![] },
        )];
        row
    };
    let rows = vec![
        level("zero", "512 bytes of /dev/zero", 3563.8, 3560.0),
        level("md", "512 bytes of a memory disk", 26773.1, 26700.0),
        level("mds1", "the same through an MBR slice", 27077.5, 27530.0),
        level("mds1c", "and a BSD partition in it", 28436.3, 28360.0),
    ];
    lab("2002-geom", "What a layer of GEOM costs", Some("phk, GEOM benchmark, 2002"), rows)
}

fn here() -> LabResult {
    let mut real = row(
        "",
        "random-write",
        "4 KiB random writes at +512 <b>bytes</b>",
        "s",
        (1.0, 1.0),
        Some((0.81, 0.84)),
    );
    (real.seed, real.published, real.error, real.predicted) = (None, None, None, false);
    real.null_model = None;
    lab("here", "This machine", None, vec![real])
}
