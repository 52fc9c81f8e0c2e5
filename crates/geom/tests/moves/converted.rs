//! Conversions between sizes of sectors: golden disks there and back, and disks of every kind whose
//! conversion in place is interrupted at any write.

use crate::medium::{Medium, Random};
use made::{bytes, cases, fat, gpt, sparse};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use trueline_geom::base::finding;
use trueline_geom::base::resize::Aim;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::convert::rewrite::{Rewrite, Standing, Toward};
use trueline_geom::convert::{Conversion, plan};
use trueline_geom::format::Sign;
use trueline_geom::graph::{Disk, Graph, Provider};
use trueline_geom::probe::Limits;

mod exfat;
mod labels;
mod made;
mod nested;
mod sets;

const TO_LARGE: Aim = Aim { from: 512, to: 4096, universal: false };
const TO_SMALL: Aim = Aim { from: 4096, to: 512, universal: false };
const BOTH: Aim = Aim { from: 512, to: 512, universal: true };

fn graph(disk: Sparse, sector: u64) -> Graph {
    let topology = Topology::new(sector, disk.length());
    let disk = Disk { start: Some(0), ..Disk::new("", Box::new(disk), topology) };
    Graph::taste(vec![disk], Limits::default())
}

/// The disk after the writes of `conversion`.
fn converted(before: &Sparse, conversion: &Conversion) -> Sparse {
    let mut after = Sparse::new(conversion.after);
    for (at, bytes) in before.runs() {
        let room = usize::try_from(conversion.after.saturating_sub(at)).unwrap();
        after.put(at, &bytes[..bytes.len().min(room)]);
    }
    let mut read = |at: u64, out: &mut [u8]| before.read_at(out, at);
    for write in &conversion.writes {
        let mut bytes = vec![0; usize::try_from(write.length()).unwrap()];
        write.fill(0, &mut bytes, &mut read).unwrap();
        // A device goes on behind the last whole sector.
        let room = usize::try_from(conversion.after.saturating_sub(write.at)).unwrap();
        bytes.truncate(room);
        after.put(write.at, &bytes);
    }
    after
}

/// Places and contents of partitions: name, start, kinds with labels and identities.
fn shown(graph: &Graph) -> Vec<(String, u64, Vec<String>)> {
    let sign = |sign: &Sign| format!("{} {:?} {:?}", sign.kind, sign.label, sign.uuid);
    let provider = |p: &Provider| (p.name.clone(), p.base(), p.signs.iter().map(sign).collect());
    graph.providers.iter().filter(|p| !p.is_data_area()).map(provider).collect()
}

fn golden() -> Vec<(String, Sparse)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/disks");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "hex"))
        .collect();
    names.sort();
    let disks = names.iter().flat_map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let disks = Sparse::from_hexdumps(&text).unwrap();
        disks.into_iter().map(move |(_, disk)| (name.clone(), disk))
    });
    disks.collect()
}

/// True for what a command refuses before it plans: an interrupted move, a table that was written
/// for other sectors.
fn is_odd(p: &Provider) -> bool {
    p.is_moving() || p.findings.iter().any(|f| *f.rule == finding::SECTOR)
}

/// Every golden disk is converted or refused with a reason; there and back, partitions and contents
/// are the same, and bytes that no write names stay.
#[test]
fn golden_disks_are_the_same_on_other_sectors() {
    let (mut there, mut back, mut both, mut refused) = (0, 0, 0, 0);
    for (name, disk) in golden() {
        for (aim, other) in [(TO_LARGE, TO_SMALL), (TO_SMALL, TO_LARGE)] {
            let first = graph(disk.clone(), aim.from);
            // Others are for sectors of 512 bytes, and say so only in part.
            if name.contains("4096") == (aim.from == 512)
                || first.disk(0) != 0
                || first.providers.iter().any(is_odd)
            {
                continue;
            }
            let conversion = match plan(&first, first.disk(0), aim, true) {
                Ok(conversion) => conversion,
                Err(obstacles) => {
                    assert!(!obstacles.is_empty(), "{name}");
                    refused += 1;
                    continue;
                }
            };
            there += 1;
            let large = converted(&disk, &conversion);
            let second = graph(large.clone(), aim.to);
            assert_eq!(shown(&first), shown(&second), "{name} {aim:?}");
            let Ok(conversion) = plan(&second, second.disk(0), other, true) else { continue };
            back += 1;
            let third = graph(converted(&large, &conversion), other.to);
            assert_eq!(shown(&first), shown(&third), "{name} {aim:?} and back");
        }
        let first = graph(disk.clone(), 512);
        if name.contains("4096") || first.disk(0) != 0 || first.providers.iter().any(is_odd) {
            continue;
        }
        let Ok(conversion) = plan(&first, first.disk(0), BOTH, true) else { continue };
        both += 1;
        let after = converted(&disk, &conversion);
        for sector in [512, 4096] {
            assert_eq!(shown(&first), shown(&graph(after.clone(), sector)), "{name} on {sector}");
            // And for that size alone once more.
            let single = graph(after.clone(), sector);
            let aim = Aim { from: sector, to: sector, universal: false };
            let conversion = plan(&single, single.disk(0), aim, true).unwrap();
            let alone = converted(&after, &conversion);
            assert_eq!(shown(&first), shown(&graph(alone.clone(), sector)), "{name} on {sector}");
            let mut other = [0; 8];
            // A file system alone may be shorter than that.
            let _ = alone.read_at(&mut other, if sector == 512 { 4096 } else { 512 });
            assert!(other != *b"EFI PART", "{name} on {sector}");
        }
    }
    assert!(
        there > 90 && back > 80 && both > 20 && refused > 80,
        "{there} {back} {both} {refused}"
    );
}

/// A conversion in place that loses power, or is killed, at any write, forward and back.
#[test]
fn an_interrupted_conversion_goes_on_or_back() {
    let mut random = Random(3);
    let (mut runs, mut cut, mut between) = (0, 0, 0);
    for (name, before, aim) in cases() {
        let first = graph(sparse(&before), aim.from);
        let conversion =
            plan(&first, first.disk(0), aim, true).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        let after = bytes(&converted(&sparse(&before), &conversion));
        // A file has grown before it is written to.
        let longest = usize::try_from(conversion.before.max(conversion.after)).unwrap();
        let grown = [before.clone(), vec![0; longest - before.len()]].concat();
        let wanted = [after.clone(), vec![0; longest - after.len()]].concat();
        for _ in 0..120 {
            let mut rewrite = Rewrite::new([7; 16], &conversion, "words");
            let paper = Medium::steady(vec![0; usize::try_from(rewrite.size().unwrap()).unwrap()]);
            let source = Medium::steady(grown.clone());
            rewrite.record(&paper, &source, &conversion.writes, &mut |_| {}).unwrap();
            let rewrite = Rewrite::open(&paper).unwrap();
            let mut disk = grown.clone();
            for _ in 0..=random.next(3) {
                let power = Arc::new(AtomicU64::new(random.next(40)));
                let medium = Medium::new(disk, &power);
                let toward = [Toward::New, Toward::Old][usize::try_from(random.next(2)).unwrap()];
                cut += usize::from(rewrite.run(&paper, &medium, toward, &mut |_| {}).is_err());
                let is_killed = random.next(2) > 0;
                disk = if is_killed { medium.seen() } else { medium.after(&mut random) };
                let standing = rewrite.standing(&paper, &Medium::steady(disk.clone())).unwrap();
                assert!(!matches!(standing, Standing::Other | Standing::Damaged), "{name}");
                if standing == Standing::Between {
                    between += 1;
                    // No reader takes it for a disk meanwhile.
                    let seen = graph(sparse(&disk), aim.from);
                    assert!(seen.providers[0].is_moving() && seen.providers.len() == 1, "{name}");
                }
            }
            for (toward, end) in [(Toward::New, &wanted), (Toward::Old, &grown)] {
                let medium = Medium::steady(disk.clone());
                rewrite.run(&paper, &medium, toward, &mut |_| {}).unwrap();
                assert!(medium.after(&mut random) == *end, "{name} {toward:?}");
                runs += 1;
            }
        }
        let second = graph(sparse(&after), if aim.universal { 4096 } else { aim.to });
        assert_eq!(shown(&first), shown(&second), "{name}");
        assert!(wanted != grown && first.providers.len() > 1, "{name}");
    }
    assert!(
        runs >= 2000 && cut > 300 && between > 200,
        "{runs} runs, {cut} cut, {between} between"
    );
}

/// The files of the FAT are where its entries say, in order.
#[test]
fn files_of_a_fat_are_copied_whole() {
    let (_, before, aim) = cases().remove(3);
    let first = graph(sparse(&before), 512);
    let conversion = plan(&first, first.disk(0), aim, true).unwrap();
    let after = bytes(&converted(&sparse(&before), &conversion));
    let find = |name: &[u8]| after.windows(11).position(|part| part == name).unwrap();
    let first =
        |entry: usize| usize::from(u16::from_le_bytes([after[entry + 26], after[entry + 27]]));
    let word = |at: usize| usize::from(u16::from_le_bytes([after[at], after[at + 1]]));
    let data = (word(14) + 2 * word(22)) * 4096 + word(17) * 32;
    let file = &after[data + (first(find(b"LONG    BIN")) - 2) * 4096..][..10_000];
    let wanted: Vec<u8> = (3..13_u8).chain(20..30).flat_map(|n| [n; 512]).take(10_000).collect();
    assert!(file == wanted);
    let inner = find(b"IN      TXT");
    assert_eq!(&after[data + (first(inner) - 2) * 4096..][..5], b"words");
    assert_eq!(after[inner + 11..inner + 26], [&[0x21][..], &[0; 10], &[1, 2, 3, 4]].concat()[..]);
    let folder = find(b"FOLDER     ");
    assert_eq!(first(find(b".          ")), first(folder));
    assert_eq!(first(find(b"..         ")), 0);
}

/// A number of sectors that overflows, and one that leads into the volume.
#[test]
fn a_hostile_ntfs_is_refused() {
    let (_, golden) = golden().into_iter().find(|(name, _)| name == "ntfs-default").unwrap();
    for sectors in [1_u64 << 52, (1 << 52) + 100, u64::MAX, 100, 0] {
        let mut boot = [0; 512];
        golden.read_at(&mut boot, 0).unwrap();
        boot[11..14].copy_from_slice(&[0, 16, 1]);
        boot[40..48].copy_from_slice(&sectors.to_le_bytes());
        let mut disk = golden.clone();
        disk.put(0, &boot);
        let graph = graph(disk, 4096);
        assert!(plan(&graph, graph.disk(0), TO_SMALL, true).is_err(), "{sectors}");
    }
}

/// A device of no whole new sectors gets its table before its end.
#[test]
fn a_device_that_ends_within_a_sector_is_converted() {
    for parts in [&[(48, 1024)][..], &[(48, 1024), (1200, 104)]] {
        let disk = gpt(parts, (1 << 20) + 3 * 512, &fat());
        let first = graph(sparse(&disk), 512);
        let conversion = plan(&first, first.disk(0), TO_LARGE, false).unwrap();
        assert_eq!(conversion.after, 1 << 20);
        let second = graph(converted(&sparse(&disk), &conversion), 4096);
        assert_eq!(shown(&first), shown(&second));
        assert!(second.providers[0].findings.is_empty(), "{:?}", second.providers[0].findings);
    }
}

/// What lies behind a file system at the end of a partition is not cut off.
#[test]
fn bytes_behind_a_file_system_stay() {
    // The partition ends in the room of the new backup table, its FAT does not.
    let length = 1 << 20;
    let last = length / 512 - 34;
    let mut disk = gpt(&[(64, last - 64 + 1)], length, &fat());
    let cut = |disk: &[u8]| {
        let graph = graph(sparse(disk), 512);
        plan(&graph, graph.disk(0), TO_LARGE, false).map(|plan| plan.partitions[0].after.end)
    };
    assert_eq!(cut(&disk).unwrap(), length - 20480);
    disk[usize::try_from(last * 512).unwrap()] = 1;
    assert!(cut(&disk).is_err());
}

/// A journal with any numbers is bounded, and never taken for that of another disk.
#[test]
fn a_hostile_journal_of_a_conversion_is_bounded() {
    let mut random = Random(5);
    let (_, before, aim) = cases().remove(0);
    let first = graph(sparse(&before), aim.from);
    let conversion = plan(&first, first.disk(0), aim, true).unwrap();
    let mut rewrite = Rewrite::new([7; 16], &conversion, "words");
    let size = usize::try_from(rewrite.size().unwrap()).unwrap();
    let paper = Medium::steady(vec![0; size]);
    let disk = Medium::steady(before.clone());
    rewrite.record(&paper, &disk, &conversion.writes, &mut |_| {}).unwrap();
    let whole = paper.seen();
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut file = whole.clone();
        let near = random.next(2) > 0;
        for _ in 0..=random.next(2) {
            let at = 12
                + usize::try_from(random.next(if near { 200 } else { size as u64 - 12 })).unwrap();
            file[at] = [0, 1, 0x7f, 0x80, 0xff, 2][usize::try_from(random.next(6)).unwrap()];
        }
        if random.next(4) > 0 {
            let length = u64::from_le_bytes(*file[12..].first_chunk().unwrap());
            if let Some(head) = usize::try_from(length).ok().and_then(|end| file.get(12..end)) {
                let sum = crc32fast::hash(head).to_le_bytes();
                file[8..12].copy_from_slice(&sum);
            }
        }
        let file = Medium::steady(file);
        let Ok(rewrite) = Rewrite::open(&file) else {
            refused += 1;
            continue;
        };
        opened += 1;
        let disk = Medium::steady(before.clone());
        let _ = rewrite.standing(&file, &disk);
    }
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused");
}
