//! Tests of routes: places in one another, and what a read asks stores for.

use super::*;
use crate::base::store::Sparse;
use crate::base::topology::Topology;
use crate::class::mirror::Raid1;
use crate::mapping::geom::{ReadConsumer, Slot};
use crate::mapping::slices::Slices;
use std::cell::RefCell;

/// A set of two halves of 8 bytes: the first lies on its first consumer, the second is made of
/// both.
struct Halves;

impl Geom for Halves {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: "s".into(), length: 16, kind: None }]
    }

    fn topology(&self, _slot: usize, _below: &[Topology]) -> Topology {
        Topology::new(1, 16)
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        match 8_u64.checked_sub(offset).filter(|&left| left > 0) {
            Some(left) => Extent::At { consumer: 0, offset, length: length.min(left) },
            None => Extent::Rebuilt { length },
        }
    }

    fn rebuild(
        &self,
        _slot: usize,
        offset: u64,
        buffer: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        read(0, buffer, offset)?;
        read(1, buffer, offset - 8)
    }
}

/// Stores without bytes, which note what they are asked for.
#[derive(Default)]
struct Asked(RefCell<Vec<(usize, u64, usize)>>);

impl Leaf for Asked {
    fn read(&self, store: usize, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.0.borrow_mut().push((store, offset, buffer.len()));
        Ok(())
    }
}

#[test]
fn what_is_rebuilt_has_sources() {
    let stores = [Route::store(0, 100), Route::store(1, 100)];
    let halves: Arc<dyn Geom> = Arc::new(Halves);
    let set = Route::new(&halves, 0, 16, &stores);
    let cut: Arc<dyn Geom> = Arc::new(Slices::data_area(6, 9));
    let slice = Route::new(&cut, 0, 9, std::slice::from_ref(&set));
    let sources = |route: &Route, offset, length| {
        let asked = Asked::default();
        route.read_through(&asked, &mut vec![0; length], offset).map(|()| asked.0.into_inner())
    };
    assert_eq!(sources(&slice, 0, 2), Ok(vec![(0, 6, 2)]));
    assert_eq!(sources(&slice, 1, 4), Ok(vec![(0, 7, 1), (0, 8, 3), (1, 0, 3)]));
    // Above another set of the same kind.
    let outer = Route::new(&halves, 0, 16, &[set.clone(), set.clone()]);
    assert_eq!(sources(&outer, 8, 2), Ok(vec![(0, 8, 2), (1, 0, 2), (0, 0, 2)]));
    assert_eq!(sources(&set, 10, 7), Err(Errno::Range));
}

#[test]
fn a_slice_has_a_place_in_what_it_is_cut_from() {
    let cut = |start, length, from: &Route| {
        let geom: Arc<dyn Geom> = Arc::new(Slices::data_area(start, length));
        Route::new(&geom, 0, length, std::slice::from_ref(from))
    };
    let disk = Route::store(0, 1000);
    let outer = cut(100, 500, &disk);
    let inner = cut(50, 10, &outer);
    assert_eq!(inner.place_in(&outer), Some(50));
    assert_eq!(
        (inner.place_in(&disk), outer.place_in(&outer), disk.place_in(&disk)),
        (Some(150), Some(0), Some(0))
    );
    // Neither what is around it, nor beside it, nor elsewhere.
    assert_eq!((outer.place_in(&inner), disk.place_in(&outer)), (None, None));
    assert_eq!(
        (cut(590, 20, &disk).place_in(&outer), inner.place_in(&Route::store(1, 1000))),
        (None, None)
    );
}

/// Layers that stand twice on the same one have two ways to it, and a power of two after that.
#[test]
fn ways_that_multiply_are_not_followed() {
    let stores: [Box<dyn Store>; 1] = [Box::new(Sparse::new(4096))];
    let mut route = Route::store(0, 4096);
    let mirror: Arc<dyn Geom> = Arc::new(Raid1::new("m".into(), 4096, 2).unwrap());
    let read = |route: &Route| route.read_at(&stores, &mut [0; 512], 0);
    for _ in 0..16 {
        route = Route::new(&mirror, 0, 4096, &[route.clone(), route]);
        assert_eq!(read(&route), Ok(()));
    }
    for _ in 0..100 {
        route = Route::new(&mirror, 0, 4096, &[route.clone(), route]);
    }
    assert!(!route.has_tables());
    assert_eq!(read(&route), Err(Errno::Io));
}
