//! Extents of VMware that no tool here writes, written by hand, and read by QEMU as well.

use super::{compare_bytes, opened, raw_disk, sh};
use crate::recipe::Scratch;
use std::fs;

const SECTOR: usize = 512;

/// Compares the disk in `made` with `raw`, as QEMU reads it through `source` and as we do.
fn compare(here: &Scratch, made: &[u8], source: &str) {
    fs::write(here.path().join("made.vmdk"), made).expect("a scratch file");
    sh(here, &format!("qemu-img convert -f vmdk -O raw {source} back"));
    let back = fs::read(here.path().join("back")).expect("a file that was made");
    let raw = fs::read(here.path().join("raw")).expect("the raw disk");
    // QEMU 7.2 makes the disk of an extent of ESX that a descriptor names twice as long.
    assert!(back.starts_with(&raw), "qemu-img reads another disk than was written");
    let (graph, _) = opened(here, "made.vmdk");
    compare_bytes(here, &graph);
}

/// The raw disk cut to `length` bytes.
fn cut(here: &Scratch, length: usize) -> Vec<u8> {
    sh(here, &format!("truncate -s {length} raw"));
    fs::read(here.path().join("raw")).expect("the raw disk")
}

/// Writes the descriptor of a disk with one extent, without which QEMU does not open some.
fn describe(here: &Scratch, create_type: &str, extent: &str) {
    let text = format!(
        "# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID=ffffffff\n\
         createType=\"{create_type}\"\n\n{extent} \"made.vmdk\"\n"
    );
    fs::write(here.path().join("text.vmdk"), text).expect("a scratch file");
}

fn put(file: &mut [u8], at: usize, number: u64, width: usize) {
    file[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// QEMU keeps the directory of a streamOptimized extent in front. VMware puts it behind the grains,
/// and a footer has its place.
#[test]
fn a_footer_has_the_place_of_the_directory() {
    let Some(here) = raw_disk("vmdk-footer") else { return };
    sh(&here, "qemu-img convert -O vmdk -o subformat=streamOptimized raw made");
    let length = fs::metadata(here.path().join("raw")).expect("the raw disk").len();
    let mut made = fs::read(here.path().join("made")).expect("a file that was made");
    let read = |file: &[u8], at: usize| {
        u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes"))
    };
    let number = |value: u64| usize::try_from(value).expect("a small number");
    let directory = number(read(&made, 56)) * SECTOR;
    let entries = number(length / 512).div_ceil(512 * 128) * 4;
    // The directory is moved behind the grains, and zeroed where it was.
    let at = made.len().next_multiple_of(SECTOR);
    made.resize(at + SECTOR, 0);
    made.copy_within(directory..directory + entries, at);
    made[directory..directory + entries].fill(0);
    let end = made.len();
    made.resize(end + 3 * SECTOR, 0);
    put(&mut made, end + 12, 3, 4);
    made.copy_within(..SECTOR, end + SECTOR);
    put(&mut made, end + SECTOR + 56, (at / SECTOR) as u64, 8);
    // There is no second one.
    put(&mut made, end + SECTOR + 8, 0x3_0001, 4);
    put(&mut made, 56, u64::MAX, 8);
    compare(&here, &made, "made.vmdk");
}

/// Sectors of ESX in an order of their own: sector `n` of the disk is number `n * 5` of the file.
#[test]
fn a_snapshot_of_esx_is_read_as_qemu_reads_it() {
    let Some(here) = raw_disk("vmdk-cowd") else { return };
    let written = cut(&here, (8 << 20) + 7 * SECTOR);
    let sectors = written.len() / SECTOR;
    let tables = sectors.div_ceil(4096);
    let first = 5 + tables * 32;
    let mut made = vec![0; (first + sectors) * SECTOR];
    made[..4].copy_from_slice(b"COWD");
    for (nth, value) in [1, 3, sectors, 1, 4, tables, first + sectors].into_iter().enumerate() {
        put(&mut made, 4 + nth * 4, value as u64, 4);
    }
    for table in 0..tables {
        put(&mut made, 4 * SECTOR + table * 4, (5 + table * 32) as u64, 4);
    }
    assert!(!sectors.is_multiple_of(5), "the order has every sector once");
    for nth in 0..sectors {
        let place = first + nth * 5 % sectors;
        put(&mut made, 5 * SECTOR + nth * 4, place as u64, 4);
        made[place * SECTOR..(place + 1) * SECTOR]
            .copy_from_slice(&written[nth * SECTOR..(nth + 1) * SECTOR]);
    }
    describe(&here, "vmfsSparse", &format!("RW {sectors} VMFSSPARSE"));
    compare(&here, &made, "text.vmdk");
}

/// Grains whose numbers need more than the 12 bits that stand above the others.
#[test]
fn se_sparse_is_read_as_qemu_reads_it() {
    let Some(here) = raw_disk("vmdk-sesparse") else { return };
    let written = cut(&here, 24 << 20);
    let grains = written.len() / 4096;
    let tables = grains.div_ceil(4096);
    let (first, numbers) = (512, 4093 + grains);
    let mut made = vec![0; first * SECTOR + numbers * 4096];
    let sectors = written.len() / SECTOR;
    for (at, value) in [
        (0, 0xcafe_babe),
        (8, 0x2_0000_0001),
        (16, sectors as u64),
        (24, 8),
        (32, 64),
        (80, 1),
        (88, 1),
        (128, 2),
        (136, 1),
        (144, 64),
        (152, (tables * 64) as u64),
        (192, first as u64),
        (200, (numbers * 8) as u64),
        (512, 0xcafe_cafe),
    ] {
        put(&mut made, at, value, 8);
    }
    for table in 0..tables {
        put(&mut made, 1024 + table * 8, 0x1000_0000_0000_0000 | table as u64, 8);
    }
    for nth in 0..grains {
        let number = 4093 + nth * 7 % grains;
        let entry = 3 << 60 | (number as u64 & 0xfff) << 48 | number as u64 >> 12;
        put(&mut made, 64 * SECTOR + nth * 8, entry, 8);
        let place = first * SECTOR + number * 4096;
        made[place..place + 4096].copy_from_slice(&written[nth * 4096..(nth + 1) * 4096]);
    }
    describe(&here, "seSparse", &format!("RW {sectors} SESPARSE"));
    compare(&here, &made, "text.vmdk");
}
