//! The files `tests/disks/*.hex`: a head that says how the disk was made, and the dump of what is
//! read of it.
//!
//! The head is comment lines: a sentence, then `needs:` (programs, or `root`, `loop`, `guest`,
//! `sets`), `check:` (options of `trueline check`, one line for each run) and, after `$`, the
//! script. Behind it stands `hexdump -C` text; a set's further disks each begin with a line `#
//! disk: NAME`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// A golden file and its parts.
pub(crate) struct Recipe {
    /// The file's name without `.hex`.
    pub(crate) name: String,
    /// Path of the golden file.
    pub(crate) path: PathBuf,
    /// The comment lines above the first dump.
    pub(crate) head: String,
    /// The disks and their dumps; empty until the recipe has been frozen.
    pub(crate) dumps: Vec<(String, String)>,
}

/// All golden files, by name.
pub(crate) fn all() -> Vec<Recipe> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/disks");
    let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("tests/disks can be listed")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "hex"));
    paths.sort();
    paths.into_iter().map(|path| Recipe::read(path).expect("a golden file can be read")).collect()
}

impl Recipe {
    /// Reads one golden file.
    pub(crate) fn read(path: PathBuf) -> io::Result<Recipe> {
        let text = fs::read_to_string(&path)?;
        let (mut head, mut dumps) = (String::new(), Vec::<(String, String)>::new());
        for line in text.lines() {
            match (line.strip_prefix("# disk: "), dumps.last_mut()) {
                (Some(name), _) => dumps.push((name.to_string(), String::new())),
                (None, Some((_, dump))) => *dump += &format!("{line}\n"),
                (None, None) if line.starts_with('#') => head += &format!("{line}\n"),
                (None, None) => dumps.push(("disk".into(), format!("{line}\n"))),
            }
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Recipe { name, path, head, dumps })
    }

    /// The values under `key` in the head, a line each.
    pub(crate) fn field(&self, key: &str) -> impl Iterator<Item = &str> {
        let script = self.head.find("\n# $").unwrap_or(self.head.len());
        let prefix = format!("# {key}:");
        self.head[..script]
            .lines()
            .filter_map(move |line| line.strip_prefix(&prefix).map(str::trim))
    }

    /// Runs the script in `directory`; what the made disks are called. `Err` is what went wrong,
    /// for people.
    pub(crate) fn make(&self, directory: &Path) -> Result<Vec<String>, String> {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/disks/run.sh");
        let made = Command::new(run)
            .arg(&self.path)
            .arg(directory)
            .output()
            .map_err(|e| format!("run.sh: {e}"))?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let mut names: Vec<String> = fs::read_dir(directory)
            .map_err(|e| e.to_string())?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| {
                name.strip_prefix("disk")
                    .is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
            })
            .collect();
        names.sort();
        Ok(names)
    }
}

/// A directory that is gone when this is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty one, called after `what`: whatever an earlier process with this number left
    /// behind is another's.
    pub(crate) fn new(what: &str) -> Scratch {
        let name = format!("trueline-{}-{what}", std::process::id());
        // The path of a socket in it has at most 107 bytes, and stands in URIs, in scripts and in
        // the table of mounts.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
        let fits = |place: &PathBuf| {
            place.as_os_str().len() <= 40 && place.as_os_str().as_encoded_bytes().iter().all(plain)
        };
        let place = Some(std::env::temp_dir()).filter(fits).unwrap_or("/tmp".into());
        for nth in 0.. {
            let path = place.join(format!("{name}.{nth}"));
            match fs::create_dir(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made.expect("a temporary directory can be made");
                    return Scratch(path);
                }
            }
        }
        unreachable!("there are fewer directories")
    }

    /// Path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on it: what stays behind is in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}
