//! Disks that were cut into files of one length: `disk.001`, `disk.002` and so on, as imaging tools
//! make them, or `disk.aa`, `disk.ab`, as `split` does.
//!
//! Such a part has no header: its name and its length alone say that it is one. So it is said, and
//! joined with the others only where references are followed.

use std::path::{Path, PathBuf};
use trueline_geom::base::error::Errno;
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::store::Store;

/// Parts that a disk may have.
const MOST: usize = 256;

/// Parts of a disk, in order.
pub(super) struct Parts {
    /// Path and length in bytes of each.
    files: Vec<(PathBuf, u64)>,
    /// Index of the one that was asked for.
    own: usize,
}

impl Parts {
    /// The parts of the disk of which the file at `path` is one; `None` if its name is not that of
    /// a part, or the others are not there.
    pub(super) fn of(path: &Path) -> Option<Parts> {
        let (stem, ending) = path.file_name()?.to_str()?.rsplit_once('.')?;
        let named = |ending: &str| {
            let path = path.with_file_name(format!("{stem}.{ending}"));
            let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((path, found.len()))
        };
        let first = firsts(ending).into_iter().find(|first| named(first).is_some());
        let mut next = Some(first?);
        let (mut files, mut own) = (Vec::new(), None);
        while let Some(file) = next.as_deref().and_then(named) {
            if files.len() == MOST {
                return None;
            }
            if next.as_deref() == Some(ending) {
                own = Some(files.len());
            }
            files.push(file);
            next = next.as_deref().and_then(following);
        }
        Some(Parts { files, own: own? }).filter(|parts| parts.files.len() > 1)
    }

    /// The paths of the parts behind the first; `None` for another part than the first one.
    pub(super) fn others(&self) -> Option<impl Iterator<Item = &Path>> {
        (self.own == 0).then(|| self.files.iter().skip(1).map(|(path, _)| path.as_path()))
    }

    /// True if one of them is the file at `path`, which has no links in it, besides the one that
    /// was asked for.
    pub(super) fn include(&self, path: &Path) -> bool {
        let others = self.files.iter().enumerate().filter(|(nth, _)| *nth != self.own);
        others.into_iter().any(|(_, (other, _))| other.canonicalize().is_ok_and(|o| o == path))
    }

    /// The first part that is not as long as the others, but for a last one that is shorter.
    fn odd(&self) -> Option<&Path> {
        let (_, length) = self.files.first()?;
        let (last, before) = self.files.split_last()?;
        let odd = before.iter().find(|(_, other)| other != length);
        odd.or_else(|| Some(last).filter(|(_, own)| own > length)).map(|(path, _)| path.as_path())
    }

    /// True if their lengths are those of parts of one disk.
    pub(super) fn are_even(&self) -> bool {
        self.odd().is_none()
    }

    /// The note that a part alone is looked at, and not the others.
    pub(super) fn alone(&self) -> Finding {
        let (count, number) = (self.files.len(), self.own + 1);
        let message = match (self.own, self.files.first()) {
            (1.., Some((first, _))) => format!(
                "it is part {number} of {count} of a disk, by its name, and that begins in {}",
                name(first)
            ),
            _ => format!(
                "it is part 1 of {count} of a disk, by its name, and the others are not looked at"
            ),
        };
        let note = Finding::new(&finding::BLIND, Severity::Note, 0, message);
        if self.own == 0 { note.fix("--follow joins them") } else { note }
    }

    /// The note that parts are not joined, because their lengths are not those of one disk.
    pub(super) fn uneven(&self) -> Option<Finding> {
        let message = format!(
            "it has the name of part 1 of {} of a disk, and {} has not its length: they are not joined",
            self.files.len(),
            name(self.odd()?)
        );
        Some(Finding::new(&finding::BLIND, Severity::Warning, 0, message))
    }
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

/// Endings that the first part may have where another one ends in `ending`.
fn firsts(ending: &str) -> Vec<String> {
    let width = ending.len();
    let is = |is: fn(&u8) -> bool| ending.bytes().all(|byte| is(&byte));
    match width {
        2..=4 if is(u8::is_ascii_digit) => {
            vec![format!("{:0width$}", 0), format!("{:0width$}", 1)]
        }
        2..=3 if is(u8::is_ascii_lowercase) => vec!["a".repeat(width)],
        _ => Vec::new(),
    }
}

/// The ending of the part behind that with this one.
fn following(ending: &str) -> Option<String> {
    let mut next = ending.as_bytes().to_vec();
    for byte in next.iter_mut().rev() {
        *byte = match *byte {
            b'9' => b'0',
            b'z' => b'a',
            other => {
                *byte = other + 1;
                return String::from_utf8(next).ok();
            }
        };
    }
    None
}

/// Parts as one disk, which is read and not written.
pub(super) struct Joined {
    /// First byte of each on the disk, and the part.
    parts: Vec<(u64, Box<dyn Store>)>,
    length: u64,
}

impl Joined {
    /// The disk of these parts, in order.
    pub(super) fn new(stores: Vec<Box<dyn Store>>) -> Joined {
        let (mut parts, mut length) = (Vec::new(), 0_u64);
        for store in stores {
            let first = length;
            length = length.saturating_add(store.length());
            parts.push((first, store));
        }
        Joined { parts, length }
    }
}

impl Store for Joined {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.length) {
            return Err(Errno::Range);
        }
        let (mut at, mut rest) = (offset, buffer);
        let before = self.parts.partition_point(|(first, _)| *first <= offset);
        for (first, store) in self.parts.iter().skip(before.saturating_sub(1)) {
            let within = at.saturating_sub(*first);
            let here = usize::try_from(store.length().saturating_sub(within)).unwrap_or(usize::MAX);
            let (part, after) = rest.split_at_mut(here.min(rest.len()));
            if !part.is_empty() {
                store.read_at(part, within)?;
            }
            (at, rest) = (at + part.len() as u64, after);
            if rest.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _offset: u64, _length: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use trueline_geom::base::store::Sparse;

    #[test]
    fn endings_follow_each_other() {
        for (ending, next) in [
            ("000", Some("001")),
            ("009", Some("010")),
            ("99", None),
            ("aa", Some("ab")),
            ("az", Some("ba")),
            ("zz", None),
            ("0999", Some("1000")),
        ] {
            assert_eq!(following(ending).as_deref(), next, "{ending}");
        }
        assert_eq!(firsts("017"), ["000", "001"]);
        assert_eq!(firsts("xyz"), ["aaa"]);
        for ending in ["", "1", "12345", "E01", "a1", "AA", "img2"] {
            assert!(firsts(ending).is_empty(), "{ending}");
        }
    }

    #[test]
    fn parts_are_those_that_lie_there_in_order() {
        let root = std::env::temp_dir().join(format!("trueline-parts-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        for (name, length) in [
            ("disk.001", 8),
            ("disk.002", 8),
            ("disk.003", 3),
            ("disk.005", 8),
            ("odd.00", 8),
            ("odd.01", 7),
            ("odd.02", 8),
            ("cut.aa", 8),
            ("cut.ab", 9),
            ("one.001", 8),
            ("late.002", 8),
        ] {
            fs::write(root.join(name), vec![0; length]).unwrap();
        }
        let of = |name: &str| {
            let parts = Parts::of(&root.join(name))?;
            Some((parts.own, parts.files.len(), parts.odd().map(super::name)))
        };
        assert_eq!(of("disk.001"), Some((0, 3, None)));
        assert_eq!(of("disk.003"), Some((2, 3, None)));
        assert_eq!(of("odd.00"), Some((0, 3, Some("odd.01".into()))));
        assert_eq!(of("cut.aa"), Some((0, 2, Some("cut.ab".into()))));
        for name in ["disk.005", "one.001", "late.002", "disk", "disk.img"] {
            assert_eq!(of(name), None, "{name}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn parts_are_read_as_one() {
        let part = |fill: u8, length: u64| {
            let mut store = Sparse::new(length);
            let bytes = vec![fill; usize::try_from(length).unwrap()];
            store.put(0, &bytes);
            Box::new(store) as Box<dyn Store>
        };
        let joined = Joined::new(vec![part(1, 5), part(2, 5), part(3, 2)]);
        let whole = [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3];
        for from in 0..=12 {
            for to in from..=12 {
                let mut buffer = vec![0; to - from];
                assert_eq!(joined.read_at(&mut buffer, from as u64), Ok(()));
                assert_eq!(buffer, whole[from..to], "{from} to {to}");
            }
        }
        assert_eq!(joined.read_at(&mut [0; 2], 11), Err(Errno::Range));
        assert_eq!(joined.read_at(&mut [0; 2], u64::MAX), Err(Errno::Range));
        assert_eq!(joined.write_at(&[0], 0), Err(Errno::ReadOnly));
        assert_eq!(joined.length(), 12);
    }
}
