//! The model of qcow2 against QEMU: the same requests, and what `qemu-io` asks of the kernel for
//! each of them, seen by strace.
//!
//! Without these programs it is skipped, and that is said.

use crate::skip::skip;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trueline_geom::base::topology::{round_up, units};
use trueline_lab::layer::Layer;
use trueline_lab::layer::qcow2::{Keys, Qcow2};
use trueline_lab::layer::steps::Steps;
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;
use trueline_sim::random::Random;

const MIB: u64 = 1 << 20;

/// Requests of one kind for a client's request: offset and bytes, the backing file's behind the
/// image's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    /// Reads, writes and flushes in the order in which they were made.
    requests: Vec<(&'static str, u64, u64)>,
    /// Ranges that were made zero, and their bytes.
    zeroed: (u64, u64),
}

impl Made {
    /// The same without the order of what is in flight together.
    fn sorted(mut self) -> Made {
        self.requests.sort_unstable();
        self
    }

    /// True if a new L2 table or refcount block was entered: the header, the refcount table or the
    /// L1 table was written.
    fn makes_tables(&self, keys: Keys) -> bool {
        let Keys { cluster, subclusters, size, .. } = keys;
        let per_table = cluster / if subclusters { 16 } else { 8 } * cluster;
        let l1 = size.expect("it is given").div_ceil(per_table) * 8;
        let tables = [0..2 * cluster, 3 * cluster..3 * cluster + l1];
        let mut writes = self.requests.iter().filter(|(op, ..)| *op == "write");
        writes.any(|(_, at, _)| tables.iter().any(|table| table.contains(at)))
    }

    fn take_flushes(&mut self) -> usize {
        let before = self.requests.len();
        self.requests.retain(|(op, ..)| *op != "flush");
        before - self.requests.len()
    }
}

fn read(offset: u64, length: u64) -> Ask {
    Ask { op: Op::Read, offset, length, fua: false }
}

fn write(offset: u64, length: u64) -> Ask {
    Ask { op: Op::Write, offset, length, fua: false }
}

fn fua(offset: u64, length: u64) -> Ask {
    Ask { fua: true, ..write(offset, length) }
}

const FLUSH: Ask = Ask { op: Op::Flush, offset: 0, length: 0, fua: false };

/// Writes and reads of every kind around clusters of `unit` bytes.
fn hand_made(unit: u64) -> Vec<Ask> {
    vec![
        FLUSH,
        read(0, 4 * unit),
        // A first write within a cluster, a rewrite, the flush of both, and one of nothing.
        write(unit / 4, 512),
        write(unit / 2, 512),
        FLUSH,
        FLUSH,
        write(0, 512),
        FLUSH,
        // A whole cluster, the one behind it, the one before it: in the file behind both.
        write(4 * unit, unit),
        write(5 * unit, unit),
        write(3 * unit, unit),
        read(2 * unit, 5 * unit),
        // Over the ends of clusters, old and new, with a head and a tail.
        write(unit / 2 + 512, 2 * unit),
        write(6 * unit + 512, 3 * unit),
        write(2 * unit - 512, 3 * unit),
        fua(10 * unit, 1024),
        fua(10 * unit, 1024),
        // Behind old clusters in the guest, and not in the file.
        write(9 * unit, 512),
        write(20 * unit, unit),
        write(19 * unit - 512, unit + 1024),
        write(20 * unit + 512, 2 * unit),
        read(0, 24 * unit),
        // As much between head and tail as is read with them, and a sector more.
        write(30 * unit + 512, 16384),
        write(50 * unit + 512, 16384 + 512),
        read(7 * unit + 1, 3),
        FLUSH,
    ]
}

/// Seeded requests of at most `longest` bytes, in `unit`s, half of them near the one before.
fn seeded(seed: u64, count: usize, size: u64, unit: u64, longest: u64) -> Vec<Ask> {
    let mut random = Random::new(seed);
    let mut at = 0;
    let mut one = || {
        let most = 1 << random.below(1 + u64::from((longest / unit).ilog2()));
        let length = (1 + random.below(most)) * unit;
        let places = (size - length) / unit;
        at = match random.below(4) {
            0 | 1 => random.below(places) * unit,
            2 => at,
            _ => (at + random.below(64) * unit).min(places * unit),
        };
        let (offset, kind) = (at, random.below(16));
        at = (at + length).min(size - longest);
        match kind {
            0 => FLUSH,
            1 => fua(offset, length),
            2..6 => read(offset, length),
            _ => write(offset, length),
        }
    };
    (0..count).map(|_| one()).collect()
}

#[test]
fn hand_made_requests_are_as_qemu_makes_them() {
    for cluster in [512, 4096, 65536, 2 * MIB] {
        for backing in [false, true] {
            let keys = Keys { size: Some(96 * cluster), ..keys(cluster, backing) };
            compare(keys, &hand_made(cluster));
        }
    }
}

#[test]
fn seeded_requests_are_as_qemu_makes_them() {
    let shapes =
        [(1, 4096, 24 * MIB, MIB), (2, 65536, 2048 * MIB, MIB), (3, 2 * MIB, 512 * MIB, 8 * MIB)];
    for (seed, cluster, size, longest) in shapes {
        for backing in [false, true] {
            let keys = Keys { size: Some(size), ..keys(cluster, backing) };
            compare(keys, &seeded(seed, 100, size, 512, longest));
        }
    }
}

#[test]
fn seeded_requests_of_other_images_are_as_qemu_makes_them() {
    let (size, longest) = (8 * MIB, 128 << 10);
    let plain = Keys { size: Some(size), ..keys(65536, false) };
    let over = Keys { backing: Some(BACKING), ..plain };
    let images = [
        Keys { alignment: Some(512), ..over },
        Keys { alignment: Some(4096), ..over },
        Keys { alignment: Some(4096), ..plain },
        Keys { alignment: Some(512), subclusters: true, ..plain },
        Keys { subclusters: true, ..over },
        Keys { preallocated: true, ..plain },
        Keys { preallocated: true, subclusters: true, ..over },
        Keys { zero_range: false, ..plain },
        // A disk that ends within a cluster.
        Keys { size: Some(size - 512), ..plain },
        Keys { size: Some(size - 512), ..over },
    ];
    for (seed, keys) in (10..).zip(images) {
        compare(keys, &seeded(seed, 100, size - 512, 512, longest));
    }
}

#[test]
fn a_refcount_table_that_is_too_small_grows_as_qemus_does() {
    // 64 refcount blocks, of 128 KiB each, are in the first.
    let keys = Keys { size: Some(16 * MIB), ..keys(512, false) };
    let pieces = (0..600).map(|nth| write(nth * 16384, 16384));
    compare(keys, &pieces.chain([FLUSH]).collect::<Vec<_>>());
}

#[test]
fn l2_tables_of_a_large_disk_are_read_in_slices_as_qemus_are() {
    let keys = Keys { size: Some(1 << 40), ..keys(65536, true) };
    compare(keys, &spread(30, 1 << 40, 600 << 30, 65536));
}

#[test]
#[ignore = "10 s: cargo test -p trueline-lab --test layers -- --ignored leave_the_cache"]
fn l2_tables_leave_the_cache_as_qemus_do() {
    // 8192 slices of tables are in the cache, which 24 new tables of 512 slices pass through.
    let keys = Keys { size: Some(12 << 40), ..keys(2 * MIB, false) };
    compare(keys, &spread(60, 12 << 40, 12 << 40, 4096));
}

/// Writes anywhere within `most` bytes of a disk, then reads, each of at most `longest` bytes.
fn spread(count: u64, size: u64, most: u64, longest: u64) -> Vec<Ask> {
    let mut random = Random::new(4);
    let pieces = (0..count).map(|nth| {
        let offset = random.below((most - longest) / 512) * 512;
        let length = (1 + random.below(longest / 512)) * 512;
        if nth < count / 2 { write(offset, length) } else { read(offset, length) }
    });
    pieces.chain([FLUSH, read(0, 512), read(size - 512, 512)]).collect()
}

#[test]
fn the_largest_disk_is_the_one_that_qemu_measures() {
    if missing() {
        return;
    }
    let measured = |cluster: u64, size: u64| {
        let options = format!("cluster_size={cluster}");
        let mut measure = Command::new("qemu-img");
        measure.args(["measure", "-O", "qcow2", "-o", &options, "--size", &size.to_string()]);
        let ran = measure.output().expect("it was there a moment ago");
        let said = String::from_utf8_lossy(&ran.stdout);
        let full = said.lines().find_map(|line| line.strip_prefix("fully allocated size: "));
        full.and_then(|bytes| bytes.parse::<u64>().ok()).expect("it has measured")
    };
    for (cluster, beneath) in
        [(512, 5 * MIB), (4096, 3 << 30), (65536, 64 * MIB), (65536, 1 << 40), (2 * MIB, 1 << 35)]
    {
        let mut layer =
            Qcow2::new(Keys { cluster, size: None, ..keys(cluster, false) }).expect("an image");
        layer.attach(beneath, 1).expect("there is room");
        let size = layer.length(beneath);
        assert!(measured(cluster, size) <= beneath, "{cluster} {beneath} {size}");
        assert!(measured(cluster, size + cluster) > beneath, "{cluster} {beneath} {size}");
    }
}

#[test]
#[ignore = "minutes: cargo test -p trueline-lab --test layers -- --ignored many_seeded"]
fn many_seeded_requests_are_as_qemu_makes_them() {
    let mut random = Random::new(1);
    for seed in 0..300 {
        let cluster = 512 << random.below(13);
        let subclusters = cluster >= 16384 && random.below(3) == 0;
        let part = if subclusters { cluster / 32 } else { cluster };
        let alignment = *[1, 512, 4096].iter().rfind(|unit| **unit <= part).expect("1 is less");
        let alignment = if random.below(2) == 0 { 1 } else { alignment };
        let backing = random.below(2) == 0;
        let most = (cluster / 16 * cluster).min(4 * MIB);
        let longest = (512 << random.below(1 + u64::from((most / 512).ilog2()))).min(most);
        let size = 4 * longest + random.below(64) * cluster + random.below(8) * 512;
        let size = round_up(size, 4096).expect("a small disk");
        let keys = Keys {
            size: Some(size),
            subclusters,
            preallocated: random.below(4) == 0 && (subclusters || !backing),
            alignment: Some(alignment),
            zero_range: random.below(4) != 0,
            ..keys(cluster, backing)
        };
        let unit = if random.below(4) == 0 { 1 } else { 512 };
        compare(keys, &seeded(seed, 150, size, unit, longest));
    }
}

/// The offset of backing files, behind all images.
const BACKING: u64 = 1 << 44;

/// An image through the page cache.
fn keys(cluster: u64, backing: bool) -> Keys {
    let backing = backing.then_some(BACKING);
    Keys { cluster, backing, alignment: Some(1), ..Keys::default() }
}

/// Compares what QEMU and the model make of the same requests.
fn compare(keys: Keys, asks: &[Ask]) {
    let Some(real) = real(keys, asks) else { return };
    let model = modelled(keys, asks);
    assert_eq!(real.len(), asks.len(), "{keys:?}: QEMU has answered all");
    for (nth, ((mut real, mut model), ask)) in real.into_iter().zip(model).zip(asks).enumerate() {
        let unit = if keys.subclusters { keys.cluster / 32 } else { keys.cluster };
        let (first, end) = units(ask.offset, ask.offset + ask.length, unit);
        if end - first > 1 {
            // Parts of a request are in flight together, in any order.
            (real, model) = (real.sorted(), model.sorted());
            if ask.op == Op::Write && model.makes_tables(keys) {
                // How many parts are written when a flush comes is a matter of time.
                assert!(real.take_flushes() >= model.take_flushes(), "{keys:?}: {nth}, {ask:?}");
            }
        }
        assert_eq!(real, model, "{keys:?}: request {nth}, {ask:?}: QEMU left, the model right");
    }
}

fn modelled(keys: Keys, asks: &[Ask]) -> Vec<Made> {
    let mut layer = Qcow2::new(keys).expect("an image");
    layer.attach(2 * BACKING, 1).expect("there is room");
    let one = |ask: &Ask| {
        let before = layer.zeroed();
        let mut steps = Steps::default();
        layer.plan(*ask, &mut steps).expect("it is planned");
        let after = layer.zeroed();
        let requests = steps.asks().map(|ask| match ask.op {
            Op::Read => ("read", ask.offset, ask.length),
            Op::Write => ("write", ask.offset, ask.length),
            Op::Flush => ("flush", 0, 0),
        });
        Made {
            requests: requests.collect(),
            zeroed: (after.ranges - before.ranges, after.bytes - before.bytes),
        }
    };
    asks.iter().map(one).collect()
}

/// Calls that QEMU makes of the kernel for each of the requests; `None`, with a word, where strace
/// cannot see them.
fn real(keys: Keys, asks: &[Ask]) -> Option<Vec<Made>> {
    if missing() {
        return None;
    }
    let files = Files::new(keys);
    let script: String = asks.iter().map(command).collect();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s0", "-o"]).arg(files.path("trace"));
    // A flush counts, and need not be done.
    strace.args(["-e", "trace=pread64,preadv,pwrite64,pwritev,fdatasync,fallocate,write"]);
    strace.args(["-e", "inject=fdatasync:retval=0"]);
    strace.args(["qemu-io", "-t", "writeback", "--image-opts"]).arg(files.options(keys));
    strace.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = strace.spawn().expect("strace was there a moment ago");
    let mut input = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let ran = child.wait_with_output().expect("it is our child");
    writer.join().expect("it does not panic").expect("it reads all");
    let (said, errors) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if errors.contains("ptrace") {
        skip(&format!("qcow2 against QEMU: {}", errors.trim()));
        return None;
    }
    assert!(ran.status.success() && !said.contains("failed"), "{said}{errors}");
    let trace = std::fs::read_to_string(files.path("trace")).expect("strace has written it");
    Some(parsed(&trace))
}

fn command(ask: &Ask) -> String {
    let Ask { op, offset, length, fua } = ask;
    match (op, fua) {
        (Op::Read, _) => format!("read {offset} {length}\n"),
        (Op::Write, false) => format!("write {offset} {length}\n"),
        (Op::Write, true) => format!("write -f {offset} {length}\n"),
        (Op::Flush, _) => "flush\n".into(),
    }
}

/// The calls for each command, between two prompts.
fn parsed(trace: &str) -> Vec<Made> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut all = vec![Made::default()];
    let mut last_zero = (0, 0);
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let call = if let Some(begin) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, begin);
            continue;
        } else if let Some((_, rest)) = call.split_once(" resumed>") {
            format!("{}{rest}", begun.remove(thread).unwrap_or(""))
        } else {
            call.to_owned()
        };
        let Some((name, arguments)) = call.split_once('(') else { continue };
        if name == "write" && arguments.starts_with("1<") {
            all.push(Made::default());
            continue;
        }
        let at = match () {
            () if arguments.contains("/image.qcow2>") => 0,
            () if arguments.contains("/base.raw>") => BACKING,
            () => continue,
        };
        let (arguments, result) = arguments.rsplit_once(" = ").expect("every call ends");
        let arguments = arguments.trim_end().trim_end_matches(')');
        let result = result.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        let numbers: Vec<u64> =
            arguments.split(", ").filter_map(|word| word.trim().parse().ok()).collect();
        let made = all.last_mut().expect("there is one");
        match (name, numbers.as_slice()) {
            ("pread64", [length, offset]) => made.requests.push(("read", at + offset, *length)),
            ("pwrite64", [length, offset]) => made.requests.push(("write", at + offset, *length)),
            ("preadv", [.., offset]) => {
                made.requests.push(("read", at + offset, result.expect("it was read")));
            }
            ("pwritev", [.., offset]) => {
                made.requests.push(("write", at + offset, result.expect("it was written")));
            }
            ("fdatasync", _) => made.requests.push(("flush", 0, 0)),
            // A file system that cannot do it one way is asked another.
            ("fallocate", [offset, length]) if last_zero != (*offset, *length) => {
                last_zero = (*offset, *length);
                made.zeroed.0 += 1;
                made.zeroed.1 += length;
            }
            ("fallocate", _) => (),
            _ => panic!("an unknown call: {line}"),
        }
    }
    // Before the first prompt the image is opened, after the last it is closed.
    all.remove(0);
    all.pop();
    all
}

/// True, with a word, if a program is missing.
fn missing() -> bool {
    let missing = ["strace", "qemu-img", "qemu-io"]
        .into_iter()
        .find(|program| Command::new(program).arg("--version").output().is_err());
    if let Some(program) = missing {
        skip(&format!("qcow2 against QEMU: {program} is not there"));
    }
    missing.is_some()
}

/// The files of an image, taken away when they are dropped.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn new(keys: Keys) -> Files {
        let name = format!("qcow2-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace(['(', ')'], ""));
        std::fs::create_dir_all(&folder).expect("a folder");
        let files = Files { folder };
        let size = keys.size.expect("it is given");
        if keys.backing.is_some() {
            let base = std::fs::File::create(files.path("base.raw")).expect("a file");
            base.set_len(size).expect("a sparse file");
        }
        let on = |yes: bool, word: &'static str| if yes { word } else { "off" };
        let mut create = Command::new("qemu-img");
        create.args(["create", "-q", "-f", "qcow2", "-o"]).arg(format!(
            "cluster_size={},extended_l2={},preallocation={}",
            keys.cluster,
            on(keys.subclusters, "on"),
            on(keys.preallocated, "metadata")
        ));
        let made = create.arg(files.path("image.qcow2")).arg(size.to_string()).output();
        let made = made.expect("it was there a moment ago");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Options with which the image is opened: its files have the units of the alignment.
    fn options(&self, keys: Keys) -> String {
        let Keys { alignment, backing, zero_range, .. } = keys;
        let file = |name: &str, within: &str| {
            let path = self.path(name);
            let alignment = alignment.expect("it is given");
            format!(
                "{within}.driver=blkdebug,{within}.align={alignment},\
                 {within}.image.driver=file,{within}.image.filename={}",
                path.display()
            )
        };
        let mut options = format!("driver=qcow2,{}", file("image.qcow2", "file"));
        if backing.is_some() {
            options += &format!(",backing.driver=raw,{}", file("base.raw", "backing.file"));
        }
        if !zero_range {
            options += ",file.inject-error.0.event=none,file.inject-error.0.iotype=write-zeroes,\
                        file.inject-error.0.errno=95";
        }
        options
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
