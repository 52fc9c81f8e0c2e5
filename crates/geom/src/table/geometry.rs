//! Cylinders, heads and sectors: the addressing of old BIOSes, which tables still carry along.
//!
//! No kernel reads partitions by it. The numbers only have to equal those that other tools would
//! have written.
//!
//! # Sources
//! FreeBSD `sys/geom/part/g_part.c` (`g_part_geometry`), `g_part_mbr.c` (`mbr_set_chs`); util-linux
//! `libfdisk/src/dos.c`.

/// Geometry of a disk: sectors of a track and tracks of a cylinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of sectors in a track.
    pub sectors: u32,
    /// Number of tracks in a cylinder, that is, of heads.
    pub heads: u32,
}

/// Numbers of sectors a track that gpart(8) tries.
const SECTORS: [u32; 5] = [1, 9, 17, 33, 63];
const HEADS: [u32; 7] = [1, 2, 16, 32, 64, 128, 255];
/// Last cylinder number that 10 bits hold.
const LAST: u64 = 1023;

impl Geometry {
    /// Geometry that ATA drives beyond 8.4 GB report.
    pub const ATA: Geometry = Geometry { sectors: 63, heads: 16 };
    /// Geometry that every BIOS reports since disks outgrew 1024 cylinders of anything less.
    pub const LBA: Geometry = Geometry { sectors: 63, heads: 255 };

    /// The geometry that gpart(8) derives for a provider of `length` bytes without one from
    /// firmware: the one that covers the most.
    pub fn derive(length: u64, sector: u64) -> Geometry {
        let blocks = length / sector.max(1);
        let (mut most, mut best) = (0, Geometry::LBA);
        for sectors in SECTORS {
            let (covered, heads) = heads_for(blocks, sectors);
            // More than one sector a track is preferred, unless that leaves one head.
            if covered > most || covered > 0 && covered == most && heads > 1 && best.sectors == 1 {
                (most, best) = (covered, Geometry { sectors, heads });
            }
        }
        best
    }

    /// Bytes 1 to 3 of an MBR entry for sector `lba`; `beyond` where there is no such cylinder.
    pub fn chs(self, lba: u64, beyond: [u8; 3]) -> [u8; 3] {
        let (sectors, heads) = (u64::from(self.sectors.max(1)), u64::from(self.heads.max(1)));
        let (track, sector) = (lba / sectors, lba % sectors + 1);
        let (cylinder, head) = (track / heads, track % heads);
        match (u8::try_from(head), u8::try_from(sector)) {
            (Ok(head), Ok(sector @ ..=63)) if cylinder <= LAST => {
                let [low, high, ..] = cylinder.to_le_bytes();
                [head, sector | high << 6, low]
            }
            _ => beyond,
        }
    }
}

/// Sectors that the best number of heads covers with `sectors` a track, and that number.
fn heads_for(blocks: u64, sectors: u32) -> (u64, u32) {
    let (mut most, mut best) = (0, 0);
    for heads in HEADS {
        let cylinders = blocks / u64::from(heads) / u64::from(sectors);
        if cylinders < u64::from(heads.max(sectors)) {
            break;
        }
        let covered = cylinders * u64::from(heads) * u64::from(sectors);
        if cylinders <= LAST && (covered > most || covered == most && best == 1) {
            (most, best) = (covered, heads);
        }
    }
    (most, best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometry_is_what_leaves_out_least() {
        let of = |blocks: u64| Geometry::derive(blocks * 512, 512);
        // From a transcription of the kernel's function.
        for (blocks, sectors, heads) in [
            (1, 1, 1),
            (100, 1, 2),
            (2880, 9, 2),
            (20_480, 1, 32),
            (131_072, 1, 255),
            (2_097_152, 63, 64),
            (16_450_560, 63, 255),
        ] {
            assert_eq!(of(blocks), Geometry { sectors, heads }, "{blocks}");
        }
        assert_eq!(of(488_397_168), Geometry::LBA, "nothing fits");
        assert_eq!(of(0), Geometry::LBA);
        assert_eq!(Geometry::derive(u64::MAX, 0), Geometry::LBA);
        for blocks in [100, 5000, 20_480, 131_072, 2_097_152, 16_000_000] {
            let g = of(blocks);
            assert!(blocks / u64::from(g.heads) / u64::from(g.sectors) <= LAST, "{blocks}: {g:?}");
        }
    }

    #[test]
    fn chs_is_what_sfdisk_writes() {
        let beyond = [0xfe, 0xff, 0xff];
        let chs = |lba| Geometry::LBA.chs(lba, beyond);
        assert_eq!([chs(2048), chs(206_847)], [[0x20, 0x21, 0x00], [0xdf, 0x13, 0x0c]]);
        assert_eq!(chs(1024 * 255 * 63 - 1), beyond, "the last sector there is, by itself");
        assert_eq!([chs(1024 * 255 * 63), chs(u64::MAX)], [beyond; 2]);
        assert_eq!(chs(511 * 255 * 63), [0, 0x41, 0xff]);
        assert_eq!(Geometry { sectors: 4000, heads: 4000 }.chs(3999, beyond), beyond);
    }
}
