//! Latencies of requests that waited for a device, counted in classes of time.
//!
//! A class is an eighth of a power of two wide, so a quantile is accurate to 12 %. A request that
//! has waited for a device can afford the one atomic addition.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of classes in a power of two.
const PARTS: usize = 8;
/// The number of classes: 8 below 8 ns, then those of the powers of two up to 2^43 ns, two and a
/// half hours.
const CLASSES: usize = PARTS * 41;

/// Counts by class, which threads add to.
#[derive(Debug)]
pub(super) struct Latency {
    classes: Box<[AtomicU64]>,
    total: AtomicU64,
    most: AtomicU64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency {
            classes: (0..CLASSES).map(|_| AtomicU64::default()).collect(),
            total: AtomicU64::default(),
            most: AtomicU64::default(),
        }
    }
}

impl Latency {
    /// Counts one request of `ns` nanoseconds.
    pub(super) fn add(&self, ns: u64) {
        self.classes[class(ns)].fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(ns, Ordering::Relaxed);
        // A load leaves the cache line shared; the maximum rarely grows.
        if self.most.load(Ordering::Relaxed) < ns {
            self.most.fetch_max(ns, Ordering::Relaxed);
        }
    }

    /// The counts so far.
    pub(super) fn waits(&self) -> Waits {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        match of(&self.most) {
            0 => Waits::default(),
            most => Waits {
                classes: self.classes.iter().map(of).collect(),
                total: of(&self.total),
                most,
            },
        }
    }
}

/// Latencies up to some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    classes: Vec<u64>,
    total: u64,
    most: u64,
}

impl Waits {
    /// Counts one request of `ns` nanoseconds.
    pub fn add(&mut self, ns: u64) {
        self.classes.resize(CLASSES, 0);
        self.classes[class(ns)] += 1;
        self.total = self.total.saturating_add(ns);
        self.most = self.most.max(ns);
    }

    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// The mean in ns; 0 without requests.
    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.count()).unwrap_or(0)
    }

    /// The longest latency in ns.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The quantile in ns, in thousandths of the requests: the end of a class, or the longest
    /// latency; 0 without requests.
    pub fn quantile(&self, thousandths: u64) -> u64 {
        let wanted = (self.count() * thousandths.min(1000)).div_ceil(1000).max(1);
        let mut seen = 0;
        let class = self.classes.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        class.map_or(0, |class| (start(class + 1) - 1).min(self.most))
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Waits) {
        self.classes.resize(self.classes.len().max(other.classes.len()), 0);
        self.classes.iter_mut().zip(&other.classes).for_each(|(own, more)| *own += more);
        self.total = self.total.saturating_add(other.total);
        self.most = self.most.max(other.most);
    }

    /// The latencies since `before`, with the longest of all, as their own longest is unknown.
    #[must_use]
    pub fn since(&self, before: &Waits) -> Waits {
        let before_class = |nth: usize| before.classes.get(nth).copied().unwrap_or(0);
        let classes = self
            .classes
            .iter()
            .enumerate()
            .map(|(nth, count)| count.saturating_sub(before_class(nth)))
            .collect();
        Waits { classes, total: self.total.saturating_sub(before.total), most: self.most }
    }
}

/// The class of a latency.
fn class(ns: u64) -> usize {
    let log = ns.checked_ilog2().unwrap_or(0);
    let Some(shift) = log.checked_sub(PARTS.ilog2()) else {
        return usize::try_from(ns).unwrap_or(0);
    };
    let part = usize::try_from(ns >> shift).unwrap_or(0) % PARTS;
    usize::try_from(shift + 1).map_or(CLASSES - 1, |power| (power * PARTS + part).min(CLASSES - 1))
}

/// The least latency of a class in ns.
fn start(class: usize) -> u64 {
    let (power, part) = (class / PARTS, (class % PARTS) as u64);
    match power.checked_sub(1) {
        None => part,
        Some(shift) => (PARTS as u64 + part) << shift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_begins_where_the_one_before_it_ends() {
        for at in 0..CLASSES {
            assert_eq!((class(start(at)), class(start(at + 1) - 1)), (at, at), "{at}");
            assert!(at < 2 * PARTS || start(at + 1) - start(at) <= start(at) / PARTS as u64);
        }
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_requests() {
        let latency = Latency::default();
        assert_eq!(
            (latency.waits().count(), latency.waits().mean(), latency.waits().quantile(500)),
            (0, 0, 0)
        );
        (1..=1000).for_each(|us| latency.add(us * 1000));
        let waits = latency.waits();
        assert_eq!(
            (waits.count(), waits.mean(), waits.most(), waits.quantile(1000)),
            (1000, 500_500, 1_000_000, 1_000_000)
        );
        for (thousandths, ns) in [(500, 500_000), (990, 990_000), (1, 1000)] {
            let found = waits.quantile(thousandths);
            assert!(found >= ns && found <= ns + ns / 8, "{thousandths}: {found}");
        }
        // Of what came since, the rest is gone.
        (0..10).for_each(|_| latency.add(5_000_000));
        let since = latency.waits().since(&waits);
        assert_eq!((since.count(), since.mean()), (10, 5_000_000));
        assert!((5_000_000..5_700_000).contains(&since.quantile(500)));
        let mut both = Waits::default();
        [&waits, &since].into_iter().for_each(|one| both.merge(one));
        assert_eq!(both, latency.waits());
    }
}
