//! Counters of a block device since it appeared: `/sys/dev/block/MAJOR:MINOR/stat`
//! (Documentation/block/stat.rst).

use crate::device::sysfs;
use rustix::fs::{FileType, major, minor, stat};
use std::path::Path;

/// The counters of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// The number of completed reads.
    pub reads: u64,
    /// The bytes of these reads.
    pub bytes_read: u64,
    /// The number of completed writes.
    pub writes: u64,
    /// The bytes of these writes.
    pub bytes_written: u64,
}

/// The counters of the block device at `path`; `None` if it is none, or sysfs does not list it.
pub fn done(path: &Path) -> Option<IoCounts> {
    let at = stat(path)
        .ok()
        .filter(|at| FileType::from_raw_mode(at.st_mode) == FileType::BlockDevice)?;
    let text = std::fs::read_to_string(format!(
        "/sys/dev/block/{}:{}/stat",
        major(at.st_rdev),
        minor(at.st_rdev)
    ))
    .ok()?;
    parse(&text)
}

/// Bytes read from storage for this process so far, including those read by the page cache
/// (`read_bytes` of proc_pid_io(5)); `None` if the kernel does not count them.
pub fn fetched() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

fn parse(text: &str) -> Option<IoCounts> {
    let fields: Vec<u64> =
        text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let &[reads, _, sectors_read, _, writes, _, sectors_written, ..] = fields.as_slice() else {
        return None;
    };
    let bytes = |sectors: u64| sectors.saturating_mul(sysfs::SECTOR);
    Some(IoCounts {
        reads,
        bytes_read: bytes(sectors_read),
        writes,
        bytes_written: bytes(sectors_written),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_of_512_bytes_whatever_the_device_has() {
        let text = "     400        0     3200       12      200        0     3200       34        \
            0       40       46        0        0\n";
        let all =
            IoCounts { reads: 400, bytes_read: 3200 * 512, writes: 200, bytes_written: 3200 * 512 };
        assert_eq!(parse(text), Some(all));
        assert_eq!((parse(""), parse("1 2 3"), done(Path::new("/dev/null"))), (None, None, None));
    }
}
