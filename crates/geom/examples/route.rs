//! `route SLICES COUNT`: reads 512 bytes COUNT times through that many nested slices of a memory
//! disk.
//!
//! `benches/route.sh` counts its instructions. It reads no clock, so that every run is the same.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::Slices;

#[path = "shared/memory.rs"]
pub mod memory;
use memory::Memory;

const READ: usize = 512;
const DISK: u64 = 1 << 20;

fn main() -> ExitCode {
    let args: Vec<Option<u64>> = std::env::args().skip(1).map(|arg| arg.parse().ok()).collect();
    let &[Some(slices), Some(count)] = args.as_slice() else { return ExitCode::from(2) };
    match read(slices, count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn read(slices: u64, count: u64) -> Result<(), Errno> {
    let stores: Vec<Box<dyn Store>> = vec![Box::new(Memory(Arc::new(vec![1; 1 << 20])))];
    let mut route = Route::store(0, DISK);
    for _ in 0..slices {
        let length = route.length() - READ as u64;
        let geom: Arc<dyn Geom> = Arc::new(Slices::data_area(READ as u64, length));
        route = Route::new(&geom, 0, length, &[route]);
    }
    // The places asked for are the same whatever the depth, and so are the cache lines.
    let places = 64 * READ as u64;
    let mut buffer = [0; READ];
    let mut at = 0;
    for _ in 0..count {
        black_box(&route).read_at(&stores, black_box(&mut buffer), at)?;
        at = (at + READ as u64) % places;
    }
    Ok(())
}
