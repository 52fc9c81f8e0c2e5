//! Rules of declarations: structures on disks, names of types.

use super::{CRATES, code, is_test, root, sources};

#[test]
fn every_structure_on_a_disk_shows_its_offsets() {
    let geom = root().join("crates/geom/src");
    let declares = "base/ondisk.rs";
    let mut shown = 0;
    for (path, text) in sources(&geom) {
        shown += text.matches("\non_disk! {\n").count();
        assert!(
            path.ends_with(declares) || !text.contains("#[repr(C)]"),
            "{}: declare it in on_disk!, which checks offsets",
            path.display()
        );
    }
    assert!(shown > 80, "{shown}");
}

/// Names that several types had, so that a reader had to know of which one a line speaks.
const COLLIDED: [&str; 8] = ["Place", "Entry", "Shape", "Kind", "Plan", "Refusal", "Done", "Asked"];

/// Names of the types that the code declares.
fn declared(code: &str) -> Vec<String> {
    let words: Vec<&str> = code
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let declares = |pair: &&[&str]| ["struct", "enum", "trait", "type", "union"].contains(&pair[0]);
    words.windows(2).filter(declares).map(|pair| pair[1].to_owned()).collect()
}

#[test]
fn a_name_that_collided_has_one_type() {
    for name in COLLIDED {
        let mut places = Vec::new();
        for krate in CRATES {
            let all = sources(&root().join("crates").join(krate).join("src"));
            for (path, text) in all.iter().filter(|(path, _)| !is_test(path)) {
                let count = declared(&code(text)).iter().filter(|found| *found == name).count();
                places.extend(vec![path.display().to_string(); count]);
            }
        }
        assert!(places.len() <= 1, "{name}: more types than one are called so: {places:#?}");
    }
}

#[test]
fn declarations_are_found() {
    let code = "pub(in super::super) enum Kind {\nstruct Entry of 8 bytes {\nimpl Plan for Kind {";
    assert_eq!(declared(code), ["Kind", "Entry"]);
    assert_eq!(declared("pub struct Place<'a> {\n    type Done = Shape;"), ["Place", "Done"]);
}
