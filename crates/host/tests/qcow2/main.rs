//! Images of QEMU, written here and checked by QEMU: after a loss of power at any write, too.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../geom/tests/qcow2/guest.rs"]
mod guest;
#[path = "../../../geom/tests/qcow2/recording.rs"]
mod recording;
#[path = "../../../../tests/scratch.rs"]
mod scratch;
#[path = "../../../../tests/skip.rs"]
mod skip;
#[path = "../../../geom/tests/qcow2/tape.rs"]
mod tape;

use guest::{Asked, Random, all, of_base, open};
use recording::record;
use scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::Command;
use tape::{File, left_of};
use trueline_geom::base::store::Store;

/// A directory with a backing file of `base` bytes; `None`, and the test is skipped, without QEMU's
/// tools.
fn made_in(base: usize) -> Option<Scratch> {
    if Command::new("qemu-img").arg("--version").output().is_err() {
        skip::skip("no qemu-img here");
        return None;
    }
    let here = Scratch::new();
    here.put("base", (0..base).map(of_base).collect::<Vec<u8>>());
    Some(here)
}

/// Runs a shell in a directory; its exit code and output.
fn run(directory: &Path, script: &str) -> (Option<i32>, String) {
    let done = Command::new("sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// Images as QEMU makes them: the commands, and the length of the backing file.
const MADE: [(&str, usize); 10] = [
    ("qemu-img create -q -f qcow2 i 4M", 0),
    ("qemu-img create -q -f qcow2 -o compat=0.10 i 4M", 0),
    ("qemu-img create -q -f qcow2 -o cluster_size=512 i 300k", 0),
    ("qemu-img create -q -f qcow2 -o cluster_size=512,refcount_bits=64 i 4M", 0),
    ("qemu-img create -q -f qcow2 -o cluster_size=4k,lazy_refcounts=on i 1M", 0),
    ("qemu-img create -q -f qcow2 -o cluster_size=4k,refcount_bits=1 i 1M", 0),
    ("qemu-img create -q -f qcow2 -o cluster_size=4k -u -b base -F raw i 1M", 600 << 10),
    ("qemu-img create -q -f qcow2 -o compat=0.10,cluster_size=4k -u -b base -F raw i 1M", 900_000),
    ("qemu-img convert -c -O qcow2 -o cluster_size=4k base i", 800 << 10),
    (
        "qemu-img create -q -f qcow2 -o cluster_size=4k,preallocation=metadata i 1M
        qemu-io -c 'write -z 64k 256k' -c 'write -P 3 100k 8k' i",
        0,
    ),
];

/// Length of the backing file that an image is opened over: a converted one has none.
fn parent(command: &str, base: usize) -> usize {
    if command.contains("-b base") { base } else { 0 }
}

/// Further states that are looked at for each image, by the environment.
fn times() -> usize {
    std::env::var("TRUELINE_STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(12)
}

#[test]
fn qemu_finds_no_error_after_a_loss_of_power() {
    let mut random = Random(0x0dd);
    let (mut states, mut leaks) = (0, 0);
    for (command, base) in MADE {
        let Some(here) = made_in(base) else { return };
        let (code, said) = run(&here.0, command);
        assert_eq!(code, Some(0), "{command}: {said}");
        let image = fs::read(here.0.join("i")).unwrap();
        let parent = parent(command, base);
        for nth in 0..times() {
            // A guest that writes for a while, and an end of it somewhere.
            let recording = record(image.clone(), parent, 40, 40_000, &mut random);
            let count = random.below(recording.changes.len()) + 1;
            let kill = nth % 3 == 0;
            let left = left_of(&recording.base, &recording.changes, count, kill, &mut random);
            fs::write(here.0.join("left"), &left).unwrap();
            let (code, said) =
                run(&here.0, "qemu-img check -f qcow2 left; qemu-img convert -O raw left raw");
            // 3 is a check that found leaks alone.
            if code == Some(3) {
                leaks += 1;
                let (code, said) = run(&here.0, "qemu-img convert -f qcow2 -O raw left raw");
                assert_eq!(code, Some(0), "{command} after {count}: {said}");
            } else {
                assert_eq!(code, Some(0), "{command} after {count}: {said}");
            }
            recording.check(&fs::read(here.0.join("raw")).unwrap(), count);
            states += 1;
        }
    }
    // Seen with --nocapture.
    println!("{states} states, {leaks} with leaks");
    assert_eq!(states, MADE.len() * times());
}

#[test]
fn qemu_reads_what_was_written_and_the_other_way_round() {
    let mut random = Random(0xeed);
    for (command, base) in MADE {
        let Some(here) = made_in(base) else { return };
        let (code, said) = run(&here.0, command);
        assert_eq!(code, Some(0), "{command}: {said}");
        let parent = parent(command, base);
        let (_, said) = run(&here.0, "qemu-img convert -f qcow2 -O raw i raw");
        let mut model = fs::read(here.0.join("raw")).unwrap_or_else(|_| panic!("{said}"));
        for round in 0..4 {
            let file = File::new(fs::read(here.0.join("i")).unwrap(), usize::MAX);
            let store = open(&file, parent).unwrap_or_else(|why| panic!("{command}: {why}"));
            assert!(all(&store) == model, "{command} {round}");
            for _ in 0..60 {
                let asked = Asked::random(&mut random, model.len(), 1, 50_000);
                asked.run(&store);
                if let Some((at, length, byte)) = asked.change() {
                    model[at..at + length].fill(byte);
                }
            }
            store.flush().unwrap();
            fs::write(here.0.join("i"), &file.tape().bytes).unwrap();
            fs::write(here.0.join("model"), &model).unwrap();
            let at = random.below(model.len() / 512 - 8) * 512;
            let script = format!(
                "qemu-img check -f qcow2 i
                qemu-img compare -f raw -F qcow2 model i
                qemu-io -f qcow2 -c 'write -P 7 {at} 4096' -c 'write -z {at} 512' i"
            );
            let (code, said) = run(&here.0, &script);
            assert_eq!(code, Some(0), "{command} {round}: {said}");
            assert!(said.contains("No errors"), "{command} {round}: {said}");
            model[at..at + 4096].fill(7);
            model[at..at + 512].fill(0);
        }
    }
}

/// Threads that write sectors of the same clusters, each its own ones, with flushes between.
#[test]
fn threads_that_share_clusters_lose_nothing() {
    const THREADS: usize = 4;
    for (command, base) in MADE {
        let Some(here) = made_in(base) else { return };
        let (code, said) = run(&here.0, command);
        assert_eq!(code, Some(0), "{command}: {said}");
        let file = File::new(fs::read(here.0.join("i")).unwrap(), usize::MAX);
        let store = open(&file, parent(command, base)).unwrap();
        let first = all(&store);
        let sectors = first.len() / 512;
        let worker = |own: usize| {
            let (store, first) = (&store, &first);
            move || {
                let mut random = Random(own as u64 * 77 + 1);
                let mut model: Vec<Vec<u8>> = first.chunks(512).map(<[u8]>::to_vec).collect();
                for nth in 0..400 {
                    let sector = random.below(sectors / THREADS) * THREADS + own;
                    let at = sector as u64 * 512;
                    let byte = u8::try_from(nth % 250).unwrap() + 1;
                    match random.below(20) {
                        0 => store.flush().unwrap(),
                        1..4 => {
                            store.zero(at, 512).unwrap();
                            model[sector].fill(0);
                        }
                        4..8 => {
                            let mut found = [9; 512];
                            store.read_at(&mut found, at).unwrap();
                            assert!(found[..] == model[sector][..], "{own} {sector}");
                        }
                        _ => {
                            store.write_at(&[byte; 512], at).unwrap();
                            model[sector].fill(byte);
                        }
                    }
                }
                model
            }
        };
        let models: Vec<Vec<Vec<u8>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|own| scope.spawn(worker(own))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let found = all(&store);
        for (nth, sector) in found.chunks(512).enumerate() {
            assert!(sector == models[nth % THREADS][nth], "{command} {nth}");
        }
        store.flush().unwrap();
        fs::write(here.0.join("i"), &file.tape().bytes).unwrap();
        fs::write(here.0.join("model"), &found).unwrap();
        let check = "qemu-img check -f qcow2 i; qemu-img compare -f raw -F qcow2 model i";
        let (code, said) = run(&here.0, check);
        assert_eq!(code, Some(0), "{command}: {said}");
    }
}
