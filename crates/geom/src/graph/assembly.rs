//! Sets: members are gathered while tasting goes on, and made into providers when nothing else is
//! new.

use super::{Graph, Id, Incomplete};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::Topology;
use crate::class::{self, Assembly, Below, Claim, Class, Layer, Member, Present};
use crate::graph::Provider;
use crate::mapping::route::Route;
use std::collections::{BTreeMap, BTreeSet};

/// Members found so far, by class and set.
pub(super) type Sets = BTreeMap<(&'static str, String), Set>;

/// Members of one set.
pub(super) struct Set {
    class: &'static dyn Class,
    members: Vec<(Id, Member)>,
    /// Numbers of members with which it was asked for last: all of them wanted, and degraded.
    asked: [usize; 2],
    /// Members in use; `None` as long as nothing is made of it.
    built: Option<Vec<Id>>,
    /// True once the data areas of its members are looked into, because no set will show them.
    opened: bool,
}

impl Set {
    fn new(class: &'static dyn Class) -> Set {
        Set { class, members: Vec::new(), asked: [0; 2], built: None, opened: false }
    }

    /// Members in use, else those that would be, and their numbers.
    fn here(&self) -> Vec<(Id, Option<usize>)> {
        let members: Vec<&Member> = self.members.iter().map(|(_, member)| member).collect();
        let mut chosen = class::chosen(&members);
        // Beside members with numbers, one without is a spare.
        if chosen.iter().any(|&at| members[at].number.is_some()) {
            chosen.retain(|&at| members[at].number.is_some());
        }
        let would = chosen.into_iter().map(|at| (self.members[at].0, members[at].number));
        let Some(built) = &self.built else { return would.collect() };
        let number = |id: &Id| self.members.iter().find(|(own, _)| own == id)?.1.number;
        built.iter().map(|id| (*id, number(id))).collect()
    }

    /// Numbers of members that are present, and of which none is among those in use, `here`.
    fn left_out(&self, here: &[(Id, Option<usize>)]) -> Vec<usize> {
        let numbers = self.members.iter().filter_map(|(_, member)| member.number);
        let unused: BTreeSet<usize> =
            numbers.filter(|number| here.iter().all(|(_, own)| own != &Some(*number))).collect();
        unused.into_iter().collect()
    }
}

/// Adds a member to the set that it belongs to.
pub(super) fn join(sets: &mut Sets, class: &'static dyn Class, id: Id, member: Member) {
    let key = if class.joins() { member.set.clone() } else { format!("{}#{id}", member.set) };
    let set = sets.entry((class.name(), key)).or_insert_with(|| Set::new(class));
    set.members.push((id, member));
}

impl Graph {
    /// Adds the providers of sets that have all members; if there is none, of those that can do
    /// without some; if there is none either, the data areas of members that are left.
    pub(super) fn assemble(&mut self, sets: &mut Sets) {
        let before = self.providers.len();
        for degraded in [false, true] {
            // A set that lacks a member may get it from another one.
            if self.providers.len() == before {
                self.build(sets, degraded);
            }
        }
        if self.providers.len() == before {
            let left = sets.values_mut().filter(|set| set.built.is_none() && !set.opened);
            let mut members = Vec::new();
            for set in left {
                set.opened = true;
                members.extend(set.members.iter().map(|(id, _)| *id));
            }
            members.into_iter().for_each(|id| self.add_data(id));
        }
    }

    fn build(&mut self, sets: &mut Sets, degraded: bool) {
        let mut parts = Vec::new();
        let before = self.providers.len();
        let named: Vec<_> = sets.keys().filter(|(_, set)| !set.is_empty()).cloned().collect();
        for key in named {
            let strays = sets.get(&(key.0, String::new())).map(|set| set.members.clone());
            let Some(set) = sets.get_mut(&key).filter(|set| set.built.is_none()) else { continue };
            let own = set.members.len();
            let members = [set.members.clone(), strays.unwrap_or_default()].concat();
            let asked = &mut set.asked[usize::from(degraded)];
            if *asked == members.len() || self.providers.len() >= self.limits.providers {
                continue;
            }
            *asked = members.len();
            let Some(assembly) = self.ask(set.class, &members, degraded) else { continue };
            let ids: Vec<Id> = members.iter().map(|(id, _)| *id).collect();
            let here: Vec<Id> =
                assembly.here.iter().filter_map(|&at| ids.get(at).copied()).collect();
            let taken: Vec<Id> =
                ids[own..].iter().copied().filter(|id| here.contains(id)).collect();
            for &id in &taken {
                let (_, first) = &members[0];
                let member = Member { number: None, claim: Claim::default(), ..first.clone() };
                self.providers[id].member = Some((set.class.name(), member.clone()));
                set.members.push((id, member));
            }
            set.built = Some(here.clone());
            self.add_layers(set.class.name(), &ids, assembly, &mut parts);
            if set.class.judges_data_areas() {
                here.into_iter().for_each(|id| self.add_shown_data(id));
            }
            if let Some(strays) = sets.get_mut(&(key.0, String::new())) {
                strays.members.retain(|(id, _)| !taken.contains(id));
            }
        }
        if degraded && self.providers.len() == before && parts.is_empty() {
            self.leave_strays(sets);
        }
        for (class, id, member) in parts {
            join(sets, class, id, member);
        }
    }

    /// The answer of `class` about these members.
    fn ask(
        &self,
        class: &'static dyn Class,
        members: &[(Id, Member)],
        degraded: bool,
    ) -> Option<Assembly> {
        let present: Vec<Present<'_>> = members
            .iter()
            .map(|(id, member)| {
                let serial = self.providers[*id].serial.as_deref();
                Present { member, probe: self.probe(*id), serial }
            })
            .collect();
        class.build(&present, degraded)
    }

    /// Members that no set has taken stand by themselves: their findings, and their data areas.
    fn leave_strays(&mut self, sets: &mut Sets) {
        for set in sets.iter_mut().filter(|((_, set), _)| set.is_empty()).map(|(_, set)| set) {
            for (id, member) in std::mem::take(&mut set.members) {
                let answer = self.ask(set.class, &[(id, member)], true);
                let findings = answer.into_iter().flat_map(|assembly| assembly.findings);
                self.providers[id].findings.extend(findings.map(|(_, finding)| finding));
                self.add_data(id);
            }
        }
    }

    /// Adds the data area of a member whose set shows what it holds: it is judged by its start
    /// alone.
    fn add_shown_data(&mut self, id: Id) {
        // A member of which no set was made shows its own already.
        if self.children(id).any(|child| self.providers[child].is_data_area()) {
            return;
        }
        let first = self.providers.len();
        self.add_data(id);
        self.providers[first..].iter_mut().for_each(|area| area.seen = false);
    }

    /// Adds what `class` has made of the members `ids`; appends those of its providers that are
    /// parts of further sets to `parts`.
    fn add_layers(
        &mut self,
        class: &'static str,
        ids: &[Id],
        assembly: Assembly,
        parts: &mut Vec<(&'static dyn Class, Id, Member)>,
    ) {
        for (at, finding) in assembly.findings {
            if let Some(&id) = ids.get(at) {
                self.providers[id].findings.push(finding);
            }
        }
        // By layer and slot; a place is empty where the graph was full.
        let mut made: Vec<Vec<Option<Id>>> = Vec::new();
        for layer in assembly.layers {
            let below: Option<Vec<Id>> = layer
                .below
                .iter()
                .map(|below| match *below {
                    Below::Member(at) => ids.get(at).copied(),
                    Below::Layer { layer, slot } => *made.get(layer)?.get(slot)?,
                })
                .collect();
            made.push(
                below.map_or(Vec::new(), |below| self.add_layer(class, &below, layer, parts)),
            );
        }
        for id in assembly.here.into_iter().filter_map(|at| ids.get(at).copied()) {
            // The first volume on it will begin where its data do.
            if self.children(id).next().is_none() {
                self.add_data(id);
            }
        }
    }

    fn add_layer(
        &mut self,
        class: &'static str,
        parents: &[Id],
        layer: Layer,
        parts: &mut Vec<(&'static dyn Class, Id, Member)>,
    ) -> Vec<Option<Id>> {
        let depth = parents.iter().map(|&id| self.providers[id].depth).max().unwrap_or(0) + 1;
        if depth > self.limits.depth {
            let message =
                format!("sets inside sets, {} deep: not followed further", self.limits.depth);
            let deep = Finding::new(&finding::BLIND, Severity::Warning, 0, message);
            if let Some(&first) = parents.first() {
                self.providers[first].findings.push(deep);
            }
            return Vec::new();
        }
        let below: Vec<Topology> =
            parents.iter().map(|&id| self.providers[id].topology.clone()).collect();
        let routes: Vec<Route> =
            parents.iter().map(|&id| self.providers[id].route.clone()).collect();
        let mut findings = layer.findings;
        let mut memberships = layer.parts.into_iter();
        let mut made = Vec::new();
        for (slot, offered) in layer.geom.providers().into_iter().enumerate() {
            let part = memberships.next().flatten();
            if parents.first().is_some_and(|&first| self.full(first)) {
                made.push(None);
                continue;
            }
            let topology = layer.geom.topology(slot, &below);
            let route = Route::new(&layer.geom, slot, offered.length, &routes);
            let name = match (layer.adds_to_names, parents.first()) {
                (true, Some(&parent)) => format!("{}{}", self.providers[parent].name, offered.name),
                _ => offered.name,
            };
            let name = self.free_name(name);
            let provider = match (layer.geom.shift(slot), parents) {
                (Some(start), &[parent]) => {
                    let around = (parent, &self.providers[parent]);
                    Provider::within(around, name, class, start, topology, route)
                }
                _ => {
                    let set = Provider::new(name, class, topology, route);
                    Provider { parents: parents.to_vec(), is_set: true, depth, ..set }
                }
            };
            let id = self.providers.len();
            self.providers.push(Provider {
                member: part.as_ref().map(|(class, member)| (class.name(), member.clone())),
                arrangement: layer.geom.arrangement(slot),
                findings: std::mem::take(&mut findings),
                seen: provider.seen && layer.seen,
                ..provider
            });
            let elsewhere = part.filter(|(own, _)| own.name() != class);
            parts.extend(elsewhere.map(|(class, member)| (class, id, member)));
            made.push(Some(id));
        }
        made
    }

    /// `name`, or, where a provider has it, that with the first free number behind it, as udev and
    /// mdadm tell two sets of one name apart.
    fn free_name(&self, name: String) -> String {
        if self.find(&name).is_none() {
            return name;
        }
        let numbered = (1..=self.providers.len()).map(|n| format!("{name}_{n}"));
        numbered.into_iter().find(|name| self.find(name).is_none()).unwrap_or(name)
    }

    pub(super) fn report_incomplete(&mut self, sets: &Sets) {
        for ((class, key), set) in sets {
            let Some((id, first)) = set.members.first() else { continue };
            let here = set.here();
            // A member that is left out may know another number of them.
            let used = |(id, _): &&(Id, Member)| here.iter().any(|(own, _)| own == id);
            let count = set.members.iter().find(used).map_or(first.count, |(_, own)| own.count);
            if here.len() < count {
                let provider = first.provider.clone();
                let left_out = set.left_out(&here);
                let set = key.clone();
                let set = Incomplete { class, set, provider, here, left_out, count };
                self.providers[*id].findings.push(set.finding());
                self.incomplete.push(set);
            }
        }
    }
}
