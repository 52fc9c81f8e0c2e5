//! Jobs of Kubernetes, with the arguments that their containers have.

use super::{contrib, text};
use crate::skip::skip;
use crate::{lay_golden, run, run_with, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;

const JOB: &str = "kubernetes/fleet-job.yaml";
const NIGHTLY: &str = "kubernetes/fleet-cronjob.yaml";

/// The arguments of the container of a manifest, with volumes as directories beside each other.
fn arguments(manifest: &str) -> Vec<String> {
    let text = text(manifest);
    let mut lists = text.lines().filter_map(|line| line.trim().strip_prefix("args: ["));
    let (Some(list), None) = (lists.next(), lists.next()) else { panic!("{manifest}: one list") };
    let words = list.strip_suffix(']').expect("its end").split(", ");
    words.map(|word| word.strip_prefix('/').unwrap_or(word).to_owned()).collect()
}

fn images(directory: &Path) {
    for name in ["seed-001-sdd-63", "gpt-sfdisk", "gpt-backup-gone"] {
        let images = directory.join("images").join(name);
        fs::create_dir_all(&images).expect("a directory");
        lay_golden(name, &images);
    }
    fs::create_dir(directory.join("reports")).expect("a directory");
}

fn rows(text: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = text.lines().collect();
    rows.sort_unstable();
    rows
}

/// The image of the container has no shell: findings are rows, and the pod that has them succeeds.
#[test]
fn the_pods_of_a_job_have_every_row_between_them() {
    let here = scratch();
    images(here.path());
    let mut all = String::new();
    for index in 0..8 {
        let number = |word: String| word.replace("$(JOB_COMPLETION_INDEX)", &index.to_string());
        let words: Vec<String> = arguments(JOB).into_iter().map(number).collect();
        run_with(here.path(), &words.iter().map(String::as_str).collect::<Vec<_>>()).ended(0);
        let share = here.path().join(format!("reports/rows-{index}.jsonl"));
        all += &fs::read_to_string(share).expect("the rows of a share");
    }
    let whole = run(here.path(), "check -r images --follow --rows");
    whole.ended(1);
    assert!(rows(&all).len() > 3, "{all}");
    assert_eq!(rows(&all), rows(&whole.stdout));
}

#[test]
fn the_page_of_a_night_has_what_was_found() {
    let here = scratch();
    images(here.path());
    for _ in 0..2 {
        let words = arguments(NIGHTLY);
        run_with(here.path(), &words.iter().map(String::as_str).collect::<Vec<_>>()).ended(0);
        let page = fs::read_to_string(here.path().join("reports/fleet.html")).expect("the page");
        assert!(page.contains("misaligned"), "{page}");
    }
}

#[test]
fn manifests_are_valid() {
    let own =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/kubernetes-validate");
    let program = if own.exists() { own } else { "kubernetes-validate".into() };
    let manifests = [contrib(JOB), contrib(NIGHTLY)];
    let Ok(done) = Command::new(program).arg("--strict").args(manifests).output() else {
        return skip("no kubernetes-validate here");
    };
    let said = [done.stderr, done.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(done.status.success(), "{said}");
    assert_eq!(said.matches(" passed ").count(), 2, "{said}");
}
