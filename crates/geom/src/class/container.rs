//! Contents of a container: a disk as a guest sees it, whose blocks lie in a file by a table.
//!
//! A format says where one block is ([`BlockTable`]); runs, zeros, parents and boundaries are the
//! same for all of them.

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::{Topology, Translation};
use crate::format::FormatKind;
use crate::mapping::geom::{Extent, Geom, Op, Packed, Slot};
use crate::mapping::tables::{MOST_FETCHES, PAGE, Page, PageCache, Tables};
use crate::probe::Probe;
use std::sync::Arc;

/// Consumer that is the file of the container.
pub(super) const FILE: usize = 0;
/// Consumer that has what is not in the file: what a backing file or a parent shows.
pub(super) const PARENT: usize = 1;

/// A format whose file shows one disk. Whatever else a class says of it follows from that.
pub(super) trait Container: Sync {
    /// The kind of its sign, whose name it has as a class.
    const KIND: FormatKind;

    /// The contents, as [`Class::taste`] finds them.
    fn look(&self, probe: &Probe<'_>) -> Taste;
}

impl<T: Container> Class for T {
    fn name(&self) -> &'static str {
        T::KIND.name
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        self.look(probe)
    }

    fn sign(&self) -> Option<FormatKind> {
        Some(T::KIND)
    }

    fn shows_a_disk(&self) -> bool {
        true
    }
}

/// Place of a block of a guest's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// First byte of the block in the file.
    At(u64),
    /// The block as it is stored compressed, and the byte in it at which the table's block begins.
    Packed(Packed, u64),
    /// A block of zeros without a place.
    Zero,
    /// No place in the file: the parent has it, or it is zero.
    Absent,
    /// An entry that cannot be true.
    Broken,
}

/// Table of a container's blocks.
pub trait BlockTable: Clone + Send + Sync + 'static {
    /// Size of a block in bytes; at least 1.
    fn block(&self) -> u64;

    /// Place of block `nth`, by the pages of the table that are here.
    ///
    /// Errors: the answer instead of one, of a run of `length` bytes.
    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent>;
}

/// Reason, in a few words, for which the places that a header leads to are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotFollowed(pub(super) &'static str);

/// Contents of blocks that are not in a container's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// None: such a block is zero.
    None,
    /// One that is not here: such a block cannot be read.
    Missing,
    /// One of so many bytes, as consumer 1, with zeros behind its end.
    Here(u64),
}

/// File in which the blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// That of the tables, of so many bytes.
    File(u64),
    /// Another one that is not here.
    Missing,
    /// Another one of so many bytes, as the last consumer.
    Here(u64),
}

/// Runs of blocks that are looked at of a table, evenly apart.
const RUNS: u64 = 32;
/// Such runs where each page is a round trip to a server.
const FAR_RUNS: u64 = 4;
/// Blocks of such a run.
const RUN: u64 = 512;
/// Pages that are read of a table that is looked at: 512 KiB.
const MOST_PAGES: usize = 128;

/// Guest offset and file offset in bytes of blocks that are in the file, of `length` bytes of a
/// guest: of all blocks, or of [`RUNS`] runs of them where there are more.
pub(super) fn looked_at(
    table: &impl BlockTable,
    length: u64,
    probe: &Probe<'_>,
) -> Vec<(u64, u64)> {
    let (block, cache) = (table.block(), PageCache::new());
    let (mut found, mut pages_left) = (Vec::new(), MOST_PAGES);
    let count = length.div_ceil(block);
    let runs = if probe.is_far() { FAR_RUNS } else { RUNS };
    let apart = (count / runs).max(RUN);
    'runs: for run in 0..count.div_ceil(apart) {
        for nth in run * apart..count.min(run * apart + RUN) {
            let mut here = Vec::new();
            let place = loop {
                match table.find(nth, 1, &Tables::new(&cache, &here)) {
                    Err(Extent::Fetch { page, .. }) => {
                        if pages_left == 0 || here.len() > MOST_FETCHES {
                            return found;
                        }
                        pages_left -= 1;
                        let rest = probe.length().saturating_sub(page).min(PAGE);
                        let mut bytes = vec![0; usize::try_from(rest).unwrap_or_default()];
                        // A page that fails takes its run with it, not those behind.
                        if rest > 0 && probe.map(page, &mut bytes).is_err() {
                            continue 'runs;
                        }
                        let page = Page { key: (FILE, page), bytes: bytes.into() };
                        cache.keep(page.clone());
                        here.push(page);
                    }
                    Ok(Place::At(at)) if at < probe.length() => break Some(at),
                    _ => break None,
                }
            };
            found.extend(place.map(|at| (nth.saturating_mul(block), at)));
        }
    }
    found
}

/// Contents of a container, as a geom over its file.
#[derive(Clone)]
pub struct Contents<T> {
    /// Table of its blocks.
    pub table: T,
    /// Size of the guest's disk in bytes.
    pub length: u64,
    /// File in which the blocks lie.
    pub home: Home,
    /// Contents of blocks that have no place.
    pub parent: Parent,
    /// Sector of the guest's disk in bytes, where the container names one.
    pub sector: Option<u64>,
    /// Places of blocks, as far as they are known.
    pub translation: Translation,
}

impl<T: BlockTable> Contents<T> {
    /// The bytes of the run that begins in block `nth` and has `place`, as far as the blocks behind
    /// it go on there: at most up to `end`, a byte of the guest.
    fn joined(&self, mut nth: u64, place: Place, end: u64, tables: &Tables<'_>) -> u64 {
        let block = self.table.block();
        let first = nth;
        loop {
            let next = nth.saturating_add(1).saturating_mul(block);
            if next >= end {
                return end;
            }
            nth += 1;
            let wanted = match place {
                Place::At(at) => (nth - first)
                    .checked_mul(block)
                    .and_then(|bytes| at.checked_add(bytes))
                    .map_or(Place::Broken, Place::At),
                other => other,
            };
            // A compressed block is read by itself; a page that is not here is asked for later.
            let joins = !matches!(place, Place::Packed(..))
                && self.table.find(nth, end - next, tables) == Ok(wanted);
            if !joins {
                return next;
            }
        }
    }
}

impl<T> Contents<T> {
    /// The consumer that has the blocks, and its length in bytes; `None` if it is not here.
    fn home(&self) -> Option<(usize, u64)> {
        match self.home {
            Home::File(length) => Some((FILE, length)),
            Home::Missing => None,
            Home::Here(length) if self.parent == Parent::None => Some((PARENT, length)),
            Home::Here(length) => Some((PARENT + 1, length)),
        }
    }

    /// The place of `length` bytes at `at` in the file that has the blocks.
    fn at(&self, at: Option<u64>, length: u64) -> Extent {
        let here = at.zip(self.home());
        match here.and_then(|(at, (consumer, end))| Some((consumer, at, end.checked_sub(at)?))) {
            // A file that was cut: what is left of the block is there.
            Some((consumer, offset, left @ 1..)) => {
                Extent::At { consumer, offset, length: length.min(left) }
            }
            _ => Extent::Fail { length },
        }
    }

    /// The place of `length` bytes at `offset` that are not in the file.
    fn absent(&self, offset: u64, length: u64) -> Extent {
        match self.parent {
            Parent::None => Extent::Zero { length },
            Parent::Missing => Extent::Fail { length },
            Parent::Here(end) => match end.checked_sub(offset).filter(|&left| left > 0) {
                Some(left) => Extent::At { consumer: PARENT, offset, length: length.min(left) },
                None => Extent::Zero { length },
            },
        }
    }
}

impl<T: BlockTable> Geom for Contents<T> {
    fn providers(&self) -> Vec<Slot> {
        // A graph names the contents of every container alike.
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        let file = self.home().and_then(|(consumer, _)| below.get(consumer));
        let Some(file) = file else { return Topology::new(1, self.length) };
        let mut top = file.translated(&self.translation, self.length);
        if let (Parent::Here(_), Some(parent)) = (self.parent, below.get(PARENT)) {
            // Any block may be in either of them, and all of it: a first write copies the rest, or
            // is of whole units already.
            let whole = Translation::by_format(self.translation.allocation, 0);
            let parent = parent.translated(&whole, self.length);
            top = Topology::mirror(&[top, parent], self.length).without_clashing();
        }
        Topology { sector: self.sector.unwrap_or(file.sector), ..top }
    }

    fn map(&self, slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        self.map_by(slot, offset, length, op, &Tables::NONE)
    }

    fn map_by(
        &self,
        _slot: usize,
        offset: u64,
        length: u64,
        op: Op,
        tables: &Tables<'_>,
    ) -> Extent {
        if op == Op::Write {
            return Extent::ReadOnly { length };
        }
        let block = self.table.block();
        let nth = offset / block;
        let place = match self.table.find(nth, length, tables) {
            Ok(place) => place,
            Err(answer) => return answer,
        };
        let within = offset % block;
        let length = self.joined(nth, place, offset.saturating_add(length), tables) - offset;
        match place {
            Place::At(at) => self.at(at.checked_add(within), length),
            Place::Packed(packed, first) => Extent::Packed {
                consumer: FILE,
                block: packed,
                within: first.saturating_add(within),
                length,
            },
            Place::Zero => Extent::Zero { length },
            Place::Absent => self.absent(offset, length),
            Place::Broken => Extent::Fail { length },
        }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        Some("the contents of a container are read, not written")
    }

    fn over(&self, lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        let (mut lengths, mut contents) = (lengths.iter().copied(), self.clone());
        if self.parent != Parent::None {
            contents.parent = Parent::Here(lengths.next()?);
        }
        if !matches!(self.home, Home::File(_)) {
            contents.home = Home::Here(lengths.next()?);
        }
        Some(Arc::new(contents))
    }

    fn over_parent(&self, length: u64) -> Option<Arc<dyn Geom>> {
        Some(Arc::new(Contents { parent: Parent::Here(length), ..self.clone() }))
    }

    fn translation(&self) -> Option<&Translation> {
        Some(&self.translation)
    }
}

/// The name of a parent as a file of Windows or ESX has it, for a directory here: separators are
/// slashes, and of a path that is none below the file the last part is left. The identity tells if
/// that is the parent.
pub(super) fn from_somewhere(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(&path);
    let is_absolute = path.starts_with('/') || path.contains(':');
    let last = path.rsplit('/').next().filter(|_| is_absolute);
    last.unwrap_or(path).to_string()
}

/// The finding about a container of `kind` whose parent, as the file names it, is not here.
pub(super) fn without_parent(kind: FormatKind, parent: &str) -> Finding {
    let message = format!(
        "{kind}: its parent ({parent}) is not here: what this file does not have of the disk cannot be read"
    );
    Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message)
        .fix("merge it into a copy of its parent, with the tool that made it")
}

#[cfg(test)]
pub(super) mod tests {
    use crate::base::error::Errno;
    use crate::base::store::Sparse;
    use crate::base::topology::Topology;
    use crate::format::tests::disk;
    use crate::graph::{Disk, Graph, Id};
    use crate::probe::Limits;

    /// Most bytes that tasting may read of one container.
    const MOST_READ: u64 = 2 << 20;

    /// The graph of a file, and the disk in it if there is one.
    pub(in super::super) fn opened(file: Sparse) -> (Graph, Option<Id>) {
        use crate::base::store::Store;
        let topology = Topology::new(512, file.length());
        let graph = Graph::taste(vec![Disk::new("", Box::new(file), topology)], Limits::default());
        assert!(graph.bytes_read() <= MOST_READ, "{} bytes read", graph.bytes_read());
        let contents = graph.find(".disk");
        (graph, contents)
    }

    /// The graph of a file that calls the file `parent` by `name`, and the disk in it.
    pub(in super::super) fn opened_on(
        file: Sparse,
        name: &str,
        parent: Sparse,
    ) -> (Graph, Option<Id>) {
        opened_among(vec![("", file, vec![(name, 1)]), ("parent", parent, vec![])])
    }

    /// A file: its name, its bytes, and the names in it with the numbers of what they lead to.
    pub(in super::super) type File<'a> = (&'a str, Sparse, Vec<(&'a str, usize)>);

    /// The graph of files with names, and what each calls others, by their numbers; and the disk in
    /// the first, which has no name.
    pub(in super::super) fn opened_among(files: Vec<File<'_>>) -> (Graph, Option<Id>) {
        use crate::base::store::Store;
        let disk = |(name, file, others): File<'_>| {
            let topology = Topology::new(512, file.length());
            let references = others.into_iter().map(|(name, at)| (name.into(), at)).collect();
            Disk { references, ..Disk::new(name, Box::new(file), topology) }
        };
        let graph = Graph::taste(files.into_iter().map(disk).collect(), Limits::default());
        let contents = graph.find(".disk");
        (graph, contents)
    }

    /// Rules of the findings about the file.
    pub(in super::super) fn findings((graph, _): &(Graph, Option<Id>)) -> Vec<&'static str> {
        graph.providers[0].findings.iter().map(|finding| finding.rule.id).collect()
    }

    /// A path of Windows becomes one that is followed, or refused, as paths here are.
    #[test]
    fn paths_of_windows_are_names() {
        for (path, name) in [
            (".\\base.vhd", "base.vhd"),
            ("base.vhd", "base.vhd"),
            ("below\\base.vhd", "below/base.vhd"),
            ("..\\base.vhd", "../base.vhd"),
            ("C:\\images\\base.vhd", "base.vhd"),
            ("\\\\server\\share\\base.vhd", "base.vhd"),
            ("\\\\?\\Volume{1}\\base.vhd", "base.vhd"),
            ("", ""),
        ] {
            assert_eq!(super::from_somewhere(path), name, "{path}");
        }
    }

    /// The reason for which the contents of the file are not followed; `None` where they are.
    pub(in super::super) fn reason(file: Sparse) -> Option<&'static str> {
        let (graph, contents) = opened(file);
        let sign = graph.providers[0].signs.first().expect("a sign");
        match sign.inside {
            crate::format::Inside::Unknown(reason) => Some(reason).filter(|_| contents.is_none()),
            _ => contents.map(|_| None).expect("a disk in it"),
        }
    }

    /// The bytes at `offset` of the disk in the file.
    pub(in super::super) fn read(
        (graph, contents): &(Graph, Option<Id>),
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        graph.read_at(contents.expect("a disk in it"), &mut bytes, offset)?;
        Ok(bytes)
    }

    /// Opens files that begin with `image`, each word of `words` as small and as large as it can
    /// be, whole and cut short, and reads the disk in them at both ends.
    pub(in super::super) fn survives(image: &[u8], words: std::ops::Range<usize>) {
        for at in words.step_by(4) {
            for number in [0_u32, 1, 0x0101_0101, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
                let mut hostile = image.to_vec();
                hostile[at..at + 4].copy_from_slice(&number.to_be_bytes());
                for length in [image.len() as u64, 1 << 40, at as u64 + 4] {
                    let there = usize::try_from(length).map_or(image.len(), |n| n.min(image.len()));
                    let file = disk(length, &[(0, &hostile[..there])]);
                    let (graph, contents) = opened(file);
                    let Some(id) = contents else { continue };
                    let length = graph.providers[id].topology.length;
                    for offset in [0, length / 2, length.saturating_sub(512)] {
                        let size = 4096.min(length - offset);
                        let mut bytes = vec![0; usize::try_from(size).expect("a small number")];
                        let _ = graph.read_at(id, &mut bytes, offset);
                    }
                }
            }
        }
    }
}
