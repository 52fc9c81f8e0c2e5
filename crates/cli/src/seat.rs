//! The provider that a command writes: where it is, what is on it, how it is written.

use crate::options::DiskOptions;
use crate::target::{self, Said};
use crate::writing::{Job, WriteOptions, carry_out};
use crate::{Failure, complain};
use trueline_geom::finding::Severity;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::patch::{self, Patch};
use trueline_geom::scheme::{Ground, New, SCHEMES, Scheme};
use trueline_geom::table::{Refusal, Table};
use trueline_host::file::Access;
use trueline_host::kernel::{self, Reread};

/// The one provider that a command works on.
pub(crate) struct Seat {
    /// As typed.
    pub(crate) target: String,
    pub(crate) graph: Graph,
    pub(crate) id: Id,
    /// GEOM's name of it: `ada1`, `ada1s1`.
    pub(crate) name: String,
}

/// What a new table would take the place of.
pub(crate) enum There {
    /// Nothing that anybody would miss.
    Nothing,
    /// A table, whole or damaged.
    Table(&'static dyn Scheme, Box<Table>),
    /// Something else, in words.
    Data(String),
}

impl There {
    /// What removes it.
    fn gone(&self, seat: &Seat) -> Vec<Patch> {
        match self {
            There::Nothing => Vec::new(),
            There::Table(scheme, table) => scheme.erase(table),
            There::Data(_) => patch::blank(seat.ground().topology.length),
        }
    }

    /// An empty table. Of what is given up, nothing stays in the sectors that the table shares with it: else it would be
    /// recognised by them. Another table is seen to by the scheme itself, which must know of it to choose the order of its writes.
    pub(crate) fn create(&self, seat: &Seat, scheme: &dyn Scheme, new: &New) -> Result<Table, Refusal> {
        let probe = seat.graph.probe(seat.id);
        match self {
            There::Data(_) => scheme.create(&probe.after(&self.gone(seat)), &seat.ground(), new),
            There::Table(old, _) if scheme.is_guest() && old.name() != scheme.name() => {
                scheme.create(&probe.after(&self.gone(seat)), &seat.ground(), new)
            }
            _ => scheme.create(&probe, &seat.ground(), new),
        }
    }

    /// The writes that make the new table, and then remove what else is left of what was there: nobody finds it again.
    pub(crate) fn replaced(&self, seat: &Seat, made: Vec<Patch>) -> Vec<Patch> {
        patch::instead(made, self.gone(seat))
    }
}

impl Seat {
    /// Opens the target and finds its provider.
    pub(crate) fn open(target: &str, disk: &DiskOptions, access: Access) -> Result<Seat, Failure> {
        let said = Said::new(disk)?;
        let (graph, provider) = target::open_for(target, &said, access)?;
        let paths = target::paths(target);
        let id = match &provider {
            Some(name) => graph.find(name).ok_or_else(|| no_provider(target, name, &graph))?,
            None if paths.len() < 2 => 0,
            None => return Err(Failure::Message(format!("open {target}: several disks: name the provider after a #: #stripe/data"))),
        };
        let own = &graph.providers[id].name;
        let named = paths.len() > 1 || graph.providers[graph.root(id)].is_set;
        let disk = paths.first().and_then(|p| p.file_stem()).filter(|_| !named);
        let name = disk.map_or_else(String::new, |n| n.to_string_lossy().into_owned()) + own;
        Ok(Seat { target: target.into(), graph, id, name })
    }

    /// What is known of the ground.
    pub(crate) fn ground(&self) -> Ground<'_> {
        let p = &self.graph.providers[self.id];
        Ground { topology: &p.topology, base: p.base(), kind: p.kind }
    }

    /// Bytes of the disk or set it is on.
    pub(crate) fn medium(&self) -> u64 {
        self.graph.providers[self.graph.root(self.id)].topology.length
    }

    /// The table that is there, whole or damaged. What tasting does not see is not edited: a kernel would not see it either.
    pub(crate) fn table(&self) -> Option<(&'static dyn Scheme, Table)> {
        let p = &self.graph.providers[self.id];
        let seen = p.table.as_ref().map(|(class, _)| *class);
        let probe = self.graph.probe(self.id);
        SCHEMES.iter().find_map(|&scheme| {
            let table = scheme.read(&probe)?;
            let agreed = match seen {
                Some(class) => scheme.name().eq_ignore_ascii_case(class),
                None => p.is_extended() || !table.damage.is_empty(),
            };
            agreed.then_some((scheme, table))
        })
    }

    /// The table that is there, or why nothing can be done to it.
    pub(crate) fn edited(&self, attempt: &str) -> Result<(&'static dyn Scheme, Table), Failure> {
        let p = &self.graph.providers[self.id];
        self.table().ok_or_else(|| {
            let found = match (&p.table, self.unread()) {
                (Some((class, _)), _) => format!("its {class} table cannot be edited"),
                (None, Some(what)) => format!("its table cannot be read: {what}"),
                (None, None) => "there is no partition table: make one first: part create -s gpt".into(),
            };
            Failure::Message(format!("{attempt} {}: {found}", self.target))
        })
    }

    /// Why a table that seems to be there could not be read.
    pub(crate) fn unread(&self) -> Option<&str> {
        let p = &self.graph.providers[self.id];
        let worst = p.findings.iter().filter(|f| p.table.is_none() && f.severity >= Severity::Warning);
        worst.map(|f| f.message.as_str()).next()
    }

    /// What would be lost if the provider were written over: a format in use, a table nobody can read.
    pub(crate) fn holds(&self) -> Option<String> {
        let p = &self.graph.providers[self.id];
        let sign = p.in_use().next().map(|s| format!("there is {} on it", s.kind));
        let member = p.member.as_ref().map(|(class, m)| format!("it is a member of the {class} set {}", m.provider));
        sign.or(member).or_else(|| self.unread().map(|what| format!("there is something that cannot be read: {what}")))
    }

    /// What a new table would take the place of.
    pub(crate) fn there(&self) -> There {
        match self.table().filter(|(_, table)| !table.is_bare_chain()) {
            Some((scheme, table)) => There::Table(scheme, Box::new(table)),
            None => self.holds().map_or(There::Nothing, There::Data),
        }
    }

    /// Writes `patches`, checks that `after` is what is read back, and tells the kernel.
    pub(crate) fn write(
        self,
        scheme: &'static dyn Scheme,
        patches: Vec<Patch>,
        after: Option<&Table>,
        options: &WriteOptions,
    ) -> Result<(), Failure> {
        let written = carry_out(&self.target, &self.graph, vec![Job { id: self.id, patches }], options)?;
        if options.dry_run || written == 0 {
            return Ok(());
        }
        let read = scheme.read(&self.graph.probe(self.id));
        let places = |t: &Table| t.entries.iter().map(|e| (e.index, e.start, e.length, e.kind)).collect::<Vec<_>>();
        if after.map(places) != read.as_ref().map(places) && after.is_some() {
            let message = format!("write {}: what was written does not read back as it should: check the disk", self.target);
            return Err(Failure::Message(message));
        }
        let (target, on_disk) = (self.target.clone(), self.graph.providers[self.id].parents.is_empty());
        // The kernel reads a table again only once nobody has the disk open for writing alone.
        drop(self);
        if on_disk {
            tell_kernel(&target);
        }
        Ok(())
    }
}

/// Has the kernel read the tables of the block devices of `target` again.
pub(crate) fn tell_kernel(target: &str) {
    for path in target::paths(target).into_iter().filter(|path| path.starts_with("/dev")) {
        if kernel::reread(path) == Reread::Busy {
            let path = path.display();
            complain(&format!("warning: {path} is in use, so the kernel keeps the old partitions: partx -u {path}, or restart"));
        }
    }
}

fn no_provider(target: &str, name: &str, graph: &Graph) -> Failure {
    let names: Vec<&str> = graph.providers.iter().map(|p| p.name.as_str()).filter(|n| !n.is_empty()).take(20).collect();
    let there = if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) };
    Failure::Message(format!("open {target}: no provider '{name}': {there}"))
}

/// So many of them, in words.
pub(crate) fn partitions(count: usize) -> String {
    format!("{count} {}", if count == 1 { "partition" } else { "partitions" })
}

/// What cannot be done, as every failure is said.
pub(crate) fn refuse(attempt: &str, target: &str, refusal: &Refusal) -> Failure {
    Failure::Message(format!("{attempt} {target}: {refusal}: nothing was written"))
}
