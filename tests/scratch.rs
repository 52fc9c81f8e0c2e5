//! Directories of tests.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes with the test.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // The path of a socket in it has at most 107 bytes, and stands in URIs, in scripts and in
        // the table of mounts.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
        let fits = |place: &PathBuf| {
            place.as_os_str().len() <= 40 && place.as_os_str().as_encoded_bytes().iter().all(plain)
        };
        let place = Some(std::env::temp_dir()).filter(fits).unwrap_or("/tmp".into());
        loop {
            let name = format!(
                "trueline-test-{}-{}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            let dir = place.join(name);
            match fs::create_dir(&dir) {
                // An earlier process with this number left it behind.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made.unwrap();
                    return Scratch(dir);
                }
            }
        }
    }

    pub(crate) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
