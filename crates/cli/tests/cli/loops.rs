//! Loop devices over images, for tests that run as root.
//!
//! What is skipped is printed, and with `TRUELINE_ORACLE=all` a failure.

use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// True if this machine can do what a test needs; prints the reason if not.
pub(crate) fn can(what: &str, needs: &str) -> bool {
    let able = sh(crate::scratch().path(), needs).is_some();
    if !able {
        skip(&format!("{what}: not so here: {needs}"));
    }
    able
}

/// Run where a file may be made: that the driver is there does not say that this user may use it.
pub(crate) const LOOPS: &str = "command -v partx && truncate -s 1M disk && \
    d=$(losetup --find --show disk) && losetup --set-capacity $d; s=$?; \
    losetup --detach $d; exit $s";

/// The same for partitions of such devices, which the kernel is told of.
pub(crate) const PARTITIONS: &str = "command -v partx && truncate -s 8M disk && printf \
    '63,,83\\n' | sfdisk -q --force --label dos disk && d=$(losetup --find --show disk) && partx \
    --add $d; s=$?; test -e ${d}p1 || s=1; partx --delete $d; losetup --detach $d; exit $s";

/// Output of a shell command, if it succeeds.
pub(crate) fn sh(directory: impl AsRef<Path>, command: &str) -> Option<String> {
    let command = format!("PATH=$PATH:/usr/sbin:/sbin\n{command}");
    let ran = Command::new("sh")
        .args(["-c", &command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let ran = ran.ok().filter(|ran| ran.status.success())?;
    Some(String::from_utf8_lossy(&ran.stdout).trim().into())
}

/// A loop device over the file `disk` of a directory.
pub(crate) struct Loop(pub(crate) String);

impl Loop {
    pub(crate) fn new(directory: &Path, options: &str) -> Loop {
        // In a container there may be a few of them, which other tests have for the moment.
        let end = Instant::now() + Duration::from_secs(600);
        loop {
            if let Some(device) = sh(directory, &format!("losetup --find --show {options} disk")) {
                return Loop(device);
            }
            assert!(Instant::now() < end, "losetup");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Number, first byte and length of every partition, as the kernel says.
    pub(crate) fn partitions(&self) -> Vec<(u64, u64, u64)> {
        let name = self.0.trim_start_matches("/dev/");
        let mut found = Vec::new();
        for entry in fs::read_dir(format!("/sys/block/{name}")).expect("sysfs").flatten() {
            let number = |file: &str| {
                fs::read_to_string(entry.path().join(file)).ok()?.trim().parse::<u64>().ok()
            };
            if let (Some(partition), Some(start), Some(size)) =
                (number("partition"), number("start"), number("size"))
            {
                found.push((partition, start * 512, size * 512));
                assert_eq!(number("alignment_offset"), Some(0));
            }
        }
        found.sort_unstable();
        found
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let device = &self.0;
        // What the kernel keeps of partitions goes first: a detached loop may keep them.
        let _ = sh(
            "/",
            &format!(
                "umount {device}p1; umount {device}; partx --delete {device}; \
                    losetup --detach {device}"
            ),
        );
    }
}
