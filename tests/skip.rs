//! A test that cannot run on this machine: said on stderr, and listed at the end of `make test`.
//!
//! `TRUELINE_SKIPPED` names the file of that list, one line a reason. With `TRUELINE_ORACLE=all` a
//! skip is a failure. The runner of Rust's tests knows no skip at run time and calls the test `ok`,
//! so the list is the only place where it is seen.

use std::io::Write;

/// Skips a test, or a part of it, for the reason `why`.
///
/// # Panics
/// With `TRUELINE_ORACLE=all`.
pub(crate) fn skip(why: &str) {
    let thread = std::thread::current();
    let line =
        format!("{}::{}: {why}\n", env!("CARGO_CRATE_NAME"), thread.name().unwrap_or("a thread"));
    if let Some(list) = std::env::var_os("TRUELINE_SKIPPED") {
        let opened = std::fs::File::options().create(true).append(true).open(list);
        // One write a line: tests of several processes append to the list.
        opened
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of skipped tests");
    }
    // Straight to the terminal: what was not proved is seen although the test passes.
    let _ = write!(std::io::stderr(), "skipped: {line}");
    assert!(
        !std::env::var("TRUELINE_ORACLE").is_ok_and(|v| v == "all"),
        "TRUELINE_ORACLE=all, and something was skipped"
    );
}
