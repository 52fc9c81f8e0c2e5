use super::*;
use std::process::{Command, Stdio};

#[path = "../../../../tests/skip.rs"]
mod skip;

fn entry(at_ns: u64, op: Op, offset: u64, length: u64, fua: bool) -> TracedRequest {
    TracedRequest { at_ns, op, offset, length, fua }
}

fn read(bytes: &[u8]) -> Result<Vec<TracedRequest>, String> {
    let trace = Trace::new(Box::new(bytes)).map_err(|error| error.to_string())?;
    trace.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn refused(bytes: impl AsRef<[u8]>) -> String {
    read(bytes.as_ref()).unwrap_err()
}

/// A record of blktrace: time, sector, bytes, what is done (upper half) and the action, and what
/// follows it.
fn record(big: bool, time: u64, sector: u64, bytes: u32, action: u32, more: &[u8]) -> Vec<u8> {
    let u32s = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let u64s = |word: u64| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let u16s = |word: u16| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let mut record = u32s(0x6561_7407).to_vec();
    record.extend(u32s(1));
    record.extend(u64s(time));
    record.extend(u64s(sector));
    for word in [bytes, action, 697, 8 << 20, 0] {
        record.extend(u32s(word));
    }
    record.extend(u16s(0));
    record.extend(u16s(u16::try_from(more.len()).unwrap()));
    record.extend(more);
    record
}

/// Categories, at their place above the action.
const READ: u32 = 1 << 16;
const WRITE: u32 = 2 << 16;
const FLUSH: u32 = 4 << 16;
const SYNC: u32 = 8 << 16;
const QUEUED: u32 = 16 << 16;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
const NOTIFY: u32 = 1 << 26;

/// A binary trace, and what is in it.
fn binary(big: bool) -> (Vec<u8>, Vec<TracedRequest>) {
    let records = [
        record(big, 0, 0, 0, NOTIFY, b"mysqld\0\0"),
        record(big, 1000, 223_490, 4096, READ | QUEUED | 1, &[]),
        // The same request, issued and completed, is not another.
        record(big, 1100, 223_490, 4096, READ | 7, &[]),
        record(big, 2500, 223_490, 4096, READ | 8, &[]),
        record(big, 3000, 63, 8192, WRITE | SYNC | FUA | QUEUED | 1, &[]),
        record(big, 2900, 8, 512, WRITE | FLUSH | QUEUED | 1, &[]),
        record(big, 4000, 0, 0, WRITE | FLUSH | SYNC | QUEUED | 1, &[]),
        record(big, 5000, 2048, 1 << 20, DISCARD | WRITE | QUEUED | 1, &[]),
        record(big, 6_000_000_000, 1 << 32, 512, READ | QUEUED | 1, &[]),
    ];
    let entries = vec![
        entry(1000, Op::Read, 223_490 * 512, 4096, false),
        entry(3000, Op::Write, 63 * 512, 8192, true),
        // Asked before the one before it, on another processor.
        entry(3000, Op::Flush, 0, 0, false),
        entry(3000, Op::Write, 8 * 512, 512, false),
        entry(4000, Op::Flush, 0, 0, false),
        entry(6_000_000_000, Op::Read, 512 << 32, 512, false),
    ];
    (records.concat(), entries)
}

#[test]
fn blktraces_records_are_read_in_either_order_of_bytes() {
    for big in [false, true] {
        let (bytes, entries) = binary(big);
        let mut trace = Trace::new(Box::new(bytes.as_slice())).unwrap();
        let found: Vec<TracedRequest> = trace.by_ref().map(Result::unwrap).collect();
        assert_eq!((found, trace.skipped()), (entries, 1));
        assert_eq!(trace.place(), Position::Byte(bytes.len() as u64));
    }
}

#[test]
fn what_is_wrong_in_blktraces_records_is_named_with_its_byte() {
    let first = record(false, 0, 0, 512, READ | QUEUED | 1, &[1, 2, 3, 4]);
    let after = |more: &[u8]| refused([first.as_slice(), more].concat());
    assert_eq!(after(&[7; 20]), "byte 52: a record of 20 bytes, cut short: all have 48");
    assert_eq!(
        after(&[0; 48]),
        "byte 52: not a record of blktrace: it begins with 0x00000000, not 0x65617407"
    );
    assert_eq!(after(&record(false, 1, 0, 512, READ | 99, &[])), "byte 52: unknown action 99");
    assert_eq!(
        after(&record(false, 1, 0, 0, READ | QUEUED | 1, &[])),
        "byte 52: a request of 0 bytes"
    );
    let far = record(false, 1, u64::MAX, 512, READ | QUEUED | 1, &[]);
    assert_eq!(after(&far), format!("byte 52: sector {}: past the end of any device", u64::MAX));
    let far = record(false, 1, u64::MAX / 512, 1024, READ | QUEUED | 1, &[]);
    assert!(after(&far).ends_with("past the end of any device"));
    let mut other = record(false, 1, 0, 512, READ | QUEUED | 1, &[]);
    other[36] = 16;
    assert_eq!(after(&other), "byte 52: requests on 8,0 and on 8,16: a replay has one target");
    let cut = &first[..50];
    assert_eq!(
        refused(cut),
        "byte 0: 2 bytes of payload behind a record, cut short: it must have 4"
    );
}

const BLKPARSE: &str = "\
  8,0    0        1     0.000001000   697  Q   R 223490 + 8 [mysqld]
  8,0    0        1     0.000001100   697  D   R 223490 + 8 [mysqld]
  8,0    3       12     0.000002000     0  m   N cfq697 dispatch a request
  8,0    3       12     0.000002000   697  P   N [mysqld]
  8,0    3        2     1.000000001   697  Q WFS 63 + 16 [my sqld]
  8,0    3        3     1.000000002   697  Q FWS 8 + 1 [mysqld]
  8,0    3        4     1.000000003   697  Q FWFSM 8 + 1 [mysqld]
  8,0    3        5     1.000000004   697  Q FWS [mysqld]
  8,0    3        6     1.000000005   697  Q  DS 2048 + 2048 [mysqld]
CPU0 (sda):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB
";

#[test]
fn blkparses_text_is_read_to_its_summary() {
    let mut trace = Trace::new(Box::new(BLKPARSE.as_bytes())).unwrap();
    let found: Vec<TracedRequest> = trace.by_ref().map(Result::unwrap).collect();
    let wanted = [
        entry(1000, Op::Read, 223_490 * 512, 4096, false),
        entry(1_000_000_001, Op::Write, 63 * 512, 8192, true),
        entry(1_000_000_002, Op::Flush, 0, 0, false),
        entry(1_000_000_002, Op::Write, 4096, 512, false),
        entry(1_000_000_003, Op::Flush, 0, 0, false),
        entry(1_000_000_003, Op::Write, 4096, 512, true),
        entry(1_000_000_004, Op::Flush, 0, 0, false),
    ];
    assert_eq!((found.as_slice(), trace.skipped()), (wanted.as_slice(), 1));
}

#[test]
fn what_is_wrong_in_blkparses_text_is_named_with_its_line() {
    let first = "8,0 0 1 0.000000000 697 Q R 8 + 8 [a]\n";
    let after = |line: &str| refused(format!("{first}{line}\n"));
    assert_eq!(after("8,0 0 1 0.000000000 697 K R 8 + 8 [a]"), "line 2: unknown action 'K'");
    assert_eq!(
        after("8,0 0 1 0.000000000 697 Q R 8 + x [a]"),
        "line 2: a queued request without SECTOR + COUNT"
    );
    assert_eq!(
        after("8,0 0 1 0.000000000 697 Q"),
        "line 2: a line of blkparse, cut short: DEVICE CPU SEQUENCE TIME PID ACTION RWBS"
    );
    assert_eq!(
        after("8,0 0 1 0.5 697 Q R 8 + 8 [a]"),
        "line 2: '0.5' is not a time: SECONDS.NANOSECONDS"
    );
    assert_eq!(after("8,0 0 1 0.000000000 697 Q R 8 + 0 [a]"), "line 2: a request of 0 bytes");
    assert_eq!(
        after("8,0 0 1 0.000000000 697 Q ? 8 + 8 [a]"),
        "line 2: '?' is neither a read nor a write"
    );
    assert_eq!(
        after("8,16 0 1 0.000000000 697 Q R 8 + 8 [a]"),
        "line 2: requests on 8,0 and on 8,16: a replay has one target"
    );
    assert_eq!(
        after("what is this"),
        "line 2: a line of blkparse, cut short: DEVICE CPU SEQUENCE TIME PID ACTION RWBS"
    );
    assert_eq!(
        after(&format!("8,0 0 1 0.000000000 697 Q R 8 + 8 [{}]", "x".repeat(1 << 17))),
        "line 2: a line longer than 65536 bytes"
    );
}

#[test]
fn blkparse_prints_of_our_records_what_we_read_in_them() {
    let directory = std::env::temp_dir().join(format!("trueline-blkparse-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (bytes, entries) = binary(false);
    std::fs::write(directory.join("made.blktrace.0"), bytes).unwrap();
    let ran = Command::new("blkparse")
        .args(["-q", "-i", "made"])
        .current_dir(&directory)
        .stdin(Stdio::null())
        .output();
    std::fs::remove_dir_all(&directory).unwrap();
    let Ok(ran) = ran else {
        skip::skip("no blkparse here to print a trace");
        return;
    };
    let found = read(&ran.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&ran.stdout)));
    // It sorts by time and counts it from the first.
    let sorted = |entries: &[TracedRequest]| {
        let mut all: Vec<(Op, u64, u64, bool)> =
            entries.iter().map(|e| (e.op, e.offset, e.length, e.fua)).collect();
        all.sort_by_key(|&(op, offset, length, _)| (op == Op::Flush, offset, length));
        all
    };
    assert_eq!(sorted(&found), sorted(&entries), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn fios_logs_are_read_in_both_versions() {
    let second = "fio version 2 iolog\n/dev/my disk add\n/dev/my disk open\n/dev/my disk read 0 \
        4096\n/dev/my disk wait 150 0\n/dev/my disk write 4608 8192\n/dev/my disk sync 0 0\n\
        /dev/my disk trim 0 4096\n/dev/my disk close\n";
    let wanted = [
        entry(0, Op::Read, 0, 4096, false),
        entry(150_000, Op::Write, 4608, 8192, false),
        entry(150_000, Op::Flush, 0, 0, false),
    ];
    assert_eq!(read(second.as_bytes()).unwrap(), wanted);
    // As fio 3.33 wrote it.
    let third = "fio version 3 iolog\n14 /dev/sdb add\n86 /dev/sdb open\n90 /dev/sdb read 0 4096\n\
        53694 /dev/sdb write 45056 4096\n53700 /dev/sdb datasync\n404339 /dev/sdb close\n";
    let wanted = [
        entry(90_000, Op::Read, 0, 4096, false),
        entry(53_694_000, Op::Write, 45056, 4096, false),
        entry(53_700_000, Op::Flush, 0, 0, false),
    ];
    assert_eq!(read(third.as_bytes()).unwrap(), wanted);
}

#[test]
fn what_is_wrong_in_fios_logs_is_named_with_its_line() {
    let two = |line: &str| refused(format!("fio version 2 iolog\n/f read 0 512\n{line}\n"));
    assert_eq!(two("/f erase 0 512"), "line 3: unknown action 'erase' in version 2");
    assert_eq!(two("/g read 0 512"), "line 3: requests on /f and on /g: a replay has one target");
    assert_eq!(two("/f read 0"), "line 3: not FILE ACTION [OFFSET LENGTH]: a number is missing");
    assert_eq!(two("/f read"), "line 3: read without an offset and a length");
    assert_eq!(two("/f"), "line 3: not FILE ACTION [OFFSET LENGTH]");
    assert_eq!(
        two(&format!("/f read {} 512", u64::MAX)),
        format!("line 3: 512 bytes at {}: past the end of any device", u64::MAX)
    );
    assert_eq!(
        two(&format!("/f wait {} 0", u64::MAX)),
        format!("line 3: a wait of {} us is too long", u64::MAX)
    );
    let three = |line: &str| refused(format!("fio version 3 iolog\n{line}\n"));
    assert_eq!(three("1 /f wait 5 0"), "line 2: unknown action 'wait' in version 3");
    assert_eq!(three("/f read 0 512"), "line 2: '/f' is not a timestamp");
    assert_eq!(refused("fio version 1 iolog\n"), NONE);
}

const NONE: &str = "byte 0: not a trace: neither blktrace, blkparse, a log of fio (version 2 or \
    3), nor trueline's own";

#[test]
fn our_own_are_written_and_read() {
    let (_, entries) = binary(false);
    let lines: Vec<String> = entries.iter().map(own::line).collect();
    let text = format!("{}\n# a comment\n{}\n", own::HEAD, lines.join("\n"));
    assert_eq!(lines[..3], ["1000 R 114426880 4096", "3000 WF 32256 8192", "3000 F 0 0"]);
    assert_eq!(read(text.as_bytes()).unwrap(), entries);
    let refused = |line: &str| refused(format!("{}\n{line}\n", own::HEAD));
    assert_eq!(refused("1 R 0"), "line 2: not NS OP OFFSET LENGTH");
    assert_eq!(refused("1 X 0 512"), "line 2: unknown action 'X': R, W, WF or F");
    assert_eq!(refused("1 R -1 512"), "line 2: '-1' is not a number");
    assert_eq!(refused("1 R 0 0"), "line 2: a request of 0 bytes");
}

#[test]
fn what_is_no_trace_is_refused() {
    assert_eq!(refused(""), "byte 0: the file is empty");
    for text in ["\n", "GIF89a", "8,0", "hello, world"] {
        assert_eq!(refused(text), NONE);
    }
}

#[test]
fn a_range_that_is_cut_is_not_a_flush_without_one() {
    let line =
        |range: &str| format!("  8,0    1        1     0.000000000  1234  Q  FWFS {range}[jbd2]\n");
    assert_eq!(read(line("").as_bytes()).unwrap(), [entry(0, Op::Flush, 0, 0, false)]);
    assert_eq!(read(line("8 + 8 ").as_bytes()).unwrap().len(), 2);
    for cut in ["8 + ", "8 ", "8 + x "] {
        assert_eq!(
            refused(line(cut)),
            "line 1: a queued request, cut short: SECTOR + COUNT",
            "{cut}"
        );
    }
    assert_eq!(refused(""), "byte 0: the file is empty");
}
