//! Layers between a workload and a simulated drive: `bench --through`, and `layers` of labs.

use crate::{list, run, scratch};
use serde_json::Value;
use std::fs;

/// The counts of layer `nth` of a variant.
fn counts(variant: &Value, nth: usize) -> [u64; 5] {
    let layer = &list(variant, "layers")[nth];
    let of = |part: &Value, key: &str| part[key].as_u64().expect("a count");
    [
        of(&layer["asked"], "writes"),
        of(&layer["made"], "reads"),
        of(layer, "caused_reads"),
        of(&layer["made"], "bytes_written"),
        of(&layer["made"], "flushes"),
    ]
}

#[test]
fn layers_count_what_they_make_of_requests() {
    let ran = run(
        scratch().path(),
        "bench fill --bs 6k --offset 0,1 --runs 3 --through page-cache --through \
         loop:direct=true drive:md@1200k --json",
    );
    let document = ran.ended(0).json();
    let [even, odd] = [0, 1].map(|nth| document["variants"][nth].clone());
    // 200 writes of 6 KiB in each of 3 runs: pages that one has in part are read once, and every
    // byte is written once.
    let names =
        |of: &Value| list(of, "layers").iter().map(|l| l["layer"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&even), ["page-cache", "loop"]);
    assert_eq!(counts(&even, 0), [3 * 200, 3 * 100, 3 * 100, 3 * 1_228_800, 3]);
    // The cache's requests pass the loop device, which causes none.
    let beneath = counts(&even, 1);
    assert_eq!((beneath[1], beneath[2], beneath[3]), (3 * 100, 0, 3 * 1_228_800));
    assert_eq!(even["layers"][0]["write_amplification"], 1.0);
    // A sector further, every write ends within a page but the last, which has less room, and the
    // first begins in one.
    let [writes, _, caused, written, _] = counts(&odd, 0);
    assert_eq!((writes, caused, written), (3 * 200, 3 * 200, 3 * 1_228_800));
}

#[test]
fn a_lab_names_layers_for_a_row_and_for_a_layout() {
    let scratch = scratch();
    let lab = r#"
        name = "mine"
        title = "mine"
        drives = [{ model = "md" }]
        [[row]]
        id = "a"
        title = "a"
        unit = "s"
        workload = { kind = "fill", bs = 6144 }
        layers = [{ kind = "page-cache", sync = "medium" }, { kind = "loop" }]
        sweep = false
        aligned = { layers = [] }
        unaligned = { by = 512 }
    "#
    .replace("model = \"md\"", "model = \"md\", set = { size = 1228800 }");
    fs::write(scratch.path().join("mine.toml"), &lab).expect("a file");
    let document = run(scratch.path(), "lab run mine.toml --json").ended(0).json();
    let variants = &document["labs"][0]["rows"][0]["variants"];
    assert_eq!(variants[0]["layers"], Value::Array(Vec::new()));
    assert_eq!(counts(&variants[1], 0)[..3], [200, 200, 200]);
    let text = run(scratch.path(), "lab run mine.toml").ended(0).stdout.clone();
    assert!(text.contains("\na unaligned ") && !text.contains("a aligned"), "{text}");
    let refused = |from: &str, to: &str| {
        fs::write(scratch.path().join("mine.toml"), lab.replace(from, to)).expect("a file");
        run(scratch.path(), "lab run mine.toml").refused().to_owned()
    };
    let said = refused("kind = \"loop\"", "kind = \"lop\"");
    assert!(
        said.contains("line 10: layers: ") && said.contains("no layer 'lop': there are "),
        "{said}"
    );
    let said = refused("{ kind = \"loop\" }", "{ memory = 3 }");
    assert!(said.contains("a layer needs a kind"), "{said}");
}

#[test]
fn layers_that_cannot_be_are_refused() {
    let scratch = scratch();
    fs::write(scratch.path().join("disk.img"), vec![0; 1 << 20]).expect("a file");
    for (arguments, why) in [
        ("--through pc drive:md", "--through: no layer 'pc': there are page-cache, loop"),
        ("--through loop:block=5k drive:md", "block = 5120: a power of two from 512 to 4096"),
        ("--through loop:blok=4k drive:md", "unknown field `blok`"),
        ("--through loop:block drive:md", "block: not a key and its value: cluster=64k"),
        ("--through page-cache disk.img", "--through is for simulated drives"),
    ] {
        let ran = run(scratch.path(), &format!("bench random-write {arguments}"));
        let said = ran.refused();
        assert!(said.contains(why), "{arguments}: {said}");
    }
}
