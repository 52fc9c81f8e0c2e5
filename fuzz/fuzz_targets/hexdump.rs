//! Reads golden text; what was read must print as text that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::hexdump::hexdump;
use trueline_geom::base::store::{Sparse, Store};

fuzz_target!(|data: &[u8]| {
    let Some(disk) =
        std::str::from_utf8(data).ok().and_then(|text| Sparse::from_hexdump(text).ok())
    else {
        return;
    };
    for (at, bytes) in disk.runs() {
        assert!(at + bytes.len() as u64 <= disk.length(), "bytes past the end");
        let mut back = vec![0; bytes.len()];
        disk.read_at(&mut back, at).expect("what was put can be read");
        assert_eq!(back, bytes);
    }
    // Some lines of text may stand for many: printing those is only slow.
    if disk.runs().map(|(_, bytes)| bytes.len()).sum::<usize>() > 64 << 10 {
        return;
    }
    let text = hexdump(&disk);
    let again = Sparse::from_hexdump(&text).expect("what was printed can be read");
    assert_eq!((again.length(), hexdump(&again)), (disk.length(), text));
});
