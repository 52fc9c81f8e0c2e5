//! Formats of which every block has one place by a table of the file: qcow2, VDI, qcow, QED,
//! Parallels, VMDK.

use super::{compare_bytes, compare_map, messages, opened, raw_disk, sh};

/// Formats with their options, and whether qemu-img says where blocks are: of compressed ones it
/// does not.
const MADE: &[(&str, bool)] = &[
    ("qcow2", true),
    ("qcow2 -o compat=0.10", true),
    ("qcow2 -o cluster_size=512", true),
    ("qcow2 -o cluster_size=2M", true),
    ("qcow2 -o extended_l2=on,cluster_size=128k", true),
    ("qcow2 -o preallocation=metadata,lazy_refcounts=on", true),
    ("qcow2 -c", false),
    ("qcow2 -c -o compression_type=zstd,cluster_size=256k", false),
    ("vdi", true),
    ("vdi -o static=on", true),
    ("qcow", true),
    ("qed", true),
    ("qed -o cluster_size=131072,table_size=2", true),
    ("parallels", true),
    ("parallels -o cluster_size=65536", true),
    ("parallels -o cluster_size=32256", true),
    ("vmdk", true),
    ("vmdk -o zeroed_grain=on", true),
    ("vmdk -o compat6", true),
    ("vmdk -o subformat=streamOptimized", false),
];

#[test]
fn what_qemu_img_made_is_read_as_it_reads_it() {
    let Some(here) = raw_disk("formats") else { return };
    // No whole number of any cluster.
    sh(&here, "truncate -s +17920 raw");
    for (format, has_places) in MADE {
        let name = format.split(' ').next().expect("a name");
        sh(
            &here,
            &format!(
                "rm -f made back; qemu-img convert -O {format} raw made
                qemu-img convert -f {name} -O raw made back; cmp raw back"
            ),
        );
        let (graph, _) = opened(&here, "made");
        compare_bytes(&here, &graph);
        if *has_places {
            let placed = compare_map(&here, &graph, name, "made");
            assert!(placed > 4 << 20, "{format}: {placed} bytes have a place");
        }
    }
}

/// qemu-img writes such an image, and then ends with an error of its own; it reads it all the same.
#[test]
fn compressed_clusters_of_qcow_are_read() {
    let Some(here) = raw_disk("qcow-packed") else { return };
    sh(
        &here,
        "qemu-img convert -c -O qcow raw made || true
        qemu-img convert -f qcow -O raw made back; cmp raw back",
    );
    let (graph, _) = opened(&here, "made");
    compare_bytes(&here, &graph);
}

/// Sizes and the phases that qemu-img's VDI has: 512 bytes of header, and 4 bytes of map for each
/// MiB, in whole sectors.
#[test]
fn a_vdi_of_qemu_img_is_off_by_the_sectors_of_its_map() {
    let Some(here) = raw_disk("vdi-phase") else { return };
    for (size, past) in [("48M", 1024), ("896M", 0), ("1G", 512), ("2G", 512), ("127G", 512)] {
        sh(&here, &format!("rm -f made; qemu-img create -q -f vdi made {size}"));
        let (graph, audit) = opened(&here, "made");
        let found = messages(&audit, super::contents(&graph), "TL0030");
        let wanted = format!("vdi, made by QEMU, puts byte 0 of every block {past} bytes past");
        assert_eq!(found.len(), usize::from(past > 0), "{size}: {found:?}");
        assert!(found.iter().all(|message| message.starts_with(&wanted)), "{size}: {found:?}");
    }
}
