//! Providers and the tables, sets and formats on them: tasting to a fixed point.

use crate::base::error::Errno;
use crate::base::finding::{self, Finding, Severity};
use crate::base::store::Store;
use crate::class::zero::Zero;
use crate::format::moving::Moving;
use crate::format::{Format, FormatKind, Sign};
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::mapping::slices::Slices;
use crate::probe::read_set::ReadSet;
use crate::probe::unlock::Unlock;
use crate::probe::{Blind, Budget, Limits, Probe};
use crate::registry;
use assembly::Sets;
pub(crate) use found::Found;
use std::sync::Arc;

mod assembly;
mod containers;
mod found;
pub mod image_store;
mod incomplete;
pub mod occupant;
mod provider;
pub mod provider_store;
mod recognised;
mod unplaced;

pub use incomplete::Incomplete;
pub use provider::{Bytes, Disk, Provider, Reported};
pub use recognised::Recognised;
pub use unplaced::Unplaced;

/// Index of a provider in [`Graph::providers`].
pub type Id = usize;

/// Disks, and every provider found on them. A clone reads the same stores.
#[derive(Clone)]
pub struct Graph {
    stores: Arc<[Box<dyn Store>]>,
    /// Providers in the order found: each comes after those it stands on.
    pub providers: Vec<Provider>,
    /// Sets with missing members.
    pub incomplete: Vec<Incomplete>,
    limits: Limits,
    budget: Budget,
    keys: Option<Arc<dyn Unlock>>,
    /// Containers that wait for what their references name.
    waiting: Vec<containers::Waiting>,
}

impl Graph {
    /// Puts the disks together and tastes until nothing new is found.
    pub fn taste(disks: Vec<Disk>, limits: Limits) -> Graph {
        Graph::taste_with(disks, limits, None)
    }

    /// As [`Graph::taste`]; what `keys` open is tasted too, now and whenever it is tasted again.
    pub fn taste_with(disks: Vec<Disk>, limits: Limits, keys: Option<Arc<dyn Unlock>>) -> Graph {
        // Each disk of a large set has a budget of its own.
        let bytes = limits.bytes.saturating_mul(disks.len() as u64);
        let budget = Budget::new(Limits { bytes, ..limits });
        let mut graph = Graph {
            stores: Arc::new([]),
            providers: Vec::new(),
            incomplete: Vec::new(),
            limits,
            budget,
            keys,
            waiting: Vec::new(),
        };
        let (mut stores, mut ids, mut references) = (Vec::new(), Vec::new(), Vec::new());
        for mut disk in disks {
            ids.push(graph.providers.len());
            references.push(std::mem::take(&mut disk.references));
            graph.add_disk(disk, &mut stores);
        }
        graph.link(&ids, references);
        graph.stores = stores.into();
        graph.taste_all();
        graph
    }

    /// The graph of its disks alone with their topology, without providers or findings from
    /// tasting.
    #[must_use]
    pub fn bare(&self) -> Graph {
        let disks = self.providers.iter().filter(|p| p.parents.is_empty());
        let bare = |p: &Provider| {
            let (start, seen) = (p.start, p.seen);
            Provider {
                start,
                seen,
                serial: p.serial.clone(),
                references: p.references.clone(),
                refused: p.refused.clone(),
                format: p.format.clone(),
                is_backing: p.is_backing,
                ..Provider::new(p.name.clone(), p.class, p.topology.clone(), p.route.clone())
            }
        };
        let providers: Vec<Provider> = disks.map(bare).collect();
        let bytes = self.limits.bytes.saturating_mul(providers.len() as u64);
        let budget = Budget::new(Limits { bytes, ..self.limits });
        Graph {
            stores: self.stores.clone(),
            providers,
            incomplete: Vec::new(),
            limits: self.limits,
            budget,
            keys: self.keys.clone(),
            waiting: Vec::new(),
        }
    }

    /// A graph tasted anew from the current contents of its disks. The disks keep their ids, and
    /// the stores their indices.
    #[must_use]
    pub fn again(&self) -> Graph {
        let mut graph = self.bare();
        graph.taste_all();
        graph
    }

    fn taste_all(&mut self) {
        let (mut sets, mut next) = (Sets::new(), 0);
        while next < self.providers.len() {
            self.taste_one(next, &mut sets);
            next += 1;
            if next == self.providers.len() {
                self.join_containers();
            }
            if next == self.providers.len() {
                self.assemble(&mut sets);
            }
        }
        self.report_incomplete(&sets);
        self.settle_signs();
    }

    /// Id of the provider called `name`.
    pub fn find(&self, name: &str) -> Option<Id> {
        self.providers.iter().position(|p| p.name == name)
    }

    /// Ids of the providers that stand directly on `id`.
    pub fn children(&self, id: Id) -> impl Iterator<Item = Id> {
        self.providers
            .iter()
            .enumerate()
            .filter(move |(_, p)| p.parents.contains(&id))
            .map(|(i, _)| i)
    }

    /// Id of the disk or set that `id` is a range of.
    pub fn root(&self, id: Id) -> Id {
        let mut at = id;
        while let (false, [parent]) =
            (self.providers[at].is_set, self.providers[at].parents.as_slice())
        {
            at = *parent;
        }
        at
    }

    /// Bytes read while tasting, over all disks.
    pub fn bytes_read(&self) -> u64 {
        self.budget.spent()
    }

    /// Places that were read while tasting.
    pub fn read_set(&self) -> ReadSet {
        self.budget.read_set(self.stores.len())
    }

    /// The disks' stores, as [`Route::read_at`] takes them.
    pub fn stores(&self) -> &[Box<dyn Store>] {
        &self.stores
    }

    /// The disks' stores, for a user that outlives the graph or works in several threads.
    pub fn shared_stores(&self) -> Arc<[Box<dyn Store>]> {
        self.stores.clone()
    }

    /// A probe of provider `id`, as a class gets it, on the graph's budget.
    pub fn probe(&self, id: Id) -> Probe<'_> {
        let p = &self.providers[id];
        Probe::new(
            &p.route,
            &self.stores,
            &self.budget,
            p.topology.sector,
            p.start,
            p.kind.as_ref(),
        )
        .with_keys(self.keys.as_deref())
    }

    /// The format whose data area `id` is, if the area shows noise: an encrypted or striped one.
    /// `None` for every other provider.
    pub fn veil(&self, id: Id) -> Option<&'static str> {
        let kind = self.providers[id].area_of?;
        let plain =
            self.outer_sign(id).is_some_and(|sign| sign.data.is_some_and(|data| data.plain));
        (!plain).then_some(kind.name)
    }

    /// The format whose data area `id` is, as it was recognised.
    pub fn outer_sign(&self, id: Id) -> Option<&Sign> {
        let p = &self.providers[id];
        let (kind, parent) = (p.area_of?, *p.parents.first()?);
        self.providers[parent].signs.iter().find(|sign| sign.kind == kind)
    }

    /// Fills `buffer` from byte `offset` of `id`.
    pub fn read_at(&self, id: Id, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.providers[id].route.read_at(&self.stores, buffer, offset)
    }

    /// Writes `bytes` at byte `offset` of `id`. The graph stays as it was tasted until
    /// [`Graph::again`].
    pub fn write_at(&self, id: Id, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.providers[id].route.write_at(&self.stores, bytes, offset)
    }

    /// Zeroes `length` bytes at byte `offset` of `id`.
    pub fn zero(&self, id: Id, offset: u64, length: u64) -> Result<(), Errno> {
        self.providers[id].route.zero(&self.stores, offset, length)
    }

    /// Starts the write-back of `length` bytes at byte `offset` of `id` to the media, without
    /// waiting for it.
    pub fn start_writeback(&self, id: Id, offset: u64, length: u64) -> Result<(), Errno> {
        self.providers[id].route.start_writeback(&self.stores, offset, length)
    }

    /// Returns once everything written would survive a loss of power.
    pub fn flush(&self) -> Result<(), Errno> {
        self.stores.iter().try_for_each(|store| store.flush())
    }

    fn add_disk(&mut self, disk: Disk, stores: &mut Vec<Box<dyn Store>>) {
        let mut topology = disk.topology;
        let mut reported = None;
        let mut route = match disk.bytes {
            Bytes::Store(store) => {
                let route = Route::store(stores.len(), store.length());
                stores.push(store);
                route
            }
            Bytes::Geom(geom) => Route::new(&geom, 0, topology.length, &[]),
            Bytes::Reported(t) => {
                reported = Some(t);
                let nothing: Arc<dyn Geom> = Arc::new(Zero { length: topology.length });
                Route::new(&nothing, 0, topology.length, &[])
            }
        };
        if let Some(nop) = disk.nop {
            topology = nop.topology(0, &[topology]);
            let geom: Arc<dyn Geom> = Arc::new(nop);
            route = Route::new(&geom, 0, topology.length, &[route]);
        }
        let (start, findings, seen) = (disk.start, disk.findings, reported.is_none());
        self.providers.push(Provider {
            start,
            findings,
            seen,
            serial: disk.serial,
            format: disk.format,
            refused: disk.refused,
            ..Provider::new(disk.name, "disk", topology, route)
        });
        if let Some(reported) = reported {
            self.add_reported(reported);
        }
    }

    /// Tastes `id`, and adds the providers that follow from it.
    fn taste_one(&mut self, id: Id, sets: &mut Sets) {
        let provider = &self.providers[id];
        if provider.member.is_some() {
            // A part of a set, by what is said around it.
            return;
        }
        if provider.is_extended() && provider.seen {
            // Its chain is read by the class around it. The mark of an interrupted move is all that
            // its own first bytes may say besides.
            let probe = self.probe(id);
            let mark = Moving.recognise(&probe);
            self.providers[id].signs.extend(mark);
            return;
        }
        let tasted =
            self.veil(id).is_none() && !provider.is_extended() && provider.topology.length > 0;
        if !tasted || !provider.seen {
            return;
        }
        let probe = Probe::new(
            &provider.route,
            &self.stores,
            &self.budget,
            provider.topology.sector,
            provider.start,
            provider.kind.as_ref(),
        )
        .with_keys(self.keys.as_deref());
        if probe.is_far() && registry::shows_a_disk(provider.class) {
            // The table that a GPT's header leads to is asked for with it.
            let _ = probe.over(&provider.route).bytes(0, TABLE);
        }
        let mut found = Found::ask(&probe, provider.format.as_deref());
        let is_unfetched = probe.blind().is_some_and(Blind::is_unfetched);
        let is_unknown = found.is_nothing() && !is_unfetched;
        let unknown = if is_unknown { probe.written(self.table_above(id)) } else { None };
        if !provider.is_set
            && provider.parents.first().is_some_and(|&parent| self.is_whole(id, parent))
        {
            // The parent's own table, seen again.
            found.tables.clear();
        }
        found.settle();
        let other = provider.format.as_deref().filter(|&said| !found.has_format(said));
        if provider.is_backing && found.container.is_none() {
            // The disk of which it is a part shows what is on it.
            found.be_bytes();
        }
        if let Some(format) = other {
            let message = format!("it is no {format}, as it was said to be");
            found.findings.push(Finding::new(&finding::BLIND, Severity::Warning, 0, message));
        }
        if is_unfetched {
            // What seems to be damaged may be what was not fetched.
            found.findings.clear();
        }
        found.findings.extend(probe.blind().map(Blind::finding));
        // Under a table that is in use a format is a leftover: its data area is no more.
        let plain =
            found.tables.is_empty() && found.signs.iter().any(|s| s.data.is_some_and(|d| d.plain));
        let deep = provider.depth >= self.limits.depth && (!found.tables.is_empty() || plain);
        if deep {
            let message = format!(
                "tables and data areas inside each other, {} deep: not followed further",
                self.limits.depth
            );
            found.findings.push(Finding::new(&finding::BLIND, Severity::Warning, 0, message));
        }
        let table = found.tables.into_iter().next();
        let provider = &mut self.providers[id];
        provider.findings.extend(found.findings);
        provider.signs = found.signs;
        provider.unknown = unknown;
        provider.table.clone_from(&table);
        let mut is_stray = false;
        if let Some((class, member)) = found.member {
            is_stray = member.set.is_empty();
            provider.member = (!is_stray).then(|| (class.name(), member.clone()));
            assembly::join(sets, class, id, member);
        }
        if let Some((class, geom)) = found.container {
            self.add_container(id, class.name(), geom);
            return;
        }
        if self.providers[id].is_backing {
            self.be_part(id);
            return;
        }
        match table {
            _ if deep => {}
            // A set shows what its member holds.
            None if is_stray || self.providers[id].member.is_some() => {}
            Some((class, geom)) => self.add_slices(id, class, &geom),
            None => self.add_data(id),
        }
    }

    /// True if `id` covers the whole of `parent`.
    fn is_whole(&self, id: Id, parent: Id) -> bool {
        let place = |id: Id| (self.providers[id].route.base(), self.providers[id].route.length());
        place(id) == place(parent)
    }

    /// Bytes at the front of `id` that the table around it keeps for itself and for boot code: some
    /// of a label's partitions begin with them.
    fn table_above(&self, id: Id) -> u64 {
        let p = &self.providers[id];
        let begins = |&parent: &Id| {
            self.providers[parent].table.is_some()
                && self.providers[parent].route.base() == p.route.base()
        };
        if !p.is_set && p.parents.first().is_some_and(begins) { BOOT_AREA } else { 0 }
    }

    /// Adds the providers of a table on `id`. A slice that reaches past it is left out; its class
    /// has made the finding.
    fn add_slices(&mut self, id: Id, class: &'static str, geom: &Arc<dyn Geom>) {
        for (slot, offered) in geom.providers().into_iter().enumerate() {
            let parent = &self.providers[id];
            let start = geom.shift(slot).unwrap_or(0);
            let inside =
                start.checked_add(offered.length).is_some_and(|end| end <= parent.route.length());
            if self.full(id) {
                return;
            }
            if !inside {
                continue;
            }
            let parent = &self.providers[id];
            let table = geom.table();
            let entry = table.and_then(|t| t.entries.get(slot)).map(|slice| &slice.partition);
            let (label, uuid) =
                (entry.and_then(|e| e.label.clone()), entry.and_then(|e| table?.uuid(e)));
            let name = format!("{}{}", self.stem(id), offered.name);
            let topology = geom.topology(slot, std::slice::from_ref(&parent.topology));
            let route = Route::new(geom, slot, offered.length, std::slice::from_ref(&parent.route));
            let slice = Provider::within((id, parent), name, class, start, topology, route);
            self.providers.push(Provider { kind: offered.kind, label, uuid, ..slice });
        }
    }

    /// Adds a provider for every inner data area of the signs on `id`.
    fn add_data(&mut self, id: Id) {
        let areas: Vec<_> =
            self.providers[id].signs.iter().filter_map(|s| s.data.map(|d| (s.kind, d))).collect();
        for (nth, (kind, data)) in areas.into_iter().enumerate() {
            let parent = &self.providers[id];
            let room = parent.route.length().saturating_sub(data.offset);
            if room == 0 || self.full(id) {
                continue;
            }
            let parent = &self.providers[id];
            let length = data.length.unwrap_or(room).min(room);
            let geom: Arc<dyn Geom> = Arc::new(Slices::data_area(data.offset, length));
            let number = if nth == 0 { String::new() } else { (nth + 1).to_string() };
            let name = format!("{}.data{number}", self.stem(id));
            let topology = parent.topology.shift(data.offset, length);
            let route = Route::new(&geom, 0, length, std::slice::from_ref(&parent.route));
            let area =
                Provider::within((id, parent), name, kind.name, data.offset, topology, route);
            self.providers.push(Provider { area_of: Some(kind), ..area });
        }
    }

    /// True if no provider may be added; the first time on `id`, with a finding there.
    fn full(&mut self, id: Id) -> bool {
        let full = self.providers.len() >= self.limits.providers;
        if full && !self.providers[id].findings.iter().any(|f| *f.rule == finding::BLIND) {
            let message =
                format!("more than {} providers: the rest is not looked at", self.limits.providers);
            self.providers[id].findings.push(Finding::new(
                &finding::BLIND,
                Severity::Warning,
                0,
                message,
            ));
        }
        full
    }

    /// Drops a signature that is seen again on a slice or data area with the same start: it belongs
    /// to the inner provider.
    fn settle_signs(&mut self) {
        for id in 0..self.providers.len() {
            let inner: Vec<(FormatKind, u64)> = self
                .children(id)
                .filter(|&c| {
                    self.providers[c].route.base() == self.providers[id].route.base()
                        && !self.providers[c].is_set
                })
                .flat_map(|c| self.providers[c].signs.iter().map(|s| (s.kind, s.magic)))
                .collect();
            self.providers[id].signs.retain(|s| !inner.contains(&(s.kind, s.magic)));
        }
    }
}

/// Bytes that labels keep for themselves and their boot code: `BBSIZE` of the BSDs.
const BOOT_AREA: u64 = 8192;
/// Bytes of a GPT of 128 entries, with what stands before it.
const TABLE: usize = 34 * 512;
