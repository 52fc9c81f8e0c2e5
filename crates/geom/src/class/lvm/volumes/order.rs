//! Logical volumes by what they stand on.

use super::super::group::{Group, Logical, On, SegmentKind};

/// Volumes of a group by those beneath them.
pub(super) struct Users {
    /// For every logical volume the first one that stands on it, and its number there.
    pub(super) first: Vec<Option<(usize, usize)>>,
    /// For every logical volume the copies and images that it is.
    images: Vec<usize>,
}

impl Users {
    pub(super) fn new(group: &Group) -> Users {
        let count = group.logical.len();
        let mut users = Users { first: vec![None; count], images: vec![0; count] };
        for (user, volume) in group.logical.iter().enumerate() {
            for (nth, under) in beneath(volume).enumerate() {
                users.first[under].get_or_insert((user, nth));
            }
            images(volume).for_each(|image| users.images[image] += 1);
        }
        users
    }

    /// An image of `volume` that is one of another place as well. Through such ones a read could
    /// grow with every layer.
    pub(super) fn twice(&self, volume: &Logical) -> Option<usize> {
        images(volume).find(|&image| self.images[image] > 1)
    }
}

/// Logical volumes that are copies or images of one.
fn images(volume: &Logical) -> impl Iterator<Item = usize> {
    let kinds = volume.segments.iter().flatten().map(|segment| &segment.kind);
    let redundant =
        kinds.filter(|kind| matches!(kind, SegmentKind::Raid(_) | SegmentKind::Copies(_)));
    redundant.flat_map(SegmentKind::places).filter_map(|place| match place.on {
        On::Logical(image) => Some(image),
        On::Physical(_) => None,
    })
}

/// Logical volumes that one stands on.
fn beneath(volume: &Logical) -> impl Iterator<Item = usize> {
    let segments = volume.segments.iter().flatten();
    let places = segments.flat_map(|segment| segment.kind.places().iter().chain(&segment.with));
    places.filter_map(|place| match place.on {
        On::Logical(under) => Some(under),
        On::Physical(_) => None,
    })
}

/// Logical volumes, each after those it stands on, and which of them stand on themselves.
pub(super) fn order(group: &Group) -> (Vec<usize>, Vec<bool>) {
    let count = group.logical.len();
    let mut open: Vec<usize> = vec![0; count];
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (user, volume) in group.logical.iter().enumerate() {
        for under in beneath(volume) {
            open[user] += 1;
            above[under].push(user);
        }
    }
    let mut order: Vec<usize> = (0..count).filter(|&volume| open[volume] == 0).collect();
    let mut next = 0;
    while let Some(&volume) = order.get(next) {
        next += 1;
        for &user in &above[volume] {
            open[user] -= 1;
            if open[user] == 0 {
                order.push(user);
            }
        }
    }
    // What is left stands on itself, or on what does.
    let looped: Vec<bool> = open.iter().map(|&open| open > 0).collect();
    order.extend((0..count).filter(|&volume| looped[volume]));
    (order, looped)
}
