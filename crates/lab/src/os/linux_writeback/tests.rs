use super::*;
use crate::rig::Op;
use crate::workload::recorder::Recorder;
use trueline_sim::random::Random;

const SECOND: u64 = 1_000_000_000;

fn writes(rig: &Recorder) -> Vec<(u64, u64)> {
    rig.asked
        .iter()
        .filter(|asked| asked.0 == Op::Write)
        .map(|&(_, offset, length)| (offset, length))
        .collect()
}

#[test]
fn nothing_waits_and_old_pages_are_written() {
    let mut rig = Recorder::new(10 << 30);
    let mut files = LinuxWriteback::new(&mut rig, Parameters::default()).unwrap();
    let file = files.create("a").unwrap();
    files.write(file, 0, 10_000).unwrap();
    files.close(file).unwrap();
    // Three pages of data, a page of the directory; of the device: both maps, the inodes of root
    // and file in one block.
    assert_eq!(files.dirty(), (3 + 1 + 3) * 4096);
    files.think(29 * SECOND);
    assert_eq!(files.dirty(), 7 * 4096);
    files.think(7 * SECOND);
    assert_eq!(files.dirty(), 0);
    let data = files.extents("a").unwrap()[0];
    drop(files);
    // What is changed in part is read first: both maps, inodes, the root.
    assert_eq!(rig.asked.iter().take_while(|asked| asked.0 == Op::Read).count(), 4);
    assert_eq!(rig.asked.iter().filter(|asked| asked.0 == Op::Read).count(), 4);
    let written: u64 = writes(&rig).iter().map(|&(_, length)| length).sum();
    assert_eq!(written, 7 * 4096);
    // The directory's block and the file's lie together.
    assert!(
        writes(&rig).iter().any(|&(at, length)| at <= data.0 && at + length >= data.0 + data.1)
    );
}

#[test]
fn a_long_file_goes_in_requests_of_512_kib_with_an_indirect_block_every_4_mib() {
    let mut rig = Recorder::new(10 << 30);
    let mut files = LinuxWriteback::new(&mut rig, Parameters { memory: 64 << 20 }).unwrap();
    let file = files.create("long").unwrap();
    for at in 0..1024 {
        files.write(file, at << 16, 1 << 16).unwrap();
        assert!(files.dirty() <= (64 << 20) / 5);
    }
    let extents = files.extents("long").unwrap();
    files.forget().unwrap();
    drop(files);
    // 12 direct blocks, then runs of 1024 with an indirect block before each; before the second
    // two.
    let lengths: Vec<u64> = extents.iter().map(|extent| extent.1 / 4096).collect();
    assert_eq!(lengths[..3], [12, 1024, 1024]);
    let gaps: Vec<u64> =
        extents.windows(2).map(|pair| (pair[1].0 - pair[0].0 - pair[0].1) / 4096).collect();
    assert_eq!(gaps[..4], [1, 2, 1, 1]);
    let data: Vec<u64> = writes(&rig)
        .iter()
        .filter(|(at, _)| *at >= extents[0].0)
        .map(|&(_, length)| length)
        .collect();
    assert!(data.iter().all(|&length| length <= 512 << 10));
    let whole = data.iter().filter(|&&length| length == 512 << 10).count();
    assert!(whole * (512 << 10) > (64 << 20) * 9 / 10, "{whole} whole requests of {data:?}");
    // A pass may end above the limit, the next one waits.
    assert!(rig.most <= 128 + 16, "{} requests in the queue", rig.most);
}

#[test]
fn an_indirect_block_goes_with_the_data_before_it() {
    let mut rig = Recorder::new(10 << 30);
    let mut files = LinuxWriteback::new(&mut rig, Parameters::default()).unwrap();
    let file = files.create("long").unwrap();
    files.write(file, 0, 64 << 20).unwrap();
    let extents = files.extents("long").unwrap();
    let dirty = files.dirty();
    files.forget().unwrap();
    assert_eq!(files.dirty(), 0);
    drop(files);
    let writes = writes(&rig);
    assert_eq!(writes.iter().map(|&(_, length)| length).sum::<u64>(), dirty, "every page once");
    // A pass ends with 12 pages of the next stretch of 1024, which with the last 116 of this one
    // fill a request: the indirect block finds no room in it, and the bio of 512 KiB behind it none
    // in its request. So every one is alone, and none apart from its data but the second of two:
    // that is not the block after any data, and waits for the device's own pass.
    let ends: Vec<u64> = extents.iter().map(|extent| extent.0 + extent.1).collect();
    let alone: Vec<u64> = writes
        .iter()
        .filter(|&&(at, length)| length == 4096 && at >= extents[0].0)
        .map(|&(at, _)| at)
        .collect();
    let last = ends.len() - 1;
    assert_eq!(alone, [&ends[1..last], &[ends[1] + 4096]].concat(), "{writes:?}");
    let of_data: Vec<u64> = writes
        .iter()
        .filter(|&&(at, length)| at >= extents[0].0 && length > 4096)
        .map(|&(_, length)| length)
        .collect();
    let short: Vec<u64> = of_data.into_iter().filter(|&length| length < 512 << 10).collect();
    // Where the file begins the directory's block is before it; what is short then is the end.
    assert_eq!(short, [116 * 4096], "{writes:?}");
}

#[test]
fn a_congested_queue_ends_a_pass_after_a_page() {
    let mut rig = Recorder::new(1 << 30);
    // Of 16 requests a queue is congested with 15, and until there are fewer than 12.
    let limits =
        Limits { background: 0, dirty: u64::MAX, requests: 16, ..Limits::of_memory(8 << 30) };
    let mut flusher = Flusher::new(&mut rig, limits);
    flusher.soil(7, 0, 4096, 0).unwrap();
    // The fifteenth was made when a page found no room in its bio; that page is a bio, and the last
    // request, which may still grow.
    assert_eq!(flusher.queue.in_flight(), 15);
    flusher.queue.settle(11).unwrap();
    flusher.pump(false).unwrap();
    assert_eq!(flusher.queue.in_flight(), 11, "with the last there are 12");
    flusher.queue.settle(10).unwrap();
    flusher.pump(false).unwrap();
    assert_eq!(flusher.queue.in_flight(), 15);
    flusher.sync().unwrap();
    drop(flusher);
    let writes = writes(&rig);
    assert_eq!(
        writes.iter().map(|&(_, length)| length).sum::<u64>(),
        4096 * 4096,
        "every page once"
    );
    // No bio is divided: what follows the page is a whole one of 512 KiB.
    assert_eq!(
        (writes[14].1, writes[15].1, writes[16].1),
        (512 << 10, 4096, 512 << 10),
        "{writes:?}"
    );
}

#[test]
fn pages_of_the_device_become_requests_of_any_length() {
    let mut rig = Recorder::new(1 << 30);
    let limits =
        Limits { background: 0, dirty: u64::MAX, requests: 16, ..Limits::of_memory(8 << 30) };
    let mut flusher = Flusher::new(&mut rig, limits);
    flusher.soil(DEVICE, 3, 4096, 3 * 4096).unwrap();
    assert_eq!(flusher.queue.in_flight(), 14, "the fifteenth may still grow, and does");
    flusher.sync().unwrap();
    drop(flusher);
    assert!(writes(&rig).iter().all(|&(_, length)| length == 512 << 10));
}

#[test]
fn placement_laws() {
    let mut rig = Recorder::new(1 << 30);
    let mut files = LinuxWriteback::new(&mut rig, Parameters { memory: 64 << 20 }).unwrap();
    let mut random = Random::new(7);
    let mut there: Vec<String> = Vec::new();
    files.make_directory("d").unwrap();
    let free = |files: &mut LinuxWriteback<'_>| -> u64 {
        (0..files.shape.groups()).map(|g| u64::from(files.group(g).unwrap().free)).sum()
    };
    let before = free(&mut files);
    for n in 0..2000 {
        if random.below(3) == 0 && !there.is_empty() {
            let at = usize::try_from(random.below(there.len() as u64)).unwrap();
            files.remove(&there.swap_remove(at)).unwrap();
            continue;
        }
        let name = format!("d/{n}");
        let file = files.create(&name).unwrap();
        files.write(file, 0, 1 + random.below(200_000)).unwrap();
        files.close(file).unwrap();
        there.push(name);
    }
    let mut taken: Vec<(u64, u64)> =
        there.iter().flat_map(|name| files.extents(name).unwrap()).collect();
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    let shape = files.shape;
    assert!(taken.iter().all(|&(at, length)| at / BLOCK >= shape.data(at / BLOCK / PER_GROUP)
        && at + length <= shape.blocks * BLOCK));
    for name in &there {
        files.remove(name).unwrap();
    }
    // The directory has grown, and keeps its blocks.
    let id = files.names.get("d").unwrap();
    let kept: u64 = files
        .names
        .node(id)
        .unwrap()
        .extents
        .runs()
        .iter()
        .map(|run| u64::from(run.fragments))
        .sum();
    assert_eq!(free(&mut files) + kept - 1, before);
    files.remove_directory("d").unwrap();
    files.forget().unwrap();
    assert_eq!((files.dirty(), free(&mut files)), (0, before + 1));
}

#[test]
fn what_was_written_is_not_read_until_it_is_forgotten() {
    let mut rig = Recorder::new(1 << 30);
    let mut files = LinuxWriteback::new(&mut rig, Parameters::default()).unwrap();
    let file = files.create("a").unwrap();
    files.write(file, 0, 1 << 20).unwrap();
    let now = files.now();
    files.read(file, 0, 1 << 20).unwrap();
    assert_eq!(files.now(), now);
    files.forget().unwrap();
    files.read(file, 0, 1 << 20).unwrap();
    drop(files);
    let reads: Vec<u64> = rig
        .asked
        .iter()
        .filter(|asked| asked.0 == Op::Read && asked.2 > 4096)
        .map(|&(_, _, length)| length)
        .collect();
    // The indirect block parts a window.
    assert_eq!(reads.iter().sum::<u64>(), 1 << 20);
    assert!(reads.iter().all(|&length| length <= 128 << 10));
}
