//! Arguments of a system's mkfs: those that follow from the grains, and the user's own, which win.

use crate::command::mkfs::args::{FileSystemKind, Mkfs};
use crate::command::mkfs::width;
use trueline_geom::format::maker::{Maker, Words};
use trueline_geom::graph::Provider;
use trueline_geom::plan::fat::Parameters as Fat;
use trueline_geom::plan::{btrfs, exfat, ext4, ntfs, swap, unit_size, xfs};

/// Options for `kind` on `p`, each with its value, without those that `own` overrides; then `own`,
/// with values that belong together joined.
pub(super) fn merged(
    kind: FileSystemKind,
    maker: &Maker,
    p: &Provider,
    own: &[String],
) -> (Vec<String>, Vec<String>) {
    let typed = Words::parse(own);
    let (mut ours, mut own) = (Vec::new(), own.to_vec());
    for (flag, value) in derived(kind, maker, p, &own) {
        if (maker.gives_way)(&flag, &typed) {
            continue;
        }
        let theirs = maker
            .joined
            .filter(|letter| flag.strip_prefix('-') == Some(&letter.to_string()))
            .and_then(|letter| typed.last(letter));
        match theirs.and_then(|theirs| own.get_mut(theirs.at).zip(Some(theirs))) {
            Some((word, theirs)) => {
                let dash = if *word == theirs.value { "" } else { &flag };
                *word = format!("{dash}{},{}", value.unwrap_or_default(), theirs.value);
            }
            None => ours.extend([flag].into_iter().chain(value)),
        }
    }
    for flag in maker.always.iter().rev().filter(|flag| !own.iter().any(|word| word == *flag)) {
        ours.insert(0, (*flag).to_owned());
    }
    (ours, own)
}

/// The options that follow from the grains of `p`; of a FAT, for the width that `own` names.
fn derived(
    kind: FileSystemKind,
    maker: &Maker,
    p: &Provider,
    own: &[String],
) -> Vec<(String, Option<String>)> {
    let t = &p.topology;
    let words = match kind {
        FileSystemKind::Ext4 => ext4::Parameters::for_topology(t).options(),
        FileSystemKind::Xfs => xfs::Parameters::for_topology(t).options(),
        FileSystemKind::Btrfs => btrfs::Parameters::for_topology(t).options(),
        FileSystemKind::Vfat => fat(p, fat_bits(&[], own)),
        FileSystemKind::Exfat => exfat::Parameters::for_topology(t).options(),
        FileSystemKind::Ntfs => ntfs::Parameters::for_topology(t).options(),
        FileSystemKind::Swap => swap::Parameters::for_topology(t).options(),
        FileSystemKind::Ufs => Vec::new(),
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
    let more = maker.sectors_before.zip(before).map(|(options, sectors)| options(sectors));
    pairs.extend(more.into_iter().flatten().map(|(flag, value)| (flag.to_owned(), Some(value))));
    pairs
}

/// The options of a FAT of the bits that the user names, else of those that the partition's type
/// names where clusters of whole units make such a FAT, else of the usual ones.
fn fat(p: &Provider, named: Option<u64>) -> Vec<String> {
    let t = &p.topology;
    if let Some(bits) = named {
        // Where no cluster makes such a FAT, mkfs.fat is left to say so.
        let sector = || vec!["-S".to_owned(), t.sector.clamp(512, 4096).to_string()];
        return Fat::of_bits(t, bits, 0).map_or_else(sector, |fat| fat.options());
    }
    let of_type = width::said_by(p)
        .filter(|&bits| bits == 32)
        .and_then(|bits| Fat::of_bits(t, bits, unit_size(t)));
    of_type.unwrap_or_else(|| Fat::for_topology(t)).options()
}

/// The bits of a FAT's entries that mkfs.fat gets, from the user's word before ours; `None` if it
/// chooses itself.
pub(super) fn fat_bits(ours: &[String], own: &[String]) -> Option<u64> {
    let bits = |words: &[String]| Words::parse(words).last('F').map(|word| word.value.clone());
    bits(own).or_else(|| bits(ours))?.parse().ok()
}

/// The command line that makes it with this program, with `options` for the tool.
pub(super) fn ourselves(args: &Mkfs, sector: u64, options: Vec<String>) -> String {
    let mut words = vec!["trueline".to_owned(), "mkfs".to_owned(), args.kind.name().to_owned()];
    // An image does not say how long its sectors are.
    if sector != 512 {
        words.extend(["--logical".to_owned(), sector.to_string()]);
    }
    words.extend(args.overwrite.then(|| "--overwrite".to_owned()));
    words.extend([args.target.to_string(), "--".to_owned()]);
    words.into_iter().chain(options).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// One word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=/.,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
