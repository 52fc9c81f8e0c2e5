//! Fuzz targets for tasting and for each parser. What must hold is said once, in `crates/geom/tests/hostile/`.

#![forbid(unsafe_code)]

pub mod input;

#[path = "../../crates/geom/tests/hostile/cases.rs"]
pub mod cases;
#[path = "../../crates/geom/tests/hostile/hexdump.rs"]
pub mod hexdump;
#[path = "../../crates/geom/tests/hostile/invariants.rs"]
pub mod invariants;
#[path = "../../crates/geom/tests/hostile/repair.rs"]
pub mod repair;
