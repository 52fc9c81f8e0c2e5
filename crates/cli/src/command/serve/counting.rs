//! What is counted of every export, and who it is.

use crate::report::Target;
use crate::served::{Blame, Bucket, Deeds, Export, Layer, Operations, Served, Verdicts};
use crate::survey::survey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use trueline_geom::finding;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::store::Store;
use trueline_geom::topology::{Fit, Why};
use trueline_geom::watch::{self, Deed, Tally, Watch};
use trueline_host::counted::{Counted, Counters};

/// The counters of all exports, and the stack they are on.
pub(crate) struct Counting {
    /// As it was tasted before it was served; a provider's place is its number in the counts.
    pub(crate) stack: Target,
    began: Instant,
    /// One set of counters a provider, under however many names it is served.
    exports: Mutex<BTreeMap<Id, Arc<Counters>>>,
    /// For each provider and purpose of a boundary, how far past one it begins; and what rule it breaks.
    blames: BTreeMap<(Id, Why), Blame>,
}

impl Counting {
    /// For the providers of `graph`.
    pub(super) fn new(target: &str, graph: &Graph) -> Result<Counting, String> {
        let whys = || Why::ALL.into_iter().filter(|why| why.costs());
        let of = |id| whys().filter_map(move |why| Some(((id, why), blame(graph, id, why)?)));
        let blames = (0..graph.providers.len()).flat_map(of).collect();
        Ok(Counting { stack: survey(target, graph, None)?, began: Instant::now(), exports: Mutex::default(), blames })
    }

    /// `store` as the bytes of provider `id`, counted.
    pub(super) fn over(&self, graph: &Graph, id: Id, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let mut exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = exports.entry(id).or_insert_with(|| Arc::new(Counters::new(Watch::new(graph, id))));
        Arc::new(Counted::new(store, counters.clone()))
    }

    /// What was counted so far.
    pub(crate) fn served(&self) -> Served {
        let exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut layers, mut all) = (Vec::new(), Vec::new());
        for (id, counters) in exports {
            let counts = counters.counts();
            layers.extend(counts.cells.iter().map(|(cell, tally)| self.layer(id, counters.watch(), *cell, tally)));
            let [reads, writes, trims, zeroes] = counts.failed;
            all.push(Export {
                provider: self.name(id),
                flushes: counts.flushes,
                most_waiting: counts.most_waiting,
                errors: Deeds { reads, writes, trims, zeroes },
                flush_errors: counts.failed_flushes,
            });
        }
        let duration_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Served { format: "trueline/serve/1", target: self.stack.target.clone(), duration_ns, layers, exports: all }
    }

    fn name(&self, id: Id) -> String {
        self.stack.providers.get(id).map_or_else(String::new, |p| p.provider.clone())
    }

    /// One cell of a watch.
    fn layer(&self, export: Id, watch: &Watch, cell: usize, tally: &Tally) -> Layer {
        let (layer, medium) = watch.cell(cell);
        let (layer, nth, medium) = (&watch.layers()[layer], medium, &watch.media()[medium]);
        let unit = medium.unit.as_ref();
        let blamed = layer.blamed[nth].zip(unit).and_then(|(id, unit)| self.blames.get(&(id, unit.why)).cloned());
        let (read, write) = (tally.work(Deed::Read), tally.work(Deed::Write));
        let device_operations = Operations { reads: read.done, writes: write.done, reads_needed: read.needed, writes_needed: write.needed };
        Layer {
            provider: self.name(layer.provider),
            id: layer.provider,
            export: self.name(export),
            disk: medium.provider.map_or_else(String::new, |id| self.name(id)),
            unit: unit.map_or(0, |unit| unit.grain.size()),
            phase: unit.map_or(0, |unit| unit.grain.phase()),
            why: unit.map(|unit| unit.why.name()),
            reads: verdicts(tally, Deed::Read),
            writes: verdicts(tally, Deed::Write),
            trims: verdicts(tally, Deed::Trim),
            zeroes: verdicts(tally, Deed::Zero),
            bytes: deeds(|deed| tally.bytes(deed)),
            blame: blamed,
            blamed: deeds(|deed| tally.blamed(deed)),
            device_operations,
            rmw_factor: device_operations.rmw_factor(),
            histogram: tally.histogram().map(bucket).collect(),
        }
    }
}

/// How far past a boundary for `why` a provider begins, if it is not on one.
fn blame(graph: &Graph, id: Id, why: Why) -> Option<Blame> {
    let p = &graph.providers[id];
    if p.topology.begins_on(why) != Some(false) {
        return None;
    }
    let missed = p.topology.counting().find(|fact| fact.why == why && !fact.grain.contains(0)).map(|fact| fact.grain.remainder(0));
    let clash = p.topology.clashes.iter().find(|clash| clash.why == why).map(|clash| clash.remainder);
    let rule = match missed {
        None => &finding::CLASH,
        Some(_) if p.is_data_area() => &finding::DATA,
        Some(_) => &finding::START,
    };
    Some(Blame { provider: p.name.clone(), remainder: missed.or(clash).unwrap_or(0), rule: rule.id })
}

fn verdicts(tally: &Tally, deed: Deed) -> Verdicts {
    let of = |fit| tally.count(deed, fit);
    Verdicts { aligned: of(Fit::Aligned), misaligned: of(Fit::Misaligned), partial: of(Fit::Partial), unknown: of(Fit::Unknown) }
}

fn deeds(of: impl Fn(Deed) -> u64) -> Deeds {
    Deeds { reads: of(Deed::Read), writes: of(Deed::Write), trims: of(Deed::Trim), zeroes: of(Deed::Zero) }
}

fn bucket(bucket: watch::Bucket) -> Bucket {
    Bucket {
        op: bucket.deed.name(),
        verdict: bucket.fit.name(),
        size: watch::class_start(bucket.size),
        alignment: watch::class_start(bucket.alignment),
        count: bucket.count,
    }
}
