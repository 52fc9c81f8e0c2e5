//! Random disks that real tools make, and what `check` says of them against a model that knows no
//! closed form: it lays the writes of a period out one by one and looks which units each of them
//! fills.
//!
//! `TRUELINE_RANDOM=1000` makes so many disks instead of a handful, `TRUELINE_SEED=N` others.

#![allow(clippy::cast_precision_loss, reason = "counts of a period are small")]

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Marsaglia's xorshift64*: the same disks on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }
}

/// A file system as it was asked for, and where its data begin.
#[derive(Debug)]
struct Made {
    start: u64,
    block: u64,
    /// Sizes of data that it writes, and whether less than a page of them is only a warning.
    pieces: Vec<(u64, bool)>,
    data: Option<u64>,
    written: bool,
}

/// A boundary: size, phase, and whether part of such a unit is read before it is written.
type Unit = (u64, u64, bool);

/// Arguments that tell `check` of the drive, and the boundaries that come of it, the physical one
/// first.
const DRIVES: &[(&[&str], &[Unit])] = &[
    (&[], &[(4096, 0, true)]),
    (&["--for", "ssd-8k"], &[(8192, 0, true)]),
    (&["--for", "ssd-16k"], &[(16384, 0, true)]),
    (&["--for", "ssd-64k"], &[(65536, 0, true)]),
    (&["--for", "sd-4m"], &[(4096, 0, true), (4 << 20, 0, true)]),
    (&["--for", "raid64kx4"], &[(4096, 0, true), (65536, 0, false), (262_144, 0, true)]),
    (&["--for", "raid16kx3"], &[(4096, 0, true), (16384, 0, false), (49152, 0, true)]),
    (&["--physical", "4096+3584"], &[(4096, 3584, true)]),
    (&["--physical", "16384+8192"], &[(16384, 8192, true)]),
    (
        &["--physical", "4096", "--grain", "chunk=65536+4096"],
        &[(4096, 0, true), (65536, 4096, false)],
    ),
];

/// Operations of writes of `size` from `past` a boundary on, and how many of them touch a unit more
/// than they need; on average.
fn operations(size: u64, unit: u64, past: u64, rmw: bool) -> (f64, f64) {
    let (mut done, mut straddling) = (0, 0);
    for k in 0..unit {
        let (from, to) = (past + k * size, past + (k + 1) * size);
        let (first, last) = (from / unit, (to - 1) / unit);
        let cut = |u: u64| u64::from(u * unit < from || (u + 1) * unit > to);
        let parts = if first == last { cut(first) } else { cut(first) + cut(last) };
        done += last - first + 1 + if rmw { parts } else { 0 };
        straddling += u64::from(last - first + 1 > size.div_ceil(unit));
    }
    (done as f64 / unit as f64, straddling as f64 / unit as f64)
}

/// The same with sizes and places in units of `grain`, which divides all of them.
fn scaled(size: u64, unit: u64, past: u64, rmw: bool) -> (f64, f64) {
    let grain = [size, unit, past]
        .into_iter()
        .filter(|&n| n > 0)
        .map(|n| 1 << n.trailing_zeros())
        .min()
        .unwrap_or(1);
    operations(size / grain, unit / grain, past / grain, rmw)
}

/// Makes a file system of `length` bytes in `fs`; `None` where its tool refuses the parameters.
fn make(random: &mut Random, start: u64, length: u64, here: &Path) -> Option<Made> {
    let fs = here.join("fs");
    File::create(&fs).and_then(|file| file.set_len(length)).expect("a scratch file");
    let run = |line: &str| {
        tool("sh", &["-c", line], here).expect("a tool that can be run").status.success()
    };
    let made = |block: u64, pieces: Vec<(u64, bool)>| Made {
        start,
        block,
        pieces,
        data: None,
        written: true,
    };
    match random.below(6) {
        0 | 1 => {
            let (block, clusters) = (random.pick(&[1024, 2048, 4096]), random.pick(&[1, 1, 4, 16]));
            let bigalloc = if clusters > 1 {
                format!("-O bigalloc -C {}", block * clusters)
            } else {
                String::new()
            };
            run(&format!("mke2fs -q -F -t ext4 -b {block} {bigalloc} fs"))
                .then(|| made(block, vec![(block, false)]))
        }
        2 => {
            let block = random.pick(&[4096, 8192, 16384, 32768, 65536]);
            let fragment = (block / random.pick(&[1, 2, 4, 8])).max(512);
            let length = length / 65536 * 65536;
            let ran = run(&format!(
                "rm fs; mkdir -p tree; makefs -t ffs -s {length} -o version=2,bsize={block},fsize={fragment} fs tree"
            ));
            ran.then(|| {
                made(
                    block,
                    if fragment < block {
                        vec![(block, false), (fragment, false)]
                    } else {
                        vec![(block, false)]
                    },
                )
            })
        }
        3 => {
            let (sector, per) = (random.pick(&[512, 512, 1024, 4096]), random.pick(&[1, 2, 4, 8]));
            let packed = random.pick(&["", "-a"]);
            run(&format!("mkfs.fat {packed} -F 16 -S {sector} -s {per} fs")).then_some(())?;
            let boot = fs::read(&fs).ok()?;
            let number = |at: usize, length: usize| {
                boot[at..at + length].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
            };
            let data =
                (number(14, 2) + number(16, 1) * number(22, 2)) * sector + number(17, 2) * 32;
            let cluster = number(13, 1) * sector;
            Some(Made {
                data: Some(data.next_multiple_of(sector)),
                ..made(cluster, vec![(cluster, true)])
            })
        }
        4 => run("mkswap fs").then(|| made(4096, vec![(4096, false)])),
        _ => run("rm fs; mkdir -p tree; mkfs.erofs --quiet fs tree")
            .then(|| Made { written: false, ..made(4096, Vec::new()) }),
    }
}

/// A disk of some partitions, and what is in them.
fn disk(random: &mut Random, here: &Path) -> Option<Vec<Made>> {
    let (mut at, mut parts) = (random.pick(&[34, 40, 63, 64, 2048, 2049, 2056]), Vec::new());
    for _ in 0..1 + random.below(4) {
        let size = (20 + random.below(20)) * 2048 + random.pick(&[0, 8, 63]);
        parts.push((at, size));
        at = (at + size + random.below(100))
            .next_multiple_of(random.pick(&[1, 1, 8, 128, 512, 2048, 8192]));
    }
    let image = File::create(here.join("disk")).expect("a scratch file");
    image.set_len((at + 4096) * 512).expect("a scratch file");
    let scheme = random.pick(&["label: gpt\\nfirst-lba: 34", "label: dos"]);
    let lines: String =
        parts.iter().map(|(start, size)| format!("\\nstart={start}, size={size}")).collect();
    tool("sh", &["-c", &format!("printf '{scheme}{lines}\\n' | sfdisk -q disk")], here)
        .expect("a tool that can be run")
        .status
        .success()
        .then_some(())?;
    let made = parts.into_iter().filter_map(|(start, size)| {
        let made = make(random, start * 512, size * 512, here)?;
        let bytes = fs::read(here.join("fs")).expect("a scratch file");
        let chunks = bytes
            .chunks(65536)
            .enumerate()
            .filter(|(_, chunk)| chunk.iter().any(|&byte| byte != 0));
        chunks.for_each(|(nth, chunk)| {
            image.write_all_at(chunk, start * 512 + nth as u64 * 65536).expect("a scratch file")
        });
        Some(made)
    });
    Some(made.collect())
}

/// The first difference between the model and `check` on one file system.
fn differs(made: &Made, units: &[Unit], target: &Value) -> Option<String> {
    let list = |key: &str| target[key].as_array().expect("a key of the document");
    let Some(provider) =
        list("providers").iter().find(|p| p["start"] == made.start && p["parent"] == "")
    else {
        return Some("no partition there".into());
    };
    let name = provider["provider"].as_str().expect("a key of the document");
    let (rule, place) =
        made.data.map_or(("TL0001", name.to_string()), |_| ("TL0003", format!("{name}.data")));
    let of = |rule: &str, place: &str| -> Vec<&Value> {
        list("findings").iter().filter(|f| f["rule"] == rule && f["provider"] == place).collect()
    };
    let begin = made.start + made.data.unwrap_or(0);
    let past = |&(unit, phase, _): &Unit| (begin + unit - phase) % unit;
    let missed: Vec<&Unit> = units.iter().filter(|unit| past(unit) != 0).collect();
    let (charged, excused): (Vec<&Unit>, Vec<&Unit>) =
        missed.into_iter().partition(|unit| made.written || !unit.2);
    let (unit, _, _) = units[0];
    let in_place = |size: u64| {
        (!size.is_multiple_of(unit))
            .then(|| scaled(size, unit, 0, true).0 / size.div_ceil(unit) as f64)
    };
    let severity = |size: u64, mild: bool| {
        if size >= 4096 {
            "note"
        } else if mild {
            "warning"
        } else {
            "error"
        }
    };
    let mut small: Vec<(String, f64)> = made
        .pieces
        .iter()
        .filter_map(|&(size, mild)| Some((severity(size, mild).into(), in_place(size)?)))
        .collect();
    small.sort_by(|a, b| a.0.cmp(&b.0));
    let misaligned = !charged.is_empty() || small.iter().any(|(severity, _)| severity == "error");
    let verdict = if misaligned { "misaligned" } else { "aligned" };
    if provider["verdict"] != verdict {
        return Some(format!("verdict {}, the model's is {verdict}", provider["verdict"]));
    }
    let mut reported: Vec<(String, f64)> = of("TL0004", name)
        .iter()
        .map(|f| {
            (
                f["severity"].as_str().expect("a key of the document").into(),
                f["rmw_factor"].as_f64().expect("a key of the document"),
            )
        })
        .collect();
    reported.sort_by(|a, b| a.0.cmp(&b.0));
    if reported != small {
        return Some(format!("TL0004 is {reported:?}, the model's {small:?}"));
    }
    let starts = of(rule, &place);
    if starts.len() != usize::from(!charged.is_empty()) + usize::from(!excused.is_empty()) {
        return Some(format!("{rule}: {starts:?}"));
    }
    let start = starts.iter().find(|f| f["severity"] != "note").filter(|_| !charged.is_empty())?;
    let cost = |unit: &Unit| {
        let (off, straddle) = scaled(made.block, unit.0, past(unit), unit.2);
        (unit.0, off / scaled(made.block, unit.0, 0, unit.2).0, straddle)
    };
    let said =
        (start["unit"].as_u64()?, start["rmw_factor"].as_f64()?, start["straddle"].as_f64()?);
    let most = charged.iter().map(|unit| cost(unit).1).fold(0.0, f64::max);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let right = charged
        .iter()
        .map(|unit| cost(unit))
        .any(|c| c.0 == said.0 && near(c.1, said.1) && near(c.2, said.2));
    (!right || !near(most, said.1)).then(|| {
        format!(
            "costs {said:?}, the model's are {:?}",
            charged.iter().map(|u| cost(u)).collect::<Vec<_>>()
        )
    })
}

#[test]
fn random_disks_are_judged_as_by_a_model_that_counts() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    if let Some(missing) =
        missing_of(["sfdisk", "mke2fs", "makefs", "mkfs.fat", "mkswap", "mkfs.erofs"])
    {
        return skip(&format!("random disks: no {missing} here"));
    }
    let mut random = Random(number("TRUELINE_SEED").unwrap_or(2010).max(1));
    let scratch = Scratch::new("random");
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for nth in 0..number("TRUELINE_RANDOM").unwrap_or(8) {
        let Some(all) = disk(&mut random, scratch.path()) else { continue };
        for _ in 0..4 {
            let (arguments, units) = random.pick(DRIVES);
            let ran = tool(
                env!("CARGO_BIN_EXE_trueline"),
                &[&["check", "--json", "disk"], arguments].concat(),
                scratch.path(),
            )
            .expect("a tool that can be run");
            let document: Value = serde_json::from_slice(&ran.stdout).expect("a scratch file");
            for made in &all {
                judged += 1;
                let differs = differs(made, units, &document["targets"][0]);
                wrong.extend(
                    differs.map(|why| format!("disk {nth}, {arguments:?}: {made:?}: {why}")),
                );
            }
        }
    }
    assert!(wrong.is_empty() && judged > 0, "{judged} judged\n{}", wrong.join("\n"));
}
