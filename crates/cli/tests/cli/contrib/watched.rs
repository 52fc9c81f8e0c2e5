//! Metrics of a host: the textfile, its units, and the alerts and panels that read it.

use super::{beside_trueline, contrib, text};
use crate::hosts::fixtures;
use crate::recipe::Scratch;
use crate::serve_tls::has;
use crate::{Ran, golden, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const STAMP: &str = "trueline_check_last_success_timestamp_seconds";

/// Runs `check --textfile` of the words behind a name into the directory `metrics`.
fn textfile(directory: &Path, arguments: &str) -> Ran {
    fs::create_dir_all(directory.join("metrics")).expect("a directory");
    let (name, words) = arguments.split_once(' ').unwrap_or((arguments, ""));
    run(directory, &format!("check --textfile metrics/trueline-{name}.prom {words}"))
}

/// The files in `metrics`.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory.join("metrics")).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// A series of the text format: its name with labels, and its value.
fn series(text: &str) -> Vec<(String, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            (series.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

/// The value of the one series that begins with `start`.
fn value(text: &str, start: &str) -> f64 {
    let all = series(text);
    let found: Vec<_> = all.iter().filter(|(name, _)| name.starts_with(start)).collect();
    assert_eq!(found.len(), 1, "{start}: {text}");
    found[0].1
}

#[test]
fn the_textfile_is_replaced_whole_and_knows_its_last_success() {
    let here = golden("seed-001-sdd-63");
    let file = here.path().join("metrics/trueline-a.prom");
    let read = || fs::read_to_string(&file).expect("the file");
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();

    // A finding is no failure of the run. The umask of a service may keep others out.
    let metrics = here.path().join("metrics");
    fs::create_dir_all(&metrics).expect("a directory");
    let mut command = beside_trueline(here.path(), "sh");
    let words = "umask 077; trueline check --textfile metrics/trueline-a.prom disk";
    Ran::of(&command.args(["-c", words]).output().expect("a shell")).ended(1);
    assert_eq!(names(here.path()), ["trueline-a.prom"], "nothing is left beside it");
    let mode = fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "another user reads it");
    let first = read();
    assert!(
        first.contains(
            "trueline_target_verdict{check=\"a\",target=\"disk\",verdict=\"misaligned\"} 1"
        ),
        "{first}"
    );
    assert!(first.contains("\ntrueline_errors{check=\"a\"} 0\n"), "{first}");
    assert!(series(&first).iter().all(|(name, _)| name.contains("{check=\"a\"")), "{first}");
    #[allow(clippy::cast_precision_loss, reason = "a time in seconds has 31 bits")]
    let begun = begun as f64;
    assert!(value(&first, STAMP) >= begun, "{first}");

    // The stamp stays where a target could not be read; the rest is new. The other file's does too.
    let old = first.replace(&format!("{}", value(&first, STAMP)), "1234567890");
    fs::write(&file, &old).expect("the file can be written");
    let ran = textfile(here.path(), "a disk missing");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("missing"), "the journal names it: {}", ran.stderr);
    assert!((value(&read(), STAMP) - 1_234_567_890.0).abs() < 0.5, "{}", read());
    assert!((value(&read(), "trueline_errors") - 1.0).abs() < 0.5, "{}", read());
    textfile(here.path(), "b missing");
    let never = fs::read_to_string(here.path().join("metrics/trueline-b.prom")).expect("a file");
    assert!(value(&never, STAMP).abs() < 0.5, "{never}");

    // Whatever printed nothing replaces nothing.
    let before = read();
    assert_eq!(textfile(here.path(), "a --nonsense").code, Some(2));
    assert_eq!(read(), before);
    assert_eq!(names(here.path()), ["trueline-a.prom", "trueline-b.prom"]);
    textfile(here.path(), "a disk").ended(1);
    assert!(value(&read(), STAMP) >= begun);
}

#[test]
fn a_textfile_replaces_its_own_kind_alone() {
    let here = golden("gpt-sfdisk");
    let write = |name: &str, text: &str| {
        fs::write(here.path().join(name), text).expect("the file can be written");
    };
    let read = |name: &str| fs::read_to_string(here.path().join(name)).expect("the file");
    // Two files with the series of one name would stop all of node_exporter's.
    for (own, other) in [("trueline-x.prom", "x.prom"), ("x.prom", "trueline-x.prom")] {
        write(other, "# HELP trueline_errors of a disk\n");
        let ran = run(here.path(), &format!("check --textfile {own} disk"));
        let says = format!("{other} has the series of check=\"x\" too");
        assert!(ran.refused().contains(&says), "{}", ran.stderr);
        // Another exporter's series are others.
        write(other, "# HELP smart_errors of a disk\n");
        assert_eq!(run(here.path(), &format!("check --textfile {own} disk")).code, Some(0));
        fs::remove_file(here.path().join(other)).expect("the file");
        fs::remove_file(here.path().join(own)).expect("the file");
    }
    // A link that leads nowhere may be another user's: no file is made behind it.
    symlink("absent", here.path().join("nowhere.prom")).expect("a link");
    run(here.path(), "check --textfile nowhere.prom disk").refused();
    assert!(!here.path().join("absent").exists());
    // Another exporter's metrics, a disk, what is no file; names that node_exporter does not read.
    write("other.prom", "# HELP smart_errors of a disk\n");
    write("long.prom", &"x".repeat(1 << 20));
    fs::create_dir(here.path().join("directory.prom")).expect("a directory");
    symlink("/dev/null", here.path().join("null.prom")).expect("a link");
    for name in [
        "other.prom",
        "long.prom",
        "directory.prom",
        "null.prom",
        "none/a.prom",
        "disk",
        "a.txt",
        ".prom",
        "trueline-.prom",
        "a.prom/",
    ] {
        let ran = run(here.path(), &format!("check --textfile {name} disk"));
        let why = ran.refused();
        assert!(why.contains("write the metrics ") || name == "a.prom/", "{name}: {why}");
    }
    assert_eq!(read("other.prom"), "# HELP smart_errors of a disk\n");
    // An empty file and a link take metrics; a stamp that is no number is none.
    write("a.prom", "");
    symlink("a.prom", here.path().join("link.prom")).expect("a link");
    run(here.path(), "check -q --textfile link.prom disk missing");
    assert!(value(&read("a.prom"), STAMP).abs() < 0.5, "{}", read("a.prom"));
    assert!(read("a.prom").contains("trueline_errors{check=\"link\"} 1\n"));
    write("a.prom", &format!("# HELP trueline_errors x\n{STAMP}{{check=\"a\"}} -1e999\n"));
    run(here.path(), "check --textfile a.prom missing");
    assert!(value(&read("a.prom"), STAMP).abs() < 0.5, "{}", read("a.prom"));
    // Nothing is printed; whatever prints is another form.
    let ran = run(here.path(), "check --textfile a\"b\\.prom disk");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    assert!(read("a\"b\\.prom").contains("{check=\"a\\\"b\\\\\"} 0\n"), "a label is escaped");
    for form in ["--json", "--jsonl", "--prometheus", "--nagios", "-n", "--changed=state"] {
        let ran = run(here.path(), &format!("check --textfile new.prom {form} disk"));
        assert!(
            matches!(ran.code, Some(2 | 3)) && !here.path().join("new.prom").exists(),
            "{form}"
        );
    }
}

/// The expressions of the alerts and of the panels; the files in which they stand.
fn expressions() -> Vec<(&'static str, String)> {
    let rules = text("prometheus/trueline.rules.yml");
    let mut found = Vec::new();
    // An expression is one line, or the lines that are further in than its key.
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim_start().strip_prefix("expr: ") else { continue };
        let mut expression = rest.trim_start_matches(">-").to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with("          ")) {
            expression = format!("{expression} {}", more.trim());
        }
        found.push(("rules", expression));
    }
    let dashboard: Value = serde_json::from_str(&text("grafana/trueline.json")).expect("JSON");
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            found.push(("dashboard", target["expr"].as_str().expect("text").to_owned()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if let Some(query) = variable["query"]["query"].as_str() {
            found.push(("dashboard", query.to_owned()));
        }
    }
    found
}

/// Label names and values of each metric that the textfile has.
fn printed(text: &str) -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let mut metrics: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (name, _) in series(text) {
        let (metric, labels) = name.trim_end_matches('}').split_once('{').expect("labels");
        let known = metrics.entry(metric.to_owned()).or_default();
        for label in labels.split("\",") {
            let (key, value) = label.split_once("=\"").expect("a label");
            known.entry(key.to_owned()).or_default().push(value.trim_end_matches('"').to_owned());
        }
    }
    metrics
}

/// The metrics of another host, of whose devices a list is known and no more.
fn unread(here: &Scratch) -> String {
    let list = fixtures().join("stack.lsblk.json");
    fs::copy(list, here.path().join("list")).expect("a file");
    textfile(here.path(), "b --from list");
    fs::read_to_string(here.path().join("metrics/trueline-b.prom")).expect("a file")
}

#[test]
fn alerts_and_panels_name_only_metrics_and_labels_that_are_printed() {
    let here = golden("seed-001-sdd-63");
    textfile(here.path(), "a disk").ended(1);
    let text = fs::read_to_string(here.path().join("metrics/trueline-a.prom")).expect("a file");
    let metrics = printed(&(text + &unread(&here)));
    let expressions = expressions();
    let of = |which| expressions.iter().filter(|(file, _)| *file == which).count();
    assert!(of("rules") >= 5 && of("dashboard") >= 9, "not found: {expressions:?}");
    for (file, expression) in &expressions {
        let mut named = 0;
        for (at, _) in expression.match_indices("trueline_") {
            let end = |c: char| !(c.is_ascii_lowercase() || c == '_');
            let rest = &expression[at..];
            let metric = &rest[..rest.find(end).unwrap_or(rest.len())];
            let labels = metrics
                .get(metric)
                .unwrap_or_else(|| panic!("{file}: {metric} is not printed: {expression}"));
            named += 1;
            let Some(selector) = rest[metric.len()..].strip_prefix('{') else { continue };
            for matcher in selector.split_once('}').expect("a brace").0.split(',') {
                let (label, value) = matcher.split_once('=').expect("a matcher");
                let wanted = value.trim_start_matches('~').trim_matches('"');
                // Prometheus adds it to whatever it scrapes.
                if label == "instance" {
                    continue;
                }
                let values = labels
                    .get(label)
                    .unwrap_or_else(|| panic!("{file}: {metric} has no {label}: {expression}"));
                assert!(
                    wanted.split('|').any(|one| values.iter().any(|value| value == one)),
                    "{file}: no {label} of {metric} is {wanted}: {expression}"
                );
            }
        }
        assert!(named > 0, "{file}: {expression}");
    }
}

#[test]
fn panels_are_a_dashboard() {
    let dashboard: Value = serde_json::from_str(&text("grafana/trueline.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut taken = std::collections::BTreeSet::new();
    let mut ids = std::collections::BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "two panels of one id");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "no data source of one server");
        let at = |key: &str| panel["gridPos"][key].as_u64().expect("a place");
        assert!(at("x") + at("w") <= 24, "{}: Grafana's grid has 24 columns", panel["title"]);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{} covers another", panel["title"]);
            }
        }
    }
}

/// A test of `promtool test rules`: how many alerts of each name fire at a time.
fn fires(
    name: &str,
    text: &str,
    at: &str,
    alter: impl Fn(&str) -> Option<&'static str>,
    alerts: &[(&str, u32)],
) -> Value {
    let input: Vec<Value> = series(text)
        .iter()
        .map(|(series, value)| {
            let labelled = series.replacen('{', "{instance=\"h\",", 1);
            let values = alter(series).map_or_else(|| format!("{value}x100"), ToOwned::to_owned);
            json!({"series": labelled, "values": values})
        })
        .collect();
    let samples: Vec<Value> = alerts
        .iter()
        .map(|(alert, count)| {
            let labels = format!("{{alertname=\"{alert}\"}}");
            json!({"labels": labels, "value": count})
        })
        .collect();
    json!({
        "name": name,
        "interval": "1h",
        "input_series": input,
        "promql_expr_test": [{
            "expr": "count by (alertname) (ALERTS{alertstate=\"firing\"})",
            "eval_time": at,
            "exp_samples": samples,
        }],
    })
}

#[test]
fn alerts_fire_for_what_they_say_and_for_nothing_else() {
    if !has("promtool") {
        return;
    }
    let metrics = |disk: &str| -> (Scratch, String) {
        let here = golden(disk);
        textfile(here.path(), "a disk");
        let text = fs::read_to_string(here.path().join("metrics/trueline-a.prom")).expect("a file");
        (here, text)
    };
    let (here, off) = metrics("seed-001-sdd-63");
    let (_, on) = metrics("gpt-sfdisk");
    let listed = unread(&here);
    let misaligned = |series: &str| {
        series.contains("trueline_target_verdict{") && series.contains("\"misaligned\"")
    };
    // Its clock begins at 0.
    let fresh = |series: &str| series.starts_with(STAMP).then_some("0+3600x100");
    let tests = [
        fires("aligned", &on, "60h", fresh, &[]),
        fires("off", &off, "60h", fresh, &[("TruelineMisaligned", 1), ("TruelineCostly", 1)]),
        fires(
            "has become so",
            &off,
            "60h",
            |s| if misaligned(s) { Some("0x55 1x50") } else { fresh(s) },
            &[("TruelineMisaligned", 1), ("TruelineBecameMisaligned", 1), ("TruelineCostly", 1)],
        ),
        fires(
            "stale",
            &on,
            "61h",
            |s| s.starts_with(STAMP).then_some("0x100"),
            &[("TruelineStale", 1)],
        ),
        fires("not stale yet", &on, "59h", |s| s.starts_with(STAMP).then_some("0x100"), &[]),
        fires(
            "not read",
            &on,
            "60h",
            |s| if s.starts_with("trueline_errors") { Some("1x100") } else { fresh(s) },
            &[("TruelineUnreadable", 1)],
        ),
        fires("not opened", &listed, "60h", fresh, &[("TruelineUnjudged", 6)]),
    ];
    let rules = contrib("prometheus/trueline.rules.yml");
    let document = json!({"rule_files": [rules], "evaluation_interval": "1h", "tests": tests});
    // JSON is YAML.
    let file = here.path().join("test.json");
    fs::write(&file, document.to_string()).expect("a file");
    for words in [["check", "rules"], ["test", "rules"]] {
        let what = if words[0] == "check" { &rules } else { &file };
        let ran = Ran::of(
            &beside_trueline(here.path(), "promtool")
                .args(words)
                .arg(what)
                .output()
                .expect("it runs"),
        );
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn units_are_what_systemd_takes() {
    let here = golden("seed-001-sdd-63");
    let (mut units, mut written) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(contrib("systemd")).expect("units") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let unit = text(&format!("systemd/{name}"));
        let stem = name.rsplit_once('.').expect("an ending").0;
        if let Some(command) = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")) {
            let arguments = command
                .strip_prefix("/usr/local/bin/trueline check --textfile ${TEXTFILE_DIRECTORY}/")
                .unwrap_or_else(|| panic!("{name}: {command}"));
            assert!(contrib(&format!("systemd/{stem}.timer")).exists(), "{name} has no timer");
            assert!(unit.contains("\nSuccessExitStatus=1\n"), "{name} fails for a finding");
            // The devices of the machine that runs tests are not known.
            let (file, words) = arguments.split_once(' ').unwrap_or((arguments, ""));
            if !words.is_empty() {
                let words = words.replace("/var/lib/libvirt/images", ".");
                run(here.path(), &format!("check -q --textfile {file} {words}")).ended(1);
                written.push(file.to_owned());
            }
        }
        let path = here.path().join(&name);
        let program = env!("CARGO_BIN_EXE_trueline");
        fs::write(&path, unit.replace("/usr/local/bin/trueline", program)).expect("a file");
        units.push(path);
    }
    assert!(units.len() >= 4, "{units:?}");
    assert_eq!(written, ["trueline-images.prom"]);
    if !has("systemd-analyze") {
        return;
    }
    let mut command = beside_trueline(here.path(), "systemd-analyze");
    let ran = Ran::of(
        &command
            .args(["verify", "--man=no", "--recursive-errors=no"])
            .args(units)
            .output()
            .expect("it runs"),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
}
