use super::*;
use crate::base::topology::{Source, Trust};

mod pools;
mod uses;

/// A disk of 1 TiB in sectors of `sector` bytes with those boundaries: purpose, size, phase.
fn disk(sector: u64, facts: &[(Why, u64, u64)]) -> Topology {
    let fact = |&(why, size, phase)| Fact {
        grain: Grain::new(size, phase).unwrap(),
        why,
        source: Source::User,
        trust: Trust::Trusted,
    };
    Topology { facts: facts.iter().map(fact).collect(), ..Topology::new(sector, 1 << 40) }
}

fn plan(wanted: &str, topology: Topology) -> Plan {
    let wanted = Use::parse(wanted).unwrap();
    let names = (0..wanted.disks()).map(|i| format!("/dev/d{i}x")).collect();
    Plan::make(&wanted, LayerBase::disk(topology, names))
}

/// The lines for a shell.
fn lines<'a>(plan: &'a Plan) -> Vec<&'a str> {
    let line = |command: &'a Command| match command {
        Command::Shell(line) => Some(line.as_str()),
        _ => None,
    };
    plan.commands.iter().filter_map(line).collect()
}

/// The value of a parameter.
#[track_caller]
fn value<'a>(plan: &'a Plan, layer: &str, parameter: &str) -> &'a Value {
    &choice(plan, layer, parameter).value
}

#[track_caller]
fn choice<'a>(plan: &'a Plan, layer: &str, parameter: &str) -> &'a Choice {
    plan.choices
        .iter()
        .find(|c| c.layer == layer && c.parameter == parameter)
        .unwrap_or_else(|| panic!("no {layer} {parameter}"))
}

fn bytes(n: u64) -> Value {
    Value::Bytes(n)
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

#[test]
fn a_row_of_three_chunks_goes_up_through_every_layer() {
    let p = plan("md5x4:64k+luks+lvm+xfs", disk(512, &[(Why::Physical, 4096, 0)]));
    assert_eq!(value(&p, "partition", "start"), &bytes(M));
    assert_eq!(
        (value(&p, "md", "chunk"), value(&p, "md", "data offset")),
        (&bytes(64 * K), &bytes(128 * M))
    );
    // 16 MiB is no multiple of 192 KiB; 18 MiB is 96 of them, and a whole MiB.
    assert_eq!(value(&p, "luks", "data offset"), &bytes(18 * M));
    assert_eq!(
        (value(&p, "lvm", "data alignment"), value(&p, "lvm", "extent")),
        (&bytes(3 * M), &bytes(11 * 384 * K))
    );
    assert_eq!(
        (value(&p, "xfs", "su"), value(&p, "xfs", "sw")),
        (&bytes(64 * K), &Value::Count(3, "stripe units"))
    );
    assert_eq!(value(&p, "xfs", "log su"), &bytes(64 * K));
    assert!(p.notes.is_empty(), "{:?}", p.notes);
    // Four disks: three of data for four written; a piece writes itself and its parity.
    assert!((choice(&p, "md", "chunk").price.amplification - 4.0 / 3.0).abs() < 1e-9);
}

#[test]
fn what_tools_do_by_themselves_is_right_where_the_unit_divides_it() {
    for unit in [4096, 16 * K, 64 * K] {
        let p = plan("luks+lvm+ext4", disk(512, &[(Why::Physical, unit, 0)]));
        assert_eq!(value(&p, "luks", "data offset"), &bytes(16 * M), "{unit}");
        assert_eq!(
            (value(&p, "lvm", "data alignment"), value(&p, "lvm", "extent")),
            (&bytes(M), &bytes(4 * M)),
            "{unit}"
        );
    }
    let p = plan("luks1+ext4", disk(512, &[(Why::Physical, 4096, 0)]));
    assert_eq!(value(&p, "luks", "data offset"), &bytes(2 * M));
    assert!(p.notes.iter().any(|n| n.to_string().contains("512 bytes")), "{:?}", p.notes);
}

#[test]
fn the_partition_carries_the_phase() {
    let p = plan("lvm+ext4", disk(512, &[(Why::Physical, 4096, 3584)]));
    // The first boundary at or after 1 MiB: LBA 2055.
    assert_eq!(value(&p, "partition", "start"), &bytes(2055 * 512));
    assert_eq!(value(&p, "lvm", "data alignment"), &bytes(M));
    let off: Vec<f64> = choice(&p, "partition", "start")
        .alternatives
        .iter()
        .map(|a| a.price.amplification)
        .collect();
    // LBA 63 is on the boundaries of a drive with the jumper, 1 MiB is not.
    assert_eq!(off, [1.0, 2.0]);
    let p = plan("ext4", disk(512, &[(Why::Physical, 4096, 0)]));
    assert_eq!(choice(&p, "partition", "start").alternatives[0].price.amplification, 2.0);
    let p = plan("ext4", disk(512, &[(Why::Physical, 4096, 0), (Why::FullStripe, 192 * K, 0)]));
    assert_eq!(value(&p, "partition", "start"), &bytes(3 * M));
}

#[test]
fn boundaries_without_a_place_in_common_are_told() {
    let p = plan("ext4", disk(512, &[(Why::Physical, 4096, 3584), (Why::Erase, 4 * M, 0)]));
    assert_eq!(value(&p, "partition", "start"), &bytes(2055 * 512));
    assert!(p.notes.iter().any(|n| n.to_string().contains("4194304-byte erase")), "{:?}", p.notes);
    // A hint is only a hint.
    let mut claimed = disk(512, &[(Why::Physical, 4096, 0), (Why::Optimal, 3 * 512 * K, 0)]);
    claimed.facts[1].trust = Trust::Claimed;
    let p = plan("xfs", claimed.clone());
    assert_eq!(value(&p, "partition", "start"), &bytes(M));
    assert!(
        p.notes.iter().any(|n| n.to_string().contains("hint"))
            && !p.choices.iter().any(|c| c.parameter == "su"),
        "{p:?}"
    );
    claimed.facts[1].trust = Trust::Trusted;
    assert_eq!(value(&plan("xfs", claimed), "partition", "start"), &bytes(3 * M));
}

#[test]
fn file_systems_take_the_unit_as_far_as_they_go() {
    let of = |unit, sector| disk(sector, &[(Why::Physical, unit, 0)]);
    let e512 = of(4096, 512);
    assert_eq!(
        xfs::Parameters::for_topology(&e512),
        xfs::Parameters { block: 4096, sector: 4096, su: None, sw: None, log_su: None }
    );
    assert_eq!(xfs::Parameters::for_topology(&of(512, 512)).sector, 512);
    assert_eq!(xfs::Parameters::for_topology(&of(16 * K, 512)).log_su, Some(16 * K));
    let btrfs = |unit| btrfs::Parameters::for_topology(&of(unit, 512)).node;
    assert_eq!(
        [4096, 16 * K, 32 * K, 64 * K, 256 * K].map(btrfs),
        [16 * K, 16 * K, 32 * K, 64 * K, 64 * K]
    );
    let ufs = |unit| ufs::Parameters::for_topology(&of(unit, 512));
    let blocks = |block, fragment| ufs::Parameters { block, fragment };
    assert_eq!(
        [512, 4096, 8 * K, 16 * K, 64 * K].map(ufs),
        [
            blocks(32 * K, 4096),
            blocks(32 * K, 4096),
            blocks(64 * K, 8 * K),
            blocks(64 * K, 16 * K),
            blocks(64 * K, 64 * K)
        ]
    );
    let ntfs = |unit, sector| ntfs::Parameters::for_topology(&of(unit, sector));
    assert_eq!(
        (ntfs(4096, 512), ntfs(64 * K, 4096)),
        (
            ntfs::Parameters { sector: 512, cluster: 4096 },
            ntfs::Parameters { sector: 4096, cluster: 64 * K }
        )
    );
}

#[test]
fn sets_are_told_only_where_they_begin() {
    let row = [(Why::Physical, 4096, 0), (Why::Chunk, 64 * K, 0), (Why::FullStripe, 192 * K, 0)];
    let raid = disk(512, &row);
    assert_eq!(
        ext4::Parameters::for_topology(&raid).options().join(" "),
        "-b 4096 -E stride=16,stripe_width=48"
    );
    assert_eq!(
        xfs::Parameters::for_topology(&raid).options().join(" "),
        "-b size=4096 -s size=4096 -d su=65536,sw=3 -l su=65536"
    );
    let off = raid.shift(63 * 512, 1 << 30);
    assert_eq!(
        (ext4::Parameters::for_topology(&off).stride, xfs::Parameters::for_topology(&off).su),
        (None, None)
    );
    // mkfs.xfs: a log stripe unit above 256 KiB becomes 32 KiB; on larger units those.
    let wide = |unit| {
        xfs::Parameters::for_topology(&disk(
            512,
            &[(Why::Physical, unit, 0), (Why::Chunk, 512 * K, 0), (Why::Row, M, 0)],
        ))
        .log_su
    };
    assert_eq!([4096, 64 * K].map(wide), [Some(32 * K), Some(64 * K)]);
}

#[test]
fn a_page_is_guarded_unless_it_cannot_be_torn() {
    let atomic = |size| disk(512, &[(Why::Physical, 16 * K, 0), (Why::Atomic, size, 0)]);
    let guard = |wanted: &str, t| value(&plan(wanted, t), "mysql", "doublewrite").clone();
    // The device writes 16 KiB as one, but XFS of 4 KiB blocks does not put pages on 16 KiB.
    assert_eq!(guard("xfs+mysql", atomic(16 * K)), Value::word("on"));
    // Larger clusters do.
    assert_eq!(guard("exfat+mysql", atomic(16 * K)), Value::word("off"));
    assert_eq!(guard("exfat+mysql", atomic(8 * K)), Value::word("on"));
    assert_eq!(guard("luks+exfat+mysql", atomic(16 * K)), Value::word("on"), "dm-crypt");
    assert_eq!(guard("zfs+mysql", atomic(512)), Value::word("off"));
    let p = plan("xfs+mysql", disk(512, &[(Why::Physical, 16 * K, 0)]));
    assert_eq!(choice(&p, "mysql", "page").price.amplification, 1.75);
    assert_eq!(choice(&p, "mysql", "doublewrite").price.amplification, 3.5);
    assert!(p.notes.iter().any(|n| n.to_string().contains("extsize 16384")), "{:?}", p.notes);
}

#[test]
fn images_have_subclusters_of_the_unit() {
    let p = plan("xfs+vm-images+ext4", disk(512, &[(Why::Physical, 16 * K, 0)]));
    let cluster = choice(&p, "vm-images", "cluster");
    // 511 GiB in clusters of 512 KiB with 16 bytes each.
    assert_eq!(
        (&cluster.value, cluster.price.amplification, cluster.price.space),
        (&bytes(512 * K), 4.0, 511 * 2 * K * 16)
    );
    // The default copies 64 KiB for 4 and has 8 bytes for each cluster.
    assert_eq!(
        (cluster.alternatives[0].price.amplification, cluster.alternatives[0].price.space),
        (16.0, 511 * 16 * K * 8)
    );
    assert_eq!(value(&p, "vm-images", "guest physical block"), &bytes(16 * K));
    assert!(lines(&p).iter().any(|c| c.contains("/dev/vda1")), "{:?}", p.commands);
}

#[test]
fn cards_are_laid_out_as_their_association_says() {
    // Capacity in MiB; file system, cluster, boundary unit, partition type, first byte of the
    // partition.
    let rows = [
        (8, "vfat", 8 * K, 8 * K, "fat12", None),
        (60, "vfat", 16 * K, 16 * K, "fat12", None),
        (256, "vfat", 16 * K, 32 * K, "fat16", None),
        (1024, "vfat", 16 * K, 64 * K, "fat16", None),
        (2048, "vfat", 32 * K, 64 * K, "fat16", None),
        (4096, "vfat", 32 * K, 4 * M, "fat32", Some(4 * M)),
        (16384, "vfat", 32 * K, 4 * M, "fat32lba", Some(4 * M)),
        (32768, "vfat", 32 * K, 4 * M, "fat32lba", Some(4 * M)),
        (65536, "exfat", 128 * K, 16 * M, "ntfs", Some(16 * M)),
        (131_072, "exfat", 128 * K, 16 * M, "ntfs", Some(16 * M)),
        (262_144, "exfat", 256 * K, 32 * M, "ntfs", Some(32 * M)),
        (1 << 20, "exfat", 512 * K, 64 * M, "ntfs", Some(64 * M)),
    ];
    for (mib, system, cluster, unit, kind, start) in rows {
        let p = plan("sd-card", Topology { length: mib * M, ..disk(512, &[]) });
        assert_eq!(value(&p, system, "cluster"), &bytes(cluster), "{mib}");
        assert_eq!(
            (value(&p, "partition", "table"), value(&p, "partition", "type")),
            (&Value::word("MBR"), &Value::word(kind)),
            "{mib}"
        );
        let &Value::Bytes(first) = value(&p, "partition", "start") else { panic!("{mib}") };
        assert!(start.is_none_or(|start| start == first), "{mib}: {first}");
        let size = mib * M / 512 - first / 512;
        let disk = Operand { name: "/dev/d0x".into(), sector: None };
        let start = first / 512;
        assert_eq!(
            p.commands[..2],
            [
                Command::CreateTable { scheme: "mbr", disk: disk.clone() },
                Command::AddPartition { kind, start, sectors: size, disk },
            ]
        );
        if let Some((volume, start)) =
            fat::Parameters::of_card(mib * M, cluster, unit).filter(|_| mib <= 2048)
        {
            assert_eq!(
                (start, volume.reserved, (start + volume.data) % unit),
                (first, 1, 0),
                "{mib}"
            );
            assert!((unit..2 * unit).contains(&start), "{mib}: {start}");
            assert_eq!(value(&p, "vfat", "reserved"), &Value::Count(1, "sectors"), "{mib}");
        }
        // Clusters are written whole on the boundary, wherever the partition begins.
        assert_eq!(choice(&p, system, "cluster").price.amplification, 1.0, "{mib}");
        if system == "exfat" {
            assert_eq!(value(&p, "exfat", "boundary"), &bytes(unit), "{mib}");
        }
        assert!(
            p.notes.iter().all(|n| n.to_string().contains("are presumed")),
            "{mib}: {:?}",
            p.notes
        );
    }
    let p = fat::Parameters::for_topology(&disk(
        512,
        &[(Why::Physical, 4096, 0), (Why::Erase, 4 * M, 0)],
    ));
    assert!(is_whole(p.data, 4 * M) && p.reserved < 65536, "{p:?}");
}

#[test]
fn of_sets_over_sets_the_topmost_is_told() {
    let hardware = disk(
        512,
        &[(Why::Physical, 4096, 0), (Why::Chunk, 64 * K, 0), (Why::FullStripe, 192 * K, 0)],
    );
    for (wanted, su, sw) in [
        ("md6x8+xfs", 512 * K, 6),
        ("md0x2:256k+xfs", 256 * K, 2),
        ("md10x4+lvm+xfs", 512 * K, 2),
        ("md1x2+xfs", 64 * K, 3),
    ] {
        let p = plan(wanted, hardware.clone());
        let stripe = (value(&p, "xfs", "su"), value(&p, "xfs", "sw"));
        assert_eq!(stripe, (&bytes(su), &Value::Count(sw, "stripe units")), "{wanted}");
        assert_eq!(
            p.notes.iter().any(|n| n.to_string().contains("not whole rows of 196608")),
            su != 64 * K,
            "{wanted}: {:?}",
            p.notes
        );
    }
}

#[test]
fn servers_are_told_what_the_table_says() {
    let unit = |wanted: &str| plan(wanted, disk(512, &[(Why::Physical, 16 * K, 0)]));
    let p = unit("xfs+mysql");
    let written = *lines(&p).iter().find(|c| c.starts_with("printf")).unwrap();
    for parameter in ["page", "doublewrite", "log write ahead"] {
        let setting = choice(&p, "mysql", parameter).command.as_deref().unwrap();
        assert!(written.split(' ').any(|word| word == setting), "{setting}: {written}");
    }
    assert!(
        lines(&p).last().unwrap().contains("--defaults-file=/mnt/mysql.cnf"),
        "{:?}",
        p.commands
    );
    let p = unit("xfs+mongodb");
    let setting = choice(&p, "mongodb", "allocation size").command.as_deref().unwrap();
    assert!(
        setting.contains("allocation_size=16384,internal_page_max=16384,leaf_page_max=32768"),
        "{setting}"
    );
    assert!(lines(&p).last().unwrap().contains(setting), "{:?}", p.commands);
}

#[test]
fn chunks_and_offsets_of_volumes_are_on_the_unit() {
    let of = |wanted, facts: &[(Why, u64, u64)]| plan(wanted, disk(512, facts));
    let row = [(Why::Physical, 4096, 0), (Why::Chunk, 64 * K, 0), (Why::FullStripe, 192 * K, 0)];
    assert_eq!(
        value(&of("lvm-thin+xfs", &[(Why::Physical, 4096, 0)]), "lvm-thin", "chunk"),
        &bytes(64 * K)
    );
    assert_eq!(value(&of("lvm-thin+xfs", &row), "lvm-thin", "chunk"), &bytes(192 * K));
    // make-bcache's own 8 KiB is on no unit above that.
    assert_eq!(
        value(&of("bcache+ext4", &[(Why::Physical, 4096, 0)]), "bcache", "data offset"),
        &bytes(M)
    );
    assert_eq!(value(&of("bcache+ext4", &row), "bcache", "data offset"), &bytes(3 * M));
    let p = of("ceph-osd", &[(Why::Physical, 16 * K, 0)]);
    let least = choice(&p, "ceph-osd", "smallest allocation");
    assert_eq!(
        (&least.value, least.price.amplification, least.alternatives[0].price.amplification),
        (&bytes(16 * K), 1.0, 4.0)
    );
    assert_eq!(
        value(&of("f2fs", &[(Why::Physical, 4096, 0), (Why::Erase, 8 * M, 0)]), "f2fs", "section"),
        &Value::Count(4, "segments of 2 MiB")
    );
    assert_eq!(
        value(
            &of("oracle-asm", &[(Why::Physical, 4096, 0), (Why::Erase, 16 * M, 0)]),
            "oracle-asm",
            "allocation unit"
        ),
        &bytes(16 * M)
    );
    let p = of("sqlserver", &[(Why::Physical, 4096, 0)]);
    assert_eq!(value(&p, "ntfs", "cluster"), &bytes(64 * K));
    assert!(p.notes.iter().any(|n| n.to_string().contains("ntfs is taken")), "{:?}", p.notes);
}

#[test]
fn freebsds_stacks_are_typed_on_freebsd() {
    let wanted = Use::parse("gstripe2:16k+geli+ufs").unwrap();
    let topology = disk(512, &[(Why::Physical, 4096, 0)]);
    let base = LayerBase::disk(topology.clone(), ["$DISK1", "$DISK2"].map(str::to_owned).into())
        .with_host(wanted.host(&topology, true));
    let p = Plan::make(&wanted, base);
    assert_eq!(
        lines(&p)[4..],
        [
            "gstripe label -s 16384 data ${DISK1}p1 ${DISK2}p1",
            "geli init -s 4096 /dev/stripe/data",
            "geli attach /dev/stripe/data",
            "newfs -U -b 32768 -f 4096 /dev/stripe/data.eli",
            "mount /dev/stripe/data.eli /mnt",
        ]
    );
    assert!(lines(&p)[0].starts_with("gpart create -s gpt $DISK1"), "{:?}", p.commands);
}
