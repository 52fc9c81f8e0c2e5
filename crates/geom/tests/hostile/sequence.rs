//! Edit after edit of whatever table is on a disk, and what every write of them must hold.
//!
//! The edits come from a source of numbers: random ones in the test beside this file, the input of
//! a fuzz target.

use crate::edits::written;
use crate::invariants::Subject;
use std::ops::Range;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::{Patch, changes, undo};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Source, Topology, Trust, Why};
use trueline_geom::class::Taste;
use trueline_geom::mapping::partition::Partition;
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::{Dialect, PartitionType};
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry::{CLASSES, SCHEMES};
use trueline_geom::table::scheme::{Geometry, New, Scheme, TableSite};
use trueline_geom::table::{Editor, Entry, Refusal, Request, Rules, Table, Wanted};

/// Edits between one write and the next, at most.
const EDITS: u64 = 8;
/// Patches of one write: one for every link of the longest chain, and its front.
const PATCHES: usize = 300;
/// Bytes of one write: twice the largest GPT, and the sectors beside its tables.
const BYTES: usize = 4 << 20;
/// Types of which each scheme knows some.
const KINDS: [&str; 12] = [
    "freebsd",
    "linux-data",
    "efi",
    "freebsd-ufs",
    "freebsd-swap",
    "ebr",
    "extended",
    "!0",
    "!7",
    "!255",
    "openbsd-ffs",
    "linux-swap",
];
/// Labels of every sort, some too long, some that no table can hold.
const LABELS: [&str; 6] = [
    "",
    "data",
    "Stra\u{df}e \u{1f4be}",
    "a\nb",
    "\u{202e}]x[",
    "0123456789012345678901234567890123456789",
];

/// Numbers below those asked for; 0 once there are no more.
pub type Numbers<'a> = dyn FnMut(u64) -> u64 + 'a;

/// Reads, or makes, a table of every scheme and edits it as `numbers` say.
pub fn sequences_hold(subject: &Subject, numbers: &mut Numbers<'_>) {
    for scheme in SCHEMES {
        let mut topology = Topology::new(subject.sector, subject.disk.length());
        if let Some(grain) = subject.physical {
            topology.facts = vec![Fact {
                grain,
                why: Why::Physical,
                source: Source::User,
                trust: Trust::Trusted,
            }];
        }
        let kind = (scheme.name() == "EBR").then_some(PartitionType::Mbr(5));
        let ground = TableSite { topology: &topology, base: number(subject, numbers) & !511, kind };
        let mut disk = Bench { scheme: *scheme, subject: subject.clone(), ground };
        for _ in 0..=numbers(3) {
            disk.round(numbers);
        }
    }
}

/// A size or place: a few sectors from either end, or anything.
fn number(subject: &Subject, numbers: &mut Numbers<'_>) -> u64 {
    let (sector, length) = (subject.sector, subject.disk.length());
    match numbers(8) {
        0 => numbers(1 << 16),
        1 => length.wrapping_sub(numbers(128).wrapping_mul(sector)),
        2 => u64::MAX.wrapping_shl(u32::try_from(numbers(64)).unwrap_or(0)),
        3 => numbers(length),
        4 => numbers(64) << 20,
        5 => numbers(u64::from(u32::MAX)).wrapping_mul(sector),
        _ => numbers(4096).wrapping_mul(sector),
    }
}

/// A disk on which one scheme's table is edited.
struct Bench<'a> {
    scheme: &'static dyn Scheme,
    subject: Subject,
    ground: TableSite<'a>,
}

impl Bench<'_> {
    fn probe<T>(&self, disk: &Sparse, look: impl FnOnce(&Probe<'_>) -> T) -> T {
        let (route, stores) =
            (Route::store(0, disk.length()), [Box::new(disk.clone()) as Box<dyn Store>]);
        look(&Probe::new(
            &route,
            &stores,
            &Budget::new(Limits::default()),
            self.subject.sector,
            Some(0),
            self.ground.kind.as_ref(),
        ))
    }

    fn read(&self, disk: &Sparse) -> Option<Table> {
        self.probe(disk, |probe| self.scheme.read(probe))
    }

    /// Some edits, and one write of them.
    fn round(&mut self, numbers: &mut Numbers<'_>) {
        let there = self.read(&self.subject.disk);
        let is_new = there.is_none();
        let before = match there {
            Some(table) => table,
            None => match self.create(numbers) {
                Ok(table) => table,
                Err(_) => return,
            },
        };
        assert!(
            before.entries.len() <= 4096 && before.kept.len() <= 4096,
            "{} entries",
            before.entries.len()
        );
        let mut editor = Editor::new(before.clone());
        if !before.damage.is_empty() {
            match self.scheme.recover(&before, &self.ground) {
                Ok(whole) => editor = Editor::new(Table { damage: Vec::new(), ..whole }),
                Err(_) => return,
            }
        }
        for _ in 0..numbers(EDITS) {
            let was = editor.table().clone();
            if self.edit(&mut editor, numbers).is_err() {
                assert_eq!(self.shape(editor.table()), self.shape(&was), "a refused edit");
            }
            self.apart(editor.table());
        }
        let after = editor.table().clone();
        let patches = self.scheme.render(&before, &after);
        assert!(patches.len() <= PATCHES, "{} patches", patches.len());
        assert!(patches.iter().map(|p| p.bytes.len()).sum::<usize>() <= BYTES, "patches too large");
        let now = written(&self.subject, &patches);
        self.taken_back(&patches, &now);
        match self.read(&now) {
            Some(again) => {
                assert!(
                    again.damage.is_empty(),
                    "{}: {:?}, before {:?}",
                    self.scheme.name(),
                    again.damage,
                    before.damage
                );
                assert_eq!(self.shape(&again), self.shape(&after), "{}", self.scheme.name());
                let more = changes(self.scheme.render(&again, &again), &mut |at, buffer| {
                    now.read_at(buffer, at)
                });
                assert_eq!(
                    more.map(|more| more.len()),
                    Ok(0),
                    "the same table is written differently the second time"
                );
            }
            // An MBR without partitions may be any boot sector.
            None => assert!(after.entries.is_empty(), "{} is gone", self.scheme.name()),
        }
        self.old_or_new(&patches, &now, is_new, numbers);
        self.subject.disk = now;
    }

    fn create(&self, numbers: &mut Numbers<'_>) -> Result<Table, Refusal> {
        let entries =
            [None, Some(0), Some(4), Some(20), Some(22), Some(128), Some(4096), Some(u32::MAX)];
        let dialects =
            [None, Some(Dialect::FreeBsd), Some(Dialect::OpenBsd), Some(Dialect::NetBsd)];
        let usable = (numbers(8) == 0)
            .then(|| (number(&self.subject, numbers), number(&self.subject, numbers)));
        let new = New {
            entries: pick(&entries, numbers),
            dialect: pick(&dialects, numbers),
            random: [0x5a; 16],
            geometry: (numbers(4) == 0)
                .then(|| Geometry::derive(self.subject.disk.length(), self.subject.sector)),
            medium: (numbers(4) == 0).then(|| number(&self.subject, numbers)),
            rules: pick(&[Rules::Aligned, Rules::Gpart, Rules::Gpart9], numbers),
            usable,
            ..New::default()
        };
        self.probe(&self.subject.disk, |probe| self.scheme.create(probe, &self.ground, &new))
    }

    fn edit(&self, editor: &mut Editor, numbers: &mut Numbers<'_>) -> Result<(), Refusal> {
        let (scheme, ground) = (self.scheme, &self.ground);
        let table = editor.table();
        // Most often an index that is there.
        let there =
            table.entries.get(usize::try_from(numbers(8)).unwrap_or(0)).map(|e| e.partition.index);
        let index = there.unwrap_or_else(|| u32::try_from(numbers(300)).unwrap_or(0));
        let kind = pick(&KINDS, numbers);
        let kind = scheme.kind_in(table, kind);
        let place = self.place(table, numbers);
        let rules = pick(&[Rules::Aligned, Rules::Aligned, Rules::Gpart, Rules::Gpart9], numbers);
        let label = (numbers(3) == 0).then(|| pick(&LABELS, numbers).to_string());
        match (numbers(8), kind) {
            (0 | 1, Some(kind)) => {
                let uuid = scheme.has_guids().then_some(Guid([7; 16]));
                let index = (numbers(3) == 0).then_some(index);
                let wanted = Wanted { kind, place, index, label, uuid, attributes: 0 };
                editor.edit(|table| table.add(ground, wanted, rules)).map(|_| ())
            }
            (2, _) => editor.edit(|table| table.delete(index)).map(|_| ()),
            (3, kind) => editor.edit(|table| table.modify(index, kind, label)),
            (4 | 5, _) => editor.edit(|table| table.resize(ground, index, &place, rules)),
            (6, _) if !scheme.attributes().is_empty() => {
                let attribute = pick(scheme.attributes(), numbers);
                let index = (numbers(4) > 0).then_some(index);
                let on = numbers(2) == 0;
                editor.edit(|table| table.mark(index, &attribute, on))
            }
            _ => {
                editor.undo();
                Ok(())
            }
        }
    }

    fn place(&self, table: &Table, numbers: &mut Numbers<'_>) -> Request {
        let some = |numbers: &mut Numbers<'_>| match numbers(4) {
            0 => None,
            // In or beside what is free.
            1 => {
                let free = table.free();
                let hole =
                    free.get(usize::try_from(numbers(4)).unwrap_or(0)).cloned().unwrap_or_default();
                Some(pick(&[hole.start, hole.end, hole.end.wrapping_sub(hole.start)], numbers))
            }
            _ => Some(number(&self.subject, numbers)),
        };
        Request {
            start: some(numbers),
            size: some(numbers),
            align: (numbers(4) == 0).then(|| some(numbers)).flatten(),
        }
    }

    /// Whether no partition that an edit placed leaves its place or lies on another.
    fn apart(&self, table: &Table) {
        let mut placed: Vec<Range<u64>> = table
            .entries
            .iter()
            .filter(|e| e.from.is_none())
            .map(|e| e.partition.range())
            .collect();
        let bounds = self.scheme.bounds(table);
        placed.sort_by_key(|r| r.start);
        assert!(
            placed
                .iter()
                .all(|r| r.start < r.end && bounds.start <= r.start && r.end <= bounds.end),
            "{placed:?} in {bounds:?}"
        );
        assert!(placed.windows(2).all(|two| two[0].end <= two[1].start), "{placed:?}");
        for entry in table.entries.iter().filter(|e| e.from.is_some()) {
            assert!(
                placed
                    .iter()
                    .all(|r| r.end <= entry.partition.start || entry.partition.end() <= r.start),
                "{placed:?} on {entry:?}"
            );
        }
    }

    /// Whether undoing the patches gives the bytes that were there.
    fn taken_back(&self, patches: &[Patch], now: &Sparse) {
        let Ok(back) = undo(patches, &mut |at, buffer| self.subject.disk.read_at(buffer, at))
        else {
            panic!("what was written can be read")
        };
        let undone = written(&Subject { disk: now.clone(), ..self.subject.clone() }, &back);
        for patch in patches {
            let bytes = |disk: &Sparse| {
                let mut bytes = vec![0; patch.bytes.len()];
                disk.read_at(&mut bytes, patch.offset).map(|()| bytes)
            };
            assert_eq!(bytes(&undone), bytes(&self.subject.disk), "{} undone", patch.what);
        }
    }

    /// Whether after every patch, and with one of them cut at a sector, tasting finds what was
    /// there before or what comes of it. Where an extended partition comes into the place of
    /// another one, the entries that stay are found alone for a time (decision 0031).
    fn old_or_new(&self, patches: &[Patch], now: &Sparse, is_new: bool, numbers: &mut Numbers<'_>) {
        let (old, new) = (self.tasted(&self.subject.disk), self.tasted(now));
        let is_twice = patches.iter().any(|patch| patch.what == "MBR without what is deleted");
        let kept: Vec<_> = old.iter().filter(|entry| new.contains(entry)).cloned().collect();
        let may_be = |seen: &Vec<_>| *seen == old || *seen == new || is_twice && *seen == kept;
        let torn = usize::try_from(numbers(patches.len() as u64)).unwrap_or(0);
        let mut state = self.subject.disk.clone();
        for (nth, patch) in patches.iter().enumerate() {
            if nth == torn {
                let sectors = patch.bytes.len() as u64 / self.subject.sector;
                let cut = usize::try_from(numbers(sectors) * self.subject.sector).unwrap_or(0);
                let mut half = state.clone();
                half.put(patch.offset, &patch.bytes[..cut]);
                let seen = self.tasted(&half);
                assert!(
                    may_be(&seen),
                    "{cut} bytes of {}: {seen:?}, before {old:?}, after {new:?}, new: {is_new}",
                    patch.what
                );
            }
            state.put(patch.offset, &patch.bytes);
            let seen = self.tasted(&state);
            assert!(
                may_be(&seen),
                "after {}: {seen:?}, before {old:?}, after {new:?}, new: {is_new}",
                patch.what
            );
        }
    }

    /// What is compared: an EBR numbers its partitions along the chain, and only a GPT holds GUIDs
    /// and a usable range.
    fn shape(&self, table: &Table) -> (Vec<Entry>, Option<Range<u64>>, u64, u32) {
        let entry = |e: &&Entry| Entry {
            partition: Partition {
                index: if table.scheme.name() == "EBR" { 0 } else { e.partition.index },
                guid: e.partition.guid.filter(|_| self.scheme.has_guids()),
                label: e.partition.label.clone().filter(|label| !label.is_empty()),
                ..e.partition.clone()
            },
            from: None,
            ..(*e).clone()
        };
        let usable = Some(table.usable.clone()).filter(|_| self.scheme.keeps_usable());
        (table.by_start().iter().map(entry).collect(), usable, table.attributes, table.capacity)
    }

    /// What the class of this scheme offers.
    fn tasted(&self, disk: &Sparse) -> Vec<(String, u64, Option<u64>)> {
        let class = CLASSES.iter().find(|c| {
            c.name().eq_ignore_ascii_case(self.scheme.name())
                || self.ground.kind.is_some() && c.name() == "mbr"
        });
        let taste = class.map(|class| self.probe(disk, |probe| class.taste(probe)));
        match taste {
            Some(Taste::Geom(geom, _)) => geom
                .providers()
                .into_iter()
                .enumerate()
                .map(|(slot, p)| (p.name, p.length, geom.shift(slot)))
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn pick<T: Copy>(all: &[T], numbers: &mut Numbers<'_>) -> T {
    all[usize::try_from(numbers(all.len() as u64)).unwrap_or(0)]
}
