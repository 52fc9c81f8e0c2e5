//! ISO 9660, with or without Joliet.
//!
//! # On disk
//! Volume descriptors of 2048 bytes from byte 32768 on: the primary one, then others, to one of
//! type 255. Never written in place.
//!
//! # Limits
//! High Sierra, its predecessor, is not recognised; 16 descriptors are looked at.
//!
//! # Sources
//! ECMA-119, 8.4 "Primary Volume Descriptor", 8.5 "Supplementary Volume Descriptor"; libblkid
//! `superblocks/iso9660.c` for the date that serves as UUID and for which of two names is the
//! label.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32};

/// The format, for the registry.
pub struct Iso9660;

/// The kind that blkid calls `iso9660`.
pub const KIND: FormatKind = FormatKind::new("iso9660", &Iso9660);

impl Format for Iso9660 {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::ReadOnly)
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// A primary or supplementary volume descriptor. Numbers are there in both byte orders,
    /// little-endian first.
    struct Descriptor of 847 bytes {
          0 => kind: u8,
          1 => standard_identifier: [u8; 5],
          6 => version: u8,
          7 => volume_flags: u8,
          8 => system_identifier: [u8; 32],
         40 => volume_identifier: [u8; 32],
         72 => unused: [u8; 8],
         80 => volume_space_size: U32,
         84 => skip0: [u8; 4],
         88 => escape_sequences: [u8; 32],
        120 => skip1: [u8; 8],
        128 => logical_block_size: U16,
        130 => skip2: [u8; 683],
        813 => volume_creation: [u8; 17],
        830 => volume_modification: [u8; 17],
    }
}

const AT: u64 = 32768;
const SECTOR: u64 = 2048;
const DESCRIPTORS: u64 = 16;
const SUPPLEMENTARY: u8 = 2;
const TERMINATOR: u8 = 255;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    if !probe.reaches(AT) || !probe.has(AT, b"\x01CD001") {
        return None;
    }
    let primary: Descriptor = probe.read(AT)?;
    let block = u64::from(primary.logical_block_size.get());
    if !block.is_power_of_two() || !(512..=2048).contains(&block) {
        return None;
    }
    let joliet = joliet(probe);
    let mut sign = Sign::new(KIND, AT + 1);
    sign.inside = Inside::ReadOnly;
    sign.version = joliet.is_some().then(|| "Joliet Extension".into());
    sign.label = match &joliet {
        Some(joliet) => long_label(&primary.volume_identifier, &joliet.volume_identifier),
        None => ondisk::text(&primary.volume_identifier),
    };
    sign.uuid = date(&primary.volume_modification).or_else(|| date(&primary.volume_creation));
    sign.size = Some(u64::from(primary.volume_space_size.get()) * block);
    sign.block = Some(block);
    Some(sign)
}

/// The Joliet descriptor: a supplementary one with an escape sequence of UCS-2.
fn joliet(probe: &Probe<'_>) -> Option<Descriptor> {
    (1..DESCRIPTORS)
        .map_while(|n| probe.read::<Descriptor>(AT + n * SECTOR))
        .take_while(|d| d.standard_identifier == *b"CD001" && d.kind != TERMINATOR)
        .find(|d| {
            d.kind == SUPPLEMENTARY
                && [b"%/@", b"%/C", b"%/E"].iter().any(|e| d.escape_sequences.starts_with(*e))
        })
}

/// The Joliet name has every character but only 16 of them, the primary one 32 but `_` for what it
/// lacks: where they agree, the long one with the good characters; else the Joliet one.
fn long_label(primary: &[u8; 32], joliet: &[u8; 32]) -> Option<String> {
    let units: Vec<u16> =
        joliet.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let agree = units.iter().zip(primary).all(|(&unit, &byte)| {
        let letter = u8::try_from(unit).unwrap_or(b'_');
        byte == b'_' || letter.eq_ignore_ascii_case(&byte)
    });
    let rest = primary[units.len()..].iter().map(|&byte| u16::from(byte));
    ondisk::text_units(units.iter().copied().chain(rest.filter(|_| agree)))
}

/// `YYYYMMDDHHMMSScc` with dashes, or nothing if it is unset: all `0`, offset 0.
fn date(field: &[u8; 17]) -> Option<String> {
    let digits: &str = std::str::from_utf8(&field[..16])
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    let unset = digits.bytes().all(|b| b == b'0') && field[16] == 0;
    let pairs = [
        &digits[..4],
        &digits[4..6],
        &digits[6..8],
        &digits[8..10],
        &digits[10..12],
        &digits[12..14],
        &digits[14..],
    ];
    (!unset).then(|| pairs.join("-"))
}
