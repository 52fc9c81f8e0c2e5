//! SARIF, Prometheus text, the page and the drawing: as their readers need them.

use crate::{Ran, golden, list, run, run_with, zeroes};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Output of `check FORM` for an aligned disk, a misaligned set, a blank disk, and a file with a
/// hostile name; and its number of findings.
fn printed(form: &str) -> (Ran, usize) {
    let scratch = golden("seed-003-default");
    let hostile = "a \"b\" \\ <c> & é %20\n#.img";
    zeroes(scratch.path(), hostile, 1 << 20);
    zeroes(scratch.path(), "blank", 1 << 20);
    let arguments = ["check", "--color", "never", form, "disk,disk1", "blank", hostile, "md:1m"];
    let findings =
        run_with(scratch.path(), &["check", "--json", "disk,disk1", "blank", hostile, "md:1m"])
            .json();
    let findings =
        list(&findings, "targets").iter().map(|target| list(target, "findings").len()).sum();
    (run_with(scratch.path(), &arguments), findings)
}

#[test]
fn sarif_has_what_its_readers_require() {
    let (ran, findings) = printed("--sarif");
    let log = ran.ended(1).json();
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().is_some_and(|s| s.contains("sarif-2.1.0")));
    let [run] = log["runs"].as_array().expect("runs").as_slice() else { panic!("one run: {log}") };
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string() && driver["version"].is_string());
    let rules = driver["rules"].as_array().expect("rules");
    let ids: BTreeSet<&str> = rules.iter().map(|r| r["id"].as_str().expect("an id")).collect();
    assert_eq!(ids.len(), rules.len(), "a rule is listed once");
    for rule in rules {
        assert!(rule["shortDescription"]["text"].as_str().is_some_and(|t| !t.is_empty()), "{rule}");
    }
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), findings);
    for result in results {
        let index =
            usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("a small one");
        assert_eq!(result["ruleId"], rules[index]["id"]);
        assert!(
            ["error", "warning", "note"].iter().any(|level| result["level"] == *level),
            "{result}"
        );
        assert!(result["message"]["text"].as_str().is_some_and(|t| !t.is_empty()), "{result}");
        assert!(
            result["partialFingerprints"]
                .as_object()
                .is_some_and(|f| f.values().all(Value::is_string)),
            "{result}"
        );
        for location in result["locations"].as_array().expect("locations") {
            let physical = &location["physicalLocation"];
            is_uri_reference(physical["artifactLocation"]["uri"].as_str().expect("a URI"));
            // SARIF's integers are those of JavaScript; -1 stands for none.
            assert!(
                physical["region"]["byteOffset"]
                    .as_i64()
                    .is_none_or(|b| (-1..1 << 53).contains(&b)),
                "{location}"
            );
            for logical in location["logicalLocations"].as_array().expect("logical locations") {
                assert!(logical["fullyQualifiedName"].is_string(), "{location}");
            }
        }
    }
}

/// RFC 3986: only characters of a URI, every `%` before two hexadecimal digits, at most one `#`.
#[track_caller]
fn is_uri_reference(uri: &str) {
    let bytes = uri.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        let fits = match byte {
            b'%' => hex(i + 1) && hex(i + 2),
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(byte),
        };
        assert!(fits, "no URI: {uri}");
    }
    assert!(uri.matches('#').count() < 2 && !uri.is_empty(), "no URI: {uri}");
}

#[test]
fn prometheus_text_parses() {
    let (ran, findings) = printed("--prometheus");
    let text = &ran.ended(1).stdout;
    assert!(text.ends_with('\n'));
    let (mut metric, mut seen, mut types) = (String::new(), BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a name and a help");
            assert!(
                !help.is_empty() && !types.contains_key(name),
                "a metric is described once: {line}"
            );
            metric = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a name and a type");
            assert_eq!((name, kind), (metric.as_str(), "gauge"));
            types.insert(metric.clone(), 0);
        } else {
            let (name, labels, value) = sample(line);
            assert_eq!(name, metric, "the lines of a metric stand together");
            assert!(
                (labels.contains_key("target") || name == "trueline_errors") && value.is_finite(),
                "{line}"
            );
            assert!(seen.insert((name, labels)), "a series appears once: {line}");
            *types.get_mut(&metric).expect("a type before the first sample") += 1;
        }
    }
    assert_eq!(types["trueline_target_verdict"], 4 * 3);
    assert_eq!(types["trueline_target_findings"], 4 * 3);
    assert_eq!(types["trueline_finding_rmw_factor"], findings);
    assert!(
        seen.iter().any(|(_, labels)| labels
            .get("target")
            .is_some_and(|t| t == "a \"b\" \\ <c> & é %20\n#.img")),
        "the name survives"
    );
}

/// A line of the text format 0.0.4: `name{label="value",...} number`, without braces where there
/// are no labels.
#[track_caller]
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let word = |text: &str| {
        text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
    };
    let name = word(line);
    assert!(
        name.starts_with("trueline_") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
        "{line}"
    );
    let mut labels = BTreeMap::new();
    if let Some(value) = line[name.len()..].strip_prefix(' ') {
        return (name, labels, value.parse().expect("a number"));
    }
    let mut rest = line[name.len()..].strip_prefix('{').expect("labels");
    while !rest.starts_with('}') {
        let label = word(rest);
        assert!(label.starts_with(|c: char| c.is_ascii_lowercase()), "{line}");
        let mut characters =
            rest[label.len()..].strip_prefix("=\"").expect("a quoted value").char_indices();
        let mut value = String::new();
        let end = loop {
            match characters.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next().expect("an escaped character").1 {
                    'n' => '\n',
                    c @ ('"' | '\\') => c,
                    c => panic!("\\{c} is no escape: {line}"),
                }),
                (_, c) => value.push(c),
            }
        };
        rest = &rest[label.len() + 2 + end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
        assert!(labels.insert(label, value).is_none(), "a label twice: {line}");
    }
    (name, labels, rest[1..].trim_start().parse().expect("a number"))
}

#[test]
fn pages_and_drawings_fetch_nothing() {
    let scratch = golden("seed-003-default");
    zeroes(scratch.path(), "<script src=x>", 1 << 20);
    let arguments = ["check", "--html", "page.html", "disk,disk1", "<script src=x>"];
    let ran = run_with(scratch.path(), &arguments);
    assert_eq!(
        ran.ended(1).stdout,
        run_with(scratch.path(), &["check", "disk,disk1", "<script src=x>"]).stdout,
        "the page is beside the text"
    );
    let ran =
        run_with(scratch.path(), &["show", "--svg", "drawing.svg", "disk,disk1", "<script src=x>"]);
    assert_eq!(ran.ended(0).stdout, "");
    run(scratch.path(), "demo --short --html demo.html").ended(0);
    for (name, begins) in [
        ("page.html", "<!DOCTYPE html>"),
        ("demo.html", "<!DOCTYPE html>"),
        ("drawing.svg", "<?xml"),
    ] {
        let page = read(scratch.path(), name);
        assert!(page.starts_with(begins), "{name}");
        // A namespace is no address, and a pattern of the page itself is not fetched.
        let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "").replace("url(#", "");
        for never in [
            "http://",
            "https://",
            "<script",
            "<link",
            "<img",
            "<iframe",
            "<object",
            "<image",
            "src=\"",
            "url(",
            "@import",
            "javascript:",
            " onload",
            "xlink",
        ] {
            assert!(!page.contains(never), "{never} in {name}");
        }
        for reference in page.split("href=\"").skip(1) {
            assert!(reference.starts_with('#'), "a link out of {name}: {}", &reference[..40]);
            let id = &reference[1..reference.find('"').expect("a closing quote")];
            assert!(page.contains(&format!("id=\"{id}\"")), "{name} has no {id}");
        }
    }
}

#[test]
fn show_draws_and_prints() {
    let scratch = golden("gpt-sfdisk");
    let text = run(scratch.path(), "show disk").ended(0).stdout.clone();
    let picture = run(scratch.path(), "show --picture disk").ended(0).stdout.clone();
    for name in ["p1", "p2", "p3"] {
        assert!(text.contains(name) && picture.contains(name), "{text}{picture}");
    }
    assert!(text.contains("free") && picture.contains("to scale"), "{text}{picture}");
    let ran = run(scratch.path(), "show --json --svg both.svg disk");
    assert_eq!(
        ran.ended(0).json()["format"],
        "trueline/show/1",
        "--json is answered beside a drawing"
    );
    assert!(read(scratch.path(), "both.svg").contains("p3"));
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).expect("the file was written")
}
