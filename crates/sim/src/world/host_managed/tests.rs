use super::*;
use crate::model::Model;
use crate::world::{Request, Schedule};
use std::sync::Arc;
use trueline_geom::base::error::ZoneRule;
use trueline_geom::class::stripe::Raid0;

const ZONE: u64 = 256 << 20;

/// Two host-managed drives of 32 zones, the first four conventional.
fn world() -> World {
    let set = |key: &str, value: u64| (key.to_owned(), toml::Value::Integer(value as i64));
    let set = [set("size", 32 * ZONE), set("conventional_zones", 4)];
    let model = Model::parse_with(Model::named("smr-hm-14tb").unwrap(), &set).unwrap();
    World::new(vec![(model.drive(1), 512), (model.drive(2), 512)], Schedule::Fifo)
}

fn write(offset: u64, length: u64) -> Request {
    Request { tag: 1, op: Op::Write, offset, length, fua: false }
}

#[test]
fn a_refused_request_reaches_no_drive() {
    let mut world = world();
    let route = Route::store(0, 32 * ZONE);
    let refused = |rule| Err(Errno::Zone(rule));
    let first = 4 * ZONE;
    assert_eq!(
        world.submit(&route, write(first + 63 * 512, 4096), 0),
        refused(ZoneRule::WritePointer)
    );
    assert_eq!(world.submit(&route, write(first, 512), 0), refused(ZoneRule::PhysicalBlock));
    assert_eq!(world.in_flight(), 0);
    for nth in 0..3 {
        assert_eq!(world.submit(&route, write(first + nth * 4096, 4096), 0), Ok(()));
    }
    let mut done = Vec::new();
    world.wait(3, &mut done);
    assert_eq!((done.len(), world.counters()[0].writes), (3, 3));
    // Another drive has pointers of its own.
    assert_eq!(world.submit(&Route::store(1, 32 * ZONE), write(first, 4096), 0), Ok(()));
}

#[test]
fn a_request_that_comes_too_late_moves_no_write_pointer() {
    let mut world = world();
    world.think(crate::time::Ps::MAX / 2);
    let late = write(4 * ZONE, 4096);
    assert_eq!(world.submit(&Route::store(0, 32 * ZONE), late, 1), Err(Errno::Io));
    let zones = world.ports[0].zones.as_ref().unwrap();
    assert_eq!(zones.judge(Op::Write, late.offset, late.length), Ok(()));
}

#[test]
fn a_reset_of_a_stripe_resets_the_zones_of_its_members() {
    let mut world = world();
    let members = [Route::store(0, 32 * ZONE), Route::store(1, 32 * ZONE)];
    let set = Raid0::new("stripe/data".into(), 64 << 10, 2, 32 * ZONE).unwrap();
    let geom: Arc<dyn geom::Geom> = Arc::new(set);
    let route = Route::new(&geom, 0, 64 * ZONE, &members);
    let twice = |world: &mut World| {
        let first = world.submit(&route, write(8 * ZONE, 128 << 10), 0);
        (first, world.submit(&route, write(8 * ZONE, 128 << 10), 0).is_err())
    };
    assert_eq!(twice(&mut world), (Ok(()), true));
    world.reset_zones(&route, 8 * ZONE, 2 * ZONE).unwrap();
    assert_eq!(twice(&mut world), (Ok(()), true));
}

#[test]
fn a_reset_begins_a_zone_again() {
    let mut world = world();
    let route = Route::store(0, 32 * ZONE);
    world.submit(&route, write(4 * ZONE, 4096), 0).unwrap();
    assert!(world.submit(&route, write(4 * ZONE, 4096), 0).is_err());
    world.reset_zones(&route, 4 * ZONE, ZONE).unwrap();
    assert_eq!(world.submit(&route, write(4 * ZONE, 4096), 0), Ok(()));
    assert_eq!(world.reset_zones(&route, 32 * ZONE, ZONE), Err(Errno::Range));
}
