use super::*;
use crate::command::part::tables::{Bench, SECTOR};
use crate::render::samples::text;
use trueline_geom::layout::backup;
use trueline_geom::table::{Request, Rules};

/// Sectors of a disk of 250 GB.
const SECTORS: u64 = 488_397_168;

fn show(bench: &Bench, format: Format) -> String {
    text(|out| write(bench.shown(), format, out))
}

/// A GPT with labels and attributes.
fn labelled() -> Bench {
    let mut disk = Bench::disk("ada0", 2_097_152, 4096, (40, 2_097_111));
    let at = |start, size| Request {
        start: Some(start * SECTOR),
        size: Some(size * SECTOR),
        align: None,
    };
    disk.add("freebsd-boot", at(40, 1024), Rules::Gpart);
    disk.add("linux-root-x86-64", at(4096, 1_000_000), Rules::Gpart);
    let entries = &mut disk.table.entries;
    (entries[0].partition.label, entries[0].attributes) = (Some("boot".into()), 3 << 58);
    entries[1].partition.label = Some("a\n1".into());
    disk
}

#[test]
fn labels_raw_types_names_attributes_and_damage() {
    let mut disk = labelled();
    let shown = |disk: &Bench, what, names| show(disk, Format { what, names, ..Format::default() });
    assert_eq!(
        shown(&disk, What::Type, false),
        "=>     40  2097072  ada0  GPT  (1.0G)
       40     1024     1  freebsd-boot  [bootme,bootonce]  (512K)
     1064     3032        - free -  (1.5M)
     4096  1000000     2  !4f68bce3-e8cd-4db1-96e7-fbcaf984b709  (488M)
  1004096  1093016        - free -  (534M)

"
    );
    assert!(shown(&disk, What::Label, true).contains("  ada0p2  a\\n1  (488M)\n"));
    assert!(
        shown(&disk, What::Label, true).starts_with("=>     40  2097072    ada0  GPT  (1.0G)\n")
    );
    disk.table.entries[1].partition.label = None;
    disk.table.damage = vec!["the backup is elsewhere".into()];
    let raw = shown(&disk, What::Raw, false);
    assert!(raw.contains("  83bd6b9d-7f41-11dc-be0b-001560b84f0f  [bootme,bootonce]  (512K)\n"));
    assert!(raw.starts_with("=>     40  2097072  ada0  GPT  (1.0G) [CORRUPT]\n"));
    assert!(shown(&disk, What::Label, false).contains("     2  (null)  (488M)\n"));
}

#[test]
fn a_backup_is_gparts_and_is_read_again() {
    let disk = labelled();
    let text = backup::write(&disk.table);
    assert_eq!(
        text,
        "GPT 128
1                            freebsd-boot      40    1024 boot  [bootme,bootonce] 
2   !4f68bce3-e8cd-4db1-96e7-fbcaf984b709    4096 1000000 a?1 
"
    );
    let read = backup::parse(&text, SECTOR).unwrap();
    let got: Vec<_> =
        read.partitions.iter().map(|l| (l.index, l.start, l.size, l.label.as_deref())).collect();
    assert_eq!(
        got,
        [
            (1, 40 * SECTOR, 1024 * SECTOR, Some("boot")),
            (2, 4096 * SECTOR, 1_000_000 * SECTOR, Some("a?1"))
        ]
    );
    assert_eq!(read.partitions[0].attributes, ["bootme", "bootonce"]);
}

#[test]
fn sizes_as_either_rounds_them() {
    let both = |bytes| (humanize(bytes), humanize9(bytes));
    let pair = |new: &str, old: &str| (new.to_owned(), old.to_owned());
    assert_eq!(both(SECTORS * 512), pair("233G", "232G"));
    assert_eq!(both(540 * 512), pair("270K", "270k"));
    assert_eq!(both(51 * 512), pair("26K", "25k"));
    assert_eq!(both(7 * 512), pair("3.5K", "3.5k"));
    assert_eq!(both(299_652_828 * 512), pair("143G", "142G"));
    assert_eq!(both(999), pair("999B", "999B"));
    assert_eq!(both(1000), pair("1.0K", "1k"));
    assert_eq!(both(1024), pair("1.0K", "1.0k"));
    assert_eq!(both(u64::MAX), pair("16E", "16E"));
}
