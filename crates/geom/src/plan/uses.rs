//! Uses that a plan knows: every kind of layer with its names, its place in a stack and a few words
//! about it.
//!
//! [`USES`] is the one list: parsing, help, completions, suggestions and tests iterate it.

use super::database::{Database, INNODB, POSTGRES, WIREDTIGER};
use super::stack::BaseKind;
use super::{
    Layer, asm, bcache, bcachefs, btrfs, btrfs_raid, card, cassandra, ceph, drbd, etcd, exfat,
    ext4, f2fs, fat, geli, gsets, kafka, luks, lvm, md, ntfs, sqlite, sqlserver, swap, thin, ufs,
    vm, vmfs, xfs, zfs,
};

/// Heading under which kinds are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Sets: several disks as one.
    Sets,
    /// Volumes: one device made into another.
    Volumes,
    /// File systems, which hold files.
    FileSystems,
    /// Contents that lie in files, or on a device.
    Contents,
}

impl Group {
    /// All groups, in the order in which they are listed.
    pub const ALL: [Group; 4] = [Group::Sets, Group::Volumes, Group::FileSystems, Group::Contents];

    /// The group's heading, without punctuation.
    pub fn heading(self) -> &'static str {
        match self {
            Group::Sets => "sets of disks",
            Group::Volumes => "on one device",
            Group::FileSystems => "file systems",
            Group::Contents => "in files, or on a device",
        }
    }
}

/// Kind of layer, with the words that name it.
pub struct LayerKind {
    /// Word as typed, or an example of its form: `md5x4`.
    pub name: &'static str,
    /// Other words that are accepted, or other examples of its form.
    pub also: &'static [&'static str],
    /// Description of a few words, for lists.
    pub about: &'static str,
    /// Heading under which it is listed.
    pub group: Group,
    /// Base that it stands on.
    pub on: BaseKind,
    /// Base that it offers.
    pub gives: BaseKind,
    /// Bytes of the pieces in which it overwrites files; `None` if they are not of one size.
    pub(super) page: Option<u64>,
    /// Bytes of the pieces in which it allocates space in files, where a file system's cluster is
    /// to be one.
    pub(super) extent: Option<u64>,
    /// Kind of layer that is put beneath it where none is named.
    pub(super) beneath: &'static str,
    /// Partition type for it, as `part add -t` names it.
    pub(super) partition: &'static str,
    form: Form,
}

/// Form of the words that name a kind.
enum Form {
    /// Form of one of the names, exactly.
    Word(fn() -> Box<dyn Layer>),
    /// Form with numbers in it, which a function parses.
    Parsed(fn(&str) -> Option<Box<dyn Layer>>),
}

const LINUX: &str = "linux-data";
const BASIC: &str = "ms-basic-data";
const CRYPT: &str = "linux-luks";
const FREEBSD_UFS: &str = "freebsd-ufs";
const SOLARIS_USR: &str = "6A898CC3-1DD2-11B2-99A6-080020736631";

impl LayerKind {
    /// A kind of that form, in a Linux partition, that overwrites files in no pieces of one size.
    const fn new(
        group: Group,
        name: &'static str,
        about: &'static str,
        places: (BaseKind, BaseKind),
        form: Form,
    ) -> LayerKind {
        LayerKind {
            name,
            also: &[],
            about,
            group,
            on: places.0,
            gives: places.1,
            page: None,
            extent: None,
            beneath: "xfs",
            partition: LINUX,
            form,
        }
    }

    /// A set of whole disks that offers `gives`.
    const fn set(
        name: &'static str,
        about: &'static str,
        gives: BaseKind,
        parse: fn(&str) -> Option<Box<dyn Layer>>,
    ) -> LayerKind {
        LayerKind::new(Group::Sets, name, about, (BaseKind::Disks, gives), Form::Parsed(parse))
    }

    /// A device made of another device.
    const fn volume(name: &'static str, about: &'static str, form: Form) -> LayerKind {
        LayerKind::new(Group::Volumes, name, about, (BaseKind::Device, BaseKind::Device), form)
    }

    /// A layer that takes a device for itself.
    const fn raw(
        name: &'static str,
        about: &'static str,
        make: fn() -> Box<dyn Layer>,
    ) -> LayerKind {
        LayerKind::new(
            Group::Volumes,
            name,
            about,
            (BaseKind::Device, BaseKind::Nothing),
            Form::Word(make),
        )
    }

    /// A file system on a device.
    const fn files(
        name: &'static str,
        about: &'static str,
        make: fn() -> Box<dyn Layer>,
    ) -> LayerKind {
        LayerKind::new(
            Group::FileSystems,
            name,
            about,
            (BaseKind::Device, BaseKind::Files),
            Form::Word(make),
        )
    }

    /// A database in files.
    const fn database(
        name: &'static str,
        about: &'static str,
        make: fn() -> Box<dyn Layer>,
    ) -> LayerKind {
        LayerKind::new(
            Group::Contents,
            name,
            about,
            (BaseKind::Files, BaseKind::Nothing),
            Form::Word(make),
        )
    }

    const fn also(self, also: &'static [&'static str]) -> LayerKind {
        LayerKind { also, ..self }
    }

    const fn typed(self, partition: &'static str) -> LayerKind {
        LayerKind { partition, ..self }
    }

    const fn pages(self, page: u64) -> LayerKind {
        LayerKind { page: Some(page), ..self }
    }

    const fn extents(self, extent: u64) -> LayerKind {
        LayerKind { extent: Some(extent), ..self }
    }

    const fn over(self, beneath: &'static str) -> LayerKind {
        LayerKind { beneath, ..self }
    }

    /// The layer that `word` names; `None` unless it is of this kind.
    pub(super) fn layer(&self, word: &str) -> Option<Box<dyn Layer>> {
        match self.form {
            Form::Word(make) => (word == self.name || self.also.contains(&word)).then(make),
            Form::Parsed(parse) => parse(word),
        }
    }
}

/// All kinds: sets first, then volumes on a device, file systems, and contents of files.
pub static USES: &[LayerKind] = &[
    LayerKind::set("md5x4", "Linux RAID: level x disks, :CHUNK", BaseKind::Device, md::parse)
        .also(&["md0x2", "md1x2", "md5x4:64k", "md6x8", "md10x4"])
        .typed("linux-raid"),
    LayerKind::set(
        "raidz2x6",
        "a ZFS pool with parity x disks, x vdevs",
        BaseKind::Either,
        zfs::parse,
    )
    .also(&["raidz1x4", "raidz3x11", "raidz2x6x2"])
    .typed(SOLARIS_USR),
    LayerKind::set(
        "zmirror2",
        "a ZFS pool of mirrors: copies, x vdevs",
        BaseKind::Either,
        zfs::mirror,
    )
    .also(&["zmirror3", "zmirror2x3"])
    .typed(SOLARIS_USR),
    LayerKind::set(
        "btrfs-raid1x2",
        "Btrfs over several disks: profile x disks",
        BaseKind::Files,
        btrfs_raid::parse,
    )
    .also(&["btrfs-raid0x2", "btrfs-raid1c3x3", "btrfs-raid10x4", "btrfs-raid6x4"]),
    LayerKind::set(
        "gstripe2",
        "FreeBSD's stripe of so many disks, :CHUNK",
        BaseKind::Device,
        gsets::stripe,
    )
    .also(&["gstripe2:16k"])
    .typed(FREEBSD_UFS),
    LayerKind::set(
        "gmirror2",
        "FreeBSD's mirror of so many disks",
        BaseKind::Device,
        gsets::mirror,
    )
    .also(&["gmirror3"])
    .typed(FREEBSD_UFS),
    LayerKind::volume("luks", "LUKS2 encryption; luks1 is LUKS1", Form::Parsed(luks::parse))
        .also(&["luks1", "luks2"])
        .typed(CRYPT),
    LayerKind::volume("geli", "FreeBSD's encryption", Form::Word(|| Box::new(geli::Geli)))
        .typed(FREEBSD_UFS),
    LayerKind::volume("lvm", "LVM: one volume over all", Form::Word(|| Box::new(lvm::Lvm)))
        .typed("linux-lvm"),
    LayerKind::volume(
        "lvm-thin",
        "LVM: a thin volume in a pool over all",
        Form::Word(|| Box::new(thin::Thin)),
    )
    .also(&["thin"])
    .typed("linux-lvm"),
    LayerKind::volume(
        "bcache",
        "a disk behind a cache on another",
        Form::Word(|| Box::new(bcache::Bcache)),
    ),
    LayerKind::volume(
        "drbd",
        "a device mirrored to another host",
        Form::Word(|| Box::new(drbd::Drbd)),
    ),
    LayerKind::raw("swap", "Linux swap", || Box::new(swap::Swap)).typed("linux-swap"),
    LayerKind::raw("ceph-osd", "a Ceph OSD, BlueStore", || Box::new(ceph::Osd))
        .also(&["bluestore", "osd"])
        .typed("4FBD7E29-9D25-41B8-AFD0-062C0CEFF05D"),
    LayerKind::raw("oracle-asm", "a disk of Oracle's ASM", || Box::new(asm::Asm))
        .also(&["asm", "oracle"]),
    LayerKind::files("ext4", "ext4", || Box::new(ext4::Ext4)),
    LayerKind::files("xfs", "XFS", || Box::new(xfs::Xfs)),
    LayerKind::files("btrfs", "Btrfs on one device", || Box::new(btrfs::Btrfs)),
    LayerKind::files("bcachefs", "bcachefs", || Box::new(bcachefs::Bcachefs)),
    LayerKind::files("f2fs", "F2FS, for flash", || Box::new(f2fs::F2fs)),
    LayerKind::new(
        Group::FileSystems,
        "zfs",
        "a ZFS pool of one device: files, or a volume beneath what needs one",
        (BaseKind::Device, BaseKind::Either),
        Form::Word(zfs::single),
    )
    .typed(SOLARIS_USR),
    LayerKind::files("ufs", "UFS2, FreeBSD's", || Box::new(ufs::Ufs)).typed(FREEBSD_UFS),
    LayerKind::files("vfat", "FAT", || Box::new(fat::Fat)).also(&["fat"]).typed(BASIC),
    LayerKind::files("exfat", "exFAT", || Box::new(exfat::Exfat)).typed(BASIC),
    LayerKind::files("ntfs", "NTFS", || Box::new(ntfs::Ntfs)).typed(BASIC),
    LayerKind::files("vmfs", "VMFS6, ESXi's", || Box::new(vmfs::Vmfs))
        .typed("AA31E02A-400F-11DB-9590-000C2911D1B8"),
    LayerKind::files(
        "sd-card",
        "what a camera expects on a card: an MBR, and FAT up to 32 GiB, exFAT above",
        card::layer,
    )
    .typed(BASIC),
    LayerKind::new(
        Group::Contents,
        "vm-images",
        "images of virtual machines; what follows is in the guest",
        (BaseKind::Either, BaseKind::Disks),
        Form::Word(|| Box::new(vm::Images)),
    )
    .also(&["vm", "qcow2"])
    .pages(65536),
    LayerKind::database("mysql", "MySQL or MariaDB, InnoDB", || Box::new(Database::Mysql))
        .also(&["mariadb", "innodb"])
        .pages(INNODB),
    LayerKind::database("postgres", "PostgreSQL", || Box::new(Database::Postgres))
        .also(&["postgresql"])
        .pages(POSTGRES),
    LayerKind::database("mongodb", "MongoDB, WiredTiger", || Box::new(Database::Mongodb))
        .also(&["wiredtiger"])
        .pages(WIREDTIGER),
    LayerKind::database("sqlserver", "SQL Server; on NTFS if nothing is named beneath it", || {
        Box::new(sqlserver::SqlServer)
    })
    .also(&["mssql"])
    .pages(sqlserver::PAGE)
    .extents(sqlserver::EXTENT)
    .over("ntfs"),
    LayerKind::database("sqlite", "SQLite", || Box::new(sqlite::Sqlite)).pages(sqlite::PAGE),
    LayerKind::database("etcd", "etcd", || Box::new(etcd::Etcd)).pages(etcd::PAGE),
    LayerKind::database("rocksdb", "RocksDB", || Box::new(Database::Rocksdb)),
    LayerKind::database("cassandra", "Apache Cassandra", || Box::new(cassandra::Cassandra)),
    LayerKind::database("kafka", "Apache Kafka", || Box::new(kafka::Kafka)),
];
