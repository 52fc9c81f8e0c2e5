//! The disks of the five documents, against the numbers the documents print: these are not ours to
//! bless.

use crate::lay::lay;
use crate::recipe::{self, Scratch};
use serde_json::Value;
use std::process::Command;

/// A provider of a document's disk: recipe, options, provider, its length and stripe offset in
/// bytes, and whether its start costs I/O. Lengths are those that `diskinfo`, `disklabel` and
/// `gpart` printed; a stripe offset is `diskinfo`'s, or follows from the printed start: 63 sectors
/// are 3584 bytes past a multiple of 4096.
const SEEDS: &[(&str, &str, &str, u64, u64, bool)] = &[
    // The partitions and the whole 2010 OpenBSD disk are one sector off; the jumper on the drive
    // puts them right.
    ("seed-000-openbsd", "--physical 4096", "s4a", 20_000_000 * 512, 3584, true),
    ("seed-000-openbsd", "--physical 4096", "s4b", 2_000_000 * 512, 3584, true),
    ("seed-000-openbsd", "--physical 4096", "s4f", 20_000_000 * 512, 3584, true),
    ("seed-000-openbsd", "--physical 4096+3584", "s4a", 20_000_000 * 512, 0, false),
    ("seed-000-openbsd", "--physical 4096+3584", "s4b", 2_000_000 * 512, 0, false),
    ("seed-000-openbsd", "--physical 4096+3584", "s4f", 20_000_000 * 512, 0, false),
    ("seed-001-sdd-63", "--physical 4096", "s1", 2_930_272_002 * 512, 3584, true),
    ("seed-001-sdc-64", "--physical 4096", "s1", 2_930_272_001 * 512, 0, false),
    ("seed-003-default", "--physical 512", "stripe/datas1a", 640_140_600_832, 7680, true),
    ("seed-003-aligned", "--physical 512", "stripe/datas1a", 640_140_583_936, 0, false),
    // gpart warned of the slice, and put the partition in it right without a word.
    ("seed-004-574", "--physical 4096", "s1", 488_396_510 * 512, 3072, false),
    ("seed-004-574", "--physical 4096", "s1a", 188_743_680 * 512, 0, false),
    ("seed-004-forced", "--physical 4096", "s1a", 188_743_680 * 512, 3072, true),
    ("seed-004-aligned", "--physical 4096", "s1a", 188_743_680 * 512, 0, false),
];

#[test]
fn the_documents_disks_are_what_the_documents_say() {
    let recipes = recipe::all();
    let mut wrong = Vec::new();
    for &(name, options, provider, length, offset, costs) in SEEDS {
        let recipe = recipes.iter().find(|r| r.name == name).expect("the seed's golden file");
        let scratch = Scratch::new("seeds");
        let target = lay(recipe, scratch.path()).unwrap().join(",");
        let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["check", "--json"])
            .args(options.split(' '))
            .arg(target)
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let target = &report["targets"][0];
        let of = |list: &Value| -> Vec<Value> {
            list.as_array()
                .into_iter()
                .flatten()
                .filter(|entry| entry["provider"] == provider)
                .cloned()
                .collect()
        };
        let providers = of(&target["providers"]);
        let [found] = &providers[..] else {
            wrong.push(format!("{name}: {} providers called {provider}", providers.len()));
            continue;
        };
        let off = of(&target["findings"]).iter().any(|f| f["rule"] == "TL0001");
        let got = (found["length"].as_u64(), found["stripe_offset"].as_u64(), off);
        if got != (Some(length), Some(offset), costs) {
            wrong.push(format!(
                "{name} {options} {provider}: {:?}, found {got:?}",
                (length, offset, costs)
            ));
        }
    }
    assert!(wrong.is_empty(), "length, stripe offset, start costs:\n{}", wrong.join("\n"));
}
