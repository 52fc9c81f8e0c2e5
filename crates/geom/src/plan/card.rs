//! SD cards: the table, the place and the file system that the specification has for a capacity, as
//! cameras expect them.
//!
//! | capacity | file system | partition type | begins |
//! |---|---|---|---|
//! | up to 2 GiB (SDSC) | FAT12, FAT16 | 01, 04, 06 | clusters begin on a boundary unit |
//! | up to 32 GiB (SDHC) | FAT32 | 0b, 0c | on the boundary unit |
//! | above (SDXC) | exFAT | 07 | on the boundary unit |
//!
//! One partition in an MBR, up to the end of the card. A card with a GPT is read by computers, and
//! by no camera.
//!
//! # Limits
//! Heads and sectors of a track are 255 and 63 on every card; the specification counts smaller ones
//! on smaller cards, and no reader uses them. Above 2 TiB (SDUC) an MBR does not reach the end.
//!
//! # Sources
//! SD Specifications Part 2, File System, 3.00: system IDs by sectors (FAT12 01; FAT16 04 below
//! 65536 sectors, else 06; FAT32 0b up to 16450560 sectors, else 0c; exFAT 07), one reserved sector
//! on FAT12 and FAT16. Clusters and boundary units by capacity as the SD Association's formatter
//! has them, published with sdFormatLinux (profi200, `source/format.cpp`).

use super::fat::{Fat, Parameters};
use super::partition::Own;
use super::{Above, Layer, LayerBase, Plan, exfat::Exfat, fact};
use crate::base::topology::{Fact, Grain, Source, Topology, Trust, Why};

/// Largest capacity of SDSC, in bytes.
const SDSC: u64 = 2 << 30;
const SDHC: u64 = 32 << 30;
/// Sectors that an MBR's FAT32 type without LBA reaches: 8.4 GB.
const CHS: u64 = 16_450_560;

/// The SD Card Association's cluster and boundary unit, both in bytes, for a card of `length`
/// bytes.
pub fn card(length: u64) -> (u64, u64) {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    let rows = [
        (8 * M, 8 * K, 8 * K),
        (64 * M, 16 * K, 16 * K),
        (256 * M, 16 * K, 32 * K),
        (K * M, 16 * K, 64 * K),
        (2 * K * M, 32 * K, 64 * K),
        (32 * K * M, 32 * K, 4 * M),
        (128 * K * M, 128 * K, 16 * M),
        (512 * K * M, 256 * K, 32 * M),
    ];
    rows.into_iter().find(|row| length <= row.0).map_or((512 * K, 64 * M), |row| (row.1, row.2))
}

/// True if a partition of `disk` that begins at `start` is where a card of that capacity has it:
/// possibly off a boundary, so that the clusters of its FAT come out on one.
pub fn is_start(disk: &Topology, start: u64) -> bool {
    Card.table(disk).is_some_and(|own| own.start == start)
}

/// Card in the form that cameras expect.
struct Card;

/// The layer that `sd-card` names.
pub(super) fn layer() -> Box<dyn Layer> {
    Box::new(Card)
}

impl Layer for Card {
    fn in_image(&self, disk: &Topology) -> bool {
        disk.sector == 512 || disk.length <= SDHC
    }

    fn table(&self, disk: &Topology) -> Option<Own> {
        let own = card(disk.length).1;
        let unit = fact(disk, Why::Erase).map_or(own, |f| f.grain.size());
        let unit = if unit <= disk.length / 8 { unit } else { own };
        let sectors = disk.length / disk.sector;
        let (kind, start, what) = match disk.length {
            length if length <= SDSC => {
                let (p, start) = Parameters::of_card(disk.length, card(disk.length).0, unit)?;
                let kind = if p.bits == 12 {
                    "fat12"
                } else if sectors < 65536 {
                    "fat16-small"
                } else {
                    "fat16"
                };
                (
                    kind,
                    start,
                    "the clusters, behind one reserved sector, two tables and the root directory, begin on",
                )
            }
            length if length <= SDHC => {
                (if sectors < CHS { "fat32" } else { "fat32lba" }, unit, "on")
            }
            _ => ("ntfs", unit, "on"),
        };
        let note = (sectors > u64::from(u32::MAX)).then(|| {
            format!(
                "sd-card: {sectors} sectors are more than an MBR counts: the \
                partition ends where it can"
            )
        });
        let why = format!(
            "{what} the boundary unit of {unit} bytes that the SD Association has for this capacity"
        );
        (start < disk.length).then_some(Own { scheme: "mbr", kind, start, why, note })
    }

    fn lay(&self, base: &LayerBase, above: Above, plan: &mut Plan) -> LayerBase {
        let (t, length) = (&base.topology, base.topology.length);
        if length > SDHC {
            return Exfat.lay(base, above, plan);
        }
        let erase = fact(t, Why::Erase).map(|f| f.grain);
        // Just below a step of the capacity the partition alone has the size of a smaller card.
        let clusters = erase.into_iter().flat_map(|unit| {
            [card(length).0, card(length.saturating_add(unit.size().saturating_mul(2))).0]
        });
        let mut volumes =
            clusters.filter_map(|cluster| Parameters::of_volume(length, cluster, erase?));
        match volumes.next().filter(|_| length <= SDSC) {
            Some(p) => super::fat::lay_with(p, base, plan),
            None => Fat.lay(base, above, plan),
        }
    }

    /// The boundary unit of a card of this size, for one that does not name an erase unit.
    fn presumes(&self, disk: &Topology) -> Option<Fact> {
        let grain = Grain::new(card(disk.length).1, 0)?;
        fact(disk, Why::Erase).is_none().then_some(Fact {
            grain,
            why: Why::Erase,
            source: Source::Assumed,
            trust: Trust::Assumed,
        })
    }
}
