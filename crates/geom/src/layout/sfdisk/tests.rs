use super::*;

fn lines(text: &str) -> Vec<Line> {
    Script::parse(text).unwrap_or_else(|e| panic!("{e}: {text}")).lines
}

#[test]
fn fields_without_names_are_read_as_sfdisk_reads_them() {
    let sectors = |n| Some(Count::Sectors(n));
    let line = |start, size, kind: &str, bootable| Line {
        start,
        size,
        kind: Some(kind.into()).filter(|k: &String| !k.is_empty()),
        bootable,
        ..Line::default()
    };
    let table = [
        ("2048 0x5000 83 *", line(sectors(2048), sectors(0x5000), "83", true)),
        ("- 010000 c -", line(None, sectors(4096), "c", false)),
        (";", line(None, None, "", false)),
        (",10M,,*", line(None, Some(Count::Bytes(10 << 20)), "", true)),
        ("2048;4096;0x83;*", line(sectors(2048), sectors(4096), "0x83", true)),
        ("1MiB, +, S", line(Some(Count::Bytes(1 << 20)), None, "S", false)),
        (",,\"Linux swap\"", line(None, None, "Linux swap", false)),
    ];
    for (text, want) in table {
        assert_eq!(lines(text), [want], "{text}");
    }
    assert_eq!(lines("label: dos\n\n,1M\n# a comment\n\n;\n").len(), 2);
}

#[test]
fn fields_with_names_are_read_as_sfdisk_reads_them() {
    let text = "/dev/nvme0n1p12 : start=        2048, size=1MiB, type=L, \
        uuid=516E7CB4-6ECF-11D6-8FF8-00022D09712B, \
                name=\"a \\x22b\\x22, c\", attrs=\"RequiredPartition GUID:48,63\", bootable";
    let want = Line {
        number: Some(12),
        start: Some(Count::Sectors(2048)),
        size: Some(Count::Bytes(1 << 20)),
        kind: Some("L".into()),
        bootable: true,
        uuid: "516e7cb4-6ecf-11d6-8ff8-00022d09712b".parse().ok(),
        name: Some("a \"b\", c".into()),
        attributes: 1 | 1 << 48 | 1 << 63,
    };
    assert_eq!(lines(text), [want]);
    assert_eq!(lines("SIZE = + Id = 5")[0].kind.as_deref(), Some("5"));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let table = [
        ("", "line 1: there is no partition"),
        ("label: sun\n", "line 1: label 'sun': scripts for gpt and dos"),
        ("label: dos\nunit: cylinders\n", "line 2: unit 'cylinders'"),
        ("label: dos\nlabel-id: 12\n", "line 2: label-id: '12' is none"),
        ("label: dos\nfoo: bar\n", "line 2: header 'foo' is not known"),
        (",1M\nlabel: dos\n", "line 2: a header after the first partition"),
        (",1Q\n", "line 1: size '1Q' is none"),
        ("1s\n", "line 1: start '1s' is none"),
        ("99999999999999999999\n", "line 1: start '99999999999999999999' is none"),
        ("1,2,3,x\n", "line 1: bootable 'x': write * or -"),
        ("1,2,3,*,5\n", "line 1: more than four fields: '5'"),
        ("sda : size=1\n", "line 1: 'sda' does not end in a partition's number"),
        ("sda0 : size=1\n", "line 1: 'sda0' does not end"),
        ("colour=red\n", "line 1: field 'colour' is not known"),
        ("size\t=1, start\n", "line 1: 'start' has no value"),
        ("name=\"x\n", "line 1: a quotation mark is not closed"),
        ("size=1, attrs=\"3\"\n", "line 1: attribute '3' is not known"),
        ("size=1, uuid=x\n", "line 1: uuid 'x' is none"),
        ("=1\n", "line 1: a name is missing before the ="),
    ];
    for (text, want) in table {
        let got = Script::parse(text).map_or_else(|e| e.to_string(), |s| format!("{s:?}"));
        assert!(got.starts_with(want) && !got.contains('\n'), "{text:?}\n{got}");
    }
    let many = ";\n".repeat(PARTITIONS + 1);
    assert!(Script::parse(&many).is_err());
}

#[test]
fn types_are_shortcuts_first() {
    let table = [
        ("E", false, "extended"),
        ("e", false, "!14"),
        ("0E", false, "!14"),
        ("S", true, "linux-swap"),
        ("c", false, "!12"),
    ];
    for (text, gpt, want) in table {
        assert_eq!(line::kind(text, gpt), want);
    }
    assert_eq!(
        line::kind("0FC63DAF-8483-4772-8E79-3D69D8477DE4", true),
        "!0fc63daf-8483-4772-8e79-3d69d8477de4"
    );
}

#[test]
fn logical_partitions_are_those_that_sfdisk_makes_logical() {
    let numbers = |text: &str| {
        let script = Script::parse(text).unwrap();
        let (primary, logical) = script.split(512).unwrap();
        (primary.iter().filter_map(|p| p.index).collect::<Vec<_>>(), logical.len())
    };
    assert_eq!(numbers("label: dos\n,10M\n,20M,S\n,,E\n,5M\n,\n"), (vec![1, 2, 3], 2));
    assert_eq!(numbers("label: dos\n,10M\n,50M,E\n,5M\n,5M\n,5M\n"), (vec![1, 2, 3, 4], 1));
    assert_eq!(numbers("label: dos\n,10M\n2048,50M,E\n4096,10\n"), (vec![1, 2], 1));
    assert_eq!(numbers("/dev/sda5 : size=5\n/dev/sda1 : size=10, type=5\n"), (vec![1], 1));
}
