//! Files that a pipeline runs: the action of GitHub, the job of GitLab, the hook of pre-commit.

use super::{beside_trueline, contrib, text};
use crate::recipe::Scratch;
use crate::serve_tls::{has, shell};
use crate::{Ran, golden, lay_golden, list, program, run_with, scratch, texts, zeroes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The value behind `key:` in a line that is so far in, without quotes.
fn valued(line: &str, indent: usize) -> Option<(&str, &str)> {
    let inner = line.get(indent..)?;
    if !line[..indent].trim().is_empty() || inner.starts_with([' ', '-', '#']) {
        return None;
    }
    let (key, value) = inner.split_once(':')?;
    Some((key, value.trim().trim_matches('\'')))
}

/// The steps' inputs of the action: names and defaults.
fn inputs(action: &str) -> BTreeMap<String, Option<String>> {
    let section = action.split_once("\ninputs:\n").expect("inputs").1;
    let section = section.split_once("\noutputs:\n").expect("outputs").0;
    let mut inputs = BTreeMap::new();
    let mut last = String::new();
    for line in section.lines() {
        if let Some((name, "")) = valued(line, 2) {
            name.clone_into(&mut last);
            inputs.insert(last.clone(), None);
        } else if let Some(("default", value)) = valued(line, 4) {
            inputs.insert(last.clone(), Some(value.to_owned()));
        }
    }
    inputs
}

/// Runs the last step of the action, as a runner does it, with the inputs `with`; how it ended, and
/// the step's outputs.
fn act(here: &Scratch, with: &[(&str, &str)]) -> (Ran, BTreeMap<String, String>) {
    let action = text("github/action.yml");
    let mut inputs = inputs(&action);
    for (name, value) in with {
        assert!(inputs.insert((*name).to_owned(), Some((*value).to_owned())).is_some(), "{name}");
    }
    let step = action.rsplit_once("    - name: ").expect("a step").1;
    let outputs = here.path().join("outputs");
    fs::write(&outputs, "").expect("a file");
    let script = step.lines().find_map(|line| valued(line, 6)?.1.strip_prefix("sh ")).expect("sh");
    let mut command = beside_trueline(here.path(), "bash");
    command
        .args(["-e", "-o", "pipefail", "-c", &format!("sh {script}")])
        .env("GITHUB_ACTION_PATH", contrib("github").canonicalize().expect("the action"))
        .env("GITHUB_OUTPUT", &outputs);
    let mut used = 0;
    for (key, value) in step.lines().filter_map(|line| valued(line, 8)) {
        let name = value.strip_prefix("${{ inputs.").and_then(|v| v.strip_suffix(" }}"));
        let input = &inputs[name.unwrap_or_else(|| panic!("no input: {value}"))];
        command.env(key, input.as_ref().expect("an input that is required is given"));
        used += 1;
    }
    assert_eq!(used, inputs.len(), "every input has its use");
    let ran = Ran::of(&command.output().expect("bash"));
    let outputs = fs::read_to_string(&outputs).expect("a file");
    let outputs = outputs.lines().map(|line| line.split_once('=').expect("an output"));
    (ran, outputs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
}

#[test]
fn the_action_leaves_sarif_and_the_status_of_check() {
    let here = golden("seed-001-sdd-63");
    fs::create_dir(here.path().join("a tree")).expect("a directory");
    let names = lay_golden("gpt-sfdisk", &here.path().join("a tree"));
    assert_eq!(names, ["disk"]);
    fs::rename(here.path().join("a tree/disk"), here.path().join("a tree/good.img")).expect("it");

    let (ran, outputs) = act(&here, &[("images", "disk\na tree")]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("error TL0001 s1"), "the log has the text: {}", ran.stdout);
    assert!(ran.stdout.contains("a tree/good.img"), "a directory is searched: {}", ran.stdout);
    assert_eq!(outputs["status"], "1");
    let sarif = |name: &str| -> Value {
        let text = fs::read_to_string(here.path().join(name)).expect("SARIF");
        serde_json::from_str(&text).expect("JSON")
    };
    let document = sarif(&outputs["sarif"]);
    assert_eq!(document["version"], "2.1.0");
    let results = list(&document["runs"][0], "results");
    assert!(texts(results, "ruleId").contains(&"TL0001"), "{document}");

    let (ran, outputs) = act(&here, &[("images", "a tree"), ("sarif", "good.sarif")]);
    assert_eq!((ran.code, outputs["status"].as_str()), (Some(0), "0"), "{}", ran.stdout);
    assert!(sarif("good.sarif")["runs"][0]["results"].is_array());

    // Each input reaches check.
    zeroes(here.path(), "-blank.img", 1 << 20);
    let status = |with: &[(&str, &str)]| act(&here, with).0.code;
    assert_eq!(status(&[("images", "-blank.img")]), Some(3));
    assert_eq!(status(&[("images", "-blank.img"), ("strict", "false")]), Some(0));
    assert_eq!(status(&[("images", "-blank.img"), ("fail-on", "note")]), Some(1));
    assert_eq!(status(&[("images", "disk"), ("for", "512n")]), Some(0));

    // Without a name, check would look at the disks of the runner.
    for images in ["", " \n\n"] {
        let (ran, outputs) = act(&here, &[("images", images)]);
        assert_eq!((ran.code, ran.stdout.as_str(), outputs.len()), (Some(2), "", 0), "{images:?}");
        assert!(ran.stderr.contains("no images are named"), "{}", ran.stderr);
    }

    // A name that is none: what was checked is in SARIF, the step fails. Without a report there is
    // no file.
    let (ran, _) = act(&here, &[("images", "missing\ndisk"), ("sarif", "part.sarif")]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("missing"), "{}", ran.stderr);
    assert!(!list(&sarif("part.sarif")["runs"][0], "results").is_empty());
    let (ran, _) = act(&here, &[("images", "disk"), ("for", "none"), ("sarif", "no.sarif")]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(!here.path().join("no.sarif").exists());
}

/// Runs the script of GitLab's job in a project, as a runner does it; how it ended, and the report.
fn gitlab(project: &Path, variables: &[(&str, &str)]) -> (Ran, Option<Value>) {
    let job = text("gitlab/trueline.gitlab-ci.yml");
    let script = job.split_once("\n  script:\n    - |\n").expect("a script").1;
    let script: String =
        script.split_inclusive('\n').map_while(|line| line.strip_prefix("      ")).collect();
    let mut command = beside_trueline(project, "bash");
    command.args(["-e", "-o", "pipefail", "-c", &script]).env("CI_PROJECT_DIR", project);
    let defaults = job.split_once("\n  variables:\n").expect("variables").1;
    for (key, value) in defaults
        .lines()
        .map_while(|line| Some(line.strip_prefix("    ")?.trim()))
        .filter_map(|line| line.split_once(": "))
    {
        if !key.starts_with('#') {
            command.env(key, value);
        }
    }
    command.envs(variables.iter().copied());
    let ran = Ran::of(&command.output().expect("bash"));
    let name = job.lines().find_map(|line| line.strip_prefix("      codequality: "));
    let report = fs::read_to_string(project.join(name.expect("a report"))).ok();
    (ran, report.map(|text| serde_json::from_str(&text).expect("JSON")))
}

#[test]
fn the_job_of_gitlab_leaves_a_report_of_paths_in_the_project() {
    let here = scratch();
    fs::create_dir_all(here.path().join("out/cards")).expect("a directory");
    for (golden, name) in [("gpt-sfdisk", "out/good.img"), ("seed-001-sdd-63", "out/cards/a b.img")]
    {
        let laid = lay_golden(golden, here.path());
        fs::rename(here.path().join(&laid[0]), here.path().join(name)).expect("a disk");
    }
    let (ran, report) = gitlab(here.path(), &[]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("error TL0001 s1"), "the log has the text: {}", ran.stdout);
    let report = report.expect("a report");
    let [issue] = report.as_array().expect("an array").as_slice() else { panic!("{report}") };
    // The keys that GitLab's format has, all of them required.
    for key in ["description", "check_name", "fingerprint", "severity"] {
        assert!(issue[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {issue}");
    }
    assert_eq!((&issue["check_name"], &issue["severity"]), (&"TL0001".into(), &"major".into()));
    let location = json!({"path": "out/cards/a b.img", "lines": {"begin": 1}});
    assert_eq!(issue["location"], location);

    // By whatever name, from whatever directory: the issue is the same.
    let path = here.path().join("out/cards/a b.img");
    let mut command = program(&here.path().join("out"));
    command.args(["check", "--gitlab"]).arg(path).env("CI_PROJECT_DIR", here.path());
    let again = Ran::of(&command.output().expect("it runs")).json();
    assert_eq!(
        (&again[0]["fingerprint"], &again[0]["location"]),
        (&issue["fingerprint"], &issue["location"])
    );
    fs::remove_file(here.path().join("out/cards/a b.img")).expect("a disk");
    let (ran, report) = gitlab(here.path(), &[]);
    assert_eq!((ran.code, report), (Some(0), Some(json!([]))), "{}", ran.stderr);
    zeroes(here.path(), "out/blank.img", 1 << 20);
    let (ran, report) = gitlab(here.path(), &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert_eq!(report.expect("a report")[0]["severity"], "info");
    assert_eq!(gitlab(here.path(), &[("TRUELINE_OPTIONS", "")]).0.code, Some(0));
    // What could not be read is an issue too; without a report there is no file.
    let (ran, report) = gitlab(here.path(), &[("TRUELINE_IMAGES", "none")]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert_eq!(report.expect("a report")[0]["severity"], "blocker");
    for wrong in [("TRUELINE_OPTIONS", "--nonsense"), ("TRUELINE_IMAGES", "")] {
        let (ran, report) = gitlab(here.path(), &[wrong]);
        assert_eq!((ran.code, report), (Some(2), None), "{wrong:?}");
    }
}

#[test]
fn the_action_builds_the_crate_that_stands_beside_it() {
    let action = text("github/action.yml");
    let path = action.split_once("--path \"$GITHUB_ACTION_PATH/").expect("a path").1;
    let manifest = contrib("github").join(path.split_once('"').expect("its end").0);
    let manifest = fs::read_to_string(manifest.join("Cargo.toml")).expect("a manifest");
    assert!(manifest.contains("name = \"trueline\""), "{manifest}");
}

/// The endings of names that the hook takes.
fn endings(here: &Path) -> Vec<String> {
    let hook = text("../.pre-commit-hooks.yaml");
    let files = hook.lines().find_map(|l| l.trim().strip_prefix("files: '\\.(")).expect("files");
    let endings = files.strip_suffix(")$'").expect("the end of a name").split('|');
    let endings = endings.flat_map(|ending| match ending.strip_suffix('?') {
        Some(longer) => vec![longer.to_owned(), longer[..longer.len() - 1].to_owned()],
        None => vec![ending.to_owned()],
    });
    let endings: Vec<String> = endings.collect();
    for ending in &endings {
        zeroes(here, &format!("x.{ending}"), 1 << 20);
    }
    endings
}

#[test]
fn the_hook_takes_names_that_check_takes_for_images() {
    let here = golden("gpt-sfdisk");
    let endings = endings(here.path());
    let ran = run_with(here.path(), &["check", "-r", ".", "--jsonl"]);
    let count = ran.stdout.matches("\"target\":\"./x.").count();
    assert_eq!(count, endings.len(), "{endings:?}: {}", ran.stdout);
}

#[test]
fn the_hook_stops_a_commit_of_a_misaligned_image() {
    if !has("pre-commit") {
        return;
    }
    let here = scratch();
    fs::create_dir(here.path().join("hooks")).expect("a directory");
    fs::copy(
        contrib("../.pre-commit-hooks.yaml"),
        here.path().join("hooks/.pre-commit-hooks.yaml"),
    )
    .expect("the hook");
    let config = "repos: [{repo: ../hooks, rev: v1, hooks: [{id: trueline}]}]\n";
    let git = "git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main";
    shell(
        here.path(),
        &format!(
            "cd hooks; {git} init -q; {git} add .; {git} commit -qm hook; {git} tag v1; cd ..
            mkdir images; cd images; {git} init -q; printf '%s' '{config}' >.pre-commit-config.yaml
            echo words >words.txt; {git} add ."
        ),
    );
    let images = here.path().join("images");
    let hook = || {
        let mut command = beside_trueline(&images, "pre-commit");
        command.args(["run", "--all-files", "--color=never"]);
        let cache = here.path().join("cache");
        Ran::of(&command.env("PRE_COMMIT_HOME", cache).output().expect("pre-commit"))
    };
    let add = |name: &str, from: &Path| {
        fs::copy(from, images.join(name)).expect("an image");
        shell(&images, &format!("{git} add ."));
    };
    assert!(hook().stdout.contains("(no files to check)Skipped"), "{}", hook().stdout);
    let good = golden("gpt-sfdisk");
    add("good.img", &good.path().join("disk"));
    let ran = hook();
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Passed"), "{}", ran.stdout);
    let bad = golden("gpt-unaligned");
    add("bad.img", &bad.path().join("disk"));
    let ran = hook();
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("TL0001"), "{}", ran.stdout);
}
