//! Objects of which few ranges are fetched (`--bounded`): what is said of them is what is said
//! without bounds, or that it was not looked at.

use crate::object_server::Faults;
use crate::objects::{BOUNDS, by_name, lay_all, numbers, served, with_bucket};
use crate::scratch;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Verdicts of a target's providers, by their names.
fn verdicts(line: &Value) -> BTreeMap<String, String> {
    let word = |provider: &Value, key: &str| provider[key].as_str().unwrap_or("none").to_owned();
    let providers = line["providers"].as_array().expect("a list").iter();
    providers.map(|own| (word(own, "provider"), word(own, "verdict"))).collect()
}

/// Rules of a target's findings, and the providers that they are of.
fn rules(line: &Value) -> BTreeSet<(String, String)> {
    let word = |finding: &Value, key: &str| finding[key].as_str().expect("a word").to_owned();
    let findings = line["findings"].as_array().expect("findings").iter();
    findings.map(|finding| (word(finding, "rule"), word(finding, "provider"))).collect()
}

#[test]
fn a_bounded_check_keeps_its_bounds_and_says_what_it_left_out() {
    let here = scratch();
    let directory = here.path().join("all");
    lay_all(&directory);
    let server = served(&directory, Faults::default());
    let whole = by_name(&with_bucket(here.path(), &server, "check -r s3://bucket/ --jsonl"));
    let is_container = |line: &Value| {
        line["providers"].as_array().expect("a list").iter().any(|own| !own["container"].is_null())
    };
    let (mut wrong, mut left_out) = (Vec::new(), 0);
    for (are_containers, bounds) in [false, true].into_iter().zip(BOUNDS) {
        let names = whole.iter().filter(|(_, line)| is_container(line) == are_containers);
        let list: String = names.map(|(name, _)| format!("s3://bucket/{name}\n")).collect();
        fs::write(here.path().join("list"), &list).expect("a list");
        let ran = with_bucket(here.path(), &server, "check --from list --jsonl --bounded");
        let most = numbers(&ran.stderr);
        assert!(most.iter().zip(bounds).all(|(n, most)| *n <= most), "{most:?}: {}", ran.stderr);
        let bounded = by_name(&ran);
        assert_eq!(bounded.len(), list.lines().count());
        for (name, line) in &bounded {
            let (own, all) = (verdicts(line), verdicts(&whole[name]));
            left_out += usize::from(own != all);
            let said = rules(line);
            if own != all && !said.iter().any(|(rule, _)| rule == "TL0019") {
                wrong.push(format!("{name}: nothing is said of what was left out"));
            }
            let judged = own.iter().filter(|(_, verdict)| *verdict != "unknown");
            for (provider, verdict) in
                judged.filter(|(own, verdict)| all.get(*own) != Some(verdict))
            {
                wrong
                    .push(format!("{name} {provider}: {verdict}, and not {:?}", all.get(provider)));
            }
            let new =
                said.difference(&rules(&whole[name])).filter(|(rule, _)| rule != "TL0019").count();
            if new > 0 {
                wrong.push(format!("{name}: {said:?}"));
            }
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
    assert!((20..40).contains(&left_out), "{left_out} are not as they are without bounds");
}
