//! Rules of declarations: structures on disks.

use super::{root, sources};

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
