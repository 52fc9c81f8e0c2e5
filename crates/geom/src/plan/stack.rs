//! Uses: stacks of layers as a person names them, `md5x4+luks+lvm+xfs`, and laying one out.

use super::database::{Database, INNODB, POSTGRES, WIREDTIGER};
use super::{Above, Ground, Layer, Plan, btrfs, exfat, ext4, fat, luks, lvm, md, ntfs, partition, swap, ufs, vm, xfs, zfs};

/// What a layer stands on, or is for those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Whole disks.
    Disks,
    /// One device.
    Device,
    /// Files.
    Files,
    /// Files, or a device.
    Either,
    /// Nothing stands on it.
    Nothing,
}

/// A kind of layer.
pub struct Kind {
    /// As typed, or the form of it.
    pub name: &'static str,
    /// A few words.
    pub about: &'static str,
    /// What it stands on.
    pub on: Place,
    /// What it offers.
    pub gives: Place,
    /// In what pieces it overwrites files, if they are of one size.
    page: Option<u64>,
    /// The type of a partition for it.
    partition: &'static str,
    parse: fn(&str) -> Option<Box<dyn Layer>>,
}

const LINUX: &str = "linux-data";
const BASIC: &str = "ms-basic-data";
const CRYPT: &str = "linux-luks";
const FREEBSD_UFS: &str = "freebsd-ufs";
const SOLARIS_USR: &str = "6A898CC3-1DD2-11B2-99A6-080020736631";

/// A kind with neither pages nor a partition type of its own.
const fn kind(name: &'static str, about: &'static str, on: Place, gives: Place, parse: fn(&str) -> Option<Box<dyn Layer>>) -> Kind {
    Kind { name, about, on, gives, page: None, partition: LINUX, parse }
}

/// All kinds: sets first, then what divides a device, file systems, and what lies in files.
pub static KINDS: &[Kind] = &[
    Kind {
        partition: "linux-raid",
        ..kind("md5x4", "Linux RAID: level x disks, :CHUNK (md0x2 md1x2 md5x4:64k md6x8 md10x4)", Place::Disks, Place::Device, md::parse)
    },
    Kind {
        partition: SOLARIS_USR,
        ..kind("raidz2x6", "a ZFS pool with parity: raidz1x4 raidz2x6 raidz3x11", Place::Disks, Place::Either, |w| {
            zfs::parse(w).filter(|_| w != "zfs")
        })
    },
    Kind { partition: CRYPT, ..kind("luks", "LUKS2 encryption (luks1: LUKS1)", Place::Device, Place::Device, luks::parse) },
    Kind {
        partition: "linux-lvm",
        ..kind("lvm", "LVM: one volume over all", Place::Device, Place::Device, |w| {
            (w == "lvm").then(|| Box::new(lvm::Lvm) as Box<dyn Layer>)
        })
    },
    Kind {
        partition: SOLARIS_USR,
        ..kind(
            "zfs",
            "a ZFS pool of one device, a file system or, under something that needs one, a volume",
            Place::Device,
            Place::Either,
            |w| zfs::parse(w).filter(|_| w == "zfs"),
        )
    },
    kind("ext4", "ext4", Place::Device, Place::Files, |w| (w == "ext4").then(|| Box::new(ext4::Ext4) as Box<dyn Layer>)),
    kind("xfs", "XFS", Place::Device, Place::Files, |w| (w == "xfs").then(|| Box::new(xfs::Xfs) as Box<dyn Layer>)),
    kind("btrfs", "Btrfs", Place::Device, Place::Files, |w| (w == "btrfs").then(|| Box::new(btrfs::Btrfs) as Box<dyn Layer>)),
    Kind {
        partition: BASIC,
        ..kind("vfat", "FAT", Place::Device, Place::Files, |w| (w == "vfat").then(|| Box::new(fat::Fat) as Box<dyn Layer>))
    },
    Kind {
        partition: BASIC,
        ..kind("exfat", "exFAT", Place::Device, Place::Files, |w| (w == "exfat").then(|| Box::new(exfat::Exfat) as Box<dyn Layer>))
    },
    Kind {
        partition: BASIC,
        ..kind("sd-card", "what a camera expects on a card: FAT up to 32 GiB, exFAT above", Place::Device, Place::Files, exfat::parse_card)
    },
    Kind {
        partition: BASIC,
        ..kind("ntfs", "NTFS", Place::Device, Place::Files, |w| (w == "ntfs").then(|| Box::new(ntfs::Ntfs) as Box<dyn Layer>))
    },
    Kind {
        partition: FREEBSD_UFS,
        ..kind("ufs", "UFS2", Place::Device, Place::Files, |w| (w == "ufs").then(|| Box::new(ufs::Ufs) as Box<dyn Layer>))
    },
    Kind {
        partition: "linux-swap",
        ..kind("swap", "Linux swap", Place::Device, Place::Nothing, |w| (w == "swap").then(|| Box::new(swap::Swap) as Box<dyn Layer>))
    },
    Kind {
        page: Some(65536),
        ..kind("vm-images", "images of virtual machines; what follows is in the guest", Place::Either, Place::Disks, |w| {
            (w == "vm-images").then(|| Box::new(vm::Images) as Box<dyn Layer>)
        })
    },
    Kind {
        page: Some(INNODB),
        ..kind("mysql", "MySQL or MariaDB, InnoDB", Place::Files, Place::Nothing, |w| {
            matches!(w, "mysql" | "mariadb").then(|| Box::new(Database::Mysql) as Box<dyn Layer>)
        })
    },
    Kind {
        page: Some(POSTGRES),
        ..kind("postgres", "PostgreSQL", Place::Files, Place::Nothing, |w| {
            matches!(w, "postgres" | "postgresql").then(|| Box::new(Database::Postgres) as Box<dyn Layer>)
        })
    },
    Kind {
        page: Some(WIREDTIGER),
        ..kind("mongodb", "MongoDB, WiredTiger", Place::Files, Place::Nothing, |w| {
            (w == "mongodb").then(|| Box::new(Database::Mongodb) as Box<dyn Layer>)
        })
    },
    kind("rocksdb", "RocksDB", Place::Files, Place::Nothing, |w| (w == "rocksdb").then(|| Box::new(Database::Rocksdb) as Box<dyn Layer>)),
];

/// A stack, from the bottom.
pub struct Use {
    layers: Vec<(&'static Kind, Box<dyn Layer>)>,
    /// What was put beneath a layer because nothing was named there.
    implied: Vec<(&'static str, &'static str)>,
}

/// More layers than any stack has.
const DEEPEST: usize = 16;

impl Use {
    /// Reads `md5x4+luks+lvm+xfs`; `Err` says what does not fit.
    pub fn parse(text: &str) -> Result<Use, String> {
        let (mut wanted, mut place) = (Use { layers: Vec::new(), implied: Vec::new() }, Place::Disks);
        for word in text.split('+').map(str::trim) {
            let (kind, layer) = one(word)?;
            if wanted.layers.len() >= DEEPEST {
                return Err(format!("more than {DEEPEST} layers"));
            }
            // A pool or a volume may be handed to a guest as it is; a whole disk is not meant.
            let files = kind.on == Place::Files && place != Place::Nothing && !matches!(place, Place::Files | Place::Either);
            if files || kind.on == Place::Either && place == Place::Disks {
                let (beneath, layer) = one("xfs")?;
                wanted.implied.push((beneath.name, kind.name));
                wanted.layers.push((beneath, layer));
                place = Place::Files;
            }
            // Below everything there are disks; md and RAID-Z are made of them.
            let fits = match (place, kind.on) {
                (Place::Disks, Place::Disks) => wanted.layers.is_empty(),
                (Place::Nothing, _) | (_, Place::Disks) => false,
                (Place::Files, on) => on != Place::Device,
                (Place::Disks | Place::Device | Place::Either, _) => true,
            };
            if !fits {
                let below = wanted.layers.last().map_or("nothing", |(below, _)| below.name);
                return Err(format!("{word} does not stand on {below}: name layers from the bottom, as md5x4+luks+lvm+xfs"));
            }
            place = kind.gives;
            wanted.layers.push((kind, layer));
        }
        Ok(wanted)
    }

    /// How many disks it is made of.
    pub fn disks(&self) -> u64 {
        self.layers.first().map_or(1, |(_, layer)| layer.disks())
    }
}

fn one(word: &str) -> Result<(&'static Kind, Box<dyn Layer>), String> {
    let found = KINDS.iter().find_map(|kind| Some((kind, (kind.parse)(word)?)));
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    found.ok_or_else(|| {
        if word.strip_prefix("md").is_some_and(digit) {
            let form =
                "levels 0, 1, 10 over 2 disks or more, 4 and 5 over 3, 6 over 4; a chunk, but for level 1, is a power of two from 4k";
            return format!("no set '{word}': write md LEVEL x DISKS : CHUNK, as md5x4:64k: {form}");
        }
        if word.starts_with("raidz") {
            return format!("no pool '{word}': write raidz PARITY x DISKS, as raidz2x6: parity 1 to 3, and more disks than that");
        }
        format!("no use '{word}': there are {}", KINDS.iter().map(|k| k.name).collect::<Vec<_>>().join(" "))
    })
}

/// Lays `wanted` out on `disk`, a partition over every whole disk first.
pub(super) fn lay(wanted: &Use, disk: Ground, plan: &mut Plan) {
    let mut ground = disk;
    for (beneath, above) in &wanted.implied {
        plan.note(format!("nothing is named beneath {above}: {beneath} is taken; name another as {beneath}+{above}"));
    }
    let presumed: Vec<_> = wanted.layers.iter().filter_map(|(_, layer)| layer.presumes(&ground.topology)).collect();
    for fact in presumed {
        plan.note(format!("{} units of {} bytes are presumed; --grain says it better", fact.why.name(), fact.grain.size()));
        ground.topology.facts.push(fact);
    }
    if !ground.whole {
        partition::given(&ground, plan);
    }
    for (at, (kind, layer)) in wanted.layers.iter().enumerate() {
        let above = wanted.layers.get(at + 1).map_or(Above::default(), |(above, _)| Above {
            name: Some(above.name),
            device: above.on == Place::Device,
            page: above.page,
        });
        if ground.whole && at > 0 {
            plan.run("# in the guest");
        }
        if ground.whole {
            ground = partition::lay(&ground, kind.partition, plan);
        }
        ground = layer.lay(&ground, above, plan);
    }
}
