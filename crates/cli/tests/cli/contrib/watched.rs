//! Metrics of a host: the textfile, its units, and the alerts and panels that read it.

use super::{beside_trueline, contrib, text};
use crate::recipe::Scratch;
use crate::serve_tls::has;
use crate::{Ran, golden};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const STAMP: &str = "trueline_check_last_success_timestamp_seconds";

/// Runs `trueline-textfile` into the directory `metrics`.
fn textfile(directory: &Path, arguments: &str) -> Ran {
    let metrics = directory.join("metrics");
    fs::create_dir_all(&metrics).expect("a directory");
    let output = beside_trueline(directory, contrib("prometheus/trueline-textfile"))
        .args(arguments.split_whitespace())
        .env("TEXTFILE_DIRECTORY", metrics)
        .output()
        .expect("a shell");
    Ran::of(&output)
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
    let bare = textfile(here.path(), "");
    let usage = "usage: trueline-textfile NAME [ARGUMENT...]\n";
    assert_eq!((bare.code, bare.stderr.as_str()), (Some(2), usage));
    let file = here.path().join("metrics/trueline-a.prom");
    let read = || fs::read_to_string(&file).expect("the file");
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();

    // A finding is no failure of the run.
    textfile(here.path(), "a disk").ended(0);
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
    assert_eq!(textfile(here.path(), "../a disk").code, Some(2), "a name, not a path");
    assert_eq!(names(here.path()), ["trueline-a.prom", "trueline-b.prom"]);
    textfile(here.path(), "a disk").ended(0);
    assert!(value(&read(), STAMP) >= begun);
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

#[test]
fn alerts_and_panels_name_only_metrics_and_labels_that_are_printed() {
    let here = golden("seed-001-sdd-63");
    textfile(here.path(), "a disk").ended(0);
    let text = fs::read_to_string(here.path().join("metrics/trueline-a.prom")).expect("a file");
    let metrics = printed(&text);
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
        textfile(here.path(), "a disk").ended(0);
        let text = fs::read_to_string(here.path().join("metrics/trueline-a.prom")).expect("a file");
        (here, text)
    };
    let (here, off) = metrics("seed-001-sdd-63");
    let (_, on) = metrics("gpt-sfdisk");
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
    let script = contrib("prometheus/trueline-textfile").canonicalize().expect("the script");
    let script = script.to_str().expect("UTF-8");
    let mut units = Vec::new();
    for entry in fs::read_dir(contrib("systemd")).expect("units") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let unit = text(&format!("systemd/{name}"));
        let stem = name.rsplit_once('.').expect("an ending").0;
        if let Some(command) = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")) {
            let arguments = command
                .strip_prefix("/usr/local/libexec/trueline-textfile ")
                .unwrap_or_else(|| panic!("{name}: {command}"));
            assert!(contrib(&format!("systemd/{stem}.timer")).exists(), "{name} has no timer");
            // The devices of the machine that runs tests are not known.
            if arguments.contains(' ') {
                let arguments = arguments.replace("/var/lib/libvirt/images", ".");
                textfile(here.path(), &arguments).ended(0);
            }
        }
        let path = here.path().join(&name);
        fs::write(&path, unit.replace("/usr/local/libexec/trueline-textfile", script))
            .expect("a file");
        units.push(path);
    }
    assert!(units.len() >= 4, "{units:?}");
    assert!(names(here.path()).contains(&"trueline-images.prom".to_owned()));
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
