//! Reads block traces and raidtest's files: what is read is inside what numbers can say, and what
//! is written again reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_lab::rig::Op;
use trueline_lab::trace::{Trace, TracedRequest, own};
use trueline_lab::workload::raidtest::file;

fuzz_target!(|data: &[u8]| {
    if let Ok(records) = file::parse(data) {
        assert_eq!(file::parse(&file::render(&records)), Ok(records));
    }
    let Ok(trace) = Trace::new(Box::new(data)) else { return };
    // Each line or record is at most two requests, so this ends.
    let entries: Vec<TracedRequest> = trace.map_while(Result::ok).collect();
    assert!(entries.len() <= data.len());
    let mut text = format!("{}\n", own::HEAD);
    let mut latest = 0;
    for entry in &entries {
        assert!(entry.at_ns >= latest && entry.offset.checked_add(entry.length).is_some());
        assert_eq!(entry.length == 0, entry.op == Op::Flush);
        latest = entry.at_ns;
        text = text + &own::line(entry) + "\n";
    }
    let again: Vec<TracedRequest> = Trace::new(Box::new(text.as_bytes()))
        .expect("our own")
        .map(|entry| entry.expect("our own"))
        .collect();
    assert_eq!(again, entries);
});
