//! The meaning of a file's requests for an export: the end of the file, requests past it, and
//! holes.

use crate::error_sequence::Since;
use crate::export::Export;
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Content;

/// The mode of fallocate(2) that keeps the length.
const KEEP_SIZE: i32 = 1;
/// The mode of fallocate(2) that zeros a range and frees its space.
const PUNCH_HOLE: i32 = 2;
/// The mode of fallocate(2) that zeros a range.
const ZERO_RANGE: i32 = 16;

/// The most runs that one lseek(2) queries: a stripe of a terabyte has millions of them.
const RUNS: usize = 1 << 16;

/// The target of lseek(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sought {
    /// The next data, `SEEK_DATA`.
    Data,
    /// The next hole, `SEEK_HOLE`.
    Hole,
}

/// The number of the `length` bytes from `offset` on that exist: a read ends at the end of the
/// file.
pub(super) fn inside(export: &Export, offset: u64, length: usize) -> usize {
    let left = export.store.length().saturating_sub(offset);
    usize::try_from(left).map_or(length, |left| left.min(length))
}

/// Fills `buffer` with the bytes from `offset` on.
pub(super) fn read(export: &Export, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
    if export.store.try_read(buffer, offset)? {
        Ok(())
    } else {
        export.store.read_at(buffer, offset)
    }
}

/// Writes the bytes that fit, and returns their number. As on a block device, there is no space at
/// the end. With `through`, they are on the medium then, and errors since are reported.
pub(super) fn write(
    export: &Export,
    bytes: &[u8],
    offset: u64,
    through: Option<&Since>,
) -> Result<usize, Errno> {
    let refused = |errno| {
        export.refuse(IoKind::Write, offset, bytes.len() as u64);
        Err(errno)
    };
    if export.read_only {
        return refused(Errno::ReadOnly);
    }
    let count = inside(export, offset, bytes.len());
    if count == 0 && !bytes.is_empty() {
        return refused(Errno::NoSpace);
    }
    let bytes = &bytes[..count];
    match through {
        Some(since) => export.write_through(since, bytes, offset),
        None => export.store.write_at(bytes, offset),
    }?;
    Ok(count)
}

/// Zeros or discards a range, as fallocate(2).
pub(super) fn allocate(export: &Export, offset: u64, length: u64, mode: i32) -> Result<(), Errno> {
    let refused = |errno| {
        export.refuse(IoKind::Zero, offset, length);
        Err(errno)
    };
    if export.read_only {
        return refused(Errno::ReadOnly);
    }
    let (keep, kind) = (mode & KEEP_SIZE != 0, mode & !KEEP_SIZE);
    let end = offset.checked_add(length).ok_or(Errno::Range)?;
    if end > export.store.length() && !keep {
        return refused(Errno::NoSpace);
    }
    // With KEEP_SIZE a range past the end is allowed, and ignored.
    let length = end.min(export.store.length()).saturating_sub(offset);
    match kind {
        PUNCH_HOLE | ZERO_RANGE if length == 0 => Ok(()),
        PUNCH_HOLE => export.store.try_zero(offset, length, false),
        ZERO_RANGE => export.store.try_zero(offset, length, true),
        _ => Err(Errno::Unsupported),
    }
}

/// The start of the next data or hole, as lseek(2); [`None`] past the end, or if no more data
/// follow.
pub(super) fn seek(export: &Export, offset: u64, sought: Sought) -> Result<Option<u64>, Errno> {
    let (mut at, end) = (offset, export.store.length());
    if offset >= end {
        return Ok(None);
    }
    for _ in 0..RUNS {
        let run = export.store.extent(at, end - at)?;
        if (run.content == Content::Data) == (sought == Sought::Data) {
            return Ok(Some(at));
        }
        at += run.length.clamp(1, end - at);
        if at == end {
            break;
        }
    }
    // A file ends with a hole. Past the limit of runs all counts as data, which is a valid answer
    // for any file.
    Ok(if sought == Sought::Hole { Some(end) } else { Some(at).filter(|&at| at < end) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::BlockSizes;
    use std::sync::{Arc, Mutex};
    use trueline_geom::base::store::{Run, Store};
    use trueline_host::disk::memory::Memory;

    /// Bytes 0 to 99 are data, 100 to 199 a hole, and so on; remembers what was made zero.
    struct Holes(Mutex<Vec<(u64, u64, bool)>>);

    impl Store for Holes {
        fn length(&self) -> u64 {
            1050
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Errno> {
            Err(Errno::Io)
        }

        fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
            self.0.lock().unwrap().push((offset, length, keep));
            Ok(())
        }

        fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
            let content =
                if (offset / 100).is_multiple_of(2) { Content::Data } else { Content::Hole };
            // Less than it could say: a run may be followed by one of its kind.
            Ok(Run { content, length: length.min(30).min(100 - offset % 100) })
        }

        fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
            Err(Errno::ReadOnly)
        }

        fn flush(&self) -> Result<(), Errno> {
            Ok(())
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Ok(())
        }
    }

    fn export(store: Arc<dyn Store>, read_only: bool) -> Export {
        let sizes = BlockSizes { least: 1, preferred: 512, most: 1 << 20 };
        Export {
            name: String::new(),
            description: String::new(),
            store,
            read_only,
            rotational: false,
            sizes,
            boundaries: Vec::new(),
            errors: Arc::default(),
            overlay: None,
            refusals: Vec::new(),
        }
    }

    #[test]
    fn it_ends_as_a_device_does() {
        let export = export(Arc::new(Memory::new(1000).unwrap()), false);
        assert_eq!(write(&export, &[1; 10], 995, None), Ok(5));
        assert_eq!(write(&export, &[1; 10], 1000, None), Err(Errno::NoSpace));
        assert_eq!(write(&export, &[1; 10], u64::MAX, None), Err(Errno::NoSpace));
        assert_eq!(write(&export, &[], 1000, None), Ok(0));
        assert_eq!(
            [0, 995, 1000, u64::MAX].map(|offset| inside(&export, offset, 10)),
            [10, 5, 0, 0]
        );
        let mut bytes = [9; 6];
        read(&export, &mut bytes, 994).unwrap();
        assert_eq!(bytes, [0, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn what_is_read_only_is_not_written() {
        let export = export(Arc::new(Memory::new(1000).unwrap()), true);
        assert_eq!(write(&export, &[1], 0, None), Err(Errno::ReadOnly));
        assert_eq!(allocate(&export, 0, 10, PUNCH_HOLE | KEEP_SIZE), Err(Errno::ReadOnly));
    }

    #[test]
    fn holes_are_punched_within_the_file() {
        let holes = Arc::new(Holes(Mutex::default()));
        let export = export(holes.clone(), false);
        for (offset, length, mode, want) in [
            (100, 50, PUNCH_HOLE | KEEP_SIZE, Ok(())),
            (1000, 500, PUNCH_HOLE | KEEP_SIZE, Ok(())),
            (1050, 500, PUNCH_HOLE | KEEP_SIZE, Ok(())),
            (100, 50, ZERO_RANGE, Ok(())),
            (1000, 500, ZERO_RANGE, Err(Errno::NoSpace)),
            (u64::MAX, 2, ZERO_RANGE | KEEP_SIZE, Err(Errno::Range)),
            (0, 1050, 0, Err(Errno::Unsupported)),
            (0, 2000, 0, Err(Errno::NoSpace)),
            // FALLOC_FL_COLLAPSE_RANGE
            (0, 512, 8, Err(Errno::Unsupported)),
        ] {
            assert_eq!(allocate(&export, offset, length, mode), want, "{offset} {length} {mode}");
        }
        assert_eq!(
            *holes.0.lock().unwrap(),
            [(100, 50, false), (1000, 50, false), (100, 50, true)]
        );
    }

    #[test]
    fn data_and_holes_are_found() {
        let export = export(Arc::new(Holes(Mutex::default())), false);
        let at = |offset, sought| seek(&export, offset, sought).unwrap();
        for (offset, data, hole) in [
            (0, Some(0), Some(100)),
            (99, Some(99), Some(100)),
            (100, Some(200), Some(100)),
            (950, Some(1000), Some(950)),
            (1000, Some(1000), Some(1050)),
            (1050, None, None),
            (u64::MAX, None, None),
        ] {
            assert_eq!(
                (at(offset, Sought::Data), at(offset, Sought::Hole)),
                (data, hole),
                "{offset}"
            );
        }
    }
}
