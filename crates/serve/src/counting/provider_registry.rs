//! Providers that were ever found on what is served, each by a number that it keeps.

use super::Blame;
use trueline_geom::base::finding;
use trueline_geom::base::topology::{Fact, Topology, Why};
use trueline_geom::graph::{Graph, Id, Provider, Recognised};

/// Providers that may be found after the first tasting; a client that makes further ones is not
/// followed. The counts of one take some 11 KiB for each thread that counts there.
const MORE: usize = 512;

/// Providers in the order in which they were found; a number is a place in it.
#[derive(Default)]
pub(super) struct ProviderRegistry {
    all: Vec<Record>,
    /// The number of those that the first tasting found.
    first: usize,
}

/// A provider as far as counts need it.
struct Record {
    name: String,
    class: &'static str,
    topology: Topology,
    base: u64,
    extended: bool,
    /// Numbers of what it stands on.
    parents: Vec<usize>,
    /// Its content when it was found last.
    recognised: Recognised,
    /// True where the last tasting has found it.
    here: bool,
    blames: Vec<(Why, Blame)>,
}

impl Record {
    fn new(p: &Provider, parents: Vec<usize>) -> Record {
        let blames = Why::ALL
            .into_iter()
            .filter(|why| why.costs())
            .filter_map(|why| Some((why, blame(p, why)?)))
            .collect();
        let (name, topology) = (p.name.clone(), p.topology.clone());
        let (base, extended, recognised) = (p.base(), p.is_extended(), Recognised::default());
        Record {
            name,
            class: p.class,
            topology,
            base,
            extended,
            parents,
            recognised,
            here: true,
            blames,
        }
    }

    /// True of the same provider, which stands on `parents`: requests to it are judged as they
    /// were.
    fn is(&self, provider: &Provider, parents: &[usize]) -> bool {
        let place = (self.base, self.extended, self.class)
            == (provider.base(), provider.is_extended(), provider.class);
        place
            && self.name == provider.name
            && self.parents == parents
            && self.topology == provider.topology
    }
}

impl ProviderRegistry {
    /// Numbers of all providers of `graph`. What was not known gets the next ones. [`None`], and
    /// nothing is done, if that is too much.
    pub(super) fn number(&mut self, graph: &Graph) -> Option<Vec<usize>> {
        let old = self.all.len();
        let mut here = vec![false; old];
        let (mut numbers, mut new): (Vec<usize>, Vec<Id>) = (Vec::new(), Vec::new());
        for (id, provider) in graph.providers.iter().enumerate() {
            let parents = numbers_of(&provider.parents, &numbers);
            // A hostile table has two of one name at one place.
            let same = self
                .all
                .iter()
                .zip(&here)
                .position(|(one, here)| !here && one.is(provider, &parents));
            match same {
                Some(number) => here[number] = true,
                None => new.push(id),
            }
            numbers.push(same.unwrap_or((old + new.len()).saturating_sub(1)));
        }
        if old == 0 {
            // The first tasting has limits of its own.
            self.first = new.len();
        } else if old + new.len() > self.first + MORE {
            return None;
        }
        self.all.iter_mut().zip(here).for_each(|(one, here)| one.here = here);
        self.all.extend(new.into_iter().map(|id| {
            Record::new(&graph.providers[id], numbers_of(&graph.providers[id].parents, &numbers))
        }));
        for (id, &number) in numbers.iter().enumerate() {
            self.all[number].recognised = graph.recognised(id);
        }
        Some(numbers)
    }

    /// The name of a provider; nothing for a number that none has.
    pub(super) fn name(&self, number: usize) -> String {
        self.all.get(number).map_or_else(String::new, |one| one.name.clone())
    }

    /// The content of a provider when it was found last.
    pub(super) fn recognised(&self, number: usize) -> Recognised {
        self.all.get(number).map_or_else(Recognised::default, |one| one.recognised.clone())
    }

    /// True of a provider that the last tasting did not find.
    pub(super) fn is_gone(&self, number: usize) -> bool {
        self.all.get(number).is_some_and(|one| !one.here)
    }

    /// The reason why requests to what stands on it miss units of `unit`: it begins past a
    /// boundary, or its chunks cut them.
    pub(super) fn blame(&self, number: usize, unit: &Fact) -> Option<Blame> {
        let one = self.all.get(number)?;
        let begins =
            one.blames.iter().find(|(of, _)| *of == unit.why).map(|(_, blame)| blame.clone());
        let cuts = |chunk| Blame {
            provider: one.name.clone(),
            remainder: 0,
            chunk: Some(chunk),
            rule: &finding::SMALL,
        };
        begins.or_else(|| one.topology.cut(unit.grain.size()).map(cuts))
    }
}

fn numbers_of(ids: &[Id], numbers: &[usize]) -> Vec<usize> {
    ids.iter().filter_map(|&id| numbers.get(id).copied()).collect()
}

/// The distance past a boundary for `why` at which a provider begins, if it is not on one.
fn blame(p: &Provider, why: Why) -> Option<Blame> {
    if p.topology.begins_on(why) != Some(false) {
        return None;
    }
    let missed = p
        .topology
        .counting()
        .find(|fact| fact.why == why && !fact.grain.contains(0))
        .map(|fact| fact.grain.remainder(0));
    let clash =
        p.topology.clashes.iter().find(|clash| clash.why == why).map(|clash| clash.remainder);
    let rule = match missed {
        None => &finding::CLASH,
        Some(_) if p.is_data_area() => &finding::DATA,
        Some(_) => &finding::START,
    };
    Some(Blame {
        provider: p.name.clone(),
        remainder: missed.or(clash).unwrap_or(0),
        chunk: None,
        rule,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::base::store::Sparse;
    use trueline_geom::graph::Disk;
    use trueline_geom::probe::Limits;

    /// A disk with these partitions: first sector, sectors.
    fn graph(partitions: &[(u32, u32)]) -> Graph {
        let mut sector = vec![0; 512];
        for (nth, (start, sectors)) in partitions.iter().enumerate() {
            let entry = &mut sector[446 + 16 * nth..][..16];
            entry[4] = 0x83;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&sectors.to_le_bytes());
        }
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        let mut disk = Sparse::new(1 << 30);
        disk.put(0, &sector);
        Graph::taste(
            vec![Disk::new("", Box::new(disk), Topology::new(512, 1 << 30))],
            Limits::default(),
        )
    }

    #[test]
    fn what_is_the_same_keeps_its_number_and_what_is_not_has_its_own() {
        let mut registry = ProviderRegistry::default();
        let mut number = |partitions: &[(u32, u32)]| {
            let numbers = registry.number(&graph(partitions));
            (
                numbers,
                (0..registry.all.len())
                    .filter(|&number| registry.is_gone(number))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(number(&[(64, 64), (128, 64)]), (Some(vec![0, 1, 2]), vec![]));
        assert_eq!(number(&[(63, 64), (128, 64)]), (Some(vec![0, 3, 2]), vec![1]));
        assert_eq!(number(&[(128, 64)]), (Some(vec![0, 4]), vec![1, 2, 3]));
        assert_eq!(number(&[(64, 64), (128, 64)]), (Some(vec![0, 1, 2]), vec![3, 4]));
    }

    #[test]
    fn a_client_that_makes_new_ones_all_the_time_is_not_followed_for_ever() {
        let mut registry = ProviderRegistry::default();
        for start in 0..1000 {
            let graph = graph(&[(64 + start, 64), (4096 + start, 64)]);
            assert_eq!(registry.number(&graph).is_some(), start <= 256, "{start}");
        }
        assert_eq!(registry.all.len(), 3 + MORE);
    }
}
