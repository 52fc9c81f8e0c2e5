//! Providers that clients make while a disk is served: counters name them from then on, and keep
//! earlier counts.

use crate::counters::{here, serve};
use crate::{list, scratch, zeroes};
use serde_json::Value;
use std::fs;

const MEG: u64 = 1 << 20;

/// For nbdsh: `table((first sector, sectors), ...)` is a boot sector.
pub(crate) const TABLE: &str = "
import struct
def table(*parts):
    b = bytearray(512)
    for n, (start, sectors) in enumerate(parts):
        b[446 + 16 * n:462 + 16 * n] = struct.pack('<8BII', 0, 0, 0, 0, 0x83, 0, 0, 0, start, \
    sectors)
    b[510:] = bytes([0x55, 0xaa])
    return bytes(b)
";

/// Serves a new disk of 32 MiB while `does` is done by nbdsh with [`TABLE`]; what was counted, and
/// said.
fn served(does: &str) -> Option<(Value, String)> {
    if !here(&["nbdsh"]) {
        return None;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 32 * MEG);
    fs::write(scratch.path().join("does"), format!("{TABLE}{does}"))
        .expect("a file can be written");
    let ran = serve(scratch.path(), "disk --json", r#"nbdsh -u "$uri" -c "$(cat does)""#);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    Some((ran.json(), ran.stderr))
}

/// Name, whether it is gone, and writes that are aligned, misaligned, and misaligned because of
/// where it begins; in the order of numbers.
fn layers(served: &Value) -> Vec<(String, bool, [u64; 3])> {
    let mut layers: Vec<&Value> = list(served, "layers").iter().collect();
    layers.sort_by_key(|layer| layer["id"].as_u64());
    let row = |layer: &&Value| {
        let number = |value: &Value| value.as_u64().expect("a count");
        let counts = [
            &layer["writes"]["aligned"],
            &layer["writes"]["misaligned"],
            &layer["blamed"]["writes"],
        ]
        .map(number);
        (
            layer["provider"].as_str().expect("a name").to_owned(),
            layer["gone"].as_bool().expect("yes or no"),
            counts,
        )
    };
    layers.iter().map(row).collect()
}

#[test]
fn a_partition_that_a_client_makes_has_its_name_from_the_next_request_on() {
    let does = "
h.pwrite(bytes(4096), 63 * 512)
h.pwrite(table((63, 16384), (20480, 20480)), 0)
h.flush()
for i in range(10): h.pwrite(bytes(4096), 63 * 512 + i * 4096)
for i in range(3): h.pwrite(bytes(4096), (20480 + i * 8) * 512)
h.pwrite(bytes(4096), 9 << 20)
";
    let Some((served, _)) = served(does) else { return };
    // What was written before there was a partition was the client's doing, and stays so.
    let want = [
        (String::new(), false, [1, 1, 0]),
        ("s1".into(), false, [0, 10, 10]),
        ("s2".into(), false, [3, 0, 0]),
    ];
    assert_eq!((layers(&served), &served["generation"]), (want.into(), &1.into()), "{served:#}");
    let s1 = list(&served, "layers").iter().find(|layer| layer["provider"] == "s1").expect("it");
    assert_eq!(
        (&s1["blame"]["provider"], &s1["blame"]["remainder"], &s1["id"]),
        (&"s1".into(), &3584.into(), &1.into())
    );
}

#[test]
fn what_is_made_anew_under_an_old_name_is_counted_apart() {
    let does = "
h.pwrite(table((63, 16384)), 0, nbd.CMD_FLAG_FUA)
for i in range(10): h.pwrite(bytes(4096), 63 * 512 + i * 4096)
h.pwrite(table((64, 16384)), 0, nbd.CMD_FLAG_FUA)
for i in range(5): h.pwrite(bytes(4096), 64 * 512 + i * 4096)
h.flush()
";
    let Some((served, _)) = served(does) else { return };
    let want = [
        (String::new(), false, [0, 0, 0]),
        ("s1".into(), true, [0, 10, 10]),
        ("s1".into(), false, [5, 0, 0]),
    ];
    assert_eq!((layers(&served), &served["generation"]), (want.into(), &2.into()), "{served:#}");
}

/// A client's writes cannot make more counters than there is room for, and all its writes are
/// counted.
#[test]
fn a_client_that_writes_tables_in_a_loop_is_not_followed_for_ever() {
    let does = "
for i in range(1000):
    h.pwrite(table((64 + i, 64), (4096 + i, 64)), 0)
    h.flush()
    h.pwrite(bytes(512), (64 + i) * 512)
";
    let Some((served, said)) = served(does) else { return };
    let layers = list(&served, "layers");
    assert!(
        layers.len() > 1
            && layers.len() <= 513
            && served["generation"].as_u64().is_some_and(|n| n <= 256),
        "{}",
        layers.len()
    );
    let writes: u64 =
        layers.iter().map(|layer| layer["writes"]["partial"].as_u64().expect("a count")).sum();
    assert_eq!(writes, 2000, "{said}");
}

/// As an installer writes it: the table, and then what is in it.
#[test]
fn the_summary_names_what_was_installed() {
    if !here(&["qemu-io", "sfdisk", "mkfs.ext4"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 * MEG);
    let script = r#"{ truncate -s 64M made && printf 'label: gpt\nstart=2048, size=32768\nstart=40001, size=32768\n' | sfdisk -q made &&
truncate -s 16M fs && mkfs.ext4 -q -F -b 4096 -L root fs && head -c 1M made >head && tail -c 1M made >tail &&
qemu-io -f raw -c 'write -s head 0 1M' -c 'write -s tail 63M 1M' -c flush "$uri" &&
qemu-io -f raw -c 'write -s fs 20480512 16M' -c flush "$uri" &&
qemu-io -f raw -c 'write -P 1 21M 64k' -c flush "$uri"; } >log 2>&1"#;
    let ran = serve(scratch.path(), "disk --physical 4096", script);
    let log = fs::read_to_string(scratch.path().join("log")).unwrap_or_default();
    assert_eq!(ran.code, Some(0), "{log}{}", ran.stderr);
    let line = |with: &str| {
        ran.stderr
            .lines()
            .find(|line| line.starts_with(with))
            .unwrap_or_else(|| panic!("{with}: {}", ran.stderr))
            .to_owned()
    };
    assert!(line("p2 ").contains(" ext4 "), "{}", ran.stderr);
    assert!(line("p2: ").contains("because p2 begins 512 bytes past a boundary"), "{}", ran.stderr);
}
