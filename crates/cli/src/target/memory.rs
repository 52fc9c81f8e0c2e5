//! `md:SIZE[=IMAGE]`: memory as a disk, zero or with an image at its beginning. The image is read
//! once and never written.

use std::path::Path;
use trueline_geom::base::error::Errno;
use trueline_geom::base::size;
use trueline_geom::base::store::Store;
use trueline_host::disk::file;
use trueline_host::disk::memory::Memory;

/// Prefix of such a disk.
const KIND: &str = "md:";

/// Longest image that is taken into memory, and the bytes of one read.
const LONGEST: u64 = 16 << 30;
const PIECE: u64 = 1 << 20;

/// The parts of `md:SIZE[=IMAGE]`.
struct Spelling<'a> {
    size: &'a str,
    image: Option<&'a str>,
}

impl Spelling<'_> {
    /// Splits the text; `None` if it is another kind of disk.
    fn of(disk: &str) -> Option<Spelling<'_>> {
        let rest = disk.strip_prefix(KIND).filter(|_| !Path::new(disk).exists())?;
        Some(match rest.split_once('=') {
            Some((size, image)) => Spelling { size, image: Some(image) },
            None => Spelling { size: rest, image: None },
        })
    }
}

/// True if `disk` is memory with a valid size, and its image, if any, exists.
pub(super) fn is_there(disk: &str) -> bool {
    Spelling::of(disk).is_some_and(|s| {
        size::bytes(s.size).is_some() && s.image.is_none_or(|image| Path::new(image).exists())
    })
}

/// The image that it begins with.
pub(super) fn image(disk: &str) -> Option<&str> {
    Spelling::of(disk)?.image
}

/// Size in bytes of such a disk without an image; `None` if it has one or is another kind of disk.
pub(super) fn size(disk: &str) -> Result<Option<u64>, String> {
    Spelling::of(disk)
        .filter(|spelling| spelling.image.is_none())
        .map(|spelling| spelling.bytes(disk))
        .transpose()
}

impl Spelling<'_> {
    fn bytes(&self, disk: &str) -> Result<u64, String> {
        size::bytes(self.size)
            .ok_or_else(|| format!("open {disk}: '{}' is not a size: 64m, 1g", self.size))
    }
}

/// Allocates the memory and reads the image into it; `None` if it is another kind of disk.
pub(super) fn open(disk: &str) -> Result<Option<Box<dyn Store>>, String> {
    let Some(spelling) = Spelling::of(disk) else { return Ok(None) };
    let failed = |why: String| format!("open {disk}: {why}");
    let length = spelling.bytes(disk)?;
    let memory = Memory::new(length).map_err(|e| e.to_string())?;
    if let Some(image) = spelling.image {
        if image.is_empty() {
            return Err(failed("the name of the image is missing: write md:1m=disk.img".into()));
        }
        let from = file::open(Path::new(image)).map_err(|e| e.to_string())?.store;
        if from.length() > length.min(LONGEST) {
            return Err(failed(format!(
                "{image} has {} bytes: at most {} fit",
                from.length(),
                length.min(LONGEST)
            )));
        }
        copy(&from, &memory).map_err(|e| failed(format!("read {image}: {e}")))?;
    }
    Ok(Some(Box::new(memory)))
}

/// Copies a store. Pieces of zeros are left out, so they take no memory.
fn copy(from: &dyn Store, to: &dyn Store) -> Result<(), Errno> {
    let mut buffer = vec![0; usize::try_from(PIECE.min(from.length())).unwrap_or_default()];
    let mut at = 0;
    while at < from.length() {
        let piece = usize::try_from(PIECE.min(from.length() - at)).unwrap_or_default();
        from.read_at(&mut buffer[..piece], at)?;
        if buffer[..piece].iter().any(|&byte| byte != 0) {
            to.write_at(&buffer[..piece], at)?;
        }
        at += piece as u64;
    }
    Ok(())
}
