//! ZFS: a device of a pool.
//!
//! # On disk
//! Four labels of 256 KiB: two at the front, two at the end. In a label, at 16 KiB, the device's
//! configuration as an XDR name and value list; at 128 KiB the ring of uberblocks. A boot region of
//! 3.5 MiB follows the front labels, so the data begin at 4 MiB.
//!
//! # Topology
//! The smallest block of a top-level device is 2^ashift bytes, from the beginning of the data.
//!
//! # Limits
//! The list is read as far as 16 KiB, from the first front label that has one; checksums are not
//! verified. The size of records and the geometry of RAID-Z are not a matter of the label.
//!
//! # Sources
//! "ZFS On-Disk Specification" (Sun Microsystems, 2006), chapter 1; OpenZFS
//! `include/sys/vdev_impl.h` (`vdev_label_t`, `VDEV_LABEL_START_SIZE`), `module/zfs/vdev_label.c`;
//! list encoding: OpenZFS `module/nvpair/nvpair.c` (`nvs_xdr_nvp_op`), with RFC 4506.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk;
use crate::probe::Probe;

/// The format, for the registry.
pub struct Zfs;

/// The kind that blkid calls `zfs_member`.
pub const KIND: FormatKind = FormatKind::new("zfs_member", &Zfs);

impl Format for Zfs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const LABEL: u64 = 256 << 10;
const NVLIST: u64 = 16 << 10;
/// Bytes of the 112 KiB of configuration that are read: the numbers wanted come before the list of
/// children.
const READ: usize = 16 << 10;
/// Bytes before the data: two labels and the boot region.
const DATA: u64 = 4 << 20;
const TYPE_UINT64: u32 = 8;
const TYPE_STRING: u32 = 9;
const TYPE_NVLIST: u32 = 19;
/// The encoding's own head: XDR, little-endian host or big-endian.
const XDR: [[u8; 4]; 2] = [[1, 1, 0, 0], [1, 0, 0, 0]];

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    [NVLIST, LABEL + NVLIST]
        .into_iter()
        .filter(|&at| probe.reaches(at))
        .find_map(|at| label(probe, at))
}

fn label(probe: &Probe<'_>, at: u64) -> Option<Sign> {
    if !XDR.contains(&probe.read(at)?) {
        return None;
    }
    let list = probe.bytes(at, READ)?;
    // The head, then the list's own version and flags.
    let config = list.get(12..)?;
    let pool = number(config, "pool_guid")?;
    let tree = find(config, "vdev_tree", TYPE_NVLIST)?;
    let mut sign = Sign::new(KIND, at);
    sign.version = number(config, "version").map(|n| n.to_string());
    sign.label = find(config, "name", TYPE_STRING).and_then(string).and_then(ondisk::text);
    sign.uuid = Some(pool.to_string());
    // An embedded list has version and flags too, no head.
    let tree = tree.get(8..).unwrap_or_default();
    sign.block =
        number(tree, "ashift").filter(|shift| (9..=16).contains(shift)).map(|shift| 1 << shift);
    sign.data_at(probe, Some(DATA), None, false);
    if sign.block.is_none() {
        sign.inside = Inside::Unknown("its label says no ashift");
    }
    sign.details.extend(
        find(tree, "type", TYPE_STRING)
            .and_then(string)
            .and_then(ondisk::text)
            .map(|kind| ("vdev", kind)),
    );
    sign.details.extend(number(config, "guid").map(|guid| ("guid", guid.to_string())));
    Some(sign)
}

/// The value of the pair called `name`, from its first byte to the end of the pair or of what was
/// read; `None` if there is no such pair of that type. Every pair is at least its head long, so the
/// walk ends.
fn find<'a>(pairs: &'a [u8], name: &str, kind: u32) -> Option<&'a [u8]> {
    let mut rest = pairs;
    loop {
        // Encoded size, size in memory, the name with its length, type, number of elements, value.
        let size = usize::try_from(word(rest, 0)?).ok().filter(|&size| size >= 20)?;
        let length = usize::try_from(word(rest, 8)?).ok()?;
        let after = length.checked_next_multiple_of(4)?.checked_add(12)?;
        // The pair of a nested list may reach past what was read; its beginning is here.
        let pair = rest.get(..size).unwrap_or(rest);
        if pair.get(12..12usize.checked_add(length)?)? == name.as_bytes() {
            return (word(pair, after)? == kind).then(|| pair.get(after + 8..)).flatten();
        }
        rest = rest.get(size..)?;
    }
}

/// The big-endian 32-bit word at `at`.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

fn number(pairs: &[u8], name: &str) -> Option<u64> {
    let value = find(pairs, name, TYPE_UINT64)?;
    Some(u64::from_be_bytes(value.get(..8)?.try_into().ok()?))
}

/// An XDR string: its length, its bytes.
fn string(value: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(word(value, 0)?).ok()?;
    value.get(4..)?.get(..length)
}

#[cfg(test)]
mod tests {
    use super::super::Inside;
    use super::super::tests::{disk, recognised};
    use super::*;

    fn pair(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        let padded = name.len().next_multiple_of(4);
        let mut pair = Vec::new();
        for word in [12 + padded + 8 + value.len(), 0, name.len()] {
            pair.extend(u32::try_from(word).unwrap().to_be_bytes());
        }
        pair.extend(name.bytes().chain(std::iter::repeat_n(0, padded - name.len())));
        pair.extend([kind, 1].map(u32::to_be_bytes).concat());
        pair.extend(value);
        pair
    }

    fn text(name: &str, value: &str) -> Vec<u8> {
        let mut bytes = u32::try_from(value.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(value.bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        pair(name, TYPE_STRING, &bytes)
    }

    fn int(name: &str, value: u64) -> Vec<u8> {
        pair(name, TYPE_UINT64, &value.to_be_bytes())
    }

    /// Version, `NV_UNIQUE_NAME`, the pairs, and the zero pair that ends them.
    fn list(pairs: &[Vec<u8>]) -> Vec<u8> {
        [&[0, 0, 0, 0, 0, 0, 0, 1][..], &pairs.concat(), &[0; 8]].concat()
    }

    /// As `vdev_config_generate` writes it: the tree has numbers of its own that carry the same
    /// names.
    fn config(ashift: u64) -> Vec<u8> {
        let tree = list(&[
            text("type", "raidz"),
            int("id", 0),
            int("guid", 7),
            int("ashift", ashift),
            int("asize", 1 << 30),
        ]);
        let pairs = [
            int("version", 5000),
            text("name", "tank"),
            int("txg", 4),
            int("pool_guid", 0xfedc_ba98_7654_3210),
            int("guid", 99),
            pair("vdev_tree", TYPE_NVLIST, &tree),
        ];
        [&XDR[0][..], &list(&pairs)].concat()
    }

    #[test]
    fn either_front_label_is_read() {
        for at in [NVLIST, LABEL + NVLIST] {
            let sign = recognised(&Zfs, disk(64 << 20, &[(at, &config(12))])).unwrap();
            assert_eq!(
                (sign.label.as_deref(), sign.uuid.as_deref()),
                (Some("tank"), Some("18364758544493064720"))
            );
            assert_eq!(
                (sign.block, sign.data.unwrap().offset, sign.magic),
                (Some(4096), 4 << 20, at)
            );
            assert_eq!(sign.details, [("vdev", "raidz".to_string()), ("guid", "99".to_string())]);
        }
    }

    #[test]
    fn hostile_lists_end() {
        let good = config(12);
        for ashift in [0, 8, 17, 64, u64::MAX] {
            let sign = recognised(&Zfs, disk(64 << 20, &[(NVLIST, &config(ashift))])).unwrap();
            assert!(sign.block.is_none() && matches!(sign.inside, Inside::Unknown(_)));
        }
        // Any word of it overwritten: an answer or none, but an end.
        for at in (4..good.len()).step_by(4) {
            for word in [0, 1, 3, 19, 20, u32::MAX - 3, u32::MAX] {
                let mut bad = good.clone();
                bad[at..at + 4].copy_from_slice(&word.to_be_bytes());
                let _ = recognised(&Zfs, disk(64 << 20, &[(NVLIST, &bad)]));
            }
        }
    }
}
