//! The contents of a device that udev's own probe found; any user may read them.
//!
//! # Limits
//! A hint: udev probes when a device appears or a writer closes it, so it may be out of date.
//! Without udev nothing is known.
//!
//! # Sources
//! systemd `src/libsystemd/sd-device/device-private.c` (the database's `E:KEY=VALUE` lines); udev's
//! `builtin blkid`.

use crate::device::Signs;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The most bytes read of an entry, which usually has some kilobytes.
const ENTRY: u64 = 64 << 10;

/// The entry for a block device in the database at `data` (`/run/udev/data`).
pub fn signs(data: &Path, major: u32, minor: u32) -> Signs {
    let mut text = Vec::new();
    let read = File::open(data.join(format!("b{major}:{minor}")))
        .and_then(|file| file.take(ENTRY).read_to_end(&mut text));
    if read.is_err() {
        return Signs::default();
    }
    let text = String::from_utf8_lossy(&text);
    let value = |key: &str| {
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix("E:")?.strip_prefix(key)?.strip_prefix('='));
        found.filter(|v| !v.is_empty()).map(str::to_owned)
    };
    Signs {
        fstype: value("ID_FS_TYPE"),
        block: None,
        label: value("ID_FS_LABEL"),
        uuid: value("ID_FS_UUID"),
        pttype: value("ID_PART_TABLE_TYPE"),
        parttype: value("ID_PART_ENTRY_TYPE"),
        partlabel: value("ID_PART_ENTRY_NAME"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read() {
        let dir = std::env::temp_dir().join(format!("trueline-udev-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(
            dir.join("b8:1"),
            "S:disk/by-id/x\nE:ID_FS_TYPE=ext4\nE:ID_FS_TYPE_X=no\nE:ID_FS_LABEL=\nE:ID_PART_TABLE_TYPE=gpt\n",
        )
        .unwrap();
        let found = signs(&dir, 8, 1);
        assert_eq!(
            (found.fstype.as_deref(), found.label, found.pttype.as_deref()),
            (Some("ext4"), None, Some("gpt"))
        );
        assert_eq!(signs(&dir, 8, 2), Signs::default());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
