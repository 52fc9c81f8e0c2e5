use super::event::{BlockEvent, EventKind, Phase};
use super::in_flight::InFlight;
use super::instance::is_abandoned;
use super::layout::EventLayout;
use super::page::PageLayout;
use super::rwbs::{Operation, RequestFlags};
use super::session::{TracedDevice, count_of, lost};
use crate::device::{Device, DeviceKind};
use std::path::Path;

/// The beginning of `events/block/block_rq_issue/format` of Linux 6.18.
const ISSUE: &str = "name: block_rq_issue
ID: 2104
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;
\tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;

print fmt: \"%d,%d %s\", REC->dev
";
/// `events/header_page` of a machine of 64 bits.
const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

/// A record of [`ISSUE`], 64 bytes.
fn record(sector: u64, sectors: u32, rwbs: &str) -> Vec<u8> {
    let mut record = vec![0; 64];
    record[..2].copy_from_slice(&2104u16.to_ne_bytes());
    record[4..8].copy_from_slice(&77u32.to_ne_bytes());
    record[8..12].copy_from_slice(&(8u32 << 20 | 17).to_ne_bytes());
    record[16..24].copy_from_slice(&sector.to_ne_bytes());
    record[24..28].copy_from_slice(&sectors.to_ne_bytes());
    record[34..34 + rwbs.len()].copy_from_slice(rwbs.as_bytes());
    record[44..47].copy_from_slice(b"fio");
    record
}

/// A page that began at time 1000, with these words as records.
fn page(words: &[u32], flags: u64) -> Vec<u8> {
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut page = 1000u64.to_ne_bytes().to_vec();
    page.extend((data.len() as u64 | flags).to_ne_bytes());
    page.extend(data);
    page.resize(4096, 0xff);
    page
}

fn records(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let layout = PageLayout::parse(PAGE).unwrap();
    layout.records(page, |record| found.push((record.at_ns, record.bytes.to_vec())));
    found
}

#[test]
fn an_event_is_decoded_by_the_kernels_own_layout() {
    let layout = EventLayout::parse(ISSUE).unwrap();
    let event = BlockEvent::decode(5, EventKind::Issue, &layout, &record(63, 8, "WFS")).unwrap();
    assert_eq!((event.device, event.offset, event.length), ((8, 17), 63 * 512, 4096));
    assert_eq!((event.process.pid, event.process.name.as_str()), (77, "fio"));
    assert_eq!(event.flags.operation, Operation::Write);
    assert!(event.flags.fua && !event.flags.preflush);
    // A record that is cut, or a layout without a field, has no event.
    assert_eq!(BlockEvent::decode(5, EventKind::Issue, &layout, &record(63, 8, "W")[..40]), None);
    let bare = EventLayout::parse("ID: 3\n").unwrap();
    assert_eq!(BlockEvent::decode(5, EventKind::Issue, &bare, &record(63, 8, "W")), None);
    assert_eq!(EventLayout::parse("no number\n"), None);
}

#[test]
fn letters_name_the_operation() {
    for (rwbs, operation, preflush, fua) in [
        ("R", Operation::Read, false, false),
        ("RA", Operation::Read, false, false),
        ("WS", Operation::Write, false, false),
        ("WFS", Operation::Write, false, true),
        ("FWFS", Operation::Write, true, true),
        ("FWS", Operation::Write, true, false),
        ("FF", Operation::Flush, false, false),
        ("F", Operation::Flush, false, false),
        ("WZ", Operation::WriteZeroes, false, false),
        ("D", Operation::Discard, false, false),
        ("DE", Operation::Discard, false, false),
        ("NS", Operation::WriteZeroes, false, false),
        ("ZAS", Operation::Write, false, false),
        ("ZR", Operation::Other, false, false),
    ] {
        assert_eq!(
            RequestFlags::parse(rwbs),
            Some(RequestFlags { operation, preflush, fua }),
            "{rwbs}"
        );
    }
    assert_eq!([RequestFlags::parse(""), RequestFlags::parse("x")], [None, None]);
}

#[test]
fn records_of_every_type_are_walked() {
    let delta = |kind: u32, delta: u32| delta << 5 | kind;
    let page = page(
        &[
            delta(2, 10), // two words, at 1010
            7,
            8,
            delta(0, 5), // a length of its own, at 1015
            8,
            9,
            delta(30, 1), // 2^27 + 1 later
            1,
            delta(29, 0).wrapping_add(2 << 5), // padding of 4 bytes more
            4,
            delta(1, 0),
            11,
            delta(31, 3), // an absolute time: 2 * 2^27 + 3
            2,
            delta(1, 1),
            12,
            delta(29, 0), // the rest of the page is empty
            13,
        ],
        3 << 30,
    );
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
    let later = 1015 + (1 << 27) + 1 + 2;
    assert_eq!(
        records(&page),
        [
            (1010, words(&[7, 8])),
            (1015, words(&[9])),
            (later, words(&[11])),
            ((2 << 27) + 4, words(&[12])),
        ]
    );
}

#[test]
fn a_page_of_any_bytes_is_walked_to_its_end() {
    // Without a random source: a multiplicative sequence, as in the simulator's seeds.
    let mut state = 1u64;
    for length in (0..4096).step_by(7) {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let found = records(&bytes);
        assert!(found.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= length);
    }
    assert_eq!(records(&page(&[0, u32::MAX], 0)), []);
}

#[test]
fn a_request_that_is_put_back_counts_once() {
    let layout = EventLayout::parse(ISSUE).unwrap();
    let mut in_flight = InFlight::default();
    let mut at = |at_ns, kind| {
        let event = BlockEvent::decode(at_ns, kind, &layout, &record(63, 8, "W")).unwrap();
        in_flight.follow(event, Some(512)).map(|seen| (seen.offset, seen.phase))
    };
    assert!(matches!(at(10, EventKind::Issue), Some((Some(512), Phase::Issued(_)))));
    assert_eq!(at(20, EventKind::Requeue), None);
    assert_eq!(at(30, EventKind::Issue), None);
    assert_eq!(at(40, EventKind::Complete), Some((Some(512), Phase::Completed(30))));
    // An end without a start, and the same place again.
    assert_eq!(at(50, EventKind::Complete), None);
    assert!(matches!(at(60, EventKind::Issue), Some((Some(512), Phase::Issued(_)))));
}

/// Sectors and kinds of events of one disk, one every ns; what is seen of each: the length, and
/// the latency of an end.
fn followed(events: &[(EventKind, u64, u32)]) -> Vec<Option<(u64, Option<u64>)>> {
    let layout = EventLayout::parse(ISSUE).unwrap();
    let mut in_flight = InFlight::default();
    let mut see = |(at_ns, &(kind, sector, sectors)): (usize, &(EventKind, u64, u32))| {
        let record = record(sector, sectors, "W");
        let event = BlockEvent::decode(at_ns as u64, kind, &layout, &record).unwrap();
        let seen = in_flight.follow(event, Some(512))?;
        match seen.phase {
            Phase::Issued(_) => Some((seen.length, None)),
            Phase::Completed(ns) => Some((seen.length, Some(ns))),
        }
    };
    events.iter().enumerate().map(&mut see).collect()
}

#[test]
fn a_request_ends_with_its_last_part() {
    use EventKind::{Complete, Issue, Requeue};
    let whole = Some((8192, None));
    let done = |ns| Some((8192, Some(ns)));
    // A drive ends the first half early; md ends every part, the last one at last; dm ends that
    // one alone.
    for parts in [&[(Complete, 63, 8), (Complete, 71, 8)][..], &[(Complete, 71, 8)]] {
        let events = [&[(Issue, 63, 16)], parts].concat();
        let mut want = vec![None; events.len()];
        (want[0], *want.last_mut().unwrap()) = (whole, done(parts.len() as u64));
        assert_eq!(followed(&events), want);
    }
    // A driver that moves on in the bio itself is at its end when it says so.
    assert_eq!(followed(&[(Issue, 63, 16), (Complete, 79, 0)]), [whole, done(1)]);
    // The rest of one that is put back is not another request.
    let rest = [(Issue, 63, 16), (Complete, 63, 8), (Requeue, 71, 8), (Issue, 71, 8)];
    let events = [&rest[..], &[(Complete, 71, 8)]].concat();
    assert_eq!(followed(&events), [whole, None, None, None, done(4)]);
    // One at the same place that was not put back is.
    let other = Some((4096, None));
    assert_eq!(followed(&[(Issue, 63, 16), (Issue, 71, 8)]), [whole, other]);
}

#[test]
fn an_empty_write_that_flushes_is_a_flush() {
    let layout = EventLayout::parse(ISSUE).unwrap();
    let decode = |sectors, rwbs| {
        let record = record(0, sectors, rwbs);
        BlockEvent::decode(5, EventKind::Issue, &layout, &record).unwrap().flags
    };
    assert_eq!(decode(0, "FWS").operation, Operation::Flush);
    assert!(!decode(0, "FWS").preflush);
    assert_eq!(decode(8, "FWS").operation, Operation::Write);
}

/// A disk of 1 MiB, number 8:0, with partitions from 8:1 on, each of 1 KiB.
fn devices(partitions: u32) -> Vec<Device> {
    let disk = Device { name: "x".into(), major: 8, size: 1 << 20, ..Device::default() };
    let partition = |minor: u32| Device {
        name: format!("x{minor}"),
        major: 8,
        minor,
        size: 1024,
        kind: DeviceKind::Partition {
            parent: "x".into(),
            number: Some(minor),
            start: Some(u64::from(minor) * 1024),
            whole: 1 << 20,
        },
        ..Device::default()
    };
    std::iter::once(disk).chain((1..=partitions).map(partition)).collect()
}

#[test]
fn a_device_without_queues_is_asked_for_by_all_its_numbers() {
    // sysfs has no such disk, and so no queues of it.
    let among = |count, own| TracedDevice::among(&devices(count), own, Path::new("/nowhere"));
    let disk = among(2, 0).unwrap();
    assert_eq!(disk.filter(), "dev == 8388608 || dev == 8388609 || dev == 8388610");
    assert_eq!((disk.start(), among(2, 2).unwrap().start()), (0, 2048));
    // The kernel takes a page of text.
    assert_eq!(among(300, 0).unwrap().filter(), "0");
    assert!(among(99, 0).unwrap().filter().len() < 4096);
}

#[test]
fn requests_that_touch_a_partition_concern_it() {
    let layout = EventLayout::parse(ISSUE).unwrap();
    let event = |minor: u32, sector, sectors| {
        let mut record = record(sector, sectors, "W");
        record[8..12].copy_from_slice(&(8u32 << 20 | minor).to_ne_bytes());
        BlockEvent::decode(5, EventKind::Issue, &layout, &record).unwrap()
    };
    let own = |own| TracedDevice::among(&devices(2), own, Path::new("/nowhere")).unwrap();
    // x2 is sectors 4 and 5.
    for (minor, sector, sectors, partition, disk) in [
        (0, 4, 2, true, true),
        (2, 5, 1, true, true),
        (0, 3, 2, true, true),
        (0, 5, 9, true, true),
        (0, 2, 2, false, true),
        (0, 6, 1, false, true),
        // A flush, another disk, and a disk that has grown.
        (0, 0, 0, true, true),
        (17, 4, 2, false, false),
        (0, 1 << 20, 8, false, true),
    ] {
        let event = event(minor, sector, sectors);
        let found = (own(2).concerns(&event), own(0).concerns(&event));
        assert_eq!(found, (partition, disk), "{minor} {sector} {sectors}");
    }
}

#[test]
fn processors_are_counted_in_ranges() {
    assert_eq!(["0-3,5,8-9", "0", "", "x"].map(count_of), [7, 1, 0, 0]);
}

#[test]
fn instances_of_programs_that_are_no_more_are_known() {
    let began = |pid| (pid == 7).then_some(1000);
    for (name, gone) in [
        ("trueline-7-1000-0", false),
        ("trueline-7-1001-0", true),
        ("trueline-8-1000-3", true),
        ("trueline-x", false),
        ("other-8-1000", false),
    ] {
        assert_eq!(is_abandoned(name, began), gone, "{name}");
    }
}

#[test]
fn lost_events_are_summed() {
    let stats = "entries: 9\noverrun: 1\ncommit overrun: 2\nbytes: 40\noldest event ts: 5.1\n\
        now ts: 6.0\ndropped events: 4\nread events: 16\n";
    assert_eq!(lost(stats), Some(7));
}
