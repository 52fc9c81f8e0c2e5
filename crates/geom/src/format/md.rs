//! Linux software RAID (md): a member of a set.
//!
//! # On disk
//! Version 0.90: a 4096-byte superblock of 32-bit words, in the byte order of the machine that
//! wrote it, in the last whole 64 KiB but one; the data are before it, from byte 0. Version 1:
//! little-endian, at the end (1.0), at byte 0 (1.1) or at byte 4096 (1.2); it knows its own place,
//! and the data begin at `data_offset`.
//!
//! # Topology
//! The member's data begin at `data_offset`. The chunk is one member's share; the stripe a chunk of
//! every data disk, as the kernel reports it in `optimal_io_size`. A copy of the whole content
//! (RAID1, or a set of one disk) is tasted in turn; a spare is not, it need not hold the content.
//!
//! # Limits
//! A 0.90 superblock at the end of a disk's last partition is also where the disk's own would be:
//! it belongs to the partition. A superblock with a wrong checksum is recognised; its set is not
//! made ([`crate::class::md`]). Of several superblocks the first in the order 0.90, 1.0, 1.1, 1.2
//! counts.
//!
//! # Sources
//! Linux `include/uapi/linux/raid/md_p.h`; `drivers/md/raid*.c` (`io_opt`); mdadm `super0.c`,
//! `super1.c`.

use super::{Format, FormatKind, Inside, Sign, StrayData};
use crate::base::ondisk;
use crate::probe::Probe;
use superblock::Superblock;

pub mod superblock;

/// The format, for the registry.
pub struct Md;

/// The kind that blkid calls `linux_raid_member`.
pub const KIND: FormatKind = FormatKind::new("linux_raid_member", &Md);

impl Format for Md {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn only_carries(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        Some(sign(probe, &superblock::find(probe)?))
    }

    fn recognise_elsewhere(&self, probe: &Probe<'_>) -> Option<Sign> {
        Some(sign(probe, &superblock::find_version_1(probe)?))
    }

    fn shift_data(&self, area: &StrayData<'_>) -> String {
        format!(
            "make the set anew with mdadm --create --data-offset on a multiple of {} bytes (given in KiB)",
            area.unit
        )
    }
}

/// The sign that a superblock is.
fn sign(probe: &Probe<'_>, sb: &Superblock) -> Sign {
    let mut sign = Sign { tail: sb.tail(), ..Sign::new(KIND, sb.at) };
    let set = Set {
        level: sb.shape.level,
        layout: sb.shape.layout,
        disks: sb.shape.disks,
        chunk: sb.shape.chunk,
        in_sync: sb.is_in_sync(),
    };
    let (plain, used) = (set.is_plain(), Some(sb.size).filter(|&n| n > 0 && n < u64::MAX));
    // A copy ends where the set ends: what is found from the end is found from there. So it is
    // wherever the superblock comes last and says how much it leaves.
    let length = if plain || sb.is_first_version() { used.or(sb.room) } else { sb.room };
    let data_end = sb.data_offset.zip(sb.room).and_then(|(offset, room)| offset.checked_add(room));
    sign.size = data_end.map(|end| end.max(sb.at + 4096)).filter(|_| !sb.is_first_version());
    sign.version = Some(sb.version.clone());
    sign.label.clone_from(&sb.name);
    sign.uuid = ondisk::uuid(&sb.uuid);
    sign.data_at(probe, sb.data_offset, length, plain);
    sign.details.push(("level", sb.shape.level_name()));
    set.describe(&mut sign);
    sign
}

/// Properties of the set that both versions record.
struct Set {
    level: i32,
    layout: u32,
    disks: u32,
    /// Chunk in bytes; 0 where there are no chunks.
    chunk: u64,
    /// True if this member is in use; false for a spare.
    in_sync: bool,
}

impl Set {
    /// Number of copies of each chunk that lie side by side (RAID10): the low byte of the layout.
    fn near_copies(&self) -> u32 {
        self.layout & 0xff
    }

    /// True if this member has the set's contents from first byte to last.
    fn is_plain(&self) -> bool {
        let copy = match self.level {
            1 => true,
            -1 | 0 => self.disks == 1,
            10 => self.disks > 0 && self.near_copies() == self.disks,
            _ => false,
        };
        copy && self.in_sync
    }

    /// Number of disks that hold data in one row, as the kernel counts them for `optimal_io_size`.
    fn data_disks(&self) -> Option<u32> {
        match self.level {
            0 => Some(self.disks),
            4 | 5 => self.disks.checked_sub(1),
            6 => self.disks.checked_sub(2),
            10 => match self.near_copies() {
                0 => None,
                near if self.disks.is_multiple_of(near) => Some(self.disks / near),
                _ => Some(self.disks),
            },
            _ => None,
        }
    }

    fn describe(&self, sign: &mut Sign) {
        if self.data_disks().is_some() && self.chunk > 0 {
            sign.chunk = Some(self.chunk);
            let row = self.data_disks().and_then(|disks| self.chunk.checked_mul(u64::from(disks)));
            sign.stripe = row.filter(|&row| row > 0);
        }
        sign.details.push(("raid devices", self.disks.to_string()));
        if !self.in_sync {
            sign.details.push(("role", "not in sync".to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Inside;
    use super::super::tests::{disk, recognised};
    use super::superblock::MD_SB_MAGIC;
    use super::*;
    use crate::base::store::Store;
    use crate::base::topology::Topology;
    use crate::graph::{Disk, Graph};
    use crate::probe::Limits;

    /// A 0.90 superblock of raid1 over two disks, of `size` KiB, in either byte order.
    fn superblock(size: u32, big: bool) -> Vec<u8> {
        let mut words = [0u32; 1024];
        for (at, value) in [
            (0, MD_SB_MAGIC),
            (2, 90),
            (5, 1),
            (7, 1),
            (8, size),
            (10, 2),
            (13, 2),
            (14, 3),
            (15, 4),
            (996, 6),
        ] {
            words[at] = value;
        }
        words.iter().flat_map(|w| if big { w.to_be_bytes() } else { w.to_le_bytes() }).collect()
    }

    #[test]
    fn either_byte_order_is_read() {
        for big in [false, true] {
            let sign = recognised(&Md, disk(1 << 20, &[(0xf0000, &superblock(960, big))])).unwrap();
            assert_eq!(sign.uuid.as_deref(), Some("00000001-0000-0002-0000-000300000004"));
            assert_eq!(sign.version.as_deref(), Some("0.90.0"));
            let data = sign.data.unwrap();
            assert_eq!((data.offset, data.length, data.plain), (0, Some(960 << 10), true));
        }
    }

    #[test]
    fn hostile_numbers_are_not_followed() {
        let mut sb = [0xffu8; 4096];
        sb[..4].copy_from_slice(&MD_SB_MAGIC.to_le_bytes());
        sb[4..8].copy_from_slice(&[1, 0, 0, 0]);
        sb[144..152].copy_from_slice(&[8, 0, 0, 0, 0, 0, 0, 0]);
        // Data past all ends, then over the superblock itself: a copy of it inside itself, without
        // end.
        for data_offset in [[0xff; 8], [0; 8]] {
            sb[128..136].copy_from_slice(&data_offset);
            for (level, disks) in [0u8, 1, 4, 5, 6, 10, 11]
                .into_iter()
                .flat_map(|level| [0u8, 1, 2].map(|disks| (level, disks)))
            {
                sb[72..76].copy_from_slice(&[level, 0, 0, 0]);
                sb[92..96].copy_from_slice(&[disks, 0, 0, 0]);
                let sign = recognised(&Md, disk(1 << 20, &[(4096, &sb)])).unwrap();
                assert_eq!(sign.data, None);
                assert!(matches!(sign.inside, Inside::Unknown(_)));
            }
        }
    }

    /// A 1.2 superblock in its sector: chunks of 64 KiB, data from 1 MiB, this member's role in the
    /// set.
    fn version_1_2(level: u8, layout: u32, disks: u8, role: u16) -> Vec<u8> {
        let mut sb = vec![0; 512];
        sb[..4].copy_from_slice(&MD_SB_MAGIC.to_le_bytes());
        for (at, value) in [(4, 1), (72, level), (88, 128), (92, disks), (144, 8)] {
            sb[at] = value;
        }
        sb[76..80].copy_from_slice(&layout.to_le_bytes());
        sb[128..132].copy_from_slice(&2048u32.to_le_bytes());
        sb[256..258].copy_from_slice(&role.to_le_bytes());
        sb
    }

    #[test]
    fn a_row_is_a_chunk_of_every_data_disk() {
        let stripe = |level, layout, disks| {
            let sign =
                recognised(&Md, disk(8 << 20, &[(4096, &version_1_2(level, layout, disks, 0))]))
                    .unwrap();
            assert_eq!(sign.data.unwrap().offset, 1 << 20);
            sign.stripe.map(|row| row >> 16)
        };
        assert_eq!([0, 4, 5, 6].map(|level| stripe(level, 2, 4)), [4, 3, 3, 2].map(Some));
        // Two near copies on four disks, and on three, where rows do not repeat; RAID1 has no
        // chunks.
        assert_eq!(
            (stripe(10, 0x102, 4), stripe(10, 0x102, 3), stripe(1, 0, 2)),
            (Some(2), Some(3), None)
        );
    }

    #[test]
    fn only_a_member_in_use_shows_the_content() {
        for (role, plain) in
            [(0, true), (1, true), (0xfffd, false), (0xfffe, false), (0xffff, false)]
        {
            let sign =
                recognised(&Md, disk(8 << 20, &[(4096, &version_1_2(1, 0, 2, role))])).unwrap();
            assert_eq!(sign.data.unwrap().plain, plain, "{role:x}");
            // No less than the superblock itself, though it leaves the data nothing.
            assert_eq!(sign.size, Some(1 << 20));
        }
        let mut rebuilt = version_1_2(1, 0, 2, 0);
        rebuilt[8] = 2;
        assert!(!recognised(&Md, disk(8 << 20, &[(4096, &rebuilt)])).unwrap().data.unwrap().plain);
        let mut late = version_1_2(1, 0, 2, 0);
        late[128..132].copy_from_slice(&[1, 0, 0, 0]);
        assert_eq!(recognised(&Md, disk(8 << 20, &[(4096, &late)])).unwrap().size, Some(8192));
    }

    #[test]
    fn at_the_end_of_the_last_partition_it_is_the_partitions() {
        let mut table = [0; 72];
        table[..4].copy_from_slice(&[1, 2, 3, 4]);
        table[6 + 4] = 0xfd;
        // From 64 KiB to the end: the same last 64 KiB.
        table[6 + 8..6 + 16].copy_from_slice(&[128, 0, 0, 0, 128, 7, 0, 0]);
        table[70..].copy_from_slice(&[0x55, 0xaa]);
        let (sb, front) = (superblock(832, false), version_1_2(0, 2, 4, 0));
        // Versions that a taste of the whole disk finds on it, and on the partition.
        let versions = |parts: &[(u64, &[u8])]| {
            let store = disk(1 << 20, parts);
            let topology = Topology::new(512, store.length());
            let disks = vec![Disk::new("", Box::new(store), topology)];
            let graph = Graph::taste(disks, Limits::default());
            let found = |name: &str| {
                let provider = graph.providers.iter().find(|p| p.name == name)?;
                provider.signs.first()?.version.clone()
            };
            (found(""), found("s1"))
        };
        let version = |text: &str| Some(text.to_string());
        assert_eq!(versions(&[(440, &table), (0xf0000, &sb)]), (None, version("0.90.0")));
        assert_eq!(versions(&[(0xf0000, &sb)]).0, version("0.90.0"));
        // A set of the whole disk at its front is found all the same.
        let both = versions(&[(440, &table), (4096, &front), (0xf0000, &sb)]);
        assert_eq!(both, (version("1.2"), version("0.90.0")));
    }

    /// The first chunk of a stripe is not the member's own: only a copy is tasted.
    #[test]
    fn only_a_copy_is_tasted() {
        for (level, signs) in [(0, 0), (5, 0), (1, 1)] {
            let swap = [&[1, 0, 0, 0, 9][..], &[0; 3057], b"SWAPSPACE2"].concat();
            let mut sb = version_1_2(level, 2, 2, 0);
            // 4 MiB of every member, in sectors.
            (sb[81], sb[137]) = (0x20, 0x20);
            let store = disk(8 << 20, &[(4096, &sb), ((1 << 20) + 1024, &swap)]);
            let topology = Topology::new(512, store.length());
            let graph =
                Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default());
            assert_eq!(
                (graph.providers.len(), graph.providers[1].signs.len()),
                (2, signs),
                "{level}"
            );
        }
    }
}
