//! The caches of L2 tables and of refcount blocks: `block/qcow2-cache.c`.

use super::file::ImageFile;
use std::collections::{BTreeSet, HashMap};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::round_down;

/// One of the two caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The cache of L2 tables.
    Tables,
    /// The cache of refcount blocks.
    Blocks,
}

impl Which {
    fn other(self) -> Which {
        match self {
            Which::Tables => Which::Blocks,
            Which::Blocks => Which::Tables,
        }
    }
}

/// A place of a cache.
#[derive(Clone, Copy, Default)]
struct Cached {
    /// The offset in the file of the table that is in it; the header is at 0, so none is there.
    offset: u64,
    dirty: bool,
    /// The time of its last use: the number of uses of the cache before it.
    used: u64,
}

struct Cache {
    entries: Vec<Cached>,
    /// The entries by the offsets of their tables, by their last use, and those without a table.
    places: HashMap<u64, usize>,
    order: BTreeSet<(u64, usize)>,
    empty: BTreeSet<usize>,
    /// The bytes of an entry.
    size: u64,
    uses: u64,
    dirty: usize,
    /// True if the other cache is flushed before an entry of this one is written.
    depends: bool,
}

impl Cache {
    fn new(entries: usize, size: u64) -> Cache {
        Cache {
            entries: vec![Cached::default(); entries],
            places: HashMap::new(),
            order: BTreeSet::new(),
            empty: (0..entries).collect(),
            size,
            uses: 0,
            dirty: 0,
            depends: false,
        }
    }

    /// The entry of a table, or the one that it takes: the one that was used least lately. Of those
    /// that were never used it is the first from an entry on that the table's offset gives.
    fn find(&self, offset: u64) -> Result<usize, usize> {
        if let Some(&at) = self.places.get(&offset) {
            return Ok(at);
        }
        let many = self.entries.len() as u64;
        let spread = offset.div_ceil(self.size).saturating_mul(4);
        let begin = usize::try_from(spread - round_down(spread, many)).unwrap_or(0);
        let unused = self.empty.range(begin..).next().or_else(|| self.empty.first()).copied();
        Err(unused.or_else(|| self.order.first().map(|(_, at)| *at)).unwrap_or(begin))
    }

    /// Puts a table into an entry.
    fn put(&mut self, at: usize, offset: u64) {
        let entry = &mut self.entries[at];
        self.places.remove(&std::mem::replace(&mut entry.offset, offset));
        self.places.insert(offset, at);
        self.empty.remove(&at);
    }

    /// Notes a use of an entry.
    fn use_again(&mut self, at: usize) {
        self.uses += 1;
        let used = std::mem::replace(&mut self.entries[at].used, self.uses);
        self.order.remove(&(used, at));
        self.order.insert((self.uses, at));
    }

    fn set_dirty(&mut self, at: usize, dirty: bool) {
        let was = std::mem::replace(&mut self.entries[at].dirty, dirty);
        self.dirty = self.dirty + usize::from(dirty) - usize::from(was);
    }
}

/// Both caches over the image file.
pub(super) struct Caches {
    pub(super) file: ImageFile,
    tables: Cache,
    blocks: Cache,
}

impl Caches {
    /// Caches of so many entries, of so many bytes each.
    pub(super) fn new(file: ImageFile, tables: (usize, u64), blocks: (usize, u64)) -> Caches {
        let [tables, blocks] = [tables, blocks].map(|(entries, size)| Cache::new(entries, size));
        Caches { file, tables, blocks }
    }

    /// Empties both, as the image is opened.
    pub(super) fn reopen(&mut self) {
        for cache in [&mut self.tables, &mut self.blocks] {
            *cache = Cache::new(cache.entries.len(), cache.size);
        }
        self.file.reopen();
    }

    fn cache(&mut self, which: Which) -> &mut Cache {
        match which {
            Which::Tables => &mut self.tables,
            Which::Blocks => &mut self.blocks,
        }
    }

    /// Uses the table at an offset, which is read if it is not in the cache.
    pub(super) fn get(&mut self, which: Which, offset: u64) -> Result<(), Errno> {
        self.entry(which, offset, true).map(|_| ())
    }

    /// Uses the table at an offset, and changes it.
    pub(super) fn change(&mut self, which: Which, offset: u64) -> Result<(), Errno> {
        let at = self.entry(which, offset, true)?;
        self.cache(which).set_dirty(at, true);
        Ok(())
    }

    /// Makes a new table, of which nothing is read, at an offset.
    pub(super) fn create(&mut self, which: Which, offset: u64) -> Result<(), Errno> {
        let at = self.entry(which, offset, false)?;
        self.cache(which).set_dirty(at, true);
        Ok(())
    }

    fn entry(&mut self, which: Which, offset: u64, read: bool) -> Result<usize, Errno> {
        let at = match self.cache(which).find(offset) {
            Ok(at) => at,
            Err(at) => {
                self.write_entry(which, at)?;
                let size = self.cache(which).size;
                if read {
                    self.file.read(offset, size);
                }
                self.cache(which).put(at, offset);
                at
            }
        };
        self.cache(which).use_again(at);
        Ok(at)
    }

    /// Writes an entry if it is dirty, after what must be on the medium before it is.
    fn write_entry(&mut self, which: Which, at: usize) -> Result<(), Errno> {
        let cache = self.cache(which);
        let Cached { offset, dirty: true, .. } = cache.entries[at] else { return Ok(()) };
        let size = cache.size;
        if cache.depends {
            self.settle(which)?;
        }
        self.file.write(offset, size)?;
        self.cache(which).set_dirty(at, false);
        Ok(())
    }

    /// Flushes the cache that `which` depends on, so that it no longer does.
    fn settle(&mut self, which: Which) -> Result<(), Errno> {
        self.flush(which.other())?;
        self.cache(which).depends = false;
        Ok(())
    }

    /// Writes all dirty entries.
    pub(super) fn write(&mut self, which: Which) -> Result<(), Errno> {
        for at in 0..self.cache(which).entries.len() {
            if self.cache(which).dirty == 0 {
                break;
            }
            self.write_entry(which, at)?;
        }
        Ok(())
    }

    /// Writes all dirty entries, and flushes the file.
    pub(super) fn flush(&mut self, which: Which) -> Result<(), Errno> {
        self.write(which)?;
        self.file.flush();
        Ok(())
    }

    /// Makes a cache depend on the other, which first settles what it depends on itself.
    pub(super) fn depend(&mut self, which: Which) -> Result<(), Errno> {
        if self.cache(which.other()).depends {
            self.settle(which.other())?;
        }
        self.cache(which).depends = true;
        Ok(())
    }
}
