//! Chains as others may have written them, made at random, and random edits of them.

use super::{AT, Chain, SIZE, ground, grown_topology, steps};
use crate::mbr::{bare, part, try_add};
use trueline_geom::class::mbr::Ebr;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::table::scheme::Scheme;
use trueline_geom::table::{Entry, Request, Rules, Table, Wanted};

/// A small generator; the same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// A chain as any tool might have written it: partitions in any order, EBRs anywhere before theirs.
fn foreign(random: &mut Random) -> Chain {
    let mut chain = Chain::new(512);
    let count = random.below(6);
    let unit = SIZE / 512 / 8;
    let mut order: Vec<u64> = (0..count).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, usize::try_from(random.below(i as u64 + 1)).unwrap());
    }
    let field = |n: u64| u32::try_from(n).unwrap();
    let start = |n: u64| (n + 1) * unit;
    let ebrs: Vec<u64> = order
        .iter()
        .enumerate()
        .map(|(i, &n)| {
            if i == 0 { 0 } else { start(n) - [1, 63, 128, 2048][usize::try_from(n % 4).unwrap()] }
        })
        .collect();
    for (i, &n) in order.iter().enumerate() {
        let data = (0x83, field(start(n) - ebrs[i]), field(1 + random.below(unit / 2)));
        let link = ebrs.get(i + 1).map_or((0, 0, 0), |&at| {
            (
                [5, 0x0f, 0x85][usize::try_from(random.below(3)).unwrap()],
                field(at),
                field(1 + random.below(9999)),
            )
        });
        let swapped = random.below(4) == 0;
        chain.ebr(ebrs[i], &if swapped { [link, data] } else { [data, link] });
        if random.below(3) == 0 {
            chain.disk.put(AT + ebrs[i] * 512, b"code");
        }
    }
    chain
}

/// Some edits of a table, as a person might make them; refused ones change nothing.
fn edits(random: &mut Random, table: &mut Table, count: u64) {
    for _ in 0..count {
        let some = table
            .entries
            .get(usize::try_from(random.below(8)).unwrap())
            .map(|e| (e.partition.index, e.partition.length));
        match (random.below(5), some) {
            (0 | 1, _) => {
                let start = Some(random.below(SIZE / 512) * 512);
                let size = Some(512 * (1 + random.below(9000)));
                let place = if random.below(3) == 0 {
                    Request { start: None, size, align: None }
                } else {
                    Request { start, size, align: None }
                };
                let _ = try_add(table, Wanted { place, ..part("82", 0, 0) }, Rules::Aligned);
            }
            (2, Some((index, _))) => assert!(table.delete(index).is_ok()),
            (3, Some((index, _))) => {
                table.modify(index, Some(PartitionType::Mbr(0xfd)), None).unwrap()
            }
            (4, Some((index, length))) => {
                let size = Some(512 * (1 + random.below(length / 256)));
                let _ = table.resize(
                    &ground(&grown_topology()),
                    index,
                    &Request { size, ..Request::default() },
                    Rules::Aligned,
                );
            }
            _ => {}
        }
    }
}

#[test]
fn no_edit_of_any_chain_loses_a_sibling_or_touches_one() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut single, mut batches) = (0, 0);
    for _ in 0..120 {
        let mut chain = foreign(&mut random);
        for _ in 0..4 {
            chain.edit(|table| edits(&mut random, table, 1));
            single += 1;
            let before = chain.table();
            let mut after = before.clone();
            let count = 2 + random.below(5);
            edits(&mut random, &mut after, count);
            let patches = Ebr.render(&before, &after);
            let stays =
                |e: &Entry| before.entries.iter().any(|b| Some(b.partition.index) == e.from);
            // At every prefix: a whole chain with every partition that both tables have.
            for n in 0..=patches.len() {
                let seen = chain.after(&patches[..n]).table();
                assert_eq!(seen.damage, Vec::<String>::new());
                for entry in after.entries.iter().filter(|e| stays(e)) {
                    assert!(
                        seen.entries.iter().any(|s| s.partition.start == entry.partition.start),
                        "{n} of {:?}: {entry:?} is lost",
                        steps(&patches, 512)
                    );
                }
            }
            // Nothing is written into a partition that stays.
            for patch in &patches {
                let hit = after
                    .entries
                    .iter()
                    .find(|e| patch.offset < e.partition.end() && e.partition.start < patch.end());
                assert!(hit.is_none(), "{} at {} is in {hit:?}", patch.what, patch.offset);
            }
            // All links together come last, so what is written before them is on the medium.
            chain = chain.after(&patches);
            let read = chain.table();
            assert_eq!((bare(&read), &read.taken), (bare(&after), &after.taken));
            batches += 1;
        }
    }
    assert_eq!((single, batches), (480, 480));
}
