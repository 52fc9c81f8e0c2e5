use crate::{Scratch, find, fixture, names, of};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use trueline_geom::audit::limits::Stacking;
use trueline_geom::base::finding;
use trueline_geom::base::topology::{Grain, Trust, Why};
use trueline_host::device::{Member, sysfs};
use trueline_host::{Device, DeviceKind};

/// The captured tree, laid out: `path: value` is a file, `path -> target` a link, `#` a comment.
pub(crate) fn tree(name: &str) -> Scratch {
    let dir = Scratch::new();
    for line in fixture(name).lines().filter(|l| !l.starts_with('#')) {
        if let Some((path, target)) = line.split_once(" -> ") {
            let path = dir.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        } else {
            let (path, value) = line.split_once(':').unwrap();
            dir.put(path, format!("{}\n", value.trim_start()));
        }
    }
    dir
}

fn read(name: &str) -> Vec<Device> {
    let dir = tree(name);
    sysfs::read(&dir.0, &dir.0.join("no-mounts")).unwrap()
}

const CAPTURED: [&str; 4] = ["jumper.sysfs", "stack.sysfs", "striped.sysfs", "virtio.sysfs"];

#[test]
fn the_kernel_says_the_same_of_every_partition() {
    let mut partitions = 0;
    for device in CAPTURED.into_iter().chain(["nvme-iu16k.sysfs"]).flat_map(read) {
        let DeviceKind::Partition { start: Some(_), .. } = device.kind else { continue };
        partitions += 1;
        let own = u64::try_from(device.alignment_offset.unwrap()).unwrap();
        for (size, phase, _) in
            of(&device, Why::Physical).into_iter().chain(of(&device, Why::Preferred))
        {
            assert_eq!(Grain::new(size, own).unwrap().phase(), phase, "{}", device.name);
        }
    }
    assert_eq!(partitions, 14);
}

#[test]
fn the_jumper() {
    let devices = read("jumper.sysfs");
    assert_eq!(names(&devices), ["nvme0n1", "sda", "sda1", "sda2", "sda3", "sda5"]);
    let sda = find(&devices, "sda");
    assert_eq!(
        (sda.path.as_str(), sda.major, sda.minor, sda.size, sda.sector()),
        ("/dev/sda", 8, 0, 64 << 20, 512)
    );
    assert_eq!(
        (sda.vendor.as_deref(), sda.model.as_deref(), sda.revision.as_deref()),
        (Some("Linux"), Some("scsi_debug"), Some("0191"))
    );
    assert_eq!(of(sda, Why::Physical), [(4096, 3584, Trust::Claimed)]);
    assert_eq!(of(sda, Why::Optimal), [(524_288, 3584, Trust::Claimed)]);
    assert_eq!(of(find(&devices, "sda1"), Why::Physical), [(4096, 0, Trust::Claimed)]);
    assert_eq!(of(find(&devices, "sda2"), Why::Physical), [(4096, 3584, Trust::Claimed)]);
    let sda5 = find(&devices, "sda5");
    let kind = DeviceKind::Partition {
        parent: "sda".to_owned(),
        number: Some(5),
        start: Some(4159 * 512),
        whole: 64 << 20,
    };
    assert_eq!((&sda5.kind, sda5.size), (&kind, 1000 * 512));
    let nvme = find(&devices, "nvme0n1");
    assert_eq!(
        (nvme.nsid, nvme.revision.as_deref(), nvme.model.as_deref()),
        (Some(1), Some("7.2.22"), Some("QEMU NVMe Ctrl"))
    );
    assert!(nvme.wwid.as_deref().unwrap().starts_with("nvme.1b36-"));
}

#[test]
fn drives_tell_their_serial_numbers() {
    let dir = tree("jumper.sysfs");
    let mut page = vec![0, 0x80, 0, 8];
    page.extend(b"  SN 42 beyond");
    dir.put("block/sda/device/vpd_pg80", &page);
    dir.put("block/nvme0n1/device/serial", "deadbeef            \n");
    let serial = |name: &str| {
        let devices = sysfs::read(&dir.0, &dir.0.join("no-mounts")).unwrap();
        find(&devices, name).serial.clone()
    };
    assert_eq!(serial("sda").as_deref(), Some("SN 42"));
    assert_eq!(serial("nvme0n1").as_deref(), Some("deadbeef"));
    // A page that is shorter than it says tells nothing.
    dir.put("block/sda/device/vpd_pg80", &page[..6]);
    assert_eq!(serial("sda"), None);
}

#[test]
fn raid5_over_partitions() {
    let devices = read("stack.sysfs");
    let md = find(&devices, "md0");
    let DeviceKind::Md { level, chunk, disks, metadata, members } = &md.kind else {
        panic!("{:?}", md.kind)
    };
    assert_eq!(
        (level.as_deref(), *chunk, *disks, metadata.as_deref()),
        (Some("raid5"), Some(65536), Some(3), Some("1.2"))
    );
    assert_eq!(
        members[1],
        Member { slot: 1, device: Some("sdb1".to_owned()), offset: Some(1 << 20) }
    );
    assert_eq!(md.slaves, ["sda1", "sdb1", "sdc1"]);
    assert_eq!(find(&devices, "sdb1").holders, ["md0"]);
    assert_eq!(of(md, Why::Chunk), [(65536, 0, Trust::Claimed)]);
    assert_eq!(of(md, Why::FullStripe), [(131_072, 0, Trust::Claimed)]);
    assert_eq!(of(md, Why::Physical), [(4096, 0, Trust::Claimed)]);
    assert_eq!((of(md, Why::Optimal), md.topology().1), (vec![], vec![]));
}

#[test]
fn lvm_on_luks_on_a_partition() {
    let devices = read("stack.sysfs");
    let (crypt, root) = (find(&devices, "dm-0"), find(&devices, "dm-1"));
    let DeviceKind::Dm { name, uuid } = &crypt.kind else { panic!("{:?}", crypt.kind) };
    assert_eq!(name.as_deref(), Some("crypt"));
    assert!(uuid.as_deref().unwrap().starts_with("CRYPT-LUKS2-"));
    assert_eq!(
        (&crypt.slaves[..], &crypt.holders[..]),
        (&["sdd2".to_owned()][..], &["dm-1".to_owned()][..])
    );
    assert_eq!(
        (&root.slaves[..], root.limits.shape),
        (&["dm-0".to_owned()][..], Stacking::Stacked)
    );
    // cryptsetup chose 4 KiB encryption sectors for a 512e disk.
    assert_eq!((root.sector(), of(root, Why::Physical)), (4096, vec![(4096, 0, Trust::Claimed)]));
}

#[test]
fn a_usb_bridge_lies() {
    let devices = read("stack.sysfs");
    let (topology, findings) = find(&devices, "sde").topology();
    assert_eq!(of(find(&devices, "sde"), Why::Optimal), [(33_553_920, 0, Trust::Untrusted)]);
    assert_eq!((findings.len(), findings[0].rule), (1, &finding::LIMITS));
    // What is counted by is the sector alone.
    assert!(topology.counting().all(|f| f.grain.size() == 512));
}

#[test]
fn a_loop_device_in_the_middle_of_its_file() {
    let devices = read("stack.sysfs");
    let kind =
        DeviceKind::Loop { backing_file: Some("/x.img".to_owned()), offset: 1 << 20, sizelimit: 0 };
    assert_eq!(find(&devices, "loop0").kind, kind);
}

#[test]
fn a_device_mapper_stripe_and_a_volume_on_a_set() {
    let devices = read("striped.sysfs");
    let stripe = find(&devices, "dm-1");
    assert_eq!(
        stripe.limits.shape,
        Stacking::Striped { chunk: 65536, row: 131_072, parity: false }
    );
    assert_eq!(of(stripe, Why::Chunk), [(65536, 0, Trust::Claimed)]);
    // Rows are 128 KiB long, the volume begins 1 MiB into the set, but sysfs does not say so.
    let volume = find(&devices, "dm-0");
    assert_eq!(
        (volume.limits.shape, of(volume, Why::Preferred)),
        (Stacking::Stacked, vec![(65536, 0, Trust::Claimed)])
    );
    assert_eq!(of(volume, Why::Optimal), [(131_072, 0, Trust::Untrusted)]);
    assert_eq!(volume.topology().1[0].rule, &finding::BLIND);
}

#[test]
fn an_indirection_unit() {
    let devices = read("nvme-iu16k.sysfs");
    assert_eq!(names(&devices), ["nvme0n1", "nvme0n1p1", "nvme0n1p2", "nvme0n1p10"]);
    let (disk, p1) = (find(&devices, "nvme0n1"), find(&devices, "nvme0n1p1"));
    assert_eq!((disk.sector(), of(disk, Why::Physical)), (4096, vec![(16384, 0, Trust::Claimed)]));
    assert_eq!(of(disk, Why::Atomic), [(16384, 0, Trust::Claimed)]);
    assert_eq!(of(p1, Why::Physical), [(16384, 12288, Trust::Claimed)]);
    // Its own offset is modulo 16 KiB, but the disk's rows are counted from the disk.
    assert_eq!(of(p1, Why::Optimal), [(131_072, 131_072 - 4096, Trust::Claimed)]);
}

#[test]
fn odd_attributes_are_not_reported_and_never_an_error() {
    let devices = read("odd.sysfs");
    assert_eq!(names(&devices), ["cciss!c0d0", "sdb"]);
    assert_eq!(devices[0].path, "/dev/cciss/c0d0");
    let sdb = &devices[1];
    assert_eq!(
        (sdb.limits.logical_block_size, sdb.limits.optimal_io_size, sdb.limits.rotational),
        (0, 0, None)
    );
    assert_eq!(sdb.topology().1[0].rule, &finding::CLASH);
    let error = sysfs::read(Path::new("/nowhere"), Path::new("/nowhere")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "list the block devices in /nowhere/block: no such file or device: check the name"
    );
}

#[test]
fn mount_points() {
    let dir = tree("stack.sysfs");
    let mounts = dir.put(
        "mountinfo",
        "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
         28 27 8:1 /sub /a\\040b\\134c rw,x shared:1 master:2 - ext4 /dev/sda1 rw\n\
         29 27 0:30 /@ /data rw - btrfs /dev/sdd1 rw\n\
         30 27 0:31 / /vg rw - btrfs /dev/mapper/vg-root rw\n\
         31 27 0:21 / /proc rw - proc proc rw\nodd\n\n",
    );
    let devices = sysfs::read(&dir.0, &mounts).unwrap();
    assert_eq!(find(&devices, "sda1").mountpoints, ["/", "/a b\\c"]);
    assert_eq!(find(&devices, "sdd1").mountpoints, ["/data"]);
    assert_eq!(find(&devices, "dm-1").mountpoints, ["/vg"]);
    assert_eq!(sysfs::device(&dir.0, &mounts, 8, 1).map(|d| d.name).as_deref(), Some("sda1"));
    assert_eq!(sysfs::device(&dir.0, &mounts, 9, 9), None);
}

#[test]
fn this_host() {
    let Ok(devices) = sysfs::host() else { return };
    for device in devices {
        let (topology, _) = device.topology();
        assert!(
            device.size > 0 && topology.length == device.size && topology.sector >= 512,
            "{device:?}"
        );
    }
}

#[test]
fn a_device_that_writes_zeroes_says_so() {
    let root = Scratch::new();
    for (disk, most) in [("sda", Some("0")), ("sdb", Some("4294966784")), ("sdc", None)] {
        root.put(format!("devices/{disk}/{disk}1/partition").as_str(), "1\n");
        if let Some(most) = most {
            root.put(
                format!("devices/{disk}/queue/write_zeroes_max_bytes").as_str(),
                format!("{most}\n"),
            );
        }
    }
    fs::create_dir_all(root.0.join("dev/block")).unwrap();
    for (minor, device) in
        [(0, "sda"), (1, "sda/sda1"), (16, "sdb"), (17, "sdb/sdb1"), (32, "sdc"), (33, "sdc/sdc1")]
    {
        symlink(format!("../../devices/{device}"), root.0.join(format!("dev/block/8:{minor}")))
            .unwrap();
    }
    let said = [0, 1, 16, 17, 32, 33, 48].map(|minor| sysfs::writes_zeroes(&root.0, 8, minor));
    assert_eq!(said, [false, false, true, true, false, false, false]);
}
