//! This machine: what is measured, and what is skipped.

use crate::error::Error;
use crate::study::{Lab, Selection, Texts, run};
use std::borrow::Cow;

/// No texts: the disk comes with the program.
struct Nothing;

impl Texts for Nothing {
    fn read(&self, name: &str) -> Result<Cow<'static, str>, Error> {
        Err(Error::new(format!("{name} is read")))
    }
}

fn all(text: &str) -> Vec<crate::result::Row> {
    let lab = Lab::parse(text, Box::new(Nothing)).expect("a lab");
    let asked = Selection { rows: Vec::new(), sweep: 0, threads: 2 };
    let (mut document, failures) = run(&[lab], &asked, &|_| {}).expect("it is within its bounds");
    assert_eq!(failures, []);
    document.labs.remove(0).rows
}

/// The lab that comes with the program, made small: every row has values, or says why not.
#[test]
fn this_machine_is_measured_or_says_why_not() {
    let text = include_str!("../../../../../labs/here.toml").replace("268435456", "4194304");
    let text = text
        .replace("count = 20000", "count = 50")
        .replace("count = 1000", "count = 50")
        .replace("count = 200", "count = 3")
        .replace("files = 1000", "files = 20");
    let text = text.replace("real = { ", "real = { runs = 4, ");
    let rows = all(&text);
    assert_eq!(rows.len(), 8);
    for row in rows {
        let said = row.note.contains("skipped here: ");
        assert!(row.ours.is_some() != said && row.skipped == said, "{row:?}");
        assert!(
            !row.predicted
                && row.variants.iter().all(|variant| variant.ops > 0 && variant.seconds > 0.0),
            "{row:?}"
        );
    }
}

#[test]
fn what_cannot_be_measured_is_skipped_with_a_reason() {
    let row = |real: &str, rest: &str| {
        let head =
            "name = \"x\"\ntitle = \"x\"\n[[row]]\nid = \"r\"\ntitle = \"r\"\nunit = \"ns\"\n";
        let work = "workload = { kind = \"random-read\", bs = 512, count = 5 }\n";
        all(&format!("{head}{work}real = {{ {real} }}\n{rest}\n")).remove(0)
    };
    for (real, rest, why) in [
        ("buffered = true", "aligned = {}", "make a scratch file of 0 bytes"),
        ("bytes = 99999999999999", "aligned = {}", "from 1 to 4294967296"),
        ("bytes = 512", "aligned = {}", "random blocks of 512 bytes"),
        ("bytes = 65536, layers = [\"s9\"]", "aligned = {}", "no provider 's9'"),
        ("bytes = 65536", "aligned = { offset = 7 }", "at an offset of 7"),
        (
            "bytes = 65536, loop = true",
            "aligned = {}\nunaligned = { offset = 65536 }",
            "make a loop device from byte 65536: the scratch file has 65536 bytes",
        ),
    ] {
        let row = row(real, rest);
        assert!(
            row.ours.is_none() && row.note.starts_with("skipped here: ") && row.note.contains(why),
            "{}",
            row.note
        );
    }
}
