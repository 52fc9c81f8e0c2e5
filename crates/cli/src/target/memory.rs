//! `md:SIZE[=IMAGE]`: memory as a disk, zero or with an image at its beginning. The image is read
//! once and never written.

use crate::failure::Reason;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spelling {
    size: String,
    image: Option<String>,
}

impl Spelling {
    /// Splits the text; `None` if it is another kind of disk.
    pub(super) fn parse(disk: &str) -> Option<Spelling> {
        let rest = disk.strip_prefix(KIND)?;
        let (size, image) =
            rest.split_once('=').map_or((rest, None), |(size, image)| (size, Some(image)));
        Some(Spelling { size: size.into(), image: image.map(str::to_owned) })
    }

    /// True if its size is valid and its image, if any, exists.
    pub(super) fn is_whole(&self) -> bool {
        size::bytes(&self.size).is_some()
            && self.image.as_ref().is_none_or(|image| Path::new(image).exists())
    }

    /// The image that it begins with.
    pub(super) fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// Size in bytes of the disk that was typed as `disk`.
    pub(super) fn size(&self, disk: &str) -> Result<u64, Reason> {
        size::bytes(&self.size)
            .ok_or_else(|| Reason(format!("open {disk}: '{}' is not a size: 64m, 1g", self.size)))
    }

    /// Allocates the memory of the disk that was typed as `disk`, and reads the image into it.
    pub(super) fn open(&self, disk: &str) -> Result<Box<dyn Store>, Reason> {
        allocate(disk, self.size(disk)?, self.image())
    }
}

fn allocate(disk: &str, length: u64, image: Option<&str>) -> Result<Box<dyn Store>, Reason> {
    let failed = |why: String| Reason(format!("open {disk}: {why}"));
    let memory = Memory::new(length)?;
    if let Some(image) = image {
        if image.is_empty() {
            return Err(failed("the name of the image is missing: write md:1m=disk.img".into()));
        }
        let from = file::open(Path::new(image))?.store;
        if from.length() > length.min(LONGEST) {
            return Err(failed(format!(
                "{image} has {} bytes: at most {} fit",
                from.length(),
                length.min(LONGEST)
            )));
        }
        copy(&from, &memory).map_err(|e| failed(format!("read {image}: {e}")))?;
    }
    Ok(Box::new(memory))
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
