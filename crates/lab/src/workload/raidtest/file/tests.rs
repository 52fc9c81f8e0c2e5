use super::*;

/// A record as the port writes it on amd64, its padding as it happened to be.
const RECORDS: [u8; 32] = [
    0x00, 0x02, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x01, 0xff, 0x7f,
    0x00, //
    0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
];

fn shape(medium: u64) -> GenfileParameters {
    GenfileParameters { medium, sector: 512, fixed: None, op: None }
}

#[test]
fn records_are_read_and_written_byte_for_byte() {
    let records = parse(&RECORDS).unwrap();
    let wanted = [
        Record { offset: (1 << 32) + 512, length: 16384, op: Op::Write },
        Record { offset: 16384, length: 512, op: Op::Read },
    ];
    assert_eq!(records, wanted);
    let mut without_padding = RECORDS;
    without_padding[13..16].fill(0);
    assert_eq!(render(&records), without_padding);
    assert_eq!(parse(&[]), Ok(Vec::new()));
}

#[test]
fn what_cannot_be_is_named_with_its_byte() {
    let refused = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
    assert_eq!(refused(&RECORDS[..27]), "byte 16: a record of 11 bytes, cut short: all have 16");
    let with = |at: usize, byte: u8| {
        let mut bytes = RECORDS;
        bytes[at] = byte;
        bytes
    };
    assert_eq!(refused(&with(28, 2)), "byte 16: a request of type 2: 0 reads, 1 writes");
    assert_eq!(refused(&with(25, 0)), "byte 16: a request of 0 bytes: from 1 to 131072");
    assert_eq!(
        refused(&with(11, 9)),
        "byte 0: a request of 150994944 bytes: from 1 to 131072"
            .replace("150994944", &(0x0900_4000).to_string())
    );
}

#[test]
fn made_requests_are_whole_sectors_inside_and_of_both_kinds() {
    let records = generate(20_000, shape(1 << 30), 7).unwrap();
    assert_eq!(generate(20_000, shape(1 << 30), 7).unwrap(), records);
    let length = |r: &Record| u64::from(r.length);
    assert!(records.iter().all(|r| is_whole(r.offset, 512)
        && is_whole(length(r), 512)
        && r.offset + length(r) <= 1 << 30));
    let lengths: std::collections::BTreeSet<u32> = records.iter().map(|r| r.length).collect();
    assert_eq!((lengths.len(), lengths.first(), lengths.last()), (256, Some(&512), Some(&131_072)));
    let writes = records.iter().filter(|r| r.op == Op::Write).count();
    assert!((9_500..10_500).contains(&writes), "{writes}");
    let sector_aligned = records.iter().filter(|r| !is_whole(r.offset, 4096)).count();
    assert!(
        (17_000..18_000).contains(&sector_aligned),
        "{sector_aligned}: seven of eight are on no 4 KiB boundary"
    );
}

#[test]
fn of_a_fixed_length_they_lie_on_multiples_and_go_one_way() {
    let fixed =
        GenfileParameters { fixed: Some(16384), op: Some(Op::Read), ..shape((1 << 30) + 512) };
    let records = generate(5000, fixed, 1).unwrap();
    assert!(records.iter().all(|r| r.length == 16384
        && is_whole(r.offset, 16384)
        && r.op == Op::Read
        && r.offset + 16384 <= 1 << 30));
}

#[test]
fn what_cannot_be_made_is_refused() {
    for (count, shape) in [
        (0, shape(1 << 30)),
        (u64::MAX, shape(1 << 30)),
        (1, shape(65536)),
        (1, GenfileParameters { sector: 0, ..shape(1 << 30) }),
        (1, GenfileParameters { sector: 1 << 20, ..shape(1 << 30) }),
        (1, GenfileParameters { fixed: Some(1000), ..shape(1 << 30) }),
        (1, GenfileParameters { fixed: Some(1 << 20), ..shape(1 << 30) }),
        (1, GenfileParameters { fixed: Some(0), ..shape(1 << 30) }),
    ] {
        assert!(generate(count, shape, 1).is_err(), "{count} {shape:?}");
    }
    // The longest that a medium has just room for.
    assert!(
        generate(1000, shape(LONGEST), 1)
            .unwrap()
            .iter()
            .all(|r| r.offset + u64::from(r.length) <= LONGEST)
    );
}
