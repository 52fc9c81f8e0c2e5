//! Evidence that `ewfacquire` acquires of a disk: the disk in it is the one that was acquired, and
//! the one that `ewfexport` makes of it.

use super::{compare_bytes, contents, opened, raw_disk, sh};
use crate::oracle::missing_of;
use crate::skip::skip;
use trueline_geom::format::Inside;

/// Formats of ewfacquire, levels of compression, and sectors of a chunk.
const MADE: [(&str, &str, u64); 10] = [
    ("encase6", "none", 64),
    ("encase6", "fast", 64),
    ("encase6", "best", 512),
    ("encase6", "empty-block", 16),
    ("encase2", "fast", 64),
    ("encase7", "empty-block", 2048),
    ("linen7", "best", 64),
    ("ftk", "none", 64),
    ("ewfx", "fast", 128),
    ("smart", "fast", 64),
];

#[test]
fn evidence_is_the_disk_that_was_acquired() {
    let Some(here) = raw_disk("ewf") else { return };
    if let Some(missing) = missing_of(["ewfacquire", "ewfexport"]) {
        skip(&format!("no {missing} here"));
        return;
    }
    // No whole number of any chunk.
    sh(&here, "truncate -s +17920 raw; ln raw source.raw");
    for (format, level, sectors) in MADE {
        sh(
            &here,
            &format!(
                "rm -f made* back*
                ewfacquire -u -q -f {format} -c {level} -b {sectors} -t made source.raw >/dev/null
                for made in made.?01; do ewfexport -u -q -f raw -t back $made >/dev/null; done
                cmp raw back.raw; mv made.?01 made"
            ),
        );
        let (graph, audit) = opened(&here, "made");
        let is_of_file = |rule| ["TL0001", "TL0019", "TL0030"].contains(&rule);
        assert!(
            !audit.findings.iter().any(|(_, f)| is_of_file(f.rule.id)),
            "{format}: {:?}",
            audit.findings
        );
        let length = graph.providers[contents(&graph)].topology.length;
        assert_eq!(length, (40 << 20) + 17920, "{format}");
        compare_bytes(&here, &graph);
    }
    // A segment by itself is no disk; `crates/cli/tests/cli/containers.rs` has them joined.
    sh(&here, "rm -f made*; ewfacquire -u -q -c none -S 8MiB -t made source.raw >/dev/null");
    for segment in ["made.E01", "made.E02", "made.E05"] {
        let (graph, _) = opened(&here, segment);
        let sign = graph.providers[0].signs.first().expect("a sign");
        let is_further = matches!(sign.inside, Inside::Unknown(_));
        assert_eq!(is_further, segment != "made.E01", "{segment}: {sign:?}");
        assert!(graph.find("p1").is_none(), "{segment}");
    }
}

/// The same of EnCase 7's version, by an `ewfacquire` that writes it.
#[test]
fn evidence_of_version_2_is_the_disk_that_was_acquired() {
    let Some(here) = raw_disk("ewf2") else { return };
    if let Some(missing) = missing_of(["ewfacquire-v2"]) {
        skip(&format!("no {missing} here: libewf's of 2023 or later, under that name"));
        return;
    }
    sh(&here, "truncate -s +17920 raw; ln raw source.raw");
    for (method, sectors) in [
        ("deflate:none", 64),
        ("deflate:fast", 64),
        ("deflate:best", 1024),
        ("deflate:empty-block", 16),
        ("bzip2:fast", 64),
        ("bzip2:best", 2048),
    ] {
        sh(
            &here,
            &format!(
                "rm -f made*; acquire='ewfacquire-v2 -u -q -f encase7-v2'
                $acquire -c {method} -b {sectors} -t made source.raw >/dev/null; mv made.Ex01 made"
            ),
        );
        let (graph, audit) = opened(&here, "made");
        let is_of_file = |rule| ["TL0001", "TL0019", "TL0030"].contains(&rule);
        let of_file: Vec<_> =
            audit.findings.iter().filter(|(_, f)| is_of_file(f.rule.id)).collect();
        assert!(of_file.is_empty(), "{method}: {of_file:?}");
        let length = graph.providers[contents(&graph)].topology.length;
        assert_eq!(length, (40 << 20) + 17920, "{method}");
        compare_bytes(&here, &graph);
    }
}
