//! Stacks of providers, each a few layers deep.

use super::{Node, slice};
use trueline_geom::class::concat::Linear;
use trueline_geom::class::mirror::Raid1;
use trueline_geom::class::nop::Nop;
use trueline_geom::class::stripe::Raid0;
use trueline_geom::class::zero::Zero;

/// Stacks of tables and sets, over disks and nothing.
pub(super) fn stacks() -> Vec<Node> {
    let disk = Node::Disk;
    let stripe = |chunk, share, below: Vec<Node>| {
        Node::over(Raid0::new("s".into(), chunk, below.len(), share).unwrap(), 0, below)
    };
    let mirror = |length, below: Vec<Node>| {
        Node::over(Raid1::new("m".into(), length, below.len()).unwrap(), 0, below)
    };
    let concat = |below: Vec<Node>| {
        Node::over(Linear::new("c".into(), below.iter().map(Node::length)).unwrap(), 0, below)
    };
    let nop = |length, below: Node| Node::over(Nop::new(length, None, Vec::new()), 0, vec![below]);
    let zero = |length| Node::over(Zero { length }, 0, Vec::new());
    vec![
        disk(0, 30),
        slice(3, 20, slice(5, 60, nop(80, slice(1, 90, disk(2, 100))))),
        slice(2, 25, stripe(3, 15, vec![slice(4, 16, disk(0, 20)), disk(1, 15)])),
        stripe(
            4,
            16,
            vec![
                mirror(16, vec![disk(0, 20), slice(1, 17, disk(1, 18))]),
                slice(2, 16, disk(2, 40)),
                zero(16),
            ],
        ),
        slice(
            1,
            30,
            slice(
                1,
                40,
                mirror(
                    45,
                    vec![concat(vec![disk(0, 20), zero(5), disk(1, 21)]), nop(47, disk(2, 50))],
                ),
            ),
        ),
        concat(vec![
            stripe(5, 10, vec![disk(0, 11), disk(1, 12)]),
            slice(7, 9, stripe(2, 10, vec![disk(2, 10), disk(3, 10)])),
        ]),
    ]
}
