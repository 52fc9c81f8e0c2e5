//! VHDs of qemu-img, which calls them `vpc`.

use super::{MIB, compare_bytes, compare_map, contents, messages, opened, raw_disk, sh};
use std::fs;

#[test]
fn every_kind_shows_the_disk_that_it_was_made_of() {
    let Some(here) = raw_disk("vhd") else { return };
    for (options, is_dynamic) in [
        ("subformat=dynamic,force_size=on", true),
        ("subformat=dynamic", true),
        ("subformat=fixed,force_size=on", false),
        ("subformat=fixed", false),
    ] {
        sh(&here, &format!("qemu-img convert -f raw -O vpc -o {options} raw disk"));
        let (graph, _) = opened(&here, "disk");
        let sign = &graph.providers[0].signs[0];
        assert!(sign.details.contains(&("creator", "QEMU".to_string())), "{:?}", sign.details);
        compare_bytes(&here, &graph);
        // Without the option the disk is as long as a geometry says.
        let length = graph.providers[contents(&graph)].topology.length;
        assert_eq!(length == 40 * MIB, options.contains("force_size"), "{options}: {length}");
        // QEMU probes a fixed one as raw, where every byte has a place.
        if is_dynamic {
            let placed = compare_map(&here, &graph, "vpc", "disk");
            assert!((6 * MIB..40 * MIB).contains(&placed), "{placed} bytes placed");
        }
        assert!(graph.find("p1").is_some(), "{options}: no partition in it");
    }
    sh(&here, "qemu-img convert -f vpc -O raw disk back; cmp -n 41943040 raw back");
}

/// Phases of blocks rotate, each behind a sector of bitmap.
#[test]
fn the_share_of_blocks_that_are_off_is_told() {
    let Some(here) = raw_disk("vhd-off") else { return };
    // 2 MiB of each of 18 blocks are written.
    sh(
        &here,
        "qemu-img create -q -f vpc -o force_size=on disk 64M
        qemu-io -f vpc -c 'write -P 7 0 36M' disk > log
        qemu-img create -q -f vpc -o force_size=on one 64M
        qemu-io -f vpc -c 'write -P 7 0 4096' one > log",
    );
    let (graph, audit) = opened(&here, "disk");
    let found = messages(&audit, contents(&graph), "TL0030");
    assert_eq!(found.len(), 1, "{found:?}");
    let start = "vhd, made by QEMU, puts 16 of 18 blocks off a 4096-byte physical unit";
    assert!(found[0].starts_with(start), "{found:?}");
    let alignment = ("alignment", "0".to_string());
    assert!(graph.providers[0].signs[0].details.contains(&alignment));
    let (graph, audit) = opened(&here, "one");
    let found = messages(&audit, contents(&graph), "TL0030");
    assert!(found[0].contains("puts byte 0 of every block"), "{found:?}");
}

/// A block that is where it should be, before room that is not.
#[test]
fn the_next_block_is_told_of_before_it_is_written() {
    let Some(here) = raw_disk("vhd-next") else { return };
    sh(
        &here,
        "qemu-img create -q -f vpc -o force_size=on disk 64M
        qemu-io -f vpc -c 'write -P 7 0 4096' disk > log",
    );
    let path = here.path().join("disk");
    let mut bytes = fs::read(&path).expect("the file");
    // The one block moves so that its data begin on 4096 bytes; the footer follows it.
    let table = usize::try_from(u64::from_be_bytes(bytes[528..536].try_into().expect("8 bytes")))
        .expect("a small number");
    let sector = u32::from_be_bytes(bytes[table..table + 4].try_into().expect("4 bytes"));
    let start = usize::try_from(sector).expect("a small number") * 512;
    let lacking = (4096 - (start + 512) % 4096) % 4096;
    assert!(lacking > 0, "the block is on the boundary");
    bytes.splice(start..start, vec![0; lacking]);
    let moved = sector + u32::try_from(lacking / 512).expect("a small number");
    bytes[table..table + 4].copy_from_slice(&moved.to_be_bytes());
    fs::write(&path, bytes).expect("the file");
    sh(&here, "qemu-img check -q -f vpc disk || qemu-io -f vpc -c 'read -P 7 0 4096' disk > log");
    let (graph, audit) = opened(&here, "disk");
    let found = messages(&audit, contents(&graph), "TL0030");
    let expected =
        "vhd, made by QEMU, has room for its next block 512 bytes past a 4096-byte physical unit";
    assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
}

/// qemu-img rounds a size up to a geometry, and the copy of the GPT at the end of the disk is then
/// not there.
#[test]
fn a_size_that_was_rounded_up_leaves_the_backup_gpt_astray() {
    let Some(here) = raw_disk("vhd-gpt") else { return };
    sh(
        &here,
        "qemu-img convert -f raw -O vpc raw disk; qemu-img convert -f raw -O vpc -o force_size=on raw whole",
    );
    let astray = |name: &str| {
        let (graph, audit) = opened(&here, name);
        messages(&audit, contents(&graph), "TL0023").len()
    };
    assert_eq!((astray("disk"), astray("whole")), (1, 0));
}
