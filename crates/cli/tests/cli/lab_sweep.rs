//! `lab sweep`: a line for every point, in shares that make the whole, gone on with where a run has
//! ended, and with the interval that `lab run` prints.

use crate::recipe::Scratch;
use crate::schemas::{fits, schema};
use crate::{Ran, kill, list, program, run, scratch, wait_while_runs};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// A drive that answers at once; half of the range of its rate is impossible.
const MODEL: &str = "name = \"m\"\ntitle = \"m\"\nsize = 1048576\nlogical_block_size = 512\n\
    physical_block_size = 4096\n[memory]\ncommand_ns = 100.0\nrate_bytes = 100000\n[range]\n\
    command_ns = [50, 150]\nrate_bytes = [0, 200000]\n";

/// A lab of one row on that drive, with `count` requests a layout.
fn mine(count: u32) -> Scratch {
    let scratch = scratch();
    let work = format!("{{ kind = \"random-write\", bs = 4096, count = {count} }}");
    let row = format!(
        "name = \"mine\"\ntitle = \"mine\"\ndrives = [{{ model = \"./m.toml\" }}]\n[[row]]\nid = \
         \"a\"\ntitle = \"a\"\nunit = \"s\"\nworkload = {work}\naligned = {{}}\nunaligned = {{ \
         offset = 512 }}\n"
    );
    fs::write(scratch.path().join("mine.toml"), row).expect("a file");
    fs::write(scratch.path().join("m.toml"), MODEL).expect("a file");
    scratch
}

fn lines(text: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(line).collect()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Least and greatest ratio of each firmware of a row, and how many points there are.
fn ends(lines: &[Value], row: &str, firmware: &str) -> (f64, f64, usize) {
    let ratios = lines
        .iter()
        .filter(|line| line["row"] == row && line["firmware"] == firmware)
        .filter_map(|line| line["ratio"].as_f64());
    ratios.fold((f64::INFINITY, 0.0, 0), |(low, high, count), ratio| {
        (ratio.min(low), ratio.max(high), count + 1)
    })
}

#[test]
fn the_lines_have_the_interval_of_the_row() {
    let rows = "--row random-write,random-write-direct 2010-osnews";
    let scratch = scratch();
    let swept =
        lines(&run(scratch.path(), &format!("lab sweep {rows} --points 16")).ended(0).stdout);
    let document =
        run(scratch.path(), &format!("lab run {rows} --sweep 16 --json")).ended(0).json();
    let mut points = 0;
    for row in list(&list(&document, "labs")[0], "rows") {
        let others = list(row, "alternatives").iter();
        let others = others.map(|other| (&other["personality"], &other["ours"], 5));
        for (firmware, ours, count) in
            [(&row["personality"], &row["ours"], 17)].into_iter().chain(others)
        {
            let (id, firmware) = (row["row"].as_str(), firmware.as_str());
            let ends = ends(&swept, id.expect("an id"), firmware.expect("a word"));
            let number = |key: &str| ours[key].as_f64().expect("a number");
            assert_eq!(ends, (number("low"), number("high"), count), "{row}");
            points += count;
        }
    }
    assert_eq!(swept.len(), points);
}

#[test]
fn every_line_is_as_its_schema_says() {
    let here = mine(10);
    let ran = run(here.path(), "lab sweep mine.toml 2010-wd10ears --row a,dd-read-64k --points 20");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (lines, schema) = (lines(&ran.stdout), schema("sweep"));
    for line in &lines {
        fits(line, schema).unwrap_or_else(|why| panic!("{why}"));
        let has = |key: &str| line.get(key).is_some();
        assert_eq!(
            line["error"] == "",
            has("aligned") && has("unaligned") && has("ratio"),
            "{line}"
        );
    }
    let points = |row: &str| -> Vec<u64> {
        let lines = lines.iter().filter(|line| line["row"] == row);
        lines.map(|line| line["point"].as_u64().expect("a number")).collect()
    };
    assert_eq!(points("a"), (0..=20).collect::<Vec<u64>>());
    let refused = lines.iter().filter(|line| line["error_class"] == "impossible").count();
    assert!((5..=15).contains(&refused), "{refused}");
    let said = format!("trueline: lab sweep: the model refuses the values of {refused} points\n");
    assert_eq!(ran.stderr, said);
    // The row as it stands has the model's own values.
    assert_eq!(lines[0]["parameters"][0]["key"], "command_ns");
    assert_eq!(lines[0]["parameters"][0]["number"], 100.0);
}

#[test]
fn shares_make_the_whole() {
    let scratch = scratch();
    let rows = "lab sweep --row random-write,raidtest-n1 2010-osnews 2009-gstripe --points 9";
    let whole = run(scratch.path(), rows).ended(0).stdout.clone();
    for count in [3, 12] {
        let share = |nth: u32| {
            let share = run(scratch.path(), &format!("{rows} --shard {nth}/{count}"));
            share.ended(0).stdout.clone()
        };
        let shares: Vec<String> = (0..count).map(share).collect();
        assert_eq!(sorted(&shares.concat()), sorted(&whole), "{count} shares");
        for (nth, share) in (0..).zip(&shares) {
            let is_own =
                |line: &Value| line["point"].as_u64().is_some_and(|n| n % u64::from(count) == nth);
            assert!(lines(share).iter().all(is_own), "{nth} of {count}");
        }
    }
    assert!(
        run(scratch.path(), &format!("{rows} --shard 3/3")).refused().contains("0/3, 1/3, 2/3")
    );
}

/// A run that was stopped anywhere goes on from its own output, to the same bytes.
#[test]
fn an_interrupted_sweep_goes_on() {
    let here = mine(10);
    let (command, out) =
        ("lab sweep mine.toml --points 30 --shard 1/2 --into out", here.path().join("out"));
    let ran = run(here.path(), command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let whole = fs::read_to_string(&out).expect("lines");
    assert_eq!(whole, run(here.path(), &command.replace(" --into out", "")).stdout);
    for cut in (0..whole.len()).step_by(whole.len() / 20).chain([whole.len() - 1, whole.len()]) {
        fs::write(&out, &whole[..cut]).expect("a file");
        assert_eq!(run(here.path(), command).stderr, ran.stderr);
        assert_eq!(fs::read_to_string(&out).expect("lines"), whole, "cut at byte {cut}");
    }
    // Lines of another share, of more points, of another lab, and of no sweep at all.
    let lab = fs::read_to_string(here.path().join("mine.toml")).expect("a lab");
    for (command, lab, text) in [
        (command.replace("1/2", "0/2"), lab.clone(), whole.clone()),
        (command.replace("30", "31"), lab.clone(), whole.clone()),
        (command.to_owned(), lab.replace("offset = 512", "offset = 1024"), whole.clone()),
        (command.to_owned(), lab.clone(), "an image".into()),
        (command.to_owned(), lab.clone(), format!("{whole}\n")),
        (command.to_owned(), lab.clone(), format!("{whole}{whole}")),
    ] {
        fs::write(here.path().join("mine.toml"), lab).expect("a file");
        fs::write(&out, &text).expect("a file");
        let refused = run(here.path(), &command);
        assert!(refused.refused().contains("lines of this sweep: name a new"), "{command}");
        assert_eq!(fs::read_to_string(&out).expect("a file"), text, "{command}");
    }
}

#[test]
fn a_signal_leaves_whole_lines() {
    let here = mine(200);
    let out = here.path().join("out");
    let mut running = program(here.path())
        .args(["lab", "sweep", "mine.toml", "--points", "1000000", "--into", "out"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    wait_while_runs(&mut running, || fs::metadata(&out).is_ok_and(|file| file.len() > 1 << 16));
    assert!(kill("-INT", running.id()));
    let ended = Ran::of(&running.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("lab sweep: interrupted: "), "{}", ended.stderr);
    let text = fs::read_to_string(&out).expect("lines");
    assert!(text.ends_with('\n'));
    for (nth, line) in (0_u64..).zip(lines(&text)) {
        assert_eq!(line["point"], nth);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let here = mine(10);
    let mut running = program(here.path())
        .args(["lab", "sweep", "mine.toml", "--points", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut first = String::new();
    let out = running.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut first).expect("a line");
    assert!(first.contains("\"point\":0,"), "{first}");
    let ended = Ran::of(&running.wait_with_output().expect("it ends"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

/// A lab may be untrusted, so the work of its share is bounded; the user may lift that.
#[test]
fn the_share_of_a_lab_is_bounded() {
    let here = mine(1000);
    let sweep = "lab sweep mine.toml --points 1000000";
    let refused = run(here.path(), sweep);
    let why = "mine, row a: line 4: with this row the lab needs 2000002000 requests, more \
               than 1073741824: fewer --points, or a smaller --shard; --unlimited lifts the limit";
    assert!(refused.refused().contains(why), "{}", refused.stderr);
    let few = run(here.path(), &format!("{sweep} --shard 7/500000"));
    assert_eq!((few.code, few.stdout.lines().count()), (Some(0), 2), "{}", few.stderr);
    let mut running = program(here.path())
        .args(format!("{sweep} --unlimited").split(' '))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut first = String::new();
    let out = running.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut first).expect("a line");
    assert!(running.wait().expect("it ends").success() && first.ends_with('\n'), "{first}");
}

#[test]
fn rows_without_a_sweep_are_named() {
    let scratch = scratch();
    for (arguments, why) in [
        ("2002-geom --points 2", "lab sweep: no row has a sweep: "),
        ("2002-geom 2010-osnews 2002-geom --points 2", "lab sweep 2002-geom: it is named twice"),
        ("2002-geom --row mds1 --points 2", "lab sweep --row mds1: it has no sweep: "),
        ("2002-geom --row none --points 2", "lab sweep --row none: no such row: there are "),
        ("2009 --points 2", "lab sweep 2009: no such file"),
    ] {
        let refused = run(scratch.path(), &format!("lab sweep {arguments}"));
        assert!(refused.refused().contains(why), "{}", refused.stderr);
    }
    // A row that cannot be laid out does not take the others with it.
    let here = mine(10);
    let path = here.path().join("mine.toml");
    let lab = fs::read_to_string(&path).expect("a lab");
    let row = lab.split_once("[[row]]").expect("a row").1;
    let bad = row.replace("\"a\"", "\"b\"").replace("aligned = {}", "aligned = { offset = 1 }");
    fs::write(&path, format!("{lab}[[row]]{bad}")).expect("a file");
    let ran = run(here.path(), "lab sweep mine.toml --points 2");
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(2), 3), "{}", ran.stderr);
    assert!(ran.stderr.contains("lab sweep mine, row b: line "), "{}", ran.stderr);
}
