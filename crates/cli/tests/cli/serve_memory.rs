//! Memory that `serve` takes for clients that announce more than there is.

use crate::{LONG, Scratch, program, scratch, wait_while_runs};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{IHAVEOPT, command, option};

const MIB: u64 = 1 << 20;
const CLIENTS: usize = 40;
/// Bytes that each of them announces.
const LENGTH: usize = 8 << 20;

/// A server, which does not outlive the test.
struct Server(Child, Scratch);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(target: &str, memory: &str) -> Server {
        let scratch = scratch();
        let arguments = ["serve", target, "--memory", memory, "--nbd", "unix:s", "--no-counters"];
        let child = program(scratch.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be run");
        Server(child, scratch)
    }

    fn connect(&mut self) -> UnixStream {
        let (mut stream, socket) = (None, self.1.path().join("s"));
        wait_while_runs(&mut self.0, || {
            stream = UnixStream::connect(&socket).ok();
            stream.is_some()
        });
        let mut stream = stream.expect("it was waited for");
        stream.set_read_timeout(Some(LONG)).expect("a socket");
        let hello = [
            &3_u32.to_be_bytes()[..],
            &IHAVEOPT.to_be_bytes(),
            &option::EXPORT_NAME.to_be_bytes(),
            &[0; 4],
        ]
        .concat();
        stream.write_all(&hello).expect("it listens");
        stream.read_exact(&mut [0; 28]).expect("an export");
        stream
    }

    /// The most that was ever in memory, in bytes.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("proc(5)");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }
}

#[test]
fn clients_that_announce_much_take_what_there_is() {
    let mut server = Server::start("md:64m", "16m");
    let begun = {
        server.connect();
        server.peak()
    };
    let streams: Vec<UnixStream> = (0..CLIENTS).map(|_| server.connect()).collect();
    let bytes = vec![7; LENGTH - 1];
    std::thread::scope(|scope| {
        for mut stream in &streams {
            let bytes = &bytes;
            scope.spawn(move || {
                let length = u64::try_from(LENGTH).expect("a length");
                let request =
                    Request { flags: 0, command: command::WRITE, cookie: 1, offset: 0, length };
                let head = request.compact().expect("a request without extended headers");
                // All but the last byte, as far as it is taken.
                let _ = stream.write_all(&head).and_then(|()| stream.write_all(bytes));
            });
        }
        // As much as there is, and then some time for more than there is.
        let asked = Instant::now();
        while server.peak() <= begun + 15 * MIB {
            assert!(asked.elapsed() < LONG, "they do not get what there is");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        streams.iter().for_each(|stream| stream.shutdown(Shutdown::Both).expect("it is connected"));
    });
    let own = u64::try_from(CLIENTS).expect("few") * 4 * MIB;
    let (peak, most) = (server.peak(), begun + 16 * MIB + own);
    assert!(peak <= most, "{peak} bytes, and {most} at most");
}
