//! `serve` under load: 16 clients with 32 requests each in flight, of which each byte is looked at;
//! clients are killed, servers are killed, servers are told to end.
//!
//! `TRUELINE_LOAD=10000000` asks so many requests where it is 10⁵ otherwise, `TRUELINE_LOAD_SERVER`
//! of another build of the program. The clients are processes: this test's program, which runs
//! [`a_client`] alone.

mod client;
mod ledger;

use crate::{LONG, Scratch, kill, program, scratch, zeroes};
use client::{DEPTH, ENOUGH, Order, Random};
use ledger::{BLOCK, BLOCKS, CLIENTS, LENGTH, Ledger};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{SIMPLE_REPLY, command};

/// First byte of the partition in the image: sector 63.
const START: usize = 63 * 512;
const IMAGE: u64 = 40 << 20;
/// Environment variable with the order of a client process.
const ORDER: &str = "TRUELINE_LOAD_ORDER";

/// A server and its clients, in a directory of their own. They do not outlive the test.
struct Load {
    scratch: Scratch,
    server: Child,
    clients: Vec<Option<Child>>,
    random: Random,
    /// Of each client: one request in so many is a flush, and whether the server may end first.
    orders: (usize, bool),
}

impl Load {
    fn start(target: &str, seed: u64, orders: (usize, bool)) -> Load {
        let scratch = scratch();
        zeroes(scratch.path(), "disk", IMAGE);
        let mut entry = [0; 66];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&63_u32.to_le_bytes());
        entry[12..16]
            .copy_from_slice(&u32::try_from(IMAGE / 512 - 63).expect("a small disk").to_le_bytes());
        entry[64..].copy_from_slice(&[0x55, 0xaa]);
        let image =
            File::options().write(true).open(scratch.path().join("disk")).expect("the disk");
        image.write_all_at(&entry, 446).expect("a table");
        let said = File::create(scratch.path().join("said")).expect("a file");
        let mut server = match std::env::var("TRUELINE_LOAD_SERVER") {
            Ok(other) => {
                let mut other = Command::new(other);
                other.current_dir(scratch.path());
                other
            }
            Err(_) => program(scratch.path()),
        };
        server
            .arg("serve")
            .args(target.split_whitespace())
            .args(["--nbd", "unix:s", "--no-counters"])
            .stdin(Stdio::null())
            .stderr(said);
        let mut server = server.spawn().expect("the program can be run");
        // Its socket is there before it can be connected to; what it says comes after.
        let said = || fs::read_to_string(scratch.path().join("said")).expect("a file");
        let end = Instant::now() + LONG;
        while !said().contains("trueline: serving ") {
            assert!(
                server.try_wait().expect("a child").is_none() && Instant::now() < end,
                "{}",
                said()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut load = Load { scratch, server, clients: Vec::new(), random: Random(seed), orders };
        load.clients = (0..CLIENTS).map(|client| Some(load.client(client))).collect();
        load
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Starts a client, which goes on where the one before it was killed.
    fn client(&mut self, client: usize) -> Child {
        let (sync, outlives) = self.orders;
        let order =
            format!("{client} {} {sync} {}", self.random.below(1 << 30), u8::from(outlives));
        let said = File::create(self.path(&format!("client{client}"))).expect("a file");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--ignored", "--exact", "load::a_client", "--nocapture"])
            .env(ORDER, order)
            .current_dir(self.scratch.path());
        command
            .stdin(Stdio::null())
            .stderr(said.try_clone().expect("a file"))
            .stdout(said)
            .spawn()
            .expect("a client")
    }

    /// Requests that are answered.
    fn requests(&self) -> u64 {
        (0..CLIENTS).map(|client| Ledger::requests_in(&self.path(&format!("ledger{client}")))).sum()
    }

    /// True if a client goes on; one that failed fails the test.
    fn goes_on(&mut self, client: usize) -> bool {
        let Some(child) = &mut self.clients[client] else { return false };
        let Some(ended) = child.try_wait().expect("a child") else { return true };
        self.clients[client] = None;
        let said = fs::read_to_string(self.path(&format!("client{client}"))).expect("a file");
        assert!(
            ended.success(),
            "client {client}: {said}\nserver: {}",
            fs::read_to_string(self.path("said")).expect("a file")
        );
        false
    }

    /// Waits until some requests are answered, or all clients have ended; whether clients go on.
    /// Where nothing is answered any more the test fails.
    fn until(&mut self, requests: u64) -> bool {
        let (mut answered, mut since) = (0, Instant::now());
        loop {
            let going = (0..CLIENTS).filter(|&client| self.goes_on(client)).count();
            let now = self.requests();
            if going == 0 || now >= requests {
                return going > 0;
            }
            if now != answered {
                (answered, since) = (now, Instant::now());
            }
            assert!(
                since.elapsed() < LONG,
                "{going} clients go on, and nothing is answered after {answered} requests"
            );
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Kills some of the clients that go on, one to four, and puts others in their places; how
    /// many.
    fn kill(&mut self) -> usize {
        let count = 1 + self.random.below(4);
        let going: Vec<usize> = (0..CLIENTS).filter(|&client| self.goes_on(client)).collect();
        let first = self.random.below(CLIENTS);
        let killed: Vec<usize> =
            going.iter().cycle().skip(first).take(count.min(going.len())).copied().collect();
        for &client in &killed {
            let mut child = self.clients[client].take().expect("it goes on");
            child.kill().expect("a child");
            child.wait().expect("a child");
        }
        for &client in &killed {
            self.clients[client] = Some(self.client(client));
        }
        killed.len()
    }

    /// Tells the server to end, which it has to do in order.
    fn terminate(&mut self) {
        let told = kill("-TERM", self.server.id());
        let ended = self.server.wait().expect("a child");
        let said = fs::read_to_string(self.path("said")).expect("a file");
        let in_order = |line: &str| {
            line.is_empty()
                || ["serving ", "note "]
                    .iter()
                    .any(|word| line.starts_with(&format!("trueline: {word}")))
        };
        let complains = !said.lines().all(in_order);
        assert!(told && ended.success() && !complains, "{ended}: {said}");
    }

    /// The most memory that the server has had at one time, in bytes.
    fn peak(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.server.id())).expect("its status");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a high-water mark");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// Contents of the export, read by a client.
    fn export(&self) -> Vec<u8> {
        let mut stream = client::connect(&self.path("s")).expect("a connection");
        let mut all = vec![0; LENGTH];
        for (nth, piece) in all.chunks_mut(1 << 20).enumerate() {
            let length = u64::try_from(piece.len()).expect("a MiB");
            let request = Request {
                flags: 0,
                command: command::READ,
                cookie: 0,
                offset: (nth as u64) << 20,
                length,
            };
            stream.write_all(&request.compact().expect("it fits")).expect("a request");
            let mut head = [0; SIMPLE_REPLY];
            stream.read_exact(&mut head).expect("a reply");
            assert_eq!(head[4..8], [0; 4], "an error");
            stream.read_exact(piece).expect("the bytes");
        }
        all
    }

    /// Contents of the partition in the image.
    fn image(&self) -> Vec<u8> {
        fs::read(self.path("disk")).expect("the image").split_off(START)
    }

    fn ledgers(&self) -> impl Iterator<Item = Ledger> {
        (0..CLIENTS).map(|client| Ledger::open(&self.path(&format!("ledger{client}"))))
    }

    /// Holds every block against what its client knows of it, from the generation that `oldest`
    /// names on; how many are in doubt.
    fn check(&self, bytes: &[u8], oldest: fn(ledger::Block) -> u32) -> usize {
        let mut doubts = 0;
        for (client, ledger) in self.ledgers().enumerate() {
            for (nth, &block) in ledger.blocks.iter().enumerate() {
                let number = ledger::number(client, nth);
                let found = &bytes[number * BLOCK..][..BLOCK];
                let (oldest, sent) = (oldest(block), block.sent);
                assert!(
                    ledger::holds(found, number, oldest, sent),
                    "block {number}: not {oldest} to {sent}: {found:x?}"
                );
                doubts += usize::from(oldest != sent);
            }
        }
        doubts
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in self.clients.iter_mut().flatten().chain([&mut self.server]) {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Number of requests of a run.
fn requests() -> u64 {
    std::env::var("TRUELINE_LOAD")
        .map_or(100_000, |text| text.parse().expect("TRUELINE_LOAD is a number"))
}

/// Kills clients while the others go on, and looks for what they wrote.
fn kill_clients(target: &str, requests: u64, seed: u64) -> Load {
    let mut load = Load::start(target, seed, (500, false));
    let (beginning, step) = (Instant::now(), (requests / 25).min(20_000));
    let (mut kills, mut next) = (0, step);
    // However much they do between two looks at them.
    while load.requests() < requests || kills < 10 {
        assert!(load.until(next), "the clients have ended");
        kills += load.kill();
        next = load.requests()
            + step / 2
            + load.random.below(usize::try_from(step).expect("a small step")) as u64;
    }
    File::create(load.path(ENOUGH)).expect("a file");
    assert!(!load.until(u64::MAX), "they end when they are told");
    let (seconds, peak, answered) =
        (beginning.elapsed().as_secs_f64(), load.peak(), load.requests());
    let doubts = load.check(&load.export(), |block| block.answered);
    println!(
        "{target}: {answered} requests answered in {seconds:.1} s, {kills} clients killed, {doubts} blocks in doubt, peak RSS {peak}"
    );
    assert!(
        doubts <= kills * DEPTH && doubts < CLIENTS * BLOCKS / 2,
        "{doubts} writes were never answered"
    );
    load
}

#[test]
#[ignore = "a process of the other tests"]
fn a_client() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let words: Vec<u64> = order.split(' ').map(|word| word.parse().expect("a number")).collect();
    let &[client, seed, sync, outlives] = words.as_slice() else { panic!("{order}") };
    let small = |word: u64| usize::try_from(word).expect("a small number");
    let order = Order { client: small(client), seed, sync: small(sync), outlives: outlives == 1 };
    client::run(order).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn clients_are_killed_and_the_others_go_on() {
    kill_clients("md:40m", requests(), 1).terminate();
}

/// Sectors that hold blocks of several clients: others write them at the same time, and every write
/// reads them first.
#[test]
fn clients_that_share_sectors_are_killed() {
    let mut load = kill_clients("disk#s1 --direct", requests() / 10, 2);
    load.terminate();
    load.check(&load.image(), |block| block.answered);
}

#[test]
fn what_was_flushed_survives_a_server_that_is_killed() {
    for round in 0..6 {
        let mut load = Load::start(
            if round % 2 == 0 { "disk#s1" } else { "disk#s1 --direct" },
            round,
            (50, true),
        );
        let moment = 1000 + load.random.below(3000) as u64;
        assert!(load.until(moment), "the clients have ended");
        // A slow medium has flushed nothing by then.
        while !load.ledgers().any(|ledger| ledger.blocks.iter().any(|block| block.durable > 0)) {
            assert!(load.until(load.requests() + 1), "the clients have ended");
        }
        load.server.kill().expect("a child");
        load.server.wait().expect("a child");
        assert!(!load.until(u64::MAX), "no server answers them");
        load.check(&load.image(), |block| block.durable);
    }
}

#[test]
fn a_server_that_is_told_to_end_loses_nothing_it_answered() {
    for round in 0..4 {
        let mut load = Load::start(
            if round % 2 == 0 { "disk#s1" } else { "disk#s1 --direct" },
            10 + round,
            (500, true),
        );
        let moment = 1000 + load.random.below(6000) as u64;
        assert!(load.until(moment), "the clients have ended");
        load.terminate();
        assert!(!load.until(u64::MAX), "no server answers them");
        load.check(&load.image(), |block| block.answered);
    }
}

/// The check that all other tests rely on: a block that is lost, old, torn or another's is found.
#[test]
fn a_block_that_is_wrong_is_seen() {
    let (old, new) = (ledger::content(5, 6), ledger::content(5, 7));
    let torn = [&new[..512], &old[512..]].concat();
    assert!(
        ledger::holds(&new, 5, 7, 7)
            && ledger::holds(&new, 5, 6, 7)
            && ledger::holds(&vec![0; BLOCK], 5, 16, 16)
    );
    for wrong in [&old, &torn, &ledger::content(6, 7), &vec![0; BLOCK]] {
        assert!(!ledger::holds(wrong, 5, 7, 7));
    }
    // Only where a server was killed in the middle of a write may a block be of two generations.
    assert!(ledger::holds(&torn, 5, 6, 7) && !ledger::holds(&vec![0; BLOCK], 5, 6, 7));
}
