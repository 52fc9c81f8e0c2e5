use crate::fixture;
use trueline_geom::audit::limits::nvme::Namespace;
use trueline_geom::base::topology::{Fact, Why};
use trueline_host::device::nvme;

fn read(text: &str) -> Vec<Namespace> {
    nvme::parse(text, "x").unwrap()
}

fn sizes(namespace: &Namespace, why: Why) -> Vec<u64> {
    let facts: Vec<Fact> = namespace.topology().unwrap().0.facts;
    facts.iter().filter(|f| f.why == why).map(|f| f.grain.size()).collect()
}

/// nvme-cli 2.4, of QEMU's drives in both formats: one document after another.
#[test]
fn captured() {
    let found = read(&fixture("qemu.nvme.json"));
    assert_eq!(
        found.iter().map(|n| (n.block(), n.length())).collect::<Vec<_>>(),
        [(Some(512), Some(256 << 20)), (Some(4096), Some(256 << 20))]
    );
    assert_eq!(
        (sizes(&found[0], Why::Discard), sizes(&found[1], Why::Discard)),
        (vec![65536], vec![65536])
    );
    assert!(sizes(&found[0], Why::Preferred).is_empty());
}

/// nvme-cli 1.x leaves out what the features do not make valid, and pretty prints with blanks
/// before colons.
#[test]
fn old_output() {
    let old = r#"{ "nsze" : 1953525168, "ncap" : 1953525168, "nuse" : 1953525168, "nsfeat" : 0, "nlbaf" : 0, "flbas" : 0, "mc" : 0,
        "nabsn" : 0, "nabo" : 0, "nabspf" : 0, "noiob" : 256, "nvmcap" : 1000204886016.0, "lbafs" : [ { "ms" : 0, "ds" : 9, "rp" : 0 } ] }"#;
    let found = &read(old)[0];
    assert_eq!(found.length(), Some(1_000_204_886_016));
    assert_eq!((sizes(found, Why::Chunk), sizes(found, Why::Preferred)), (vec![131_072], vec![]));
}

/// An array, a later format selected through the high bits of FLBAS, metadata in the block, text
/// for numbers.
#[test]
fn new_output() {
    let mut formats = vec![r#"{"lbaf":0,"ms":0,"ds":9,"rp":0,"in_use":0}"#; 17];
    formats.push(r#"{"lbaf":17,"ms":8,"lbads":"12","rp":0,"in_use":1}"#);
    let new = format!(
        r#"[{{"nsze":"0x100000","nsfeat":18,"flbas":49,"nlbaf":17,"nawupf":3,"npwg":3,"npwa":3,"npdg":3,"npda":3,"nows":31,"lbafs":[{}]}}]"#,
        formats.join(",")
    );
    let found = &read(&new)[0];
    assert_eq!((found.length(), found.ms), (Some(4 << 30), 8));
    assert_eq!(
        (sizes(found, Why::Preferred), sizes(found, Why::Optimal)),
        (vec![16384], vec![131_072])
    );
    assert_eq!(sizes(found, Why::Atomic), [16384]);
}

#[test]
fn what_is_not_id_ns_says_so() {
    let error = |text| nvme::parse(text, "a.json").unwrap_err().to_string();
    assert_eq!(
        error(""),
        "read nvme id-ns from a.json: no namespace: save what nvme id-ns -o json prints"
    );
    assert!(error("NVME Identify Namespace 1:").contains("expected value at line 1"));
    assert!(error("{}").contains("no \"nsze\""));
    assert!(
        error(r#"{"nsze":1,"flbas":3,"lbafs":[]}"#)
            .contains("flbas 3 selects format 3, but \"lbafs\" has 0")
    );
    assert!(
        error(r#"{"nsze":1,"lbafs":[{"ds":0}]}"#)
            .contains("1 blocks of 2^0 bytes are not a possible size")
    );
    assert!(
        error(r#"{"nsze":1,"npwg":65536,"lbafs":[{"ds":9}]}"#)
            .contains("\"npwg\" is 65536, more than the field holds")
    );
}
