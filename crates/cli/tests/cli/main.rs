//! The command line as scripts outside rely on it: what it takes, what it prints, how it ends.

mod alignment_scan;
mod apply;
mod asked;
mod bench;
mod bench_containers;
mod bench_exports;
mod bench_files;
mod bench_safety;
mod bench_several;
mod bench_through;
mod browser;
mod changed;
mod config;
mod container_files;
mod containers;
mod contrib;
mod converting;
mod converting_within;
mod counters;
mod counters_shown;
mod cures;
mod disk_options;
mod docs;
mod docs_host;
mod drives;
mod fat_width;
mod fleet;
mod forms;
mod free_space;
mod fuse;
mod help;
mod hosts;
mod journals;
mod journals_between;
mod json;
mod keys;
mod lab;
mod lab_page;
mod lab_sweep;
#[path = "../disks/lay.rs"]
mod lay;
mod listed;
mod live_page;
mod load;
mod loaders;
mod loops;
mod mkfs;
mod moving;
mod moving_interrupted;
mod moving_nested;
mod moving_sets;
mod moving_sparse;
mod moving_whole;
mod nagios;
#[cfg(feature = "cloud")]
#[path = "../../../cloud/tests/cloud/server.rs"]
#[allow(dead_code, reason = "the tests of the crate itself serve memory too")]
mod object_server;
#[cfg(feature = "cloud")]
mod objects;
#[cfg(feature = "cloud")]
mod objects_bounded;
mod part;
mod parts;
mod plan;
mod probing;
#[path = "../disks/recipe.rs"]
#[allow(dead_code, reason = "only the tests of golden disks make disks afresh")]
mod recipe;
mod remembered;
mod schemas;
mod serve_again;
mod serve_background;
mod serve_bytes;
mod serve_chain;
mod serve_clients;
mod serve_grains;
mod serve_guest;
mod serve_layers;
mod serve_memory;
mod serve_nbd;
mod serve_options;
mod serve_overlay;
mod serve_record;
mod serve_run;
mod serve_tls;
mod sets;
#[path = "../../../../tests/skip.rs"]
mod skip;
mod status;
mod targets;
mod terminal;
mod trace_proof;
mod traced_guest;
mod traced_programs;
mod tracing;
mod tracing_report;
mod ublk;
mod vhd_alignment;
mod widths;
mod written;

use recipe::Scratch;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Output and exit status of a run of the program.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn of(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the output is UTF-8");
        schemas::hold(&output.stdout);
        Ran {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The document on stdout.
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}{}", self.stdout, self.stderr))
    }

    /// That it failed as every failure should: status 2 and one line on stderr; that line.
    #[track_caller]
    fn refused(&self) -> &str {
        assert_eq!(self.code, Some(2), "{}{}", self.stdout, self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("a line on stderr");
        assert!(
            line.starts_with("trueline: ") && !line.contains('\n'),
            "not one line for people: {line}"
        );
        line
    }

    /// That it ended with `code` and had nothing to complain of.
    #[track_caller]
    fn ended(&self, code: i32) -> &Ran {
        assert_eq!((self.code, self.stderr.as_str()), (Some(code), ""), "{}", self.stdout);
        self
    }
}

/// The program, ready to be run in `directory`, away from the terminal and the environment that
/// started the tests.
fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    command.current_dir(directory).stdin(Stdio::null());
    for name in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "TERM",
        "http_proxy",
        "all_proxy",
        "ALL_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "TRUELINE_FOR",
    ] {
        command.env_remove(name);
    }
    // Clients that it runs say in English what went wrong; tools are found where tests look for
    // them.
    command
        .env("LC_ALL", "C")
        // This machine's settings are not those of a test.
        .env("TRUELINE_CONFIG", "/dev/null")
        // What a test measures is not remembered of this machine's drives.
        .env("TRUELINE_MEASURED", directory.join(".measured.json"))
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    command
}

/// Runs `trueline` with `arguments`, separated by spaces, in `directory`.
fn run(directory: &Path, arguments: &str) -> Ran {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    run_with(directory, &arguments)
}

/// The same where an argument may have a space in it.
fn run_with(directory: &Path, arguments: &[&str]) -> Ran {
    Ran::of(&program(directory).args(arguments).output().expect("the program can be run"))
}

/// Sends a process a signal, `-TERM`; whether there was one. The shell's own kill does it: not
/// every system has it as a program.
#[must_use]
fn kill(signal: &str, id: u32) -> bool {
    Command::new("sh")
        .args(["-c", &format!("kill {signal} {id}")])
        .status()
        .expect("a shell")
        .success()
}

/// Longest wait for something that comes far sooner, on any machine, or never.
const LONG: Duration = Duration::from_secs(600);

/// Waits until `is` holds, while `child` runs; else the test fails, and does not wait for ever.
#[track_caller]
fn wait_while_runs(child: &mut Child, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert_eq!(child.try_wait().expect("a child can be waited for"), None, "it has ended");
        assert!(begun.elapsed() < LONG, "it runs, and what is waited for does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The list under a key; none if it is no list.
fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The strings under `key` in every object of a list.
fn texts<'a>(objects: &'a [Value], key: &str) -> Vec<&'a str> {
    objects.iter().map(|object| object[key].as_str().expect("a string")).collect()
}

/// A directory of this test's own.
fn scratch() -> Scratch {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    Scratch::new(&format!("cli-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// A directory with a golden disk in it: files `disk`, `disk1` and so on.
fn golden(name: &str) -> Scratch {
    let scratch = scratch();
    lay_golden(name, scratch.path());
    scratch
}

/// Lays a golden disk into `directory`; its files' names.
fn lay_golden(name: &str, directory: &Path) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/disks/{name}.hex"));
    let recipe = recipe::Recipe::read(path).unwrap_or_else(|e| panic!("golden disk {name}: {e}"));
    lay::lay(&recipe, directory).unwrap_or_else(|e| panic!("golden disk {name}: {e}"))
}

/// Makes a sparse file of zeroes.
fn zeroes(directory: &Path, name: &str, length: u64) {
    let file = std::fs::File::create(directory.join(name)).expect("a file can be made");
    file.set_len(length).expect("a file can be made longer");
}
