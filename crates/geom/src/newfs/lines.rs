//! Text that newfs prints about a file system.

use super::{Newfs, SUPERBLOCK};
use std::fmt;

/// newfs's own text for a file system; printed piece by piece, for there may be millions of
/// backups.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    pub(super) newfs: &'a Newfs,
    pub(super) name: &'a str,
    pub(super) columns: usize,
}

/// Columns that are assumed where there is no terminal.
const NO_TERMINAL: usize = 80;

/// Megabytes of `fragments`, computed in C's `float` as newfs does.
fn megabytes(fragments: u64, fsize: u64) -> f64 {
    f64::from(fragments as f32 * fsize as f32) / 1_048_576.0
}

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (g, options) = (&self.newfs.geometry, &self.newfs.options);
        for line in &self.newfs.printed {
            writeln!(f, "{line}")?;
        }
        let sectors = g.fsbtodb(g.size);
        let (size, group) = (megabytes(g.size, g.fsize), megabytes(g.fpg, g.fsize));
        writeln!(
            f,
            "{}: {size:.1}MB ({sectors} sectors) block size {}, fragment size {}",
            self.name, g.bsize, g.fsize
        )?;
        let blocks = g.fpg / g.frag;
        writeln!(
            f,
            "\tusing {} cylinder groups of {group:.2}MB, {blocks} blks, {} inodes.",
            g.ncg, g.ipg
        )?;
        if options.soft_updates {
            writeln!(f, "\twith soft updates")?;
        }
        if options.erase && !options.only_print {
            writeln!(
                f,
                "Erasing sectors [{}...{}]",
                SUPERBLOCK / super::geometry::DEV_BSIZE,
                sectors - 1
            )?;
        }
        writeln!(f, "super-block backups (for fsck_ffs -b #) at:")?;
        let columns = if self.columns == 0 { NO_TERMINAL } else { self.columns };
        let mut column = 0;
        for cg in 0..g.ncg {
            let comma = if cg + 1 < g.ncg { "," } else { "" };
            let backup = format!(" {}{comma}", g.fsbtodb(g.base(cg) + g.sblkno));
            // newfs breaks before the first backup too, where the terminal is that narrow.
            if column + backup.len() >= columns {
                writeln!(f)?;
                column = 0;
            }
            column += backup.len();
            f.write_str(&backup)?;
        }
        writeln!(f)
    }
}
