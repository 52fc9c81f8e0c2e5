//! Assembles an md set of members whose superblocks say anything. Every checksum is made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::invariants::{Subject, graph_holds};
use trueline_fuzz::members;
use trueline_geom::probe::Limits;

fuzz_target!(|data: &[u8]| {
    let disks = members::members(data).into_iter();
    let subjects: Vec<Subject> = disks.map(|disk| Subject::new(disk, 512)).collect();
    graph_holds(&subjects, Limits::default());
});
