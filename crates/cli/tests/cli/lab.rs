//! `lab`: the table of all labs as before, every row within its bound, what is wrong with a lab said with its line.

use crate::{Ran, list, run, scratch};
use std::fs;
use std::path::Path;

/// As many points as the whole table can be swept with in a build that is not optimised.
const ALL: &str = "lab run --all --sweep 4";

#[test]
fn the_table_is_as_before() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let scratch = scratch();
    let got = run(scratch.path(), ALL).ended(0).stdout.clone();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/labs/results.txt");
    if bless {
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("a directory can be made");
        fs::write(&path, &got).expect("a golden text can be written");
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    let line = want.lines().zip(got.lines()).take_while(|(a, b)| a == b).count();
    let at = |text: &str| text.lines().nth(line).unwrap_or("(its end)").to_owned();
    assert!(want == got, "tests/labs/results.txt:{}\n- {}\n+ {}\nTRUELINE_BLESS=1 writes it", line + 1, at(&want), at(&got));
}

#[test]
fn every_row_keeps_its_bound() {
    let document = run(scratch().path(), "lab run --all --sweep 0 --json").ended(0).json();
    assert_eq!(document["format"], "trueline/lab/1");
    let mut bounded = 0;
    for lab in list(&document, "labs") {
        for row in list(lab, "rows") {
            let name = format!("{} {}", lab["lab"], row["row"]);
            let value = |of: &str, key: &str| row[of][key].as_f64();
            if row["ours"].is_null() {
                assert!(row["note"].as_str().is_some_and(|note| note.len() > 20), "{name}: nothing says why it is not predicted");
                assert_eq!(row["predicted"], false, "{name}");
                continue;
            }
            let over = |key| Some(value("ours", key)? / value("published", key)? - 1.0);
            let (Some(error), Some(bound)) = (over("ratio").or_else(|| over("aligned")), row["bound"].as_f64()) else { continue };
            assert!(error.abs() <= bound, "{name}: {error:+.3}, and {bound} is promised");
            assert_eq!(row["error"].as_f64().is_some(), value("published", "ratio").is_some(), "{name}");
            bounded += 1;
        }
    }
    assert!(bounded >= 8, "{bounded} rows have a bound");
}

/// A lab of one row.
fn lab(row: &str) -> String {
    format!("name = \"mine\"\ntitle = \"mine\"\ndrives = [{{ model = \"md\" }}]\n[[row]]\nid = \"a\"\ntitle = \"a\"\nunit = \"s\"\n{row}")
}

fn run_lab(text: &str) -> Ran {
    let scratch = scratch();
    fs::write(scratch.path().join("mine.toml"), text).expect("a file can be written");
    run(scratch.path(), "lab run mine.toml")
}

const READ: &str = "workload = { kind = \"random-read\", count = 10 }\n";

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (row, line, why) in [
        ("workload = { kind = \"fly\" }", 8, "no workload 'fly': dd, "),
        ("workload = { kind = \"dd\", speed = 1 }", 8, "workload dd: unknown field `speed`"),
        ("workload = 1", 8, "invalid type"),
        ("colour = \"red\"", 8, "unknown field `colour`"),
        (READ, 4, "row a: a row with a workload has at least the variant aligned"),
        ("", 4, "row a: without a workload, note says why"),
        (&format!("{READ}aligned = {{ offset = -1 }}"), 9, "-1"),
        (&format!("{READ}aligned = {{}}\n[[row]]\nid = \"a\"\ntitle = \"b\"\nunit = \"s\"\nnote = \"none\""), 10, "row a is there already"),
        (&format!("{READ}aligned = {{}}\nhost = {{ kind = \"vms\" }}"), 10, "unknown variant `vms`"),
    ] {
        let ran = run_lab(&lab(row));
        let said = ran.refused();
        assert!(said.starts_with(&format!("trueline: lab run mine.toml: line {line}: ")) && said.contains(why), "{row}\n{said}");
    }
}

#[test]
fn a_row_that_fails_does_not_take_the_others_with_it() {
    for (aligned, line, why) in [
        ("{ disk = \"none.hex\" }", 15, "read the hexdump none.hex: no such file"),
        ("{ disk = \"mine.toml\" }", 15, "hexdump mine.toml: line 1"),
        ("{ provider = \"s9\" }", 15, "no provider 's9': there is none but the disk"),
        ("{ offset = 1073741824 }", 11, "offset = 1073741824: the provider has 1073741824 bytes"),
        ("{ set = { rpm = 0 } }", 3, "model md: "),
        ("{ set = { size = 0 } }", 3, "model md: size = 0: "),
    ] {
        let good = format!("{READ}aligned = {{}}\n");
        let bad = format!("[[row]]\nid = \"b\"\ntitle = \"b\"\nunit = \"s\"\naligned = {aligned}\n{READ}");
        let (both, rows) = (run_lab(&lab(&format!("{good}\n{bad}"))), ["a", "b"]);
        assert!(rows.iter().all(|row| both.stdout.lines().any(|line| line.starts_with(row))), "{}", both.stdout);
        assert!(both.stdout.contains("b: not run: "), "{}", both.stdout);
        let said = both.refused();
        assert!(said.starts_with(&format!("trueline: lab run mine, row b: line {line}: ")) && said.contains(why), "{aligned}\n{said}");
    }
}

#[test]
fn rows_and_labs_are_found_by_name() {
    let scratch = scratch();
    let one = run(scratch.path(), "lab run --row md,zero 2002-geom --csv").ended(0).stdout.clone();
    let rows: Vec<&str> = one.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(rows, ["zero", "md"]);
    let none = run(scratch.path(), "lab run --row flight --all");
    assert!(none.refused().contains("lab run --row flight: no such row: there are zero, md,"), "{}", none.stderr);
    assert!(run(scratch.path(), "lab run nowhere").refused().contains("lab run nowhere: no such file"));
    let listed = run(scratch.path(), "lab list").ended(0).stdout.clone();
    assert!(listed.contains("2009-gstripe  RAID0") && listed.contains("  raidtest-n1 raidtest-n64\n"), "{listed}");
}
