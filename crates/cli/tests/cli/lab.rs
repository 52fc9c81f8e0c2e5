//! `lab`: the table of all labs as before, every row within its bound, what is wrong with a lab
//! said with its line.

use crate::{Ran, kill, list, program, run, scratch, wait_while_runs};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Rows that miss the bound they promise: known, shown in the table, and to be taken from here when
/// they keep it.
const MISSED: [&str; 4] = ["cp", "dd-write-1m", "tar", "tar-512n"];

#[test]
fn the_table_is_as_before() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let scratch = scratch();
    let got = run(scratch.path(), "lab run --all --sweep 0").ended(0).stdout.clone();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/labs/results.txt");
    if bless {
        fs::write(&path, &got).expect("a golden text can be written");
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    let line = want.lines().zip(got.lines()).take_while(|(a, b)| a == b).count();
    let at = |text: &str| text.lines().nth(line).unwrap_or("(its end)").to_owned();
    assert!(
        want == got,
        "tests/labs/results.txt:{}\n- {}\n+ {}\nTRUELINE_BLESS=1 writes it",
        line + 1,
        at(&want),
        at(&got)
    );
    let kept = got.lines().filter(|line| line.contains(" ✓ ")).count();
    assert!(kept >= 8, "{kept} rows keep a bound");
    let missed: Vec<&str> = got
        .lines()
        .filter(|line| line.contains(" ✗ "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(missed, MISSED, "the rows that miss their bound");
}

#[test]
fn the_document_says_how_far_ours_is_from_theirs() {
    let rows = "lab run --sweep 2 --row mds1,raidtest-n1,bonnie-write-ada1 --json";
    let document =
        run(scratch().path(), &format!("{rows} 2002-geom 2009-gstripe 2013-gpart")).ended(0).json();
    assert_eq!(document["format"], "trueline/lab/1");
    let row = |lab: usize| &list(&list(&document, "labs")[lab], "rows")[0];
    let (one, two, none) = (row(0), row(1), row(2));
    assert!(
        one["error"].is_f64()
            && one["error"] == one["level_errors"]["aligned"]
            && one["null_model"].is_null()
            && one["published"]["ratio"].is_null()
            && one["ours"]["aligned"].is_f64()
    );
    let number = |of: &str, key: &str| two[of][key].as_f64().expect("a number");
    let error = number("ours", "ratio") / number("published", "ratio") - 1.0;
    assert!((two["error"].as_f64().expect("a number") - error).abs() < 1e-12);
    // Reads: the null model is 1, and the simulated ratio is nearer to 0.842.
    assert_eq!(two["null_model"]["ratio"], 1.0);
    assert_eq!(two["null_model"]["nearer"], "ours");
    let level = number("ours", "unaligned") / number("published", "unaligned") - 1.0;
    let said = two["level_errors"]["unaligned"].as_f64().expect("a number");
    assert!((said - level).abs() < 1e-12);
    assert!(
        number("ours", "low") <= number("ours", "ratio")
            && number("ours", "ratio") <= number("ours", "high")
    );
    let unaligned = &list(two, "variants")[1];
    assert_eq!(unaligned["layout"]["unit"], 16384);
    assert_eq!(
        unaligned["layout"]["layers"][2][1], 40448,
        "where the file system begins on the set"
    );
    assert!(
        list(&unaligned["layout"], "requests").iter().all(|request| request[0]
            .as_u64()
            .expect("a number")
            % 16384
            == 7680)
    );
    assert!(
        none["ours"]
            .as_object()
            .expect("an object in every row")
            .values()
            .all(serde_json::Value::is_null)
    );
    assert!(
        none["predicted"] == false && none["note"].as_str().is_some_and(|note| !note.is_empty())
    );
}

/// A lab of one row.
fn lab(row: &str) -> String {
    format!(
        "name = \"mine\"\ntitle = \"mine\"\ndrives = [{{ model = \"md\" }}]\n[[row]]\nid = \"a\"\ntitle = \"a\"\nunit = \"s\"\n{row}"
    )
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
        ("workload = { kind = \"fly\" }", 8, "no workload 'fly': there are dd, "),
        ("workload = { kind = \"dd\", speed = 1 }", 8, "workload dd: unknown field `speed`"),
        (
            "workload = { kind = \"dd\", bs = -1 }",
            8,
            "workload dd: invalid value: integer `-1`, expected a whole number in `bs`",
        ),
        (
            &format!("{READ}aligned = {{}}\nbound = \"5 %\""),
            10,
            "bound: invalid type: string \"5 %\", expected a number",
        ),
        (
            &format!("{READ}aligned = {{}}\nhost = {{ kind = \"direct\", memory = 1 }}"),
            10,
            "host: unknown field `memory`",
        ),
        ("workload = 1", 8, "invalid type"),
        ("colour = \"red\"", 8, "unknown field `colour`"),
        (READ, 4, "row a: with a workload it needs at least the variant aligned"),
        ("", 4, "row a: without a workload it needs a note"),
        (&format!("{READ}aligned = {{ offset = -1 }}"), 9, "-1"),
        (
            &format!(
                "{READ}aligned = {{}}\n[[row]]\nid = \"a\"\ntitle = \"b\"\nunit = \"s\"\nnote = \"none\""
            ),
            10,
            "a row a is there already",
        ),
        (
            &format!("{READ}aligned = {{}}\nhost = {{ kind = \"vms\" }}"),
            10,
            "unknown variant `vms`",
        ),
        (
            &format!("{READ}aligned = {{}}\nprocessor = {{ syscall_ns = inf }}"),
            4,
            "processor: syscall_ns = inf: from 0 to ",
        ),
        (
            &format!("{READ}aligned = {{}}\nprocessor = {{ class_ns = {{ mbr = -1.0 }} }}"),
            4,
            "processor: mbr = -1: from 0 to ",
        ),
        (
            &format!("{READ}aligned = {{}}\npublished = {{ aligned = 1.0, unaligned = inf }}"),
            4,
            "published: inf is not a number above 0",
        ),
        (
            &format!("{READ}aligned = {{ by = 512 }}\nreal = {{ bytes = 4096 }}"),
            4,
            "by is for simulated drives",
        ),
        (
            &format!("{READ}aligned = {{}}\nhost = \"direct\""),
            10,
            "expected a table: { kind = \"direct\" }",
        ),
    ] {
        let ran = run_lab(&lab(row));
        let said = ran.refused();
        assert!(
            said.starts_with(&format!("trueline: lab run mine.toml: line {line}: "))
                && said.contains(why),
            "{row}\n{said}"
        );
    }
}

#[test]
fn a_lab_opens_files_beside_it_and_nowhere_else() {
    let scratch = scratch();
    fs::create_dir_all(scratch.path().join("labs/below")).expect("a directory can be made");
    // A read of a sector, as a record of raidtest.
    fs::write(
        scratch.path().join("labs/below/a.raidtest"),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
    )
    .expect("a file can be written");
    let with = |file: &str| {
        let work =
            format!("workload = {{ kind = \"raidtest\", file = \"{file}\" }}\naligned = {{}}\n");
        fs::write(scratch.path().join("labs/mine.toml"), lab(&work))
            .expect("a file can be written");
        run(scratch.path(), "lab run labs/mine.toml")
    };
    with("below/a.raidtest").ended(0);
    let absolute = scratch.path().join("labs/below/a.raidtest");
    for away in [
        "../labs/below/a.raidtest",
        "below/../below/a.raidtest",
        absolute.to_str().expect("a name"),
        "",
    ] {
        let ran = with(away);
        let (said, why) = (
            ran.refused(),
            format!("line 4: row a: file = {away}: name a file in the directory of the lab"),
        );
        assert!(
            said.starts_with("trueline: lab run labs/mine.toml: ") && said.contains(&why),
            "{said}"
        );
    }
    assert!(with("below").refused().contains("it is not a regular file"));
    assert!(with("labs/below/a.raidtest").refused().contains("no such file"));
}

#[test]
fn hexdumps_and_models_are_beside_the_lab_too() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name);
    fs::create_dir_all(path("labs/below")).expect("a directory can be made");
    let model = run(scratch.path(), "drives --template md").ended(0).stdout.clone();
    for name in ["outside.toml", "labs/below/md.toml"] {
        fs::write(path(name), &model).expect("a file can be written");
    }
    std::os::unix::fs::symlink("../outside.toml", path("labs/away.toml"))
        .expect("a link can be made");
    std::os::unix::fs::symlink("below/md.toml", path("labs/here.toml"))
        .expect("a link can be made");
    assert!(
        Command::new("mkfifo")
            .arg(path("labs/pipe.toml"))
            .status()
            .expect("mkfifo(1) is there")
            .success()
    );
    fs::File::create(path("labs/long.toml"))
        .and_then(|file| file.set_len(1 << 34))
        .expect("a sparse file");
    let with = |model: &str, disk: &str| {
        let row = format!("{READ}drives = [{{ model = \"{model}\" }}]\naligned = {{ {disk} }}\n");
        fs::write(path("labs/mine.toml"), lab(&row)).expect("a file can be written");
        run(scratch.path(), "lab run labs/mine.toml")
    };
    for name in ["below/md.toml", "./below/md.toml", "here.toml"] {
        with(name, "").ended(0);
    }
    let absolute = path("outside.toml");
    let absolute = absolute.to_str().expect("a name");
    for (name, why) in [
        (
            "../outside.toml",
            "name a file in the directory of the lab or below, without .. and without a /",
        ),
        ("below/../below/md.toml", "name a file in the directory of the lab or below"),
        (absolute, "name a file in the directory of the lab or below"),
        ("/dev/zero", "name a file in the directory of the lab or below"),
        ("away.toml", "a link leads away from beside the lab"),
        ("pipe.toml", "it is not a regular file"),
        ("./below", "it is not a regular file"),
        ("long.toml", "more than 16777216 bytes"),
    ] {
        let (as_model, as_disk) = (with(name, ""), with("md", &format!("disk = \"{name}\"")));
        for (ran, what) in [(as_model, "model"), (as_disk, "hexdump")] {
            let said = ran.refused();
            assert!(
                said.contains(&format!("read the {what} {name}: ")) && said.contains(why),
                "{said}"
            );
        }
    }
}

#[test]
fn a_lab_that_would_never_end_is_refused_before_it_begins() {
    for (work, why) in [
        (
            "{ kind = \"random-read\", count = 134217729 }",
            "workload random-read: 134217729 requests, more than 134217728",
        ),
        ("{ kind = \"latency\", count = 9223372036854775807 }", "requests, more than 134217728"),
        (
            "{ kind = \"random-read\", bs = 67108864, count = 2097153 }",
            "2097153 requests, more than 2097152",
        ),
        (
            "{ kind = \"random-read\", count = 1000000 }\nstarts = 1024",
            "1000000 requests, 1024 times, more than 131072",
        ),
        (
            "{ kind = \"random-read\", count = 10 }\npersonalities = [\"stream\", \"stream\"]",
            "stream is named twice",
        ),
        (
            "{ kind = \"random-read\", seconds = 1000 }\nreal = { bytes = 65536 }",
            "11000 seconds in all runs, more than 3600",
        ),
        (
            "{ kind = \"random-read\", count = 12201612 }\nreal = { bytes = 65536 }",
            "12201612 requests, 11 times, more than 12201611",
        ),
    ] {
        let drives = if work.contains("real") { "" } else { "drives = [{ model = \"md\" }]\n" };
        let ran = run_lab(&lab(&format!("workload = {work}\n{drives}aligned = {{}}\n")));
        let said =
            if work.contains("real") { ran.ended(0).stdout.clone() } else { ran.stderr.clone() };
        assert!(
            said.split_whitespace().collect::<Vec<_>>().join(" ").contains(why),
            "{work}\n{said}"
        );
    }
}

/// Rows that are each within their bound, until one is too many: nothing is run, and the line is
/// that row's.
#[test]
fn a_lab_of_many_rows_is_refused_before_it_begins() {
    let head = "name = \"mine\"\ntitle = \"mine\"\ndrives = [{ model = \"md\" }]\n";
    let rows = |count: usize, row: &str| {
        let row = |nth| {
            format!(
                "[[row]]\nid = \"r{nth}\"\ntitle = \"a\"\nunit = \"s\"\naligned = {{}}\n{row}\n"
            )
        };
        format!("{head}{}", (0..count).map(row).collect::<String>())
    };
    let work = |work: &str| format!("workload = {{ kind = \"random-read\", {work} }}");
    for (text, row, line, why) in [
        (
            rows(9, &work("count = 134217728")),
            ", row r8",
            52,
            "1207959552 requests, more than 1073741824: run fewer rows at a time with --row, or fewer",
        ),
        (
            rows(17, &format!("{}\nreal = {{ bytes = 4294967296, runs = 1 }}", work("count = 1"))),
            ", row r16",
            116,
            "bytes of scratch files, more than 68719476736",
        ),
        (
            rows(3, &format!("{}\nreal = {{ bytes = 65536, runs = 9 }}", work("seconds = 150"))),
            ", row r2",
            18,
            "4500 seconds, more than 3600",
        ),
        (rows(1025, ""), "", 6148, "1025 rows: a lab has at most 1024"),
    ] {
        let ran = run_lab(&text);
        assert_eq!(ran.stdout, "", "{}", ran.stdout);
        let said = ran.refused();
        assert!(said.contains(&format!("{row}: line {line}: ")) && said.contains(why), "{said}");
    }
}

#[test]
fn ctrl_c_ends_it_without_the_row_that_is_not_done() {
    let scratch = scratch();
    // A row that would take hours: its end is the signal.
    let long = "[[row]]\nid = \"long\"\ntitle = \"b\"\nunit = \"s\"\nworkload = { kind \
        = \"random-read\", count = 134000000 }\naligned = {}\n";
    fs::write(scratch.path().join("mine.toml"), lab(&format!("{READ}aligned = {{}}\n{long}")))
        .expect("a file can be written");
    let mut command = program(scratch.path());
    let mut running = command
        .args(["lab", "run", "--sweep", "0", "mine.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // As soon as the signal is caught (proc(5), SigCgt: bit 1 is SIGINT).
    let caught = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 2 != 0)
    };
    let pid = running.id();
    wait_while_runs(&mut running, || caught(pid));
    assert!(kill("-INT", pid));
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let (out, said) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(said.contains("trueline: lab run: interrupted: "), "{ended:?}");
    assert!(!out.contains("long"), "{out}");
}

#[test]
fn a_row_that_fails_does_not_take_the_others_with_it() {
    for (aligned, line, why) in [
        ("{ disk = \"none.hex\" }", 15, "read the hexdump none.hex: no such file"),
        ("{ disk = \"mine.toml\" }", 15, "hexdump mine.toml: line 1"),
        ("{ provider = \"s9\" }", 15, "no provider 's9': there is only the disk itself"),
        (
            "{ offset = 1073741824 }",
            11,
            "offset = 1073741824: the provider has only 1073741824 bytes",
        ),
        (
            "{ offset = 100 }",
            11,
            "offset = 100: not a multiple of the provider's sectors of 512 bytes",
        ),
        ("{ set = { rpm = 0 } }", 3, "model md: "),
        ("{ set = { size = 0 } }", 3, "model md: size = 0: "),
    ] {
        let good = format!("{READ}aligned = {{}}\n");
        let bad = format!(
            "[[row]]\nid = \"b\"\ntitle = \"b\"\nunit = \"s\"\naligned = {aligned}\n{READ}"
        );
        let (both, rows) = (run_lab(&lab(&format!("{good}\n{bad}"))), ["a", "b"]);
        assert!(
            rows.iter().all(|row| both.stdout.lines().any(|line| line.starts_with(row))),
            "{}",
            both.stdout
        );
        assert!(both.stdout.contains("b: not run: "), "{}", both.stdout);
        let said = both.refused();
        assert!(
            said.starts_with(&format!("trueline: lab run mine, row b: line {line}: "))
                && said.contains(why),
            "{aligned}\n{said}"
        );
    }
}

#[test]
fn a_line_ends_with_the_errors_of_both_values_and_the_null_model() {
    let arguments = "lab run --row raidtest-n1 --sweep 0 2009-gstripe";
    let csv = run(scratch().path(), &format!("{arguments} --csv")).ended(0).stdout.clone();
    let last = |line: &str| -> Vec<String> {
        let mut fields: Vec<String> = line.rsplitn(5, ',').take(4).map(str::to_owned).collect();
        fields.reverse();
        fields
    };
    let lines: Vec<Vec<String>> = csv.lines().map(last).collect();
    assert_eq!(lines[0], ["error_aligned", "error_unaligned", "null_ratio", "null_error"]);
    let document = run(scratch().path(), &format!("{arguments} --json")).ended(0).json();
    let row = &list(&list(&document, "labs")[0], "rows")[0];
    let (levels, null) = (&row["level_errors"], &row["null_model"]);
    let said: Vec<f64> = lines[1].iter().map(|field| field.parse().expect("a number")).collect();
    let want = [&levels["aligned"], &levels["unaligned"], &null["ratio"], &null["error"]];
    assert_eq!(said, want.map(|number| number.as_f64().expect("a number")));
}

#[test]
fn rows_and_labs_are_found_by_name() {
    let scratch = scratch();
    let one = run(scratch.path(), "lab run --row md,zero 2002-geom --csv").ended(0).stdout.clone();
    let rows: Vec<&str> = one.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(rows, ["zero", "md"]);
    let none = run(scratch.path(), "lab run --row flight --all");
    assert!(
        none.refused().contains("lab run --row flight: no such row: there are zero, md,"),
        "{}",
        none.stderr
    );
    assert!(
        run(scratch.path(), "lab run nowhere").refused().contains("lab run nowhere: no such file")
    );
    let listed = run(scratch.path(), "lab list").ended(0).stdout.clone();
    assert!(
        listed.contains("2009-gstripe  RAID0") && listed.contains("  raidtest-n1 raidtest-n64\n"),
        "{listed}"
    );
    // What only reports is run where it is named, and not among those that promise something.
    assert!(listed.contains("seen-after  Published"), "{listed}");
    let named = run(scratch.path(), "lab run --sweep 0 --row sa04g-8k seen-after");
    assert!(named.ended(0).stdout.contains("sa04g-8k"), "{}", named.stdout);
    let all = run(scratch.path(), "lab run --row sa04g-8k --all");
    assert!(all.refused().contains("no such row"), "{}", all.stderr);
}

/// The jumper moves every block by a sector: the layout that it puts right is drawn on a boundary.
#[test]
fn the_jumper_is_in_the_layout() {
    let document =
        run(scratch().path(), "lab run --sweep 0 --row dd-write-1m --json 2010-wd10ears")
            .ended(0)
            .json();
    let variants = list(&list(&list(&document, "labs")[0], "rows")[0], "variants");
    let layout = |nth: usize| {
        let layout = &variants[nth]["layout"];
        (
            layout["phase"].as_u64().expect("a number"),
            layout["layers"][1][1].as_u64().expect("a number"),
        )
    };
    assert_eq!([layout(0), layout(1)], [(3584, 32256), (0, 32256)]);
}
