//! Assembles a volume group of LVM: its text, then a NUL, then the maps of its volumes. Every
//! checksum is made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::invariants::{Subject, graph_holds};
use trueline_fuzz::volumes;
use trueline_geom::probe::Limits;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (text, maps) = data.split_at(end);
    let disk = volumes::group(text, maps.get(1..).unwrap_or_default());
    graph_holds(&[Subject::new(disk, 512)], Limits::default());
});
