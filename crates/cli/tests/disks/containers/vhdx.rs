//! VHDXs of qemu-img.

use super::{MIB, compare_bytes, contents, messages, opened, raw_disk, sh};
use std::fs;
use trueline_geom::graph::Graph;
use trueline_geom::mapping::geom::Op;
use trueline_geom::mapping::route::Piece;

#[test]
fn every_kind_shows_the_disk_that_it_was_made_of() {
    let Some(here) = raw_disk("vhdx") else { return };
    for options in [
        "subformat=dynamic",
        "subformat=fixed",
        "block_size=1M",
        "block_size=256M",
        "block_size=2M,log_size=4M,block_state_zero=off",
    ] {
        sh(&here, &format!("qemu-img convert -f raw -O vhdx -o {options} raw disk"));
        let (graph, audit) = opened(&here, "disk");
        compare_bytes(&here, &graph);
        assert_eq!(graph.providers[contents(&graph)].topology.length, 40 * MIB);
        let placed = placed(&graph);
        assert!(placed >= 5 * MIB, "{options}: {placed} bytes placed");
        assert!(graph.find("p1").is_some(), "{options}: no partition in it");
        let claim = messages(&audit, contents(&graph), "TL0030");
        let expected = "physical sectors of 512 bytes, and lies on a 4096-byte physical unit";
        assert!(claim.len() == 1 && claim[0].contains(expected), "{claim:?}");
    }
}

/// Bytes of the disk that have a place in the file, each as far into a MiB as for the guest:
/// `qemu-img map` knows no places in a VHDX.
fn placed(graph: &Graph) -> u64 {
    let mut placed = 0;
    let mut walk = |done: u64, piece| {
        if let Piece::Store { offset, length, .. } = piece {
            assert_eq!(offset % MIB, done % MIB, "byte {done}");
            placed += length;
        }
        Ok(())
    };
    let route = graph.providers[contents(graph)].route();
    route.extents(0, route.length(), Op::Read, &mut walk).expect("places");
    placed
}

/// The disk that QEMU finds once it has replayed a log is the one that is read before.
#[test]
fn a_log_reads_as_qemu_replays_it() {
    let Some(here) = raw_disk("vhdx-log") else { return };
    sh(&here, "qemu-img convert -f raw -O vhdx -o block_size=1M raw disk");
    let path = here.path().join("disk");
    let mut bytes = fs::read(&path).expect("the file");
    let number = |bytes: &[u8], at: usize| {
        let number = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        usize::try_from(number).expect("a small number")
    };
    // The first page of the table goes into the log, and is zeros in the file.
    let (table, log) = (number(&bytes, (192 << 10) + 32), number(&bytes, (64 << 10) + 72));
    let entry = entry(&bytes[table..table + 4096], table as u64, bytes.len() as u64);
    bytes[table..table + 4096].fill(0);
    bytes[log..log + entry.len()].copy_from_slice(&entry);
    for header in [64 << 10, 128 << 10] {
        bytes[header + 48..header + 64].fill(7);
        seal(&mut bytes[header..header + 4096]);
    }
    fs::write(&path, bytes).expect("the file");

    let (graph, _) = opened(&here, "disk");
    let details = &graph.providers[0].signs[0].details;
    assert!(details.contains(&("log entries to be replayed", "1".to_string())), "{details:?}");
    compare_bytes(&here, &graph);
    sh(&here, "qemu-img check -q -r all -f vhdx disk; qemu-img compare -q -f raw -F vhdx raw disk");
    let (graph, _) = opened(&here, "disk");
    assert!(
        !graph.providers[0].signs[0]
            .details
            .iter()
            .any(|(name, _)| name.starts_with("log entries"))
    );
    compare_bytes(&here, &graph);
}

/// An entry of a log that writes `page` to `at` of a file of `length` bytes: [MS-VHDX] 2.3.1.
fn entry(page: &[u8], at: u64, length: u64) -> Vec<u8> {
    let mut entry = vec![0; 8192];
    let mut put = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
    let sequence = 3_u64.to_le_bytes();
    put(0, b"loge");
    put(8, &8192_u32.to_le_bytes());
    put(16, &sequence);
    put(24, &[1]);
    put(32, &[7; 16]);
    put(48, &length.to_le_bytes());
    put(56, &length.to_le_bytes());
    put(64, b"desc");
    put(68, &page[4092..]);
    put(72, &page[..8]);
    put(80, &at.to_le_bytes());
    put(88, &sequence);
    put(4096, page);
    put(4096, b"data");
    put(4100, &sequence[4..]);
    put(8188, &sequence[..4]);
    seal(&mut entry);
    entry
}

/// Puts the CRC-32C of a structure into its bytes 4 to 7.
fn seal(bytes: &mut [u8]) {
    bytes[4..8].fill(0);
    let sum = crate::known::crc32c(bytes);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
}
