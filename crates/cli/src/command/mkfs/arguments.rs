//! Arguments of a system's mkfs: those that follow from the grains, and the user's own, which win.

use crate::command::mkfs::args::{Kind, Mkfs};
use trueline_geom::graph::Provider;
use trueline_geom::plan::{btrfs, exfat, ext4, fat, ntfs, swap, xfs};

/// A mkfs program of this system.
pub(super) struct Tool {
    /// Name of the program.
    pub(super) program: &'static str,
    /// The Debian package it is in.
    pub(super) package: &'static str,
    /// The FreeBSD package it is in, if any.
    pub(super) freebsd: Option<&'static str>,
    /// Options without which it refuses a file.
    pub(super) file: &'static [&'static str],
    /// Options without which it refuses a device that is whole or was in use before; both were judged here.
    pub(super) device: &'static [&'static str],
}

impl Tool {
    /// The program that makes `kind`; `None` for a built-in one.
    pub(super) fn of(kind: Kind) -> Option<Tool> {
        let tool = |program, package, freebsd, file, device| Some(Tool { program, package, freebsd, file, device });
        match kind {
            Kind::Ext4 => tool("mkfs.ext4", "e2fsprogs", Some("e2fsprogs"), &["-F"], &[]),
            Kind::Xfs => tool("mkfs.xfs", "xfsprogs", Some("xfsprogs"), &["-f"], &["-f"]),
            Kind::Btrfs => tool("mkfs.btrfs", "btrfs-progs", None, &["-f"], &["-f"]),
            Kind::Vfat => tool("mkfs.vfat", "dosfstools", None, &["-I"], &["-I"]),
            Kind::Exfat => tool("mkfs.exfat", "exfatprogs", None, &[], &[]),
            Kind::Ntfs => tool("mkntfs", "ntfs-3g", Some("fusefs-ntfs"), &["-F"], &["-F"]),
            Kind::Swap => tool("mkswap", "util-linux", None, &[], &["-f"]),
            Kind::Ufs => None,
        }
    }
}

/// Heads, and sectors of a track, that BIOSes and Windows agree on.
const HEADS: &str = "255";
const TRACK: &str = "63";

/// Options for `kind` on `p`, each with its value, without those that `own` overrides; then `own`, with values that belong together joined.
pub(super) fn merged(kind: Kind, p: &Provider, own: &[String]) -> (Vec<String>, Vec<String>) {
    let typed = lettered(own);
    let (mut ours, mut own) = (Vec::new(), own.to_vec());
    for (flag, value) in derived(kind, p) {
        if gives_way(kind, &flag, &typed) {
            continue;
        }
        // mke2fs takes only the last -E, and in it the last value of a name.
        let theirs = typed.iter().rfind(|(_, letter, _)| flag == "-E" && *letter == 'E');
        match theirs.and_then(|(at, _, theirs)| own.get_mut(*at).zip(Some(theirs))) {
            Some((word, theirs)) => {
                let dash = if word == theirs { "" } else { "-E" };
                *word = format!("{dash}{},{theirs}", value.unwrap_or_default());
            }
            None => ours.extend([flag].into_iter().chain(value)),
        }
    }
    if kind == Kind::Ntfs && !own.iter().any(|word| word == "-Q") {
        // Without it mkntfs fills the volume with zeros first, and looks for bad sectors.
        ours.insert(0, "-Q".to_owned());
    }
    (ours, own)
}

/// The options that follow from the grains of `p`.
fn derived(kind: Kind, p: &Provider) -> Vec<(String, Option<String>)> {
    let t = &p.topology;
    let words = match kind {
        Kind::Ext4 => ext4::Parameters::for_topology(t).options(),
        Kind::Xfs => xfs::Parameters::for_topology(t).options(),
        Kind::Btrfs => btrfs::Parameters::for_topology(t).options(),
        Kind::Vfat => fat::Parameters::for_topology(t).options(),
        Kind::Exfat => exfat::Parameters::for_topology(t).options(),
        Kind::Ntfs => ntfs::Parameters::for_topology(t).options(),
        Kind::Swap => swap::Parameters::for_topology(t).options(),
        Kind::Ufs => Vec::new(),
    };
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    for word in words {
        match pairs.last_mut().filter(|(_, value)| value.is_none() && !word.starts_with('-')) {
            Some((_, value)) => *value = Some(word),
            None => pairs.push((word, None)),
        }
    }
    // A boot sector has the number of sectors before it, in 32 bits.
    let before = p.start.map(|start| start / t.sector).filter(|&n| u32::try_from(n).is_ok());
    let more = match kind {
        Kind::Vfat => before.map(|n| vec![("-h", n.to_string())]),
        Kind::Ntfs => before.map(|n| vec![("-p", n.to_string()), ("-H", HEADS.to_owned()), ("-S", TRACK.to_owned())]),
        _ => None,
    };
    pairs.extend(more.into_iter().flatten().map(|(flag, value)| (flag.to_owned(), Some(value))));
    pairs
}

/// The letters in `own` with their values, each with the index of the word that holds its value.
fn lettered(own: &[String]) -> Vec<(usize, char, String)> {
    let letters = own.iter().enumerate().filter(|(_, word)| !word.starts_with("--"));
    let letter = letters.filter_map(|(at, word)| {
        let mut rest = word.strip_prefix('-')?.chars();
        let letter = rest.next()?;
        let joined = rest.as_str();
        Some(match joined {
            "" => (at + 1, letter, own.get(at + 1).cloned().unwrap_or_default()),
            _ => (at, letter, joined.to_owned()),
        })
    });
    letter.collect()
}

/// The bits of a FAT's entries that mkfs.fat gets, from the user's word before ours; `None` if it chooses itself.
pub(super) fn fat_bits(ours: &[String], own: &[String]) -> Option<u64> {
    let bits = |words: &[String]| lettered(words).into_iter().rfind(|(_, letter, _)| *letter == 'F').map(|(_, _, value)| value);
    bits(own).or_else(|| bits(ours))?.parse().ok()
}

/// True if the user's options override our option `flag`.
fn gives_way(kind: Kind, flag: &str, typed: &[(usize, char, String)]) -> bool {
    let letter = |letters: &str| typed.iter().any(|(_, letter, _)| letters.contains(*letter));
    let named = |of: char, names: &[&str]| {
        let values = typed.iter().filter(|(_, letter, _)| *letter == of).flat_map(|(_, _, value)| value.split(','));
        values.map(|value| value.split('=').next().unwrap_or(value)).any(|name| names.contains(&name))
    };
    match (kind, flag) {
        // The stride is counted in blocks.
        (Kind::Ext4, "-E") => letter("b"),
        (Kind::Xfs, "-d") => named('d', &["su", "sw", "sunit", "swidth", "noalign"]),
        (Kind::Xfs, "-l") => named('l', &["su", "sunit"]),
        // The reserved sectors fit tables of exactly that length.
        (Kind::Vfat, "-R" | "-a") => letter("RFSsfra"),
        _ => flag.strip_prefix('-').is_some_and(letter),
    }
}

/// The command line that makes it with this program, with `options` for the tool.
pub(super) fn ourselves(args: &Mkfs, sector: u64, options: Vec<String>) -> String {
    let mut words = vec!["trueline".to_owned(), "mkfs".to_owned(), args.kind.name().to_owned()];
    // An image does not say how long its sectors are.
    if sector != 512 {
        words.extend(["--logical".to_owned(), sector.to_string()]);
    }
    words.extend(args.overwrite.then(|| "--overwrite".to_owned()));
    words.extend([args.target.clone(), "--".to_owned()]);
    words.into_iter().chain(options).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// One word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=/.,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
