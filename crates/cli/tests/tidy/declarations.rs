//! Rules of declarations: structures on disks, and errors.

use super::{is_test, root, sources};

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

/// Crates whose errors are types: a caller tells them apart without reading their text.
const TYPED_ERRORS: [&str; 2] = ["geom", "sim"];

#[test]
fn no_error_of_a_library_is_a_text() {
    for krate in TYPED_ERRORS {
        for (path, text) in sources(&root().join("crates").join(krate).join("src")) {
            for (number, line) in text.lines().enumerate().filter(|_| !is_test(&path)) {
                let is_text = line.contains(", String>") && line.contains("Result<")
                    || line.contains("type Err = String");
                let at = format!("{}:{}", path.display(), number + 1);
                assert!(!is_text || line.contains("Map<"), "{at}: give the error a type");
            }
        }
    }
}
