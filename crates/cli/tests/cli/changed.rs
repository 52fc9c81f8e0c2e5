//! `check --changed`: what differs from the run before, and the state that is kept of it.

use crate::{Ran, lay_golden, program, run, run_with, scratch, zeroes};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

/// Lays a golden disk under a name of its own.
fn lay(golden: &str, directory: &Path, name: &str) {
    let laid = lay_golden(golden, directory);
    fs::rename(directory.join(&laid[0]), directory.join(name)).expect("a disk");
}

/// Makes `t` a disk of that kind, or nothing.
fn make(directory: &Path, kind: &str) {
    let link = directory.join("t");
    let _ = fs::remove_file(&link);
    if !matches!(kind, "unread" | "absent") {
        symlink(kind, link).expect("a link");
    }
}

/// Runs a check of `t` as that kind, and of another disk that never differs.
fn check(directory: &Path, kind: &str) -> Ran {
    make(directory, kind);
    let targets = if kind == "absent" { "" } else { "t" };
    run(directory, &format!("check --json --changed state clean {targets}"))
}

/// Rules and providers of the findings of an array.
fn places(findings: &Value) -> Vec<String> {
    let all = findings.as_array().expect("findings");
    all.iter().map(|f| format!("{} {} {}", f["rule"], f["provider"], f["offset"])).collect()
}

#[test]
fn every_state_of_a_target_follows_every_other() {
    let scratch = scratch();
    let here = scratch.path();
    for (golden, name) in
        [("gpt-sfdisk", "clean"), ("seed-001-sdd-63", "finding"), ("gpt-backup-gone", "other")]
    {
        lay(golden, here, name);
    }
    let kinds = ["absent", "clean", "finding", "other", "unread"];
    let own = |kind: &str| -> Option<Value> {
        (!matches!(kind, "absent" | "unread"))
            .then(|| run(here, &format!("check --json {kind}")).json()["targets"][0].clone())
    };
    let own = kinds.map(own);
    let of = |kind: &str| &own[kinds.iter().position(|k| *k == kind).expect("a kind")];
    for before in kinds {
        for after in kinds {
            let _ = fs::remove_file(here.join("state"));
            let first = check(here, before);
            assert!(first.json()["first"] == true, "{before}: {}", first.stdout);
            let ran = check(here, after);
            let document = ran.json();
            assert!(document["first"] == false && document["checked"].is_u64(), "{document}");
            let differs = document["targets"].as_array().expect("targets");
            let (was, is) = (of(before), of(after));
            let wanted = match after {
                "unread" => 2,
                "absent" | "clean" => 0,
                _ => i32::from(before != after),
            };
            assert_eq!(ran.code, Some(wanted), "{before}, {after}: {document}");
            match is {
                Some(is) if before != after => {
                    let [found] = differs.as_slice() else { panic!("one: {document}") };
                    assert_eq!(found["target"], "t");
                    assert_eq!(found["verdict"], is["verdict"]);
                    assert_eq!(
                        found["was"],
                        was.as_ref().map_or(Value::Null, |w| w["verdict"].clone())
                    );
                    assert_eq!(places(&found["new"]), places(&is["findings"]), "{before}, {after}");
                    let gone = was.as_ref().map_or(json!([]), |was| was["findings"].clone());
                    assert_eq!(places(&found["gone"]), places(&gone), "{before}, {after}");
                    assert_eq!(found["changed"], json!([]));
                }
                _ => assert_eq!(differs, &[] as &[Value], "{before}, {after}"),
            }
            // A target that was not read stays as it was.
            if is.is_none() && was.is_some() {
                let again = check(here, before);
                assert_eq!(again.code, Some(0), "{}", again.stdout);
                assert_eq!(again.json()["targets"], json!([]), "{before}, {after}, {before}");
            }
        }
    }
    assert_eq!(temporary(here), [] as [String; 0]);
}

/// Names of files that a replacement has left.
fn temporary(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).expect("a directory");
    let names = names.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn people_and_lines_have_what_differs_alone() {
    let scratch = scratch();
    let here = scratch.path();
    for (golden, name) in [("gpt-sfdisk", "clean"), ("seed-001-sdd-63", "finding")] {
        lay(golden, here, name);
    }
    zeroes(here, "blank.img", 1 << 20);
    make(here, "clean");
    let first = run(here, "check --changed state t");
    let wanted = "The first run: everything is new.\n✓ aligned, new: t\n1 of 1 target differs\n";
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), wanted));
    // Nothing for cron to send.
    let same = run(here, "check --changed state t");
    assert_eq!((same.code, same.stdout.as_str(), same.stderr.as_str()), (Some(0), "", ""));
    make(here, "finding");
    let ran = run(here, "check --changed state t clean");
    let text = ran.ended(1).stdout.as_str();
    let wanted = "✗ misaligned, was aligned: t\nnew error TL0001 s1: ext2 starts at byte 32256";
    assert!(text.starts_with(wanted), "{text}");
    assert!(text.contains("\n  fix: trueline move --align 't#s1'\n"), "{text}");
    assert!(
        text.ends_with("\n✓ aligned, new: clean\n2 of 2 targets differ; new: 1 error\n"),
        "{text}"
    );
    make(here, "clean");
    let ran = run(here, "check --changed state t");
    let text = ran.ended(0).stdout.as_str();
    let wanted = "✓ aligned, was misaligned: t\ngone error TL0001 s1: ext2 starts at byte 32256";
    assert!(text.starts_with(wanted), "{text}");
    assert!(text.ends_with("\n1 of 1 target differs; gone: 1 finding\n"), "{text}");

    // What has become unknown is said, and counts with --strict, once.
    run(here, "check --strict --changed other blank.img").ended(3);
    run(here, "check --strict --changed other blank.img").ended(0);
    let ran = run(here, "check --strict --jsonl --changed state -r . t");
    let lines: Vec<Value> =
        ran.ended(1).stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let targets: Vec<&Value> = lines.iter().map(|line| &line["target"]).collect();
    assert_eq!(
        targets,
        ["./blank.img", "./clean", "./finding"].map(|t| json!(t)).iter().collect::<Vec<_>>()
    );
    assert!(
        lines.iter().all(|line| line["format"] == "trueline/changes/1" && line["was"].is_null())
    );
    let ran = run(here, "check --strict --jsonl --changed state -r . t missing");
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
    let line: Value = serde_json::from_str(&ran.stdout).expect("one line");
    assert_eq!((&line["target"], &line["error_class"]), (&json!("missing"), &json!("not found")));
    run(here, "check --strict --jsonl --changed state -r . t").ended(0);
    // A baseline without a word; another threshold.
    make(here, "finding");
    assert_eq!(run(here, "check -q --changed state --physical 512 t").ended(0).stdout, "");
    let ran = run(here, "check --changed state --fail-on error t");
    assert!(ran.ended(1).stdout.contains("new error"), "{}", ran.stdout);
}

#[test]
fn the_state_is_replaced_once_the_output_is_out() {
    let scratch = scratch();
    let here = scratch.path();
    lay("seed-001-sdd-63", here, "t");
    let state = here.join("state");
    run(here, "check --changed state t").ended(1);
    fs::set_permissions(&state, fs::Permissions::from_mode(0o640)).expect("permissions");
    symlink("state", here.join("link")).expect("a link");
    let before = fs::read(&state).expect("a state");
    let into = |form: &str, stdout: Stdio| {
        let mut command = program(here);
        command.args(["check", "--physical", "512", form, "--changed", "link", "t"]);
        command.stdout(stdout).stderr(Stdio::null()).status().expect("it runs").code()
    };
    for form in ["--json", "--jsonl", "--color=never"] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        assert_eq!(into(form, full.into()), Some(2), "{form}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(into(form, writer.into()), Some(0), "{form}");
        assert_eq!(fs::read(&state).expect("a state"), before, "{form}");
    }
    assert_eq!(into("--json", Stdio::null()), Some(0));
    assert_ne!(fs::read(&state).expect("a state"), before);
    let kept = fs::symlink_metadata(here.join("link")).expect("a link");
    assert!(kept.is_symlink(), "the link stays");
    assert_eq!(fs::metadata(&state).expect("a state").permissions().mode() & 0o777, 0o640);
    assert_eq!(temporary(here), [] as [String; 0]);
}

#[test]
fn a_hostile_state_is_refused_and_stays() {
    let scratch = scratch();
    let here = scratch.path();
    lay("gpt-sfdisk", here, "t");
    let one = |severity: &str| {
        json!({"format": "trueline/checked/1", "targets": [{
            "target": "t", "verdict": "aligned", "findings": [{
                "rule": "\u{1b}[2J", "severity": severity, "provider": "\u{1b}[31m", "offset": 0,
                "unit": 0, "remainder": 0, "message": "a\u{1b}[0m\nb",
            }],
        }]})
    };
    let target = json!({"target": "t", "verdict": "aligned", "findings": []});
    let twice = json!({"format": "trueline/checked/1", "targets": [target, target]});
    let deep = format!("{{\"format\":\"trueline/checked/1\",\"targets\":{}", "[".repeat(100_000));
    let other = format!("{{\"x\":{}, \"format\":1}}", "[".repeat(100_000));
    for (text, says) in [
        ("", "it holds no state of --changed"),
        ("{}", "it holds no state of --changed: missing field `format`"),
        ("\u{1b}[2J", "it holds no state of --changed"),
        (&deep, "it holds no state of --changed"),
        (&other, "it holds no state of --changed"),
        (r#"{"format":"trueline/checked/2","new":1}"#, "another version of trueline wrote it: 2"),
        (r#"{"format":"trueline/check/1"}"#, "its format is trueline/check/1"),
        (r#"{"format":"trueline/checked/1","targets":[]} x"#, "it holds no state of --changed"),
        (&one("fatal").to_string(), "no severity is called fatal"),
        (&twice.to_string(), "it has t twice"),
    ] {
        fs::write(here.join("state"), text).expect("a state");
        for form in ["", "--jsonl"] {
            let ran = run(here, &format!("check {form} --changed state t"));
            assert!(ran.refused().contains(says), "{says}: {}", ran.stderr);
            assert!(ran.stderr.starts_with("trueline: read the state state: "), "{}", ran.stderr);
            assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
        }
        assert_eq!(fs::read_to_string(here.join("state")).expect("a state"), text);
    }
    // No control character of a state reaches the terminal.
    fs::write(here.join("state"), one("error").to_string()).expect("a state");
    let ran = run(here, "check --changed state t");
    assert!(ran.ended(0).stdout.contains("gone error \\u{1b}[2J \\u{1b}[31m: a\\u{1b}[0m\\nb"));
    let large = File::create(here.join("state")).expect("a state");
    large.set_len((256 << 20) + 1).expect("a length");
    run(here, "check --changed state t").refused();
    // A link that leads nowhere may be another user's: no file is made behind it.
    symlink("absent", here.join("nowhere")).expect("a link");
    for odd in [".", "/dev/null", "no/state", "t/state", "nowhere", "-"] {
        run(here, &format!("check --changed {odd} t")).refused();
    }
    assert!(here.join("nowhere").is_symlink() && !here.join("absent").exists());
    for form in ["--rows", "--sarif", "--prometheus", "--nagios", "-n", "--alignment"] {
        run_with(here, &["check", form, "--changed", "new", "t"]);
        assert!(!here.join("new").exists(), "{form}");
    }
}

#[test]
fn what_the_status_is_for_is_shown() {
    let scratch = scratch();
    let here = scratch.path();
    lay("minix-sub", here, "noted");
    let rules = |ran: &Ran| ran.json()["targets"][0]["findings"].as_array().map_or(0, Vec::len);
    let notes = rules(&run(here, "check --json noted"));
    assert!(notes > 0, "a disk without notes");
    let ran = run(here, "check --fail-on note --changed state noted");
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.contains("new note TL"), "{}", ran.stdout);
    // Lines and rows name the profile by which a target was judged.
    let judged = |words: &str, of: &str| {
        let ran = run(here, &format!("check --for ssd-16k {words} noted"));
        let line = ran.stdout.lines().next().expect("a line").to_owned();
        serde_json::from_str::<Value>(&line).expect("a line of JSON").pointer(of).cloned()
    };
    assert_eq!(judged("--jsonl --changed lines", "/for/profile"), Some(json!("ssd-16k")));
    assert_eq!(judged("--rows", "/for"), Some(json!("ssd-16k")));
}

/// However many runs replace one state at a time, none says that it did and did not.
#[test]
fn of_several_runs_with_one_state_none_is_lost_without_a_word() {
    let scratch = scratch();
    let here = scratch.path();
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| lay("gpt-sfdisk", here, name));
    for round in 0..3 {
        let state = format!("state{round}");
        let begin = |name: &str| {
            let arguments = ["check", "-q", "--changed", &state, name];
            program(here).args(arguments).stderr(Stdio::null()).spawn().expect("a run")
        };
        let children = names.map(|name| (name, begin(name)));
        for (name, mut child) in children {
            let code = child.wait().expect("an end").code();
            let text = fs::read_to_string(here.join(&state)).expect("a state");
            let is_there = text.contains(&format!("\"target\":\"{name}\""));
            assert!(code == Some(2) || is_there, "{name} ended with {code:?}: {text}");
        }
    }
}

/// Every user may lock a directory that it can read; a run does not wait for it to let go.
#[test]
fn a_locked_directory_keeps_no_state_from_being_written() {
    let scratch = scratch();
    let here = scratch.path();
    make(here, "absent");
    lay("gpt-sfdisk", here, "t");
    let directory = File::open(here).expect("a directory");
    flock(&directory, FlockOperation::LockExclusive).expect("a lock");
    run(here, "check -q --changed state t").ended(0);
    assert!(fs::read_to_string(here.join("state")).expect("a state").contains("\"target\":\"t\""));
    assert_eq!(temporary(here), Vec::<String>::new());
}
