//! Random edits of every scheme's table, against a model that knows only numbers and ranges.
//!
//! What the model forbids must be refused; what a GPT is asked for and the model allows must be
//! done. After every write the table is read again and is what was wanted; only bytes of the
//! table's own changed; taking the write back gives the bytes that were there; and taking back the
//! edits gives the table that was there.

use crate::crash::{Cut, every_state};
use crate::disk::{bytes, probe, written};
use std::collections::BTreeMap;
use std::ops::Range;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::{Patch, undo};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::mapping::partition::Partition;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::registry::SCHEMES;
use trueline_geom::table::scheme::{Id, New, Scheme, TableSite};
use trueline_geom::table::{Editor, Entry, Request, Rules, Table, Wanted};

const MIB: u64 = 1 << 20;
const LENGTH: u64 = 64 * MIB;
/// Types of which each scheme knows some.
const KINDS: [&str; 8] =
    ["freebsd", "linux", "swap", "efi", "freebsd-ufs", "freebsd-swap", "ntfs", "fat32"];

/// Marsaglia's xorshift64: a test that fails must fail again.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `n`.
    fn below(&mut self, n: u64) -> u64 {
        (self.draw() >> 16) % n.max(1)
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }

    fn guid(&mut self) -> Guid {
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&self.draw().to_le_bytes());
        guid[8..].copy_from_slice(&self.draw().to_le_bytes());
        Guid(guid)
    }
}

/// What the model knows: index, and first and last byte after it.
type Model = BTreeMap<u32, Range<u64>>;

fn model_of(table: &Table) -> Model {
    table.entries.iter().map(|e| (e.partition.index, e.partition.range())).collect()
}

/// One run of edits.
struct Run {
    scheme: &'static dyn Scheme,
    sector: u64,
    /// What the table above says this is.
    kind: Option<PartitionType>,
    random: Random,
    disk: Sparse,
    /// What was last read, or made.
    before: Table,
    editor: Editor,
    model: Model,
    /// The model before each edit since.
    past: Vec<Model>,
}

impl Run {
    fn new(scheme: &'static dyn Scheme, sector: u64, seed: u64) -> Run {
        let mut random = Random::new(seed);
        let mut disk = Sparse::new(LENGTH);
        // Data, whose loss would be seen.
        for at in (8 * sector..LENGTH - 64 * sector).step_by(usize::try_from(MIB / 2).unwrap()) {
            disk.put(at, &[0x5a; 64]);
        }
        let kind = (scheme.name() == "EBR").then_some(PartitionType::Mbr(0x05));
        let topology = Topology::new(sector, LENGTH);
        let ground = TableSite { topology: &topology, base: 0, kind };
        let new = New { random: random.guid().0, ..New::default() };
        let before = probe(&disk, sector, kind, |probe| scheme.create(probe, &ground, &new))
            .unwrap_or_else(|r| panic!("{}: {r}", scheme.name()));
        let editor = Editor::new(before.clone());
        Run {
            scheme,
            sector,
            kind,
            random,
            disk,
            model: model_of(&before),
            before,
            editor,
            past: Vec::new(),
        }
    }

    /// Whether nothing else lies there.
    fn is_free(&self, index: u32, range: &Range<u64>) -> bool {
        let (table, bounds) = (self.editor.table(), self.scheme.bounds(self.editor.table()));
        let others = self.model.iter().filter(|(n, _)| **n != index).map(|(_, r)| r);
        range.start < range.end
            && bounds.start <= range.start
            && range.end <= bounds.end
            && others.chain(&table.taken).all(|r| r.end <= range.start || range.end <= r.start)
    }

    fn step(&mut self) {
        let was = self.model.clone();
        let done = match self.random.below(8) {
            0..=3 => self.add(),
            4 => self.delete(),
            5 => self.modify(),
            6 => self.resize(),
            _ => self.mark(),
        };
        if done {
            self.past.push(was);
        }
        self.compare();
        if self.random.below(3) == 0 {
            self.commit();
        } else if self.random.below(6) == 0 {
            self.undo();
        }
    }

    /// Whether the table says what the model says.
    fn compare(&mut self) {
        let now = model_of(self.editor.table());
        if self.scheme.name() == "EBR" {
            // Numbered along the chain: one that comes or goes gives the others other numbers.
            let ranges = |model: &Model| {
                model.values().map(|r| (r.start, r.end)).collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(ranges(&now), ranges(&self.model));
            self.model = now;
        }
        assert_eq!(model_of(self.editor.table()), self.model, "{}", self.scheme.name());
    }

    fn add(&mut self) -> bool {
        let (sector, random) = (self.sector, &mut self.random);
        let sectors = LENGTH / sector;
        let said = random.below(3) > 0;
        let place = Request {
            start: said.then(|| random.below(sectors) * sector),
            size: (said || random.below(2) == 0).then(|| (1 + random.below(sectors / 6)) * sector),
            align: None,
        };
        let index = (random.below(3) == 0).then(|| u32::try_from(random.below(9)).unwrap());
        let kinds: Vec<PartitionType> =
            KINDS.iter().filter_map(|name| self.scheme.kind_in(&self.before, name)).collect();
        let label = (self.scheme.name() == "GPT" && random.below(2) == 0)
            .then(|| "ein Name"[..usize::try_from(random.below(8)).unwrap()].trim().to_string());
        let label = label.filter(|l| !l.is_empty());
        let wanted = Wanted {
            kind: random.pick(&kinds),
            place,
            index,
            label,
            uuid: self.scheme.has_guids().then(|| random.guid()),
            attributes: 0,
        };
        let kind = self.kind;
        let topology = Topology::new(sector, LENGTH);
        let ground = TableSite { topology: &topology, base: 0, kind };
        let added = self.editor.edit(|table| table.add(&ground, wanted, Rules::Aligned));
        let allowed = index.is_none_or(|n| {
            n > 0 && n <= self.editor.table().capacity && !self.model.contains_key(&n)
        });
        let range = place.start.zip(place.size).map(|(start, size)| start..start + size);
        let free = range.as_ref().is_none_or(|range| self.is_free(0, range));
        match &added {
            Ok(n) => {
                assert!(allowed && free, "added {n} at {range:?} among {:?}", self.model);
                let entry = self.editor.table().entry(*n).unwrap();
                let range = entry.partition.range();
                assert!(self.is_free(*n, &range), "{range:?} among {:?}", self.model);
                // Where numbers move, the model learns them from the table.
                let key = if self.model.contains_key(n) { u32::MAX } else { *n };
                self.model.insert(key, range);
            }
            Err(refusal) if range.is_some() && self.scheme.name() == "GPT" => {
                assert!(!allowed || !free, "{refusal}")
            }
            Err(_) => {}
        }
        added.is_ok()
    }

    fn delete(&mut self) -> bool {
        let index = u32::try_from(self.random.below(9)).unwrap();
        let deleted = self.editor.edit(|table| table.delete(index)).is_ok();
        assert_eq!(deleted, self.model.remove(&index).is_some());
        deleted
    }

    fn modify(&mut self) -> bool {
        let index = u32::try_from(self.random.below(9)).unwrap();
        let kinds: Vec<PartitionType> =
            KINDS.iter().filter_map(|name| self.scheme.kind_in(&self.before, name)).collect();
        let (scheme, kind) = (self.scheme, self.random.pick(&kinds));
        let label = (scheme.name() == "GPT").then(|| format!("{index} \u{df}"));
        let modified = self.editor.edit(|table| table.modify(index, Some(kind), label)).is_ok();
        let allowed = self.model.contains_key(&index);
        // A label's flavour may have no number for a type.
        assert!(modified == allowed || allowed && scheme.name() != "GPT");
        modified
    }

    fn resize(&mut self) -> bool {
        let index = u32::try_from(self.random.below(9)).unwrap();
        let size = (self.random.below(2) == 0)
            .then(|| (1 + self.random.below(LENGTH / self.sector / 4)) * self.sector);
        let place = Request { start: None, size, align: None };
        let scheme = self.scheme;
        let topology = Topology::new(self.sector, LENGTH);
        let ground = TableSite { topology: &topology, base: 0, kind: self.kind };
        let resized =
            self.editor.edit(|table| table.resize(&ground, index, &place, Rules::Aligned)).is_ok();
        let now = self.editor.table().entry(index).map(|e| e.partition.range());
        if resized {
            let now = now.unwrap();
            assert!(
                self.is_free(index, &now) && size.is_none_or(|size| now.end - now.start == size)
            );
            self.model.insert(index, now);
        } else if let (Some(size), Some(old), "GPT") = (size, self.model.get(&index), scheme.name())
        {
            assert!(!self.is_free(index, &(old.start..old.start + size)));
        }
        resized
    }

    fn mark(&mut self) -> bool {
        if self.scheme.attributes().is_empty() {
            return false;
        }
        let attribute = self.random.pick(self.scheme.attributes());
        let index = (!attribute.of_table).then(|| u32::try_from(self.random.below(9)).unwrap());
        let on = self.random.below(2) == 0;
        let marked = self.editor.edit(|table| table.mark(index, &attribute, on)).is_ok();
        if let (true, Some(index)) = (marked, index) {
            let bits = self.editor.table().entry(index).unwrap().attributes;
            assert_eq!(bits & attribute.bit != 0, on);
        }
        assert_eq!(marked, index.is_none_or(|index| self.model.contains_key(&index)));
        marked
    }

    /// Takes all edits since the last write back.
    fn undo(&mut self) {
        while let Some(model) = self.past.pop() {
            assert!(self.editor.undo());
            self.model = model;
            self.compare();
        }
        assert!(!self.editor.undo());
        assert_eq!(self.editor.table().entries, self.before.entries);
    }

    /// Writes, reads again, compares.
    fn commit(&mut self) {
        let after = self.editor.table().clone();
        let patches = self.scheme.render(&self.before, &after);
        self.only_its_own(&patches, &after);
        let made = written(&self.disk, &patches);
        let back = undo(&patches, &mut |at, buffer| self.disk.read_at(buffer, at)).unwrap();
        let undone = written(&made, &back);
        for patch in &patches {
            let length = patch.bytes.len() as u64;
            assert_eq!(
                bytes(&undone, patch.offset, length),
                bytes(&self.disk, patch.offset, length)
            );
        }
        if self.kind.is_none() && self.random.below(8) == 0 {
            every_state(&self.disk, &patches, self.sector, Cut::Sector);
        }
        let read = probe(&made, self.sector, self.kind, |probe| self.scheme.read(probe))
            .expect("the table that was written");
        assert!(read.damage.is_empty(), "{:?}", read.damage);
        assert_eq!(
            shape(&read),
            shape(&after),
            "{} of {}-byte sectors",
            self.scheme.name(),
            self.sector
        );
        assert!(
            self.scheme.render(&read, &read).iter().all(|p| bytes(
                &made,
                p.offset,
                p.bytes.len() as u64
            ) == p.bytes),
            "a second time"
        );
        (self.disk, self.model, self.past) = (made, model_of(&read), Vec::new());
        (self.before, self.editor) = (read.clone(), Editor::new(read));
    }

    /// True if `patches` change nothing that is a partition's or free.
    fn only_its_own(&self, patches: &[Patch], after: &Table) {
        let leads = |table: &Table| {
            table
                .entries
                .iter()
                .map(|e| e.partition.start.saturating_sub(table.lead)..e.partition.start)
                .collect::<Vec<_>>()
        };
        let bounds = self.scheme.bounds(after);
        let mut own =
            [leads(&self.before), leads(after), self.before.taken.clone(), after.taken.clone()]
                .concat();
        own.extend([0..bounds.start, bounds.end..LENGTH]);
        if self.kind.is_some() {
            // The chain begins here, whatever comes first in it.
            own.push(0..self.sector);
        }
        if self.scheme.name() == "BSD" {
            // The label lies in the boot area, which its first partition may take in.
            own.push(0..8192);
        }
        for patch in patches {
            let now = bytes(&self.disk, patch.offset, patch.bytes.len() as u64);
            for (at, _) in
                (patch.offset..).zip(now.iter().zip(&patch.bytes)).filter(|(_, (a, b))| a != b)
            {
                assert!(
                    own.iter().any(|range| range.contains(&at)),
                    "{} changes byte {at}",
                    patch.what
                );
            }
        }
    }
}

/// What is compared: an EBR numbers its partitions along the chain, and not every scheme has GUIDs.
fn shape(table: &Table) -> (Vec<Entry>, Range<u64>, u64, u32, Option<Id>) {
    let entry = |e: &&Entry| Entry {
        partition: Partition {
            index: if table.scheme.name() == "EBR" { 0 } else { e.partition.index },
            guid: e.partition.guid.filter(|_| table.scheme.name() == "GPT"),
            ..e.partition.clone()
        },
        from: None,
        ..(*e).clone()
    };
    (
        table.by_start().iter().map(entry).collect(),
        table.usable.clone(),
        table.attributes,
        table.capacity,
        table.id,
    )
}

#[test]
fn random_edits_do_what_they_say() {
    for scheme in SCHEMES {
        for sector in [512, 4096] {
            for seed in 1..=40 {
                let mut run = Run::new(*scheme, sector, seed);
                (0..40).for_each(|_| run.step());
                run.commit();
                run.undo();
            }
        }
    }
}
