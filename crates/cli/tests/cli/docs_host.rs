//! The commands of `README.md` and `docs/manual/` that need a host: blocks of `sh host`, run line
//! by line where there is what they need.
//!
//! Each block has a directory of its own with the images that it names. A line that serves until
//! Ctrl-C is interrupted once it serves and the lines after it, up to the next server, have run; it
//! then has to end well. Any other line has to succeed. Places outside that directory, and ports
//! that may be taken, are replaced ([`Place`]). Where a tool, or leave to mount, is missing, a line
//! is skipped with a message; with `TRUELINE_ORACLE=all` it is a failure.

use crate::counters::path;
use crate::docs::manuals;
use crate::fuse::mounts;
use crate::loops::Loop;
use crate::skip::skip;
use crate::tracing;
use crate::{Scratch, kill, program, scratch};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The disks that the blocks name: 256 MiB with `s1` and `s1a`, and a stripe of two.
const DISKS: &str =
    "truncate -s 256M disk.img prod.img; truncate -s 16M ada1.img ada2.img; mkdir mnt
    trueline part create -s mbr disk.img; trueline part add -t freebsd disk.img
    trueline part create -s bsd 'disk.img#s1'; trueline part add -t freebsd-ufs 'disk.img#s1'
    trueline stripe label data ada1.img ada2.img";

/// A block of `sh host`.
struct Block {
    /// Of its first line, to be found by.
    place: String,
    lines: Vec<String>,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in manuals() {
        let text = fs::read_to_string(&page).expect("a manual can be read");
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            if line == "```sh host" {
                let place = format!(
                    "{}:{}",
                    page.file_name().unwrap_or_default().to_string_lossy(),
                    number + 2
                );
                let inside = lines
                    .by_ref()
                    .map(|(_, line)| line.to_owned())
                    .take_while(|line| line != "```");
                blocks.push(Block { place, lines: inside.collect() });
            }
        }
    }
    blocks
}

/// A directory for a block, in which what it names is.
struct Place {
    scratch: Scratch,
    /// Places in the manual, and their stand-ins here.
    here: [(&'static str, &'static str); 5],
    /// The device of the lines that trace one, where that can be done.
    device: Option<Loop>,
}

/// The beginning of a line that traces a device of the host.
const TRACE: &str = "trueline trace /dev/";

/// The beginning of a line that probes one, which a short probe of a file stands in for.
const PROBE: &str = "trueline probe ";

impl Place {
    /// A place for `block`, with what its lines need.
    fn new(block: &Block) -> Place {
        let scratch = scratch();
        let here = [
            ("/run/disk.sock", "disk.sock"),
            ("/etc/pki/disk", "."),
            (
                "//disks.example.org/?tls-certificates=/home/me/pki",
                "//localhost:PORT/?tls-certificates=.",
            ),
            ("10809", "0"),
            ("--metrics 9100", "--metrics 0"),
        ];
        let mut place = Place { scratch, here, device: None };
        place.run(DISKS, &place.directory().join("made")).expect("the disks can be made");
        if block.lines.iter().any(|line| line.starts_with(TRACE)) && tracing::able() {
            fs::copy(place.directory().join("disk.img"), place.directory().join("disk"))
                .expect("a copy");
            place.device = Some(Loop::new(place.directory(), ""));
        }
        place
    }

    fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// A line of the manual as it is meant here; of a client of TCP with `PORT` where the server's
    /// is to stand, which the system chooses: one that was free before may be taken.
    fn meant(&self, line: &str) -> String {
        if let (Some(device), Some(rest)) = (&self.device, line.strip_prefix(TRACE)) {
            return traced(&device.0, rest);
        }
        if let Some(rest) = line.strip_prefix(PROBE) {
            let rest = rest.replace("/mnt/data", "--size 32m .");
            let rest = rest.replace("/dev/sda", "disk.img").replace("/dev/sdb", "disk.img");
            return format!("{PROBE}--seconds 1 {rest}");
        }
        self.here.iter().fold(line.to_owned(), |line, (there, here)| line.replace(there, here))
    }

    fn shell(&self, line: &str, output: &Path) -> Command {
        let own = program(self.directory());
        let home = Path::new(own.get_program())
            .parent()
            .expect("the program is in a directory")
            .display()
            .to_string();
        let output = fs::File::create(output).expect("a file can be made");
        let mut shell = Command::new("sh");
        shell
            .args(["-ec", line])
            .current_dir(self.directory())
            .env("PATH", format!("{home}:{}", path()));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        shell
    }

    /// Runs a line to its end; what it complained of if it failed.
    fn run(&self, line: &str, output: &Path) -> Result<(), String> {
        let status = ended(&mut self.shell(line, output).spawn().expect("a shell"), line);
        if status.success() {
            Ok(())
        } else {
            Err(format!("{line}: {status}: {}", fs::read_to_string(output).unwrap_or_default()))
        }
    }

    /// The reason why a line cannot run here.
    fn lacks(&self, line: &str) -> Option<String> {
        let has = |test: &str| {
            self.shell(test, &self.directory().join("has"))
                .status()
                .is_ok_and(|status| status.success())
        };
        let tools = ["nbdinfo", "nbdcopy", "openssl", "fio", "mcopy", "mtype"]
            .into_iter()
            .filter(|tool| line.contains(tool));
        let missing =
            tools.map(|tool| (tool, format!("command -v {tool}"))).find(|(_, test)| !has(test));
        match missing {
            Some((tool, _)) => Some(format!("no {tool} here")),
            None if line.contains("--ioengine=nbd") && !has("fio --enghelp=nbd") => {
                Some("fio has no nbd engine here".into())
            }
            None if line.contains("tls-certificates") && !has("[ -e server-cert.pem ]") => {
                Some("no certificates without openssl".into())
            }
            None if line.starts_with(TRACE) => Some("devices cannot be traced here".into()),
            None if line.contains("--fuse") && !mounts() => {
                Some("mounting needs root, leave to mount, and /dev/fuse".into())
            }
            None => None,
        }
    }
}

/// A line that traces `device`, for a moment: `rest` is what follows `/dev/`. A table needs a
/// terminal, which `script` makes.
fn traced(device: &str, rest: &str) -> String {
    let options = rest.split_once(' ').map_or("", |(_, options)| options);
    let options = options.split_once('#').map_or(options, |(options, _)| options);
    let options = options.replace("'make -j8'", "true").replace("--seconds 60", "--seconds 0.2");
    let options = options.replace("--seconds 10", "--seconds 0.2");
    let mut line = format!("exec trueline trace {device} {options}");
    if line.contains("--top") {
        line = format!("exec script -qec \"{line} --seconds 2\" /dev/null");
    }
    let mounted = tracing::MOUNTED.replace("exec \"$@\"", &line);
    format!("unshare --mount --propagation private sh -c '{mounted}'")
}

/// Longest run of a line on any machine: a child that has not ended by then never ends, and is
/// killed.
const LONG: Duration = Duration::from_secs(600);

/// Exit status of a line's child.
fn ended(child: &mut Child, line: &str) -> ExitStatus {
    let end = Instant::now() + LONG;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{line}: it has not ended");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server that is interrupted when it is no longer needed, and killed with its test.
struct Server {
    child: Child,
    line: String,
    output: std::path::PathBuf,
}

impl Server {
    /// Waits until it serves by every way in.
    fn start(place: &Place, line: &str) -> Server {
        let output = place.directory().join("said");
        let child = place.shell(&format!("exec {line}"), &output).spawn().expect("a shell");
        let mut server = Server { child, line: line.to_owned(), output };
        let ways =
            ["--nbd", "--fuse", "--metrics"].into_iter().filter(|way| line.contains(way)).count();
        let end = Instant::now() + LONG;
        while server.output().matches("trueline: serving ").count() < ways {
            let ended = server.child.try_wait().expect("a child can be waited for");
            assert!(
                ended.is_none() && Instant::now() < end,
                "{line}: {ended:?}: {}",
                server.output()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// The port it listens at for NBD, from its output: `... at nbd://ADDRESS:PORT/`.
    fn port(&self) -> Option<String> {
        let output = self.output();
        let uri = output
            .lines()
            .filter_map(|line| line.split_once(" at "))
            .find(|(_, uri)| uri.starts_with("nbd://") || uri.starts_with("nbds://"))?
            .1;
        let (_, port) = uri.split_once("//")?.1.split('/').next()?.rsplit_once(':')?;
        Some(port.to_owned())
    }

    /// Interrupts it with Ctrl-C, and expects a good end.
    fn end(mut self) {
        assert!(kill("-INT", self.child.id()), "{}: {}", self.line, self.output());
        let status = ended(&mut self.child, &self.line);
        assert!(status.success(), "{}: {status}: {}", self.line, self.output());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended, or its test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.line.contains("--fuse") && std::thread::panicking() {
            // A killed server leaves its mount, on which the directory could not be removed.
            let point = self.output.with_file_name("mnt");
            let _ = Command::new("umount")
                .arg("-l")
                .arg(point)
                .env("PATH", path())
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Runs the lines of a block; how many.
fn play(block: &Block, place: &Place) -> usize {
    let (mut server, mut run): (Option<Server>, usize) = (None, 0);
    for line in &block.lines {
        let mut meant = place.meant(line);
        if let Some(port) = server.as_ref().and_then(Server::port) {
            meant = meant.replace("PORT", &port);
        }
        let serves = meant.starts_with("trueline serve ");
        if let Some(server) = server.take_if(|_| serves) {
            server.end();
        }
        if let Some(why) = place.lacks(&meant) {
            skip(&format!("{}: {line}: {why}", block.place));
            continue;
        }
        run += 1;
        if serves && !meant.contains(" --run ") {
            server = Some(Server::start(place, &meant));
        } else if let Err(why) = place.run(&meant, &place.directory().join("line")) {
            panic!("{}: {why}", block.place);
        }
    }
    if let Some(server) = server {
        server.end();
    }
    run
}

#[test]
fn what_needs_a_host_is_true_on_this_one() {
    let blocks = blocks();
    // What one block makes, the certificates, another one uses.
    let makes = blocks
        .iter()
        .find(|block| block.lines.iter().any(|line| line.starts_with("openssl ")))
        .expect("a block that makes certificates");
    let mut run = 0;
    for block in &blocks {
        let place = Place::new(block);
        if block.lines.iter().any(|line| line.contains("--tls-certificates")) {
            play(makes, &place);
        }
        run += play(block, &place);
    }
    assert!(run > 0, "no block was found, or none can be run here");
}
