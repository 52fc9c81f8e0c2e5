//! The uses that a plan knows: every kind of layer with its names, its place in a stack and a few words about it.
//!
//! [`USES`] is the one list: parsing, help, completions, suggestions and tests iterate it.

use super::database::{Database, INNODB, POSTGRES, WIREDTIGER};
use super::stack::Place;
use super::{Layer, btrfs, card, exfat, ext4, fat, luks, lvm, md, ntfs, swap, ufs, vm, xfs, zfs};

/// A heading under which kinds are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Several disks as one.
    Sets,
    /// One device made into another.
    Volumes,
    /// What holds files.
    FileSystems,
    /// What lies in files.
    Contents,
}

impl Group {
    /// Groups in the order in which they are listed.
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

/// A kind of layer.
pub struct Kind {
    /// The word as typed, or an example of its form: `md5x4`.
    pub name: &'static str,
    /// Other words that are taken, or other examples of its form.
    pub also: &'static [&'static str],
    /// A few words.
    pub about: &'static str,
    /// The heading under which it is listed.
    pub group: Group,
    /// What it stands on.
    pub on: Place,
    /// What it offers.
    pub gives: Place,
    /// In what pieces it overwrites files, if they are of one size.
    pub(super) page: Option<u64>,
    /// The type of a partition for it.
    pub(super) partition: &'static str,
    form: Form,
}

/// How a word is recognised.
enum Form {
    /// One of the names, as it is.
    Word(fn() -> Box<dyn Layer>),
    /// A form with numbers in it.
    Parsed(fn(&str) -> Option<Box<dyn Layer>>),
}

const LINUX: &str = "linux-data";
const BASIC: &str = "ms-basic-data";
const CRYPT: &str = "linux-luks";
const FREEBSD_UFS: &str = "freebsd-ufs";
const SOLARIS_USR: &str = "6A898CC3-1DD2-11B2-99A6-080020736631";

impl Kind {
    /// A kind of that form, in a Linux partition, that overwrites nothing in pieces.
    const fn new(group: Group, name: &'static str, about: &'static str, places: (Place, Place), form: Form) -> Kind {
        Kind { name, also: &[], about, group, on: places.0, gives: places.1, page: None, partition: LINUX, form }
    }

    /// A file system.
    const fn files(name: &'static str, about: &'static str, make: fn() -> Box<dyn Layer>) -> Kind {
        Kind::new(Group::FileSystems, name, about, (Place::Device, Place::Files), Form::Word(make))
    }

    /// A database in files.
    const fn database(name: &'static str, about: &'static str, make: fn() -> Box<dyn Layer>) -> Kind {
        Kind::new(Group::Contents, name, about, (Place::Files, Place::Nothing), Form::Word(make))
    }

    const fn also(self, also: &'static [&'static str]) -> Kind {
        Kind { also, ..self }
    }

    const fn typed(self, partition: &'static str) -> Kind {
        Kind { partition, ..self }
    }

    const fn pages(self, page: u64) -> Kind {
        Kind { page: Some(page), ..self }
    }

    /// The layer that `word` names, if it is of this kind.
    pub(super) fn layer(&self, word: &str) -> Option<Box<dyn Layer>> {
        match self.form {
            Form::Word(make) => (word == self.name || self.also.contains(&word)).then(make),
            Form::Parsed(parse) => parse(word),
        }
    }
}

/// All kinds: sets first, then what divides a device, file systems, and what lies in files.
pub static USES: &[Kind] = &[
    Kind::new(Group::Sets, "md5x4", "Linux RAID: level x disks, :CHUNK", (Place::Disks, Place::Device), Form::Parsed(md::parse))
        .also(&["md0x2", "md1x2", "md5x4:64k", "md6x8", "md10x4"])
        .typed("linux-raid"),
    Kind::new(Group::Sets, "raidz2x6", "a ZFS pool with parity x disks", (Place::Disks, Place::Either), Form::Parsed(zfs::parse))
        .also(&["raidz1x4", "raidz3x11"])
        .typed(SOLARIS_USR),
    Kind::new(Group::Volumes, "luks", "LUKS2 encryption", (Place::Device, Place::Device), Form::Parsed(luks::parse))
        .also(&["luks1"])
        .typed(CRYPT),
    Kind::new(Group::Volumes, "lvm", "LVM: one volume over all", (Place::Device, Place::Device), Form::Word(|| Box::new(lvm::Lvm)))
        .typed("linux-lvm"),
    Kind::new(Group::Volumes, "swap", "Linux swap", (Place::Device, Place::Nothing), Form::Word(|| Box::new(swap::Swap)))
        .typed("linux-swap"),
    Kind::files("ext4", "ext4", || Box::new(ext4::Ext4)),
    Kind::files("xfs", "XFS", || Box::new(xfs::Xfs)),
    Kind::files("btrfs", "Btrfs", || Box::new(btrfs::Btrfs)),
    Kind::new(
        Group::FileSystems,
        "zfs",
        "a ZFS pool of one device: files, or a volume beneath what needs one",
        (Place::Device, Place::Either),
        Form::Word(zfs::single),
    )
    .typed(SOLARIS_USR),
    Kind::files("ufs", "UFS2, FreeBSD's", || Box::new(ufs::Ufs)).typed(FREEBSD_UFS),
    Kind::files("vfat", "FAT", || Box::new(fat::Fat)).typed(BASIC),
    Kind::files("exfat", "exFAT", || Box::new(exfat::Exfat)).typed(BASIC),
    Kind::files("ntfs", "NTFS", || Box::new(ntfs::Ntfs)).typed(BASIC),
    Kind::files("sd-card", "what a camera expects on a card: FAT up to 32 GiB, exFAT above", card::layer).typed(BASIC),
    Kind::new(
        Group::Contents,
        "vm-images",
        "images of virtual machines; what follows is in the guest",
        (Place::Either, Place::Disks),
        Form::Word(|| Box::new(vm::Images)),
    )
    .pages(65536),
    Kind::database("mysql", "MySQL or MariaDB, InnoDB", || Box::new(Database::Mysql)).also(&["mariadb"]).pages(INNODB),
    Kind::database("postgres", "PostgreSQL", || Box::new(Database::Postgres)).also(&["postgresql"]).pages(POSTGRES),
    Kind::database("mongodb", "MongoDB, WiredTiger", || Box::new(Database::Mongodb)).pages(WIREDTIGER),
    Kind::database("rocksdb", "RocksDB", || Box::new(Database::Rocksdb)),
];
