//! Pools of ZFS: allocation, `ashift`, several vdevs.

use super::*;

#[test]
fn raidz_pads_as_openzfs_does() {
    // vdev_raidz_asize: 8 KiB on three disks of 4 KiB sectors: two of data, one of parity, one of
    // padding.
    assert_eq!(zfs::allocated(8 * K, 12, 3, 1), 16 * K);
    // On six with two of parity: two and two, to a multiple of three.
    assert_eq!(zfs::allocated(8 * K, 12, 6, 2), 24 * K);
    // 128 KiB there: 32 of data, 8 rows of two parity sectors, no padding.
    assert_eq!(zfs::allocated(128 * K, 12, 6, 2), 192 * K);
    assert_eq!((zfs::allocated(4096, 12, 6, 2), zfs::allocated(4096, 9, 5, 1)), (12 * K, 5120));
    assert_eq!(zfs::allocated(128 * K, 12, 1, 0), 128 * K);
    let p = plan("raidz2x6+postgres", disk(512, &[(Why::Physical, 4096, 0)]));
    let record = choice(&p, "zfs", "recordsize");
    assert_eq!(
        (&record.value, record.price.amplification, record.price.space),
        (&bytes(8 * K), 2.0, 16 * K)
    );
}

#[test]
fn ashift_is_the_unit_from_12_to_14() {
    let ashift =
        |unit| value(&plan("zfs", disk(512, &[(Why::Physical, unit, 0)])), "zfs", "ashift").clone();
    assert_eq!(
        [512, 4096, 8 * K, 16 * K, 64 * K].map(ashift),
        [12, 12, 13, 14, 14].map(|n| Value::Count(n, ""))
    );
    let p = plan("zfs", disk(512, &[(Why::Physical, 16 * K, 0)]));
    let twelve = choice(&p, "zfs", "ashift")
        .alternatives
        .iter()
        .find(|a| a.value == Value::Count(12, ""))
        .unwrap();
    // A record of 128 KiB anywhere on 4 KiB: nine units for eight, but where it begins on one. 16
    // KiB of a volume: 1.75.
    assert_eq!(
        (choice(&p, "zfs", "ashift").price.amplification, twelve.price.amplification),
        (1.0, 1.09375)
    );
    let of_twelve = |wanted: &str| {
        let p = plan(wanted, disk(512, &[(Why::Physical, 16 * K, 0)]));
        let ashift = choice(&p, "zfs", "ashift").clone();
        ashift
            .alternatives
            .into_iter()
            .find(|a| a.value == Value::Count(12, ""))
            .unwrap()
            .price
            .amplification
    };
    assert_eq!(["zfs+rocksdb", "zfs+ext4", "zfs+mysql"].map(of_twelve), [1.09375, 1.75, 1.75]);
}

#[test]
fn mirrors_and_several_vdevs_are_pools() {
    let of = |wanted| plan(wanted, disk(512, &[(Why::Physical, 4096, 0)]));
    let create =
        |p: &Plan| lines(p).into_iter().find(|c| c.starts_with("zpool")).unwrap().to_owned();
    assert_eq!(
        create(&of("zmirror2")),
        "zpool create -o ashift=12 tank mirror /dev/d0x1 /dev/d1x1"
    );
    let p = of("zmirror2x2+postgres");
    assert!(
        create(&p).ends_with(" mirror /dev/d0x1 /dev/d1x1 mirror /dev/d2x1 /dev/d3x1"),
        "{}",
        create(&p)
    );
    let record = choice(&p, "zfs", "recordsize");
    assert_eq!(
        (&record.value, record.price.amplification, record.price.space),
        (&bytes(8 * K), 2.0, 8 * K)
    );
    let p = of("raidz1x3x2");
    assert!(
        create(&p).ends_with(
            " raidz1 /dev/d0x1 /dev/d1x1 /dev/d2x1 raidz1 /dev/d3x1 /dev/d4x1 /dev/d5x1"
        ),
        "{}",
        create(&p)
    );
    // A record lies in one vdev: it costs what it does in a pool of one.
    assert_eq!(choice(&p, "zfs", "recordsize"), choice(&of("raidz1x3"), "zfs", "recordsize"));
    for wrong in ["zmirror1", "zmirror2x0", "raidz1x3x0", "raidz2x6x100"] {
        assert!(Use::parse(wrong).is_err(), "{wrong}");
    }
}
