//! Numbers of decisions: each is given once, and a gap has a reason.

use super::root;
use std::fs;

#[test]
fn every_number_of_a_decision_is_used_once_and_gaps_are_explained() {
    let directory = root().join("docs/decisions");
    let mut numbers: Vec<u32> = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(number) = name.get(..4).and_then(|number| number.parse().ok()) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    for missing in (1..*numbers.last().unwrap()).filter(|number| !numbers.contains(number)) {
        assert!(
            readme.contains(&format!("{missing:04}")),
            "README.md does not say why there is no decision {missing:04}"
        );
    }
}
