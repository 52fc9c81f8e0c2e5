//! BSD labels: long random edits against a plain list of ranges, every state re-read, and all of it
//! taken back.

use crate::crash::{Cut, every_state};
use crate::disk::{create, found, on, read, written};
use std::collections::BTreeMap;
use trueline_geom::base::patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::class::bsd::Bsd;
use trueline_geom::mapping::slices::{Dialect, PartitionType};
use trueline_geom::table::scheme::{New, Scheme};
use trueline_geom::table::{Request, Rules, Table, Wanted};

const MIB: u64 = 1 << 20;
const LENGTH: u64 = 64 * MIB;

/// Index → first byte, bytes, type.
type Model = BTreeMap<u32, (u64, u64, u8)>;

fn model(table: &Table) -> Model {
    let byte = |kind| if let PartitionType::Bsd(_, byte) = kind { byte } else { 0 };
    table
        .entries
        .iter()
        .map(|e| {
            (e.partition.index, (e.partition.start, e.partition.length, byte(e.partition.kind)))
        })
        .collect()
}

/// Numbers that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// One edit of both; whether it was made. The model decides by brute force.
fn edit(
    random: &mut Random,
    disk: &Sparse,
    table: &mut Table,
    model: &mut Model,
    reserved: &[u32],
) -> bool {
    let sector = table.sector;
    let dialect = table.dialect.unwrap();
    let whole = |n: u64| n / sector * sector;
    let clashes = |model: &Model, index: u32, start: u64, length: u64| {
        let other =
            model.iter().any(|(i, (s, l, _))| *i != index && start < s + l && *s < start + length);
        other || length == 0 || start + length > LENGTH
    };
    let index = u32::try_from(random.below(18)).unwrap();
    let (start, length) = (whole(random.below(LENGTH)), whole(random.below(6 * MIB)));
    // All of these leave the boot area alone.
    let byte = [1, 7, 9, 12][usize::try_from(random.below(4)).unwrap()];
    let known = model.get(&index).copied();
    let (done, expected) = match random.below(4) {
        0 | 1 => {
            let place = Request { start: Some(start), size: Some(length), align: None };
            let (kind, index) = (PartitionType::Bsd(dialect, byte), Some(index));
            let wanted = Wanted { kind, place, index, label: None, uuid: None, attributes: 0 };
            let done = on(disk, sector, |ground| table.add(ground, wanted, Rules::Aligned));
            let index = index.unwrap();
            let free = (1..=table.capacity).contains(&index)
                && !reserved.contains(&index)
                && known.is_none();
            let good = free && !clashes(model, index, start, length);
            if good {
                model.insert(index, (start, length, byte));
            }
            (done.is_ok(), good)
        }
        2 => (table.delete(index).is_ok(), model.remove(&index).is_some()),
        _ if random.below(2) == 0 => {
            let good = known.is_some();
            model.entry(index).and_modify(|e| e.2 = byte);
            (table.modify(index, Some(PartitionType::Bsd(dialect, byte)), None).is_ok(), good)
        }
        _ => {
            let place = Request { size: Some(length), ..Request::default() };
            let done =
                on(disk, sector, |ground| table.resize(ground, index, &place, Rules::Aligned));
            let good = known.is_some_and(|(start, ..)| !clashes(model, index, start, length));
            if good {
                model.entry(index).and_modify(|e| e.1 = length);
            }
            (done.is_ok(), good)
        }
    };
    assert_eq!(done, expected, "{dialect:?} {index} {start} {length} {model:?}");
    done
}

#[test]
fn random_edits_are_what_the_model_says_and_can_be_taken_back() {
    for dialect in [Dialect::FreeBsd, Dialect::OpenBsd, Dialect::NetBsd] {
        for sector in [512, 4096] {
            let mut disk = Sparse::new(LENGTH);
            disk.put(0, &[0x33; 65536]);
            let first = disk.clone();
            let table =
                create(&Bsd, &disk, sector, &New { dialect: Some(dialect), ..New::default() })
                    .unwrap();
            let reserved: &[u32] = if dialect == Dialect::NetBsd { &[3, 4] } else { &[3] };
            let (mut before, mut after, mut model) = (table.clone(), table.clone(), Model::new());
            let (mut random, mut undo, mut made) = (Random(sector + 17), Vec::new(), 0);
            for step in 0..1000 {
                made += usize::from(edit(&mut random, &disk, &mut after, &mut model, reserved));
                assert_eq!(self::model(&after), model);
                // Several edits may be one write.
                if step > 0 && random.below(3) > 0 {
                    continue;
                }
                let patches = Bsd.render(&before, &after);
                if step % 50 == 0 {
                    every_state(&disk, &patches, sector, Cut::Sector);
                }
                undo.push(patch::undo(&patches, &mut |at, out| disk.read_at(out, at)).unwrap());
                disk = written(&disk, &patches);
                before = read(&Bsd, &disk, sector).unwrap();
                assert_eq!(
                    (self::model(&before), before.dialect, &before.usable),
                    (model.clone(), Some(dialect), &(0..LENGTH))
                );
                assert_eq!(found(&disk, sector).len(), model.len());
                after = before.clone();
            }
            assert!(made > 100, "{made}");
            undo.iter().rev().for_each(|patches| disk = written(&disk, patches));
            assert_eq!(bytes(&disk), bytes(&first));
        }
    }
}

fn bytes(disk: &Sparse) -> Vec<u8> {
    let mut bytes = vec![0; 65536];
    disk.read_at(&mut bytes, 0).unwrap();
    bytes
}
