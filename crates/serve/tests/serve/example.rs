//! The example `serve_memory`, run as a program: a client reads, and the counts are printed at the
//! end.

use crate::Scratch;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use trueline_geom::base::store::Store;
use trueline_host::nbd::client::Remote;

/// A program that ends with its test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Path of the example, which cargo builds with the tests; one that is older than its source is
/// built again.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program =
        test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/serve_memory");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/serve_memory.rs");
    let changed = |path: &str| std::fs::metadata(path).and_then(|known| known.modified());
    if changed(&program.display().to_string()).ok() < changed(source).ok() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--example", "serve_memory"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args((!cfg!(debug_assertions)).then_some("--release"));
        assert!(cargo.status().unwrap().success());
    }
    program
}

/// Serves at a socket of its own, runs `client` on the URI that is printed, ends with `signal`; the
/// lines that are printed last.
fn served(signal: Option<&str>, client: impl FnOnce(&str)) -> Vec<String> {
    let scratch = Scratch::new();
    let mut command = Command::new(example());
    command.arg(scratch.0.join("s")).args(signal.is_none().then_some("1")).stdout(Stdio::piped());
    let mut program = Program(command.spawn().unwrap());
    let mut out = BufReader::new(program.0.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    client(first.strip_prefix("at ").unwrap().trim_end());
    if let Some(signal) = signal {
        let number = program.0.id().to_string();
        assert!(Command::new("kill").args([signal, &number]).status().unwrap().success());
    }
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(program.0.wait().unwrap().success(), "{rest}");
    rest.lines().map(str::to_owned).collect()
}

#[test]
fn an_export_over_memory_is_read_and_counted() {
    let lines = served(Some("-TERM"), |uri| {
        let disk = Remote::open(uri, false).unwrap();
        assert_eq!(disk.length(), 64 << 20);
        let mut header = [0; 8];
        disk.read_at(&mut header, 512).unwrap();
        assert_eq!(&header, b"EFI PART");
        let mut block = [0; 4096];
        for nth in 0..7 {
            disk.write_at(&[9; 4096], (1 << 20) + nth * 4096).unwrap();
        }
        for nth in 0..5 {
            disk.read_at(&mut block, (32 << 20) + 3584 + nth * 4096).unwrap();
        }
        disk.read_at(&mut block, 1 << 20).unwrap();
        assert_eq!(block, [9; 4096]);
    });
    assert!(lines.contains(&"p1: 8 aligned, 0 misaligned".into()), "{lines:?}");
    assert!(lines.contains(&"p2: 0 aligned, 5 misaligned".into()), "{lines:?}");
}

#[test]
fn it_ends_by_itself_after_its_time() {
    assert_eq!(served(None, |_| ()), [""; 0]);
}
