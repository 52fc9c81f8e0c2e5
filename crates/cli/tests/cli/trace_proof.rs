//! Traces held against the kernel's own counts (`/sys/block/X/stat`) and against arithmetic on
//! their recordings.

use crate::list;
use crate::tracing::{layer, number};
use serde_json::Value;

/// The unit that judges, in bytes.
pub(crate) const UNIT: u64 = 4096;
/// What runs while the disk `$d` is traced: `work`, between two looks at the kernel's counts.
///
/// The kernel counts a flush that was asked for without data as a flush and as an empty write.
/// `empty` has their number, from an instance of tracefs whose name is one that the next trace
/// removes, should this one be killed. Probes of udev wait for the lock.
pub(crate) const COUNTED: &str = r#"set -eu
n=${d#/dev/}
still() {
    until read -r line </sys/block/$n/stat && set -- $line && [ "$9" = 0 ]; do :; done
    echo "$line"
}
i=/sys/kernel/tracing/instances/trueline-$$-$(cut -d ' ' -f 22 /proc/$$/stat)-0
mkdir $i
trap 'echo 0 >$i/events/enable; rmdir $i' EXIT
IFS=: read -r major minor </sys/block/$n/dev
echo "dev == $((major << 20 | minor)) && nr_sector == 0" >$i/events/block/block_bio_queue/filter
echo 1 >$i/events/block/block_bio_queue/enable
exec 9<$d
! command -v flock >/dev/null || flock 9
still >before
(set -x; . ./work) 9<&-
still >after
grep -c block_bio_queue: $i/trace >empty || :
"#;

/// The kernel's counts of a device while it was traced.
#[derive(Debug)]
pub(crate) struct KernelCounts {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) trims: u64,
    pub(crate) trim_bytes: u64,
    pub(crate) flushes: u64,
    /// Requests that were merged with others, and so are none.
    pub(crate) merges: u64,
}

/// A trace of programs, and the kernel's counts of the same time.
pub(crate) struct Proof {
    pub(crate) document: Value,
    pub(crate) kernel: KernelCounts,
    pub(crate) recording: String,
}

impl KernelCounts {
    /// The difference of two lines of `stat` (`Documentation/block/stat.rst`), of whose writes
    /// `empty` were flushes.
    pub(crate) fn between(before: &str, after: &str, empty: u64) -> KernelCounts {
        let numbers = |line: &str| -> Vec<u64> {
            line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
        };
        let (before, after) = (numbers(before), numbers(after));
        let grown = |field: usize| after[field] - before[field];
        KernelCounts {
            reads: grown(0),
            read_bytes: grown(2) * 512,
            writes: grown(4) - empty,
            write_bytes: grown(6) * 512,
            trims: grown(11),
            trim_bytes: grown(13) * 512,
            flushes: grown(15),
            merges: grown(1) + grown(5),
        }
    }
}

impl Proof {
    pub(crate) fn number(&self, path: &str) -> u64 {
        number(&self.document, path)
    }

    /// Every count of the trace is the kernel's; every verdict is that of arithmetic.
    pub(crate) fn is_that_of_the_kernel(&self) {
        let kernel = &self.kernel;
        for (path, count) in [
            ("/requests/reads", kernel.reads),
            ("/bytes/reads", kernel.read_bytes),
            // The kernel calls zeroes writes.
            ("/requests/writes", kernel.writes - self.number("/requests/zeroes")),
            ("/bytes/writes", kernel.write_bytes - self.number("/bytes/zeroes")),
            ("/requests/trims", kernel.trims),
            ("/bytes/trims", kernel.trim_bytes),
            ("/flushes", kernel.flushes),
            ("/other", 0),
            ("/outside", 0),
            ("/lost", 0),
        ] {
            let seen = self.number(path);
            assert_eq!(seen, count, "{path}: {kernel:?}, {:#}", self.document);
        }
        assert_eq!(verdicts_of(&self.document), arithmetic(&self.recording, UNIT, 0));
        let handed: u64 = list(&self.document, "processes").iter().map(written).sum();
        assert_eq!(handed, self.number("/requests/writes"));
    }

    /// Every write begins and ends on a unit of the drive; or none does, the partition is to
    /// blame, and each costs two reads and a write more.
    pub(crate) fn writes_are(&self, on_the_grain: bool) {
        let s1 = layer(&self.document, "s1");
        let (all, units) = (self.kernel.writes, self.kernel.write_bytes / UNIT);
        assert!(all > 0, "{:#}", self.document);
        let (aligned, misaligned, cost) =
            if on_the_grain { (all, 0, units) } else { (0, all, units + 3 * all) };
        for (path, count) in [
            ("/writes/aligned", aligned),
            ("/writes/misaligned", misaligned),
            ("/writes/partial", 0),
            ("/blamed_requests/writes", misaligned),
            ("/device_operations/writes", cost),
            ("/device_operations/writes_needed", units),
        ] {
            assert_eq!(number(s1, path), count, "{path}: {:#}", self.document);
        }
        if on_the_grain {
            assert_eq!(s1["blame"], Value::Null);
        } else {
            assert_eq!(number(s1, "/blame/remainder"), 63 * 512 % UNIT);
            assert_eq!(s1["blame"]["rule"], "TL0001");
        }
    }

    /// Writes by the threads of that name, or of one that begins so and goes on with a `/`.
    pub(crate) fn written_by(&self, name: &str) -> u64 {
        let is_of = |process: &&Value| {
            process["name"].as_str().is_some_and(|own| own.split('/').next() == Some(name))
        };
        list(&self.document, "processes").iter().filter(is_of).map(written).sum()
    }
}

/// Writes of one process, of every verdict.
pub(crate) fn written(process: &Value) -> u64 {
    let verdicts = process["writes"].as_object().expect("verdicts");
    verdicts.values().filter_map(Value::as_u64).sum()
}

/// Reads and writes of all layers: on units, off them, and less than one.
pub(crate) fn verdicts_of(document: &Value) -> [[u64; 3]; 2] {
    let layers = list(document, "layers");
    let sum = |path: &str| layers.iter().map(|layer| number(layer, path)).sum();
    ["reads", "writes"].map(|kind| {
        ["aligned", "misaligned", "partial"].map(|verdict| sum(&format!("/{kind}/{verdict}")))
    })
}

/// The same by the places and lengths of a recording, with units from byte `first` on.
pub(crate) fn arithmetic(recording: &str, unit: u64, first: u64) -> [[u64; 3]; 2] {
    let mut counts = [[0; 3]; 2];
    for (kind, offset, length) in transfers(recording) {
        let is_whole = offset % unit == first % unit && length % unit == 0;
        let verdict = if is_whole { 0 } else { 1 + usize::from(length < unit) };
        counts[usize::from(kind == "W")][verdict] += 1;
    }
    counts
}

/// Kind, place and length of the reads and writes of a recording.
pub(crate) fn transfers(recording: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    let lines = recording.lines().skip(1);
    lines.filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        // `WF` writes past the cache of the drive.
        [_, kind @ ("R" | "W" | "WF"), offset, length] => {
            Some((&kind[..1], offset.parse().expect("a number"), length.parse().expect("a number")))
        }
        _ => None,
    })
}
