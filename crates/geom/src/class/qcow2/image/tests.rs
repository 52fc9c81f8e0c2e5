//! Questions to the tables of an image, answered by pages.

use super::super::pages::{Halt, Rank};
use super::super::refcounts::Width;
use super::super::writing::Layout;
use super::super::{COPIED, Clusters};
use super::{Image, Room, Spot};
use crate::base::error::Errno;
use crate::mapping::geom::Packing;

/// Size of a cluster, and of a page.
const CLUSTER: u64 = 512;

/// An empty image: header, refcount table, a block, an L1 table, in this order.
fn image(limit: u64) -> Image {
    let clusters = Clusters {
        bits: 9,
        l1: 3 * CLUSTER,
        extended: false,
        zeroes: true,
        packing: Packing::Deflate,
        elsewhere: false,
    };
    let layout = Layout {
        clusters,
        l1_entries: 4,
        table: CLUSTER,
        table_clusters: 1,
        width: Width(4),
        length: 4 * 64 * CLUSTER,
    };
    Image::new(layout, 4 * CLUSTER, limit)
}

/// The page of an empty image at a byte.
fn page(at: u64) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    match at / CLUSTER {
        1 => bytes[..8].copy_from_slice(&(2 * CLUSTER).to_be_bytes()),
        2 => (0..4).for_each(|nth| bytes[2 * nth + 1] = 1),
        _ => {}
    }
    bytes
}

/// The answer, once all pages are here, and the pages that it took.
fn ask<T>(
    image: &mut Image,
    mut question: impl FnMut(&mut Image) -> Result<T, Halt>,
) -> (Result<T, Errno>, Vec<u64>) {
    let mut wanted = Vec::new();
    loop {
        match question(image) {
            Ok(answer) => return (Ok(answer), wanted),
            Err(Halt::Failed(errno)) => return (Err(errno), wanted),
            Err(Halt::Page(at)) => {
                // Nothing has changed, so it can be asked again.
                assert!(!wanted.contains(&at));
                wanted.push(at);
                image.insert(at, page(at), image.sweeps());
            }
            Err(Halt::Hole(at)) => {
                assert!(page(at).iter().all(|&byte| byte == 0));
                image.fill_hole(at);
            }
        }
    }
}

#[test]
fn a_write_takes_room_first_and_is_led_to_last() {
    let mut image = image(1 << 20);
    assert_eq!(
        ask(&mut image, |image| image.find(700, 3000)),
        (Ok((Spot::Absent, 3000)), vec![1536])
    );
    assert_eq!(ask(&mut image, |image| image.has_entry(700)), (Ok(false), vec![]));
    let room = ask(&mut image, |image| image.allocate(1));
    assert_eq!(room, (Ok(Room::Clusters(4 * CLUSTER, 1)), vec![512, 1024]));
    assert_eq!(ask(&mut image, |image| image.add_table(700, 4 * CLUSTER)), (Ok(()), vec![]));
    assert_eq!(ask(&mut image, |image| image.has_entry(700)), (Ok(true), vec![]));
    let room = ask(&mut image, |image| image.allocate(2));
    assert_eq!(room, (Ok(Room::Clusters(5 * CLUSTER, 2)), vec![]));
    let led = ask(&mut image, |image| image.point(700, 2, 5 * CLUSTER));
    assert_eq!(led, (Ok(()), vec![4 * CLUSTER]));
    assert_eq!(
        ask(&mut image, |image| image.find(700, 3000)),
        (Ok((Spot::Own(5 * CLUSTER), 836)), vec![])
    );
    // The new table waits with the refcounts; the entry that leads to it comes behind them.
    let places = |image: &Image, rank| -> Vec<u64> {
        image.changed(rank).into_iter().map(|(at, _)| at).collect()
    };
    assert_eq!(places(&image, Rank::Leaf), [1024, 2048]);
    assert_eq!(places(&image, Rank::Link), [1536]);
    let (_, l1) = &image.changed(Rank::Link)[0];
    assert_eq!(l1[..8], ((4 * CLUSTER) | COPIED).to_be_bytes());
    // Once it is there, its entries come behind refcounts, too.
    image.settle(Rank::Leaf);
    image.settle(Rank::Link);
    assert_eq!(ask(&mut image, |image| image.clear(3000, 1)), (Ok(()), vec![]));
    assert_eq!(places(&image, Rank::Leaf), Vec::<u64>::new());
    assert_eq!(places(&image, Rank::Link), [2048]);
    assert_eq!(ask(&mut image, |image| image.find(3000, 10)), (Ok((Spot::Zero, 10)), vec![]));
}

#[test]
fn a_new_block_has_its_own_refcount() {
    let mut image = image(1 << 20);
    // 256 refcounts of 16 bits: the first block ends at cluster 255.
    assert_eq!(ask(&mut image, |image| image.allocate(1000)).0, Ok(Room::Clusters(2048, 252)));
    let at = 256 * CLUSTER;
    assert_eq!(ask(&mut image, |image| image.allocate(1)), (Ok(Room::Block(at)), vec![]));
    assert_eq!(ask(&mut image, |image| image.add_block(at)), (Ok(()), vec![at]));
    let room = ask(&mut image, |image| image.allocate(1));
    assert_eq!(room, (Ok(Room::Clusters(at + CLUSTER, 1)), vec![]));
    assert_eq!(image.changed(Rank::Root).len(), 1);
    let (_, block) = &image.changed(Rank::Leaf)[1];
    assert_eq!(block[..6], [0, 1, 0, 1, 0, 0]);
    // What was not used is taken again.
    assert_eq!(ask(&mut image, |image| image.give_back(at + CLUSTER, 1)), (Ok(()), vec![]));
    let room = ask(&mut image, |image| image.allocate(1));
    assert_eq!(room, (Ok(Room::Clusters(at + CLUSTER, 1)), vec![]));
}

#[test]
fn a_device_ends_and_a_cluster_in_use_is_passed_over() {
    let mut image = image(7 * CLUSTER);
    let mut used = page(1024);
    used[2 * 4 + 1] = 1;
    image.insert(512, page(512), 0);
    image.insert(1024, used, 0);
    let room = ask(&mut image, |image| image.allocate(9));
    assert_eq!(room, (Ok(Room::Clusters(5 * CLUSTER, 2)), vec![]));
    assert_eq!(ask(&mut image, |image| image.allocate(1)).0, Err(Errno::NoSpace));
}
