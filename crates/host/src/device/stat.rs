//! What a block device has done since it is there: `/sys/dev/block/MAJOR:MINOR/stat` (Documentation/block/stat.rst).

use crate::device::sysfs;
use rustix::fs::{FileType, major, minor, stat};
use std::path::Path;

/// Counts of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Reads that were completed.
    pub reads: u64,
    /// Bytes of them.
    pub bytes_read: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes of them.
    pub bytes_written: u64,
}

/// Of the block device at `path`; `None` if it is none, or sysfs does not say.
pub fn done(path: &Path) -> Option<Done> {
    let at = stat(path).ok().filter(|at| FileType::from_raw_mode(at.st_mode) == FileType::BlockDevice)?;
    let text = std::fs::read_to_string(format!("/sys/dev/block/{}:{}/stat", major(at.st_rdev), minor(at.st_rdev))).ok()?;
    parse(&text)
}

/// Bytes that were really read from storage for this process so far, those that the page cache read for it among them
/// (`read_bytes` of proc_pid_io(5)); `None` where the kernel does not count.
pub fn fetched() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

fn parse(text: &str) -> Option<Done> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let &[reads, _, sectors_read, _, writes, _, sectors_written, ..] = fields.as_slice() else { return None };
    let bytes = |sectors: u64| sectors.saturating_mul(sysfs::SECTOR);
    Some(Done { reads, bytes_read: bytes(sectors_read), writes, bytes_written: bytes(sectors_written) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_of_512_bytes_whatever_the_device_has() {
        let text = "     400        0     3200       12      200        0     3200       34        0       40       46        0        0\n";
        let all = Done { reads: 400, bytes_read: 3200 * 512, writes: 200, bytes_written: 3200 * 512 };
        assert_eq!(parse(text), Some(all));
        assert_eq!((parse(""), parse("1 2 3"), done(Path::new("/dev/null"))), (None, None, None));
    }
}
