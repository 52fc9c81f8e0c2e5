//! XFS, the extent-based file system of SGI and Linux.
//!
//! # On disk
//! Superblock at byte 0, big-endian. Blocks lie at multiples of the block size from byte 0.
//! Superblocks and the other heads of an allocation group are written in sectors of `sb_sectsize`;
//! the log in its own sectors, or padded to `sb_logsunit`.
//!
//! # Topology
//! `sb_unit` and `sb_width` are the chunk and the full stripe it was made for, in blocks.
//!
//! # Limits
//! A log on a device of its own is recognised by a record at byte 0, which is where `mkfs.xfs` puts
//! the first; blkid looks further. What its sector is only the file system knows.
//!
//! # Sources
//! Linux `fs/xfs/libxfs/xfs_format.h` (`struct xfs_dsb`), `fs/xfs/xfs_log.c` (how log writes are
//! rounded); libblkid `superblocks/xfs.c` for the refusals.

use super::free_space::{Found, Unsure};
use super::maker::Maker;
use super::{Format, FormatKind, Inside, Piece, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::base::size::PAGE;
use crate::probe::Probe;
use zerocopy::big_endian::{U16, U32, U64};

mod free;
mod log;

/// The format, for the registry.
pub struct Xfs;

/// The kind that blkid calls `xfs`.
pub const XFS: FormatKind = FormatKind::new("xfs", &Xfs);
/// The kind that blkid calls `xfs_external_log`.
pub const EXTERNAL_LOG: FormatKind = FormatKind::new("xfs_external_log", &Xfs);

static MAKER: Maker = Maker {
    freebsd: Some("xfsprogs"),
    file: &["-f"],
    device: &["-f"],
    gives_way: |option, words| match option {
        "-d" => words.have_named('d', &["su", "sw", "sunit", "swidth", "noalign"]),
        "-l" => words.have_named('l', &["su", "sunit"]),
        _ => words.have(option),
    },
    ..Maker::new("mkfs.xfs", "xfsprogs")
};

impl Format for Xfs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![XFS, EXTERNAL_LOG]
    }

    fn by_name(&self, kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(if kind == XFS { Inside::from_zero(block) } else { Inside::Unknown(LOG) })
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn maker(&self) -> Option<&'static Maker> {
        Some(&MAKER)
    }

    fn is_made_here(&self, kind: FormatKind, _length: u64) -> bool {
        kind == XFS
    }

    fn enlarge(&self, sign: &Sign, piece: Piece, unit: u64) -> Option<String> {
        let fix = match unit > PAGE {
            true if !piece.is_data() => "make it with larger sectors: mkfs.xfs -s size=4096".into(),
            true => format!(
                "make it with larger blocks, for Linux 6.12 or later: mkfs.xfs -b size={unit}"
            ),
            false => format!(
                "make it with larger blocks and sectors: mkfs.xfs -b size={unit} -s size={unit}"
            ),
        };
        (sign.kind == XFS).then_some(fix)
    }

    fn fit_set(&self, sign: &Sign, chunk: u64, stripe: u64) -> Option<String> {
        let (unit, width, sw) = (chunk / BASIC_BLOCK, stripe / BASIC_BLOCK, stripe / chunk.max(1));
        let fix = match sign.chunk {
            // Mount options only change what mkfs recorded.
            None => format!("make it anew with mkfs.xfs -d su={chunk},sw={sw}"),
            Some(_) => {
                format!(
                    "mount with -o sunit={unit},swidth={width} (512-byte units), or make it with mkfs.xfs -d su={chunk},sw={sw}"
                )
            }
        };
        (sign.kind == XFS).then_some(fix)
    }

    fn checker(&self) -> Option<&'static str> {
        Some("xfs_repair")
    }

    fn free(
        &self,
        kind: FormatKind,
        length: u64,
        read: &mut Read<'_>,
        found: &mut Found<'_>,
    ) -> Option<Result<(), Unsure>> {
        (kind == XFS).then(|| free::free(length, read, found))
    }
}

on_disk! {
    /// `struct xfs_dsb`, as far as it is read.
    struct Super of 200 bytes {
          0 => sb_magicnum: [u8; 4],
          4 => sb_blocksize: U32,
          8 => sb_dblocks: U64,
         16 => sb_rblocks: U64,
         24 => sb_rextents: U64,
         32 => sb_uuid: [u8; 16],
         48 => sb_logstart: U64,
         56 => skip0: [u8; 28],
         84 => sb_agblocks: U32,
         88 => sb_agcount: U32,
         92 => skip1: [u8; 8],
        100 => sb_versionnum: U16,
        102 => sb_sectsize: U16,
        104 => sb_inodesize: U16,
        106 => sb_inopblock: U16,
        108 => sb_fname: [u8; 12],
        120 => sb_blocklog: u8,
        121 => sb_sectlog: u8,
        122 => skip2: [u8; 62],
        184 => sb_unit: U32,
        188 => sb_width: U32,
        192 => sb_dirblklog: u8,
        193 => sb_logsectlog: u8,
        194 => sb_logsectsize: U16,
        196 => sb_logsunit: U32,
    }
}

on_disk! {
    /// `struct xlog_rec_header`, as far as it is read.
    struct LogRecord of 320 bytes {
          0 => h_magicno: U32,
          4 => h_cycle: U32,
          8 => h_version: U32,
         12 => h_len: U32,
         16 => skip: [u8; 284],
        300 => h_fmt: U32,
        304 => h_fs_uuid: [u8; 16],
    }
}

/// Reason for which a name alone does not describe the inside of an external log.
pub(super) const LOG: &str =
    "a log of XFS on a device of its own: where its blocks lie is not known";
const LOG_MAGIC: u32 = 0xfeed_babe;
/// The kernel's basic block, in which a log is written that records nothing else.
const BASIC_BLOCK: u64 = 512;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    file_system(probe).or_else(|| external_log(probe))
}

fn file_system(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(0)?;
    let (block, sector) = (u64::from(sb.sb_blocksize.get()), u64::from(sb.sb_sectsize.get()));
    let (dblocks, agcount, agblocks) =
        (sb.sb_dblocks.get(), u64::from(sb.sb_agcount.get()), u64::from(sb.sb_agblocks.get()));
    let valid = sb.sb_magicnum == *b"XFSB"
        && block.is_power_of_two()
        && (512..=65536).contains(&block)
        && block.trailing_zeros() == u32::from(sb.sb_blocklog)
        && sector.is_power_of_two()
        && (512..=32768).contains(&sector)
        && sector.trailing_zeros() == u32::from(sb.sb_sectlog)
        && agcount > 0
        && dblocks > (agcount - 1) * agblocks
        && dblocks <= agcount * agblocks;
    if !valid {
        return None;
    }
    let (log_unit, log_sector) =
        (u64::from(sb.sb_logsunit.get()), u64::from(sb.sb_logsectsize.get()));
    // 1 stands for a version 2 log without a stripe unit, 0 for a version 1 log; no log sector
    // means a basic block.
    let log_write = if log_unit > 1 { log_unit } else { log_sector.max(BASIC_BLOCK) };
    let smallest = if log_write < sector {
        Piece { size: log_write, name: "log sector" }
    } else {
        Piece { size: sector, name: "sector" }
    };
    let in_blocks = |n: U32| (n.get() > 0).then(|| u64::from(n.get()) * block);
    let mut sign = Sign::new(XFS, 0);
    sign.label = ondisk::text(&sb.sb_fname);
    sign.uuid = ondisk::uuid(&sb.sb_uuid);
    sign.size = dblocks.checked_mul(block);
    sign.sector = Some(sector);
    sign.block = Some(block);
    sign.piece = Some(smallest).filter(|piece| piece.size < block);
    sign.chunk = in_blocks(sb.sb_unit);
    sign.stripe = in_blocks(sb.sb_width);
    sign.details.push(("allocation group", (agblocks * block).to_string()));
    sign.details.push(("log write", log_write.to_string()));
    if sb.sb_logstart.get() == 0 {
        sign.details.push(("log", "external".into()));
    }
    Some(sign)
}

fn external_log(probe: &Probe<'_>) -> Option<Sign> {
    let record: LogRecord = probe.read(0)?;
    let valid = record.h_magicno.get() == LOG_MAGIC
        && (1..=3).contains(&record.h_version.get())
        && (1..=3).contains(&record.h_fmt.get())
        && record.h_len.get() > 0;
    let mut sign = Sign::new(EXTERNAL_LOG, 0);
    sign.inside = Inside::Unknown("the sector of a log is recorded in its file system");
    sign.details.extend(ondisk::uuid(&record.h_fs_uuid).map(|uuid| ("file system", uuid)));
    valid.then_some(sign)
}
