//! Tests of targets made of reported devices.

use super::*;
use crate::disk_options::DiskOptions;
use crate::report::Verdict;
use std::fs::File;
use trueline_host::device::{Member, Signs};

#[test]
fn partitions_an_old_lsblk_lists_are_numbered_by_their_names() {
    let list = r#"{"blockdevices":[{"name":"nvme0n1","type":"disk","size":1073741824,"children":[
        {"name":"nvme0n1p1","type":"part","start":2048,"size":1048576},{"name":"nvme0n1p15","type":"part","start":4096,"size":1048576}]}]}"#;
    let devices = lsblk::parse(list, "here").unwrap();
    let found =
        targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false).unwrap();
    let named: Vec<(&str, Option<&str>)> =
        found[0].providers.iter().map(|p| (p.provider.as_str(), p.kind.as_deref())).collect();
    assert_eq!(named, [("", None), ("p1", None), ("p15", None)]);
    assert_eq!(found[0].providers[0].table.as_ref().unwrap().scheme, "partition");
}

/// A drive that reports 512-byte sectors, with one partition at 1 MiB.
fn drive(part: Device) -> Vec<Device> {
    let limits = trueline_geom::audit::limits::Limits {
        logical_block_size: 512,
        physical_block_size: 512,
        ..Default::default()
    };
    let disk = Device {
        name: "sda".into(),
        path: "/dev/sda".into(),
        size: 1 << 30,
        limits: limits.clone(),
        ..Device::default()
    };
    let kind = DeviceKind::Partition {
        parent: "sda".into(),
        number: Some(1),
        start: Some(1 << 20),
        whole: 1 << 30,
    };
    vec![disk, Device { name: "sda1".into(), size: 1 << 28, kind, limits, ..part }]
}

fn judged(devices: &[Device], physical: Option<(u64, u64)>) -> report::Target {
    let overrides =
        DiskOverrides::new(&DiskOptions { physical, ..DiskOptions::default() }).unwrap();
    targets(devices, &overrides, false).unwrap().remove(0)
}

#[test]
fn what_is_not_read_is_aligned_only_if_its_blocks_are_known() {
    let verdict = |block| {
        let signs = Signs { fstype: Some("ext4".into()), block, ..Signs::default() };
        judged(&drive(Device { signs, ..Device::default() }), Some((4096, 0))).verdict
    };
    assert_eq!(
        [None, Some(4096), Some(1024)].map(verdict),
        [Verdict::Unknown, Verdict::Aligned, Verdict::Misaligned]
    );
}

#[test]
fn what_cannot_be_opened_is_unknown_whatever_is_told_of_it() {
    let signs = Signs { fstype: Some("ext4".into()), block: Some(4096), ..Signs::default() };
    let mut devices = drive(Device { signs, ..Device::default() });
    devices[0].path = "/nonexistent/sda".into();
    let overrides = DiskOverrides::new(&DiskOptions::default()).unwrap();
    let found = targets(&devices, &overrides, true).unwrap().remove(0);
    assert_eq!(found.verdict, Verdict::Unknown);
    assert_eq!(
        found.findings.iter().filter(|f| f.rule == "TL0029").count(),
        1,
        "{:?}",
        found.findings
    );
    // The list of another host is never read from this one's devices.
    assert_eq!(targets(&devices, &overrides, false).unwrap().remove(0).verdict, Verdict::Aligned);
}

#[test]
fn a_running_set_tells_where_its_members_data_begin() {
    let with = |offset| {
        let mut devices = drive(Device { holders: vec!["md0".into()], ..Device::default() });
        let member = Member { slot: 0, device: Some("sda1".into()), offset };
        let kind = DeviceKind::Md {
            level: None,
            chunk: None,
            disks: None,
            metadata: None,
            members: vec![member],
        };
        devices.push(Device {
            name: "md0".into(),
            path: "/dev/md0".into(),
            size: 1 << 28,
            kind,
            ..Device::default()
        });
        devices
    };
    let data = |t: &report::Target| {
        t.providers.iter().find(|p| p.provider == "p1.data").map(|p| (p.start, p.verdict))
    };
    let odd = (1 << 20) + 512;
    assert_eq!(
        data(&judged(&with(Some(1 << 20)), Some((4096, 0)))),
        Some((Some(2 << 20), Verdict::Aligned))
    );
    assert_eq!(
        data(&judged(&with(Some(odd)), Some((4096, 0)))),
        Some((Some((1 << 20) + odd), Verdict::Misaligned))
    );
    assert_eq!(data(&judged(&with(None), None)), None);
    // The drive's sectors may be larger than it reports: that is worth a note on a data area
    // too.
    let hinted = judged(&with(Some(odd)), None);
    assert_eq!(data(&hinted).unwrap().1, Verdict::Aligned);
    assert!(
        hinted
            .findings
            .iter()
            .any(|f| f.rule == "TL0016" && f.provider == "p1.data" && f.remainder == 512)
    );
}

#[test]
fn a_partition_past_the_end_does_not_give_its_contents_to_the_next() {
    let list = r#"{"blockdevices":[{"name":"sda","type":"disk","size":1073741824,"children":[
        {"name":"sda1","type":"part","start":2048,"size":1048576,"fstype":"ext4"},
        {"name":"sda2","type":"part","start":4194304,"size":1048576,"fstype":"swap"},
        {"name":"sda3","type":"part","start":4096,"size":1048576,"fstype":"xfs"}]}]}"#;
    let devices = lsblk::parse(list, "here").unwrap();
    let found =
        targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false).unwrap();
    let signs: Vec<_> =
        found[0].providers.iter().map(|p| (p.provider.as_str(), p.sign.as_deref())).collect();
    assert_eq!(signs, [("", None), ("p1", Some("ext4")), ("p3", Some("xfs"))]);
    assert!(
        found[0]
            .findings
            .iter()
            .any(|f| f.rule == "TL0009" && f.message.starts_with("p2 at byte 2147483648"))
    );
}

#[test]
fn a_partition_whose_disk_is_not_listed_is_a_target() {
    let list = r#"{"blockdevices":[{"name":"sda1","pkname":"sda","type":"part","start":63,"size":1048576,"phy-sec":4096,
        "log-sec":512,"alignment":512,"fstype":"ext4"}]}"#;
    let devices = lsblk::parse(list, "here").unwrap();
    let found =
        targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false).unwrap();
    let named: Vec<_> = found.iter().map(|t| (t.target.as_str(), t.verdict)).collect();
    assert_eq!(named, [("/dev/sda1", Verdict::Misaligned)]);
}

/// A list as util-linux 2.32 writes it: numbers as text, and no START.
const OLD: &str = r#"{"blockdevices":[{"name":"sda","type":"disk","size":"107374182400","phy-sec":"4096","log-sec":"512","min-io":"4096",
    "alignment":"0","pttype":"dos","children":[
    {"name":"sda1","type":"part","size":"1073741824","phy-sec":"4096","log-sec":"512","min-io":"4096","alignment":"512","fstype":"xfs",
     "mountpoint":"/boot","parttype":"0x83"},
    {"name":"sda2","type":"part","size":"1073741824","phy-sec":"4096","log-sec":"512","min-io":"4096","alignment":"0","fstype":"ext4"}]}]}"#;

fn listed(list: &str) -> report::Target {
    let devices = lsblk::parse(list, "here").unwrap();
    targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false)
        .unwrap()
        .remove(0)
}

#[test]
fn a_partition_without_a_start_is_judged_by_its_alignment() {
    let found = listed(OLD);
    let seen: Vec<_> = found
        .providers
        .iter()
        .map(|p| (p.provider.as_str(), p.start, p.placed, p.verdict))
        .collect();
    let want = [
        ("", Some(0), true, Verdict::Misaligned),
        ("s1", None, false, Verdict::Misaligned),
        ("s2", None, false, Verdict::Unknown),
    ];
    assert_eq!(seen, want);
    assert_eq!(
        (found.providers[1].mountpoint.as_deref(), found.providers[2].mountpoint.as_deref()),
        (Some("/boot"), None)
    );
    let start = found.findings.iter().find(|f| f.rule == "TL0001").unwrap();
    assert_eq!(
        (start.provider.as_str(), start.unit, start.remainder, start.rmw_factor),
        ("s1", 4096, 3584, 4.0)
    );
    assert_eq!(
        start.message,
        "xfs starts, at a place that is not reported, 3584 bytes past a 4096-byte physical unit"
    );
    assert_eq!(start.fix, ["start it 512 bytes later; sfdisk --dump tells where it starts now"]);
    assert!(found.providers[0].table.as_ref().unwrap().free.is_empty());
    // Overrides of the user hold for it too, as far as its alignment tells.
    let for_drive = |physical| {
        let devices = lsblk::parse(OLD, "here").unwrap();
        let found = targets(
            &devices,
            &DiskOverrides::new(&DiskOptions {
                physical: Some(physical),
                ..DiskOptions::default()
            })
            .unwrap(),
            false,
        );
        let s1 = found.unwrap().remove(0);
        (
            s1.providers[1].verdict,
            s1.findings.iter().filter(|f| f.provider == "s1" && f.rule == "TL0019").count(),
        )
    };
    assert_eq!(for_drive((512, 0)), (Verdict::Unknown, 0));
    assert_eq!(for_drive((4096, 3584)), (Verdict::Unknown, 0));
    assert_eq!(for_drive((16384, 0)), (Verdict::Unknown, 1));
    // Without either, nothing is known and nothing is called aligned.
    let neither = listed(
        &OLD.replace("\"alignment\":\"512\",", "")
            .replace("\"alignment\":\"0\",\"fstype\"", "\"fstype\""),
    );
    assert_eq!(neither.verdict, Verdict::Unknown);
    assert_eq!(
        neither
            .findings
            .iter()
            .filter(|f| f.rule == "TL0019" && f.severity == Severity::Warning)
            .count(),
        2
    );
}

#[test]
fn a_start_that_cannot_be_is_a_finding() {
    for start in ["-1", "4611686018427387904", "36028797018963968", "\"-1\""] {
        let found = listed(
            &OLD.replace("\"name\":\"sda1\",", &format!("\"name\":\"sda1\",\"start\":{start},")),
        );
        let range: Vec<_> = found.findings.iter().filter(|f| f.rule == "TL0009").collect();
        assert_eq!(range.len(), 1, "{start}: {:?}", found.findings);
        assert_eq!(
            (range[0].severity, range[0].provider.as_str()),
            (Severity::Error, "s1"),
            "{start}"
        );
        assert_eq!(found.providers[1].verdict, Verdict::Misaligned, "{start}");
    }
    // A start beyond this disk alone leaves the partition out, as before.
    let found =
        listed(&OLD.replace("\"name\":\"sda1\",", "\"name\":\"sda1\",\"start\":4194304000,"));
    assert!(
        found.findings.iter().any(|f| f.rule == "TL0009" && f.message.starts_with("s1 at byte"))
    );
}

#[test]
fn a_block_of_no_bytes_cannot_be() {
    for size in ["\"0\"", "0", "-1"] {
        let found = listed(&OLD.replace("\"phy-sec\":\"4096\"", &format!("\"phy-sec\":{size}")));
        let limits: Vec<_> = found
            .findings
            .iter()
            .filter(|f| f.rule == "TL0012")
            .map(|f| (f.severity, f.provider.as_str()))
            .collect();
        assert_eq!(limits, [(Severity::Warning, "")], "{size}");
    }
}

/// The first bytes of a member of an md RAID5 of three, its superblock at byte 4096.
fn raid5_member() -> Vec<u8> {
    let mut image = vec![0; 4096 + 512];
    let mut put = |at: usize, bytes: &[u8]| {
        image[4096 + at..4096 + at + bytes.len()].copy_from_slice(bytes);
    };
    let words = [(0, 0xa92b_4efc_u32), (4, 1), (72, 5), (76, 2), (88, 128), (92, 3), (144, 8)];
    for (at, word) in words.into_iter().chain([(80, 4096), (128, 2048), (136, 4096), (220, 3)]) {
        put(at, &word.to_le_bytes());
    }
    put(256, &[0, 0, 1, 0, 2, 0]);
    let sum = image[4096..4096 + 264].chunks(4).fold(0u32, |sum, word| {
        let word = [word[0], word[1], word[2], word[3]];
        sum.wrapping_add(u32::from_le_bytes(word))
    });
    image[4096 + 216..4096 + 220].copy_from_slice(&sum.to_le_bytes());
    image
}

#[test]
fn a_member_whose_set_the_kernel_has_is_not_called_incomplete() {
    let path = std::env::temp_dir().join(format!("trueline-member-{}", std::process::id()));
    std::fs::write(&path, raid5_member()).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(8 << 20).unwrap();
    let overrides = DiskOverrides::new(&DiskOptions::default()).unwrap();
    let said = |holders: Vec<String>| {
        let device = Device {
            name: "sda".into(),
            path: path.display().to_string(),
            size: 8 << 20,
            holders,
            ..Device::default()
        };
        let target = targets(&[device], &overrides, true).unwrap().remove(0);
        let rules = target.findings.iter().filter(|f| f.rule == "TL0020").count();
        (target.verdict, rules)
    };
    let (held, free) = (said(vec!["md0".into()]), said(Vec::new()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!((held, free), ((Verdict::Aligned, 0), (Verdict::Unknown, 1)));
}
