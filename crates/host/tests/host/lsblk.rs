use crate::{Scratch, find, fixture, names, of};
use trueline_geom::base::topology::{Trust, Why};
use trueline_host::device::lsblk;
use trueline_host::{Device, DeviceKind};

fn read(name: &str) -> Vec<Device> {
    lsblk::parse(&fixture(name), name).unwrap()
}

#[test]
fn the_same_as_sysfs_of_the_same_machine() {
    for name in ["jumper", "stack"] {
        let listed = read(&format!("{name}.lsblk.json"));
        let dir: Scratch = crate::sysfs::tree(&format!("{name}.sysfs"));
        let ours = trueline_host::device::sysfs::read(&dir.0, &dir.0.join("no-mounts")).unwrap();
        assert_eq!(listed.len(), ours.len());
        for device in &listed {
            let same = find(&ours, &device.name);
            assert_eq!(
                (device.major, device.minor, device.size),
                (same.major, same.minor, same.size),
                "{}",
                device.name
            );
            assert_eq!(
                (&device.slaves, &device.holders),
                (&same.slaves, &same.holders),
                "{}",
                device.name
            );
            assert_eq!(device.alignment_offset, same.alignment_offset);
            assert_eq!(device.model, same.model);
            if matches!(same.kind, DeviceKind::Partition { .. }) {
                assert_eq!(device.kind, same.kind);
            }
            assert_eq!(device.topology(), same.topology(), "{}", device.name);
        }
    }
}

#[test]
fn signs_are_kept() {
    let devices = read("stack.lsblk.json");
    let root = find(&devices, "dm-1");
    assert_eq!(root.kind, DeviceKind::Dm { name: Some("vg-root".to_owned()), uuid: None });
    let text = r#"{"blockdevices": [{"name":"sda1","kname":"sda1","type":"part","pkname":"sda","size":1048576,"fstype":"ext4","label":"root",
        "uuid":"u","parttype":"0x83","pttype":"dos","partlabel":null,"mountpoints":[null,"/","/home"],"mountpoint":"/","partn":1}]}"#;
    let device = &lsblk::parse(text, "x").unwrap()[0];
    let signs = &device.signs;
    assert_eq!(
        (signs.fstype.as_deref(), signs.label.as_deref(), signs.uuid.as_deref()),
        (Some("ext4"), Some("root"), Some("u"))
    );
    assert_eq!(
        (signs.pttype.as_deref(), signs.parttype.as_deref(), &signs.partlabel),
        (Some("dos"), Some("0x83"), &None)
    );
    assert_eq!(device.mountpoints, ["/", "/home"]);
    assert!(
        matches!(&device.kind, DeviceKind::Partition { parent, number: Some(1), start: None, whole: 0 } if parent == "sda")
    );
}

/// util-linux before 2.33: everything is text, and there is neither START nor PATH.
#[test]
fn old_output() {
    let text = r#"{"blockdevices": [{"name": "sda", "kname": "sda", "maj:min": "8:0", "size": "500107862016", "type": "disk",
        "alignment": "0", "min-io": "4096", "opt-io": "0", "phy-sec": "4096", "log-sec": "512", "rota": "1", "ro": "0", "rm": "1",
        "mountpoint": null, "children": [{"name": "sda1", "kname": "sda1", "maj:min": "8:1", "size": "1048576", "type": "part",
        "alignment": "512", "min-io": "4096", "opt-io": "0", "phy-sec": "4096", "log-sec": "512", "mountpoint": "[SWAP]"}]}]}"#;
    let devices = lsblk::parse(text, "x").unwrap();
    let (sda, sda1) = (find(&devices, "sda"), find(&devices, "sda1"));
    assert_eq!(
        (sda.size, sda.limits.rotational, sda.removable, sda.read_only),
        (500_107_862_016, Some(true), true, false)
    );
    assert_eq!(sda1.path, "/dev/sda1");
    assert_eq!(
        (of(sda1, Why::Physical), &sda1.mountpoints[0][..]),
        (vec![(4096, 512, Trust::Claimed)], "[SWAP]")
    );
}

/// `lsblk -OJb -l`, or of one partition alone.
#[test]
fn flat_output() {
    let part = r#"{"name":"sda1","pkname":"sda","type":"part","size":1048576,"start":63,"alignment":512,"min-io":4096,"phy-sec":4096,
        "log-sec":512,"opt-io":1048576,"disc-gran":4096,"disc-aln":512}"#;
    let alone = lsblk::parse(&format!(r#"{{"blockdevices":[{part}]}}"#), "x").unwrap();
    assert_eq!(alone[0].limits.alignment_offset, 0);
    assert_eq!(of(&alone[0], Why::Physical), [(4096, 512, Trust::Claimed)]);
    assert_eq!(of(&alone[0], Why::Discard), [(4096, 512, Trust::Claimed)]);
    assert_eq!(of(&alone[0], Why::Optimal), [(1_048_576, 1_048_576 - 63 * 512, Trust::Claimed)]);
    let disk = r#"{"name":"sda","type":"disk","size":10485760,"alignment":0,"phy-sec":4096,"log-sec":512}"#;
    let dm = r#"{"name":"vg-a","kname":"dm-0","pkname":"sda1","type":"lvm","size":4096}"#;
    let all = lsblk::parse(&format!(r#"{{"blockdevices":[{disk},{part},{dm}]}}"#), "x").unwrap();
    assert!(matches!(find(&all, "sda1").kind, DeviceKind::Partition { whole: 10_485_760, .. }));
    assert_eq!(
        (&find(&all, "dm-0").slaves[0][..], &find(&all, "sda1").holders[0][..]),
        ("sda1", "dm-0")
    );
}

#[test]
fn what_is_not_lsblk_output_says_so() {
    let error = |text| lsblk::parse(text, "a.json").unwrap_err().to_string();
    assert!(error("{").starts_with("read lsblk's output from a.json: EOF while parsing"));
    assert_eq!(
        error("{}"),
        "read lsblk's output from a.json: no \"blockdevices\": save what lsblk -OJb prints"
    );
    assert!(
        error(r#"{"blockdevices":[{"name":"sda","size":"931.5G"}]}"#)
            .ends_with("\"931.5G\" is not in bytes: run lsblk with -b as well")
    );
    let hostile = r#"{"blockdevices":[1,null,{},{"name":7},{"name":"a","size":1,"type":"part","pkname":"a","start":18446744073709551615},
        {"name":"b","size":1,"alignment":-9,"phy-sec":-1,"maj:min":"x:y","children":{"name":"c"}}]}"#;
    assert_eq!(names(&lsblk::parse(hostile, "x").unwrap()), ["a", "b"]);
    for device in lsblk::parse(hostile, "x").unwrap() {
        device.topology();
    }
}
