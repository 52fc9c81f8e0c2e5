//! Sparse bundles of macOS: a directory with a property list, and the bands of a disk in files of
//! their own.
//!
//! `Info.plist` has the size of the disk and of its bands; `bands/` has a file for each band that
//! was written, by its number in hexadecimal. One that is not there is zero, as is what lies behind
//! the end of one. Such a disk has no header: its bands are joined below the graph, where
//! references are followed, and read only.
//!
//! Sources: apfs-fuse `DeviceSparseBundle.cpp`, and sparsebundle-fs for bands that are shorter.

use super::home::allowed;
use crate::failure::Reason;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trueline_geom::base::error::Errno;
use trueline_geom::base::finding::{self, Finding, Fix, Severity};
use trueline_geom::base::store::Store;

/// Bytes of the largest property list that is read.
const MOST_LIST: u64 = 64 << 10;
/// Type of a bundle, as its list has it.
const TYPE: &str = "com.apple.diskimage.sparsebundle";
/// Sizes of a band in bytes.
const BANDS: std::ops::RangeInclusive<u64> = 512..=1 << 40;
/// Bytes of a page of a file: bands of whole pages keep every unit of the guest.
const PAGE: u64 = 4096;
/// Bytes of the largest disk.
const MOST: u64 = 1 << 60;
/// Bands that are open at a time.
const OPEN: usize = 64;
/// Files of bands whose state is noted.
const MOST_FILES: usize = 1 << 16;

/// Bundle by its property list.
pub(super) struct Bundle {
    /// Path of the property list.
    list: PathBuf,
    /// Bytes of the disk, and of a band.
    size: u64,
    band: u64,
}

/// The text behind `<key>key</key>`, between the tags that are called `tag`.
fn value<'a>(text: &'a str, key: &str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<key>{key}</key>"))?;
    let rest = rest.trim_start().strip_prefix(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(value, _)| value.trim())
}

impl Bundle {
    /// The bundle whose property list is at `path`; `None` for any other file.
    pub(super) fn of(path: &Path) -> Option<Bundle> {
        path.file_name().filter(|name| *name == "Info.plist")?;
        let is_short = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= MOST_LIST);
        let text = fs::read_to_string(path).ok().filter(|_| is_short)?;
        Bundle::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Option<Bundle> {
        let is_other = ["<!--", "<![CDATA[", "<!ENTITY"].iter().any(|other| text.contains(other));
        if is_other || value(text, "diskimage-bundle-type", "string") != Some(TYPE) {
            return None;
        }
        let number = |key| value(text, key, "integer")?.parse::<u64>().ok();
        let (size, band) = (number("size")?, number("band-size")?);
        let is_sane = BANDS.contains(&band) && (1..=MOST).contains(&size);
        is_sane.then(|| Bundle { list: path.to_owned(), size, band })
    }

    /// True if its bands are encrypted, as a file beside them says.
    fn is_encrypted(&self) -> bool {
        let mut magic = [0; 8];
        let token = File::open(self.list.with_file_name("token"));
        token.is_ok_and(|file| file.read_exact_at(&mut magic, 0).is_ok()) && magic == *b"encrcdsa"
    }

    /// The note that the bands are not looked at.
    pub(super) fn alone(&self) -> Finding {
        let message = format!(
            "it is the property list of a sparse bundle, a disk of {} bytes, whose bands are files of their own and not looked at",
            self.size
        );
        Finding::new(&finding::BLIND, Severity::Warning, 0, message).fix(Fix::Follow)
    }

    /// The note that the bands are not joined, and the reason.
    pub(super) fn refused(why: &str) -> Finding {
        let message = format!("its bands are not followed: {why}");
        Finding::new(&finding::BLIND, Severity::Warning, 0, message)
    }

    /// Files of the bands that are there, for their state.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let directory = self.list.with_file_name("bands");
        let there = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = there.take(MOST_FILES).map(|file| file.path()).collect();
        files.sort();
        files
    }

    /// The disk of the bundle.
    ///
    /// Errors: bands that are encrypted, or no whole pages, and a directory of them that is missing
    /// or leads elsewhere.
    pub(super) fn disk(self) -> Result<Bands, Reason> {
        if self.is_encrypted() {
            return Err(Reason("they are encrypted".into()));
        }
        if !self.band.is_multiple_of(PAGE) {
            return Err(Reason(format!(
                "they are of {} bytes, which is not whole pages",
                self.band
            )));
        }
        let directory = self.list.with_file_name("bands");
        if !directory.symlink_metadata()?.is_dir() {
            return Err(Reason("bands is no directory".into()));
        }
        Ok(Bands { bundle: self, open: Mutex::default() })
    }
}

/// Bands as one disk, which is read and not written.
pub(super) struct Bands {
    bundle: Bundle,
    /// Number and file of the bands that were read last; no file of one that is not there.
    open: Mutex<VecDeque<(u64, Option<Arc<File>>)>>,
}

impl Bands {
    /// The file of a band; `None` for one that was never written.
    fn file(&self, nth: u64) -> Result<Option<Arc<File>>, Errno> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = open.iter().find(|(number, _)| *number == nth) {
            return Ok(file.clone());
        }
        let name = format!("bands/{nth:x}");
        let path = self.bundle.list.with_file_name(&name);
        let file = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            _ => {
                let path = allowed(&self.bundle.list, &name).map_err(|_| Errno::Io)?;
                Some(Arc::new(File::open(path).map_err(|_| Errno::Io)?))
            }
        };
        if open.len() == OPEN {
            open.pop_front();
        }
        open.push_back((nth, file.clone()));
        Ok(file)
    }
}

/// Fills `buffer` from byte `offset` of a file, and with zeros behind its end.
fn read_or_zero(file: &File, mut buffer: &mut [u8], mut offset: u64) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => {
                buffer.fill(0);
                return Ok(());
            }
            Ok(done) => {
                offset += done as u64;
                buffer = &mut buffer[done..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Errno::Io),
        }
    }
    Ok(())
}

impl Store for Bands {
    fn length(&self) -> u64 {
        self.bundle.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.bundle.size) {
            return Err(Errno::Range);
        }
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let (nth, within) = (at / self.bundle.band, at % self.bundle.band);
            let here = usize::try_from(self.bundle.band - within).unwrap_or(usize::MAX);
            let (part, after) = rest.split_at_mut(here.min(rest.len()));
            match self.file(nth)? {
                Some(file) => read_or_zero(&file, part, within)?,
                None => part.fill(0),
            }
            (at, rest) = (at + part.len() as u64, after);
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

    fn list(size: &str, band: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n\
             \t<key>CFBundleInfoDictionaryVersion</key>\n\t<string>6.0</string>\n\
             \t<key>band-size</key>\n\t<integer>{band}</integer>\n\
             \t<key>bundle-backingstore-version</key>\n\t<integer>1</integer>\n\
             \t<key>diskimage-bundle-type</key>\n\t<string>{TYPE}</string>\n\
             \t<key>size</key>\n\t<integer>{size}</integer>\n</dict>\n</plist>\n"
        )
    }

    #[test]
    fn a_list_is_read_strictly() {
        let of = |text: &str| {
            Bundle::parse(Path::new("Info.plist"), text).map(|bundle| (bundle.size, bundle.band))
        };
        assert_eq!(of(&list("10485760", "8388608")), Some((10_485_760, 8_388_608)));
        let whole = list("1024", "512");
        assert_eq!(of(&whole), Some((1024, 512)));
        for bad in [
            list("0", "512"),
            list("x", "512"),
            list("99999999999999999999", "512"),
            list("2305843009213693952", "512"),
            list("1024", "0"),
            list("1024", "511"),
            list("1024", "2199023255552"),
            list("1024", "-1"),
            whole.replace("sparsebundle", "other"),
            whole.replace("<key>size</key>", "<!-- --><key>size</key>"),
            whole.replace("<integer>512", "<string>512"),
            whole.replace("</integer>\n</dict>", ""),
            String::new(),
        ] {
            assert_eq!(of(&bad), None, "{bad}");
        }
    }

    /// More bands than are open at a time, some of which are short or not there.
    #[test]
    fn bands_are_read_as_one() {
        let root = std::env::temp_dir().join(format!("trueline-bands-{}", std::process::id()));
        fs::create_dir_all(root.join("bands")).expect("a directory");
        let mut whole = vec![0; 200 * 4096 - 100];
        for nth in (0..200_u8).filter(|nth| nth % 3 != 1) {
            let length = if nth % 3 == 0 { 4096 } else { 99 };
            fs::write(root.join(format!("bands/{nth:x}")), vec![nth; length]).expect("a band");
            let at = usize::from(nth) * 4096;
            let end = (at + length).min(whole.len());
            whole[at..end].fill(nth);
        }
        fs::write(root.join("Info.plist"), list("819100", "4096")).expect("a list");
        let bundle = || Bundle::of(&root.join("Info.plist")).expect("a bundle");
        assert_eq!(bundle().files().len(), 133);
        let disk = bundle().disk().unwrap_or_else(|Reason(why)| panic!("{why}"));
        assert_eq!(disk.length(), 819_100);
        for (at, length) in [(0, 819_100), (4090, 30), (8191, 2), (819_099, 1), (7, 0)] {
            let mut buffer = vec![0xee; length];
            assert_eq!(disk.read_at(&mut buffer, at as u64), Ok(()));
            assert!(buffer == whole[at..at + length], "{at} {length}");
        }
        assert_eq!(disk.read_at(&mut [0; 2], 819_099), Err(Errno::Range));
        assert_eq!(disk.read_at(&mut [0], u64::MAX), Err(Errno::Range));
        assert_eq!(disk.write_at(&[0], 0), Err(Errno::ReadOnly));
        // A band that is a link out of the bundle is not read, nor is a directory.
        std::os::unix::fs::symlink("/etc/passwd", root.join("bands/1")).expect("a link");
        fs::create_dir(root.join("bands/4")).expect("a directory");
        let disk = bundle().disk().unwrap_or_else(|Reason(why)| panic!("{why}"));
        assert_eq!(disk.read_at(&mut [0], 4096), Err(Errno::Io));
        assert_eq!(disk.read_at(&mut [0], 4 * 4096), Err(Errno::Io));
        let odd = Bundle { band: 512, ..bundle() }.disk();
        assert!(odd.is_err_and(|Reason(why)| why.contains("whole pages")));
        fs::write(root.join("token"), b"encrcdsa\0\0\0\x02").expect("a token");
        assert!(bundle().disk().is_err_and(|Reason(why)| why.contains("encrypted")));
        fs::remove_dir_all(root).expect("a directory");
    }
}
