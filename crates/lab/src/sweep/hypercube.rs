//! A Latin hypercube whose points are computed one at a time, all of them or a share.
//!
//! A parameter keeps the part of its range that each point of the share has, 4 bytes a point; the
//! place of a value within its part is computed from the point's number.

use super::{Parameter, Set, text_hash};
use crate::statistics::real;
use trueline_sim::random::Random;

/// Share `index` of `count` of numbered things, from 0: those whose number modulo `count` is
/// `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    index: u64,
    count: u64,
}

impl Share {
    /// The only share of one.
    pub const WHOLE: Share = Share { index: 0, count: 1 };

    /// Share `index` of `count`; `None` if there is no such share.
    pub fn new(index: u64, count: u64) -> Option<Share> {
        (index < count).then_some(Share { index, count })
    }

    /// The number of things in the share from `first` to `last`, both included.
    pub(crate) fn size(self, first: u32, last: u32) -> u64 {
        let begin = u64::from(first).saturating_add(self.distance(first));
        u64::from(last).checked_sub(begin).map_or(0, |past| past / self.count + 1)
    }

    /// The numbers of the share from `first` to `last`, both included, in order.
    pub fn numbers(self, first: u32, last: u32) -> impl Iterator<Item = u32> + Clone {
        let step = usize::try_from(self.count).unwrap_or(usize::MAX);
        let begin = u64::from(first).saturating_add(self.distance(first));
        (begin..=u64::from(last)).step_by(step).filter_map(|number| u32::try_from(number).ok())
    }

    /// The distance from a number to the next one of the share, 0 from one to itself.
    fn distance(self, number: u32) -> u64 {
        let past = u64::from(number) % self.count;
        match self.index.checked_sub(past) {
            Some(distance) => distance,
            None => self.count - (past - self.index),
        }
    }

    /// The place of a number among those of the share from 1 on; `None` outside the share.
    fn place(self, number: u32) -> Option<usize> {
        let past = u64::from(number).checked_sub(1)?.checked_sub(self.distance(1))?;
        (past % self.count == 0).then(|| usize::try_from(past / self.count).ok())?
    }
}

/// The points of a sweep in a share of them, numbered from 1.
pub(crate) struct Hypercube {
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    count: u32,
    share: Share,
}

/// The draws of a parameter: its part of the range at each point of the share, and the generator
/// of places within the parts, before the first point.
struct Column {
    parts: Vec<u32>,
    within: Random,
}

impl Hypercube {
    /// Draws `count` points of the parameters and keeps those of the share.
    pub(crate) fn draw(
        parameters: Vec<Parameter>,
        count: u32,
        seed: u64,
        share: Share,
    ) -> Hypercube {
        let columns = parameters
            .iter()
            .map(|parameter| Column::draw(seed ^ text_hash(&parameter.key), count, share))
            .collect();
        Hypercube { parameters, columns, count, share }
    }

    /// The values of the parameters at a point; `None` outside the share.
    pub(crate) fn point(&self, number: u32) -> Option<Set> {
        let place = self.share.place(number)?;
        let count = real(usize::try_from(self.count).ok()?);
        self.parameters
            .iter()
            .zip(&self.columns)
            .map(|(parameter, column)| {
                let part = usize::try_from(*column.parts.get(place)?).ok()?;
                let within = column.within.skipped(u64::from(number) - 1).unit();
                let value = parameter.values.at_share((real(part) + within) / count);
                Some((parameter.key.clone(), value))
            })
            .collect()
    }
}

impl Column {
    /// Draws the order of the parts by Fisher and Yates, of which the share is kept.
    fn draw(seed: u64, count: u32, share: Share) -> Column {
        let mut random = Random::new(seed);
        let mut parts: Vec<u32> = (0..count).collect();
        for last in (1..parts.len()).rev() {
            let other = random.below(u64::try_from(last + 1).unwrap_or(1));
            parts.swap(last, usize::try_from(other).unwrap_or(last));
        }
        if share != Share::WHOLE {
            let at = |number: u32| parts.get(usize::try_from(number - 1).ok()?).copied();
            parts = share.numbers(1, count).filter_map(at).collect();
        }
        Column { parts, within: random }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Values, points};

    #[test]
    fn every_number_is_in_one_share() {
        assert!(Share::new(3, 3).is_none() && Share::new(0, 0).is_none());
        for count in [1, 2, 3, 7, 100] {
            let mut all: Vec<u32> = Vec::new();
            for index in 0..count {
                let share = Share::new(index, count).unwrap();
                let numbers: Vec<u32> = share.numbers(0, 40).collect();
                assert_eq!(share.size(0, 40), numbers.len() as u64, "{share:?}");
                assert!(numbers.iter().all(|number| u64::from(*number) % count == index));
                for (place, number) in share.numbers(1, 40).enumerate() {
                    assert_eq!(share.place(number), Some(place), "{number} of {share:?}");
                    let others = (0..count).filter(|other| *other != index);
                    assert!(others.into_iter().all(|other| {
                        Share::new(other, count).unwrap().place(number).is_none()
                    }));
                }
                all.extend(numbers);
            }
            all.sort_unstable();
            assert_eq!(all, (0..=40).collect::<Vec<u32>>(), "{count}");
        }
        assert_eq!(Share::new(5, u64::MAX).unwrap().numbers(0, 9).collect::<Vec<_>>(), [5]);
        assert_eq!(Share::new(0, u64::MAX).unwrap().numbers(1, 9).count(), 0);
    }

    #[test]
    fn a_share_has_the_points_of_the_whole() {
        let between = Values::Between { low: 0.0, high: 1.0, whole: false };
        let parameters: Vec<Parameter> =
            ["a", "b"].map(|key| Parameter { key: key.into(), values: between.clone() }).into();
        let whole = points(&parameters, 50, 3);
        for (index, count) in [(0, 1), (0, 3), (1, 3), (2, 3), (49, 64), (60, 64)] {
            let share = Share::new(index, count).unwrap();
            let cube = Hypercube::draw(parameters.clone(), 50, 3, share);
            for (number, point) in (1..).zip(&whole) {
                let wanted = (u64::from(number) % count == index).then_some(point);
                assert_eq!(cube.point(number).as_ref(), wanted, "{number} of {share:?}");
            }
            assert!(
                cube.point(0).is_none() && cube.point(50 + u32::try_from(count).unwrap()).is_none()
            );
        }
    }
}
