//! Uses as they are typed: names, refusals, near names, disks of any shape.

use super::*;

#[test]
fn stacks_that_cannot_stand_are_refused() {
    for wrong in [
        "",
        "foo",
        "ext4+luks",
        "swap+ext4",
        "mysql+xfs",
        "luks+md5x4",
        "md5x2",
        "md1x2:64k",
        "md5x4:3k",
        "raidz4x5",
        "raidz2x2",
        "xfs+",
        "md5x385",
    ] {
        assert!(Use::parse(wrong).is_err(), "{wrong}");
    }
    assert!(Use::parse(&vec!["luks"; 40].join("+")).is_err());
    for (wrong, why) in [
        ("md5x2+xfs", "4 and 5 over 3"),
        ("md5x4:3k+xfs", "a power of two from 4k"),
        ("raidz4x6", "parity 1 to 3"),
        ("mdx", "no use"),
    ] {
        assert!(Use::parse(wrong).is_err_and(|e| e.to_string().contains(why)), "{wrong}");
    }
    for right in [
        "md10x3+zfs+mysql",
        "lvm+vm-images",
        "vm-images+lvm+xfs",
        "mysql",
        "raidzx4",
        "luks+lvm+swap",
        "md0x2+mariadb",
    ] {
        assert!(Use::parse(right).is_ok(), "{right}");
    }
}

#[test]
fn no_disk_is_too_strange() {
    let uses = USES.iter().map(|k| k.name).chain([
        "md6x8+luks+lvm+zfs+vm-images+ext4",
        "md0x384:4k+xfs+mysql",
        "raidz3x255+postgres",
    ]);
    let sizes = [1, 511, 512, 3000, 4096, 65536, 3 << 20, 1 << 33, (1 << 48) + 1, u64::MAX];
    for wanted in uses {
        for (length, size) in
            [0, 1, 511, 1 << 20, 1 << 40, u64::MAX].into_iter().flat_map(|l| sizes.map(|s| (l, s)))
        {
            let mut t = disk(
                512,
                &[
                    (Why::Physical, size, size / 3),
                    (Why::Chunk, size, 0),
                    (Why::Row, size, size - 1),
                    (Why::Erase, size, 0),
                ],
            );
            t.length = length;
            let p = plan(wanted, t);
            assert!(
                p.choices.iter().all(|c| c.price.amplification.is_finite()),
                "{wanted} {length} {size}"
            );
        }
    }
}

#[test]
fn every_use_is_planned_by_each_of_its_names() {
    for kind in USES {
        for name in [kind.name].into_iter().chain(kind.also.iter().copied()) {
            let p = plan(name, disk(512, &[(Why::Physical, 4096, 0)]));
            assert!(p.choices.len() > 1 && p.commands.len() > 1, "{name}: {p:?}");
            assert!(p.choices.iter().all(|c| !c.why.is_empty()), "{name}");
        }
    }
}

#[test]
fn an_unknown_use_suggests_near_ones() {
    let near = |word: &str| Use::parse(word).err().unwrap().to_string();
    for (word, wanted) in [
        ("postgress", "postgres"),
        ("mysq", "mysql"),
        ("PostgreSQL16", "postgres"),
        ("ext3", "ext4"),
        ("btrfs-raid1", "btrfs-raid1x2"),
        ("gmirror", "gmirror2"),
        ("zfs-mirror", "zfs"),
        ("ceph", "ceph-osd"),
        ("thinpool", "lvm-thin"),
        ("sdcard", "sd-card"),
        ("sql-server", "sqlserver"),
        ("oracle-db", "oracle-asm"),
    ] {
        assert!(near(word).contains(wanted), "{word}: {}", near(word));
    }
    assert_eq!(near("nonsense"), "no use 'nonsense'");
}
