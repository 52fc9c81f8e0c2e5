//! The provider that a command writes: its place, its contents, and the write itself.

use crate::disk_options::DiskOptions;
use crate::failure::{Failure, complain};
use crate::move_journal;
use crate::placed::table_on;
use crate::remembered::Remembered;
use crate::render::gpart::Called;
use crate::target::{DiskOverrides, Source, Target, open};
use crate::words::{escape, refusal};
use crate::writing::{Job, WriteOptions, carry_out};
use std::fmt::Display;
use std::ops::Range;
use trueline_geom::base::finding::{self, Severity};
use trueline_geom::base::patch::Patch;
use trueline_geom::graph::occupant::{self, Occupant};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::table::read_only::ReadOnly;
use trueline_geom::table::scheme::{Scheme, TableSite};
use trueline_geom::table::{Refusal, Table};
use trueline_host::disk::file::Access;
use trueline_host::disk::reread::{self, Reread};

/// The one provider that a command reads or writes.
pub(crate) struct WriteTarget {
    /// The target that was typed.
    pub(crate) typed: Target,
    /// The profile it is judged by, and its source.
    pub(crate) judged: Option<Remembered>,
    pub(crate) graph: Graph,
    pub(crate) id: Id,
    /// Its name in GEOM: `ada1`, `ada1s1`.
    pub(crate) name: String,
    /// True if messages use the name in GEOM.
    pub(crate) speaks_geom: bool,
    /// True if stdout is for a document.
    pub(crate) has_document: bool,
}

impl WriteTarget {
    /// Opens the target and finds its provider. A note on stderr names a remembered profile.
    pub(crate) fn open(
        typed: &Target,
        disk: &DiskOptions,
        access: Access,
    ) -> Result<WriteTarget, Failure> {
        WriteTarget::open_with(typed, &DiskOverrides::announced(disk, typed)?, access)
    }

    /// As [`WriteTarget::open`], with the given overrides of its disks.
    pub(crate) fn open_with(
        typed: &Target,
        overrides: &DiskOverrides,
        access: Access,
    ) -> Result<WriteTarget, Failure> {
        let graph = open::open_for(typed, overrides, access)?;
        let paths = typed.paths();
        let id = match typed.provider() {
            Some(name) => graph.find(name).ok_or_else(|| no_provider(typed, name, &graph))?,
            None if paths.len() < 2 => graph.disk(0),
            None => {
                return Err(Failure::Message(format!(
                    "open {typed}: several disks: name the provider after a #: #stripe/data"
                )));
            }
        };
        let reason = graph.providers[id].route().read_only_in_part();
        if let Some(reason) = reason.filter(|_| access.writes()) {
            let is_served = graph.providers.iter().enumerate().any(|(outer, p)| {
                p.is_contents && p.class == "qcow2" && graph.is_within(outer, id)
            });
            let way = match paths.first().filter(|_| is_served) {
                Some(path) => format!(
                    "; a qcow2 is written while it is served: \
                     trueline serve {} --run 'trueline ... \"$uri\"'",
                    escape::plain(&path.display().to_string())
                ),
                None => String::new(),
            };
            return Err(Failure::Message(format!(
                "write to {typed}: {reason}{way}: nothing was written"
            )));
        }
        let name = geom_name(typed, &graph, id);
        Ok(WriteTarget {
            typed: typed.clone(),
            judged: overrides.judged().cloned(),
            graph,
            id,
            name,
            speaks_geom: false,
            has_document: false,
        })
    }

    /// The name to print: as a command line takes it, or that in GEOM.
    pub(crate) fn called(&self) -> Called {
        match self.typed.known_disks().filter(|_| !self.speaks_geom) {
            Some(disks) => Called::typed(&disks, &self.graph.providers[self.id].name),
            None => Called::geom(&self.name),
        }
    }

    /// Site of a table on it: topology, base and type of the provider.
    pub(crate) fn site(&self) -> TableSite<'_> {
        site(&self.graph, self.id)
    }

    /// Length in bytes of the disk or set it is on.
    pub(crate) fn medium(&self) -> u64 {
        self.graph.providers[self.graph.root(self.id)].topology.length
    }

    /// The table on it, whole or damaged.
    pub(crate) fn table(&self) -> Option<Table> {
        self.table_on(self.id)
    }

    /// A table on it that is shown and never written, with its scheme.
    pub(crate) fn read_only(&self) -> Option<(ReadOnly, Table)> {
        let p = &self.graph.providers[self.id];
        let (class, _) = p.table.as_ref()?;
        let topology = &p.topology;
        Some(ReadOnly::new(class, p.slices()?, topology.sector, topology.length))
    }

    /// The table on another provider of the target.
    pub(crate) fn table_on(&self, id: Id) -> Option<Table> {
        table_on(&self.graph, id)
    }

    /// The table to edit. Errors: an interrupted move, no table, or one that cannot be edited;
    /// `attempt` begins the message.
    pub(crate) fn edited(&self, attempt: &str) -> Result<Table, Failure> {
        self.require_settled(attempt)?;
        self.readable(attempt)
    }

    /// Refuses a write while a move of it, or of a partition in it, is interrupted; `attempt`
    /// begins the message.
    pub(crate) fn require_settled(&self, attempt: &str) -> Result<(), Failure> {
        move_journal::require_settled(attempt, &self.typed, &self.graph, self.id)
    }

    /// The table to show. Errors: no table, or one that cannot be edited; `attempt` begins the
    /// message.
    pub(crate) fn readable(&self, attempt: &str) -> Result<Table, Failure> {
        let tasted = self.graph.providers[self.id].tasted();
        self.table().ok_or_else(|| {
            let found = match (tasted.table, tasted.holder(), tasted.unread()) {
                (Some(class), _, _) => format!(
                    "{class} tables are only read, never written: use the tool of their own system"
                ),
                (None, Some(holder), _) => format!("{holder}: its table is edited there"),
                (None, None, Some(what)) => format!("its table cannot be read: {what}"),
                (None, None, None) => {
                    "there is no partition table: make one first: part create -s gpt".into()
                }
            };
            Failure::Message(format!("{attempt} {}: {found}", self.typed))
        })
    }

    /// Contents, in words, that an overwrite would destroy, besides a table that can be read.
    pub(crate) fn holds(&self) -> Option<String> {
        let veiled =
            self.graph.veil(self.id).map(|kind| format!("only {kind} can tell what is on it"));
        veiled.or_else(|| self.graph.providers[self.id].tasted().holds())
    }

    /// Bytes at its ends that are not zero, in words, if nothing recognised can own them.
    fn remains(&self) -> Option<String> {
        let within = self.table_within().map_or_else(Vec::new, |(_, _, ranges)| ranges);
        occupant::remains(&self.graph.probe(self.id), &within)
    }

    /// The table whose own first sectors this partition covers: a BSD label whose first partition
    /// begins with it. Also the name of its provider, and the shared ranges in bytes of this one.
    pub(crate) fn table_within(&self) -> Option<(&'static dyn Scheme, String, Vec<Range<u64>>)> {
        let p = &self.graph.providers[self.id];
        let &[parent] = p.parents.as_slice() else { return None };
        let start = p.base().checked_sub(self.graph.providers[parent].base())?;
        let table = self.table_on(parent)?;
        let shared = |patch: &Patch| {
            let range = patch.offset.saturating_sub(start)
                ..patch.end().saturating_sub(start).min(p.topology.length);
            (range.start < range.end).then_some(range)
        };
        let within: Vec<Range<u64>> =
            table.scheme.erase(&table).iter().filter_map(shared).collect();
        (!within.is_empty())
            .then(|| (table.scheme, self.graph.providers[parent].name.clone(), within))
    }

    /// The occupant that a new table would replace.
    pub(crate) fn occupant(&self) -> Occupant {
        match self.graph.providers[self.id].tasted().occupant(&self.graph.probe(self.id)) {
            // Noise is no remains of anything.
            found @ (Occupant::Nothing | Occupant::Remains(_)) => {
                self.holds().map_or(found, |what| Occupant::Data(what, Vec::new()))
            }
            found => found,
        }
    }

    /// Writes `patches`, checks that `after` reads back, and makes the kernel read the table again.
    pub(crate) fn write(
        self,
        scheme: &'static dyn Scheme,
        patches: Vec<Patch>,
        after: Option<&Table>,
        options: &WriteOptions,
    ) -> Result<(), Failure> {
        let written = carry_out(
            &self.typed,
            &self.graph,
            vec![Job { id: self.id, patches }],
            options,
            self.has_document,
        )?;
        if options.dry_run || written == 0 {
            return Ok(());
        }
        let read = scheme.read(&self.graph.probe(self.id));
        let places = |t: &Table| {
            t.entries
                .iter()
                .map(|e| {
                    (e.partition.index, e.partition.start, e.partition.length, e.partition.kind)
                })
                .collect::<Vec<_>>()
        };
        if after.map(places) != read.as_ref().map(places) && after.is_some() {
            let message = format!(
                "write {}: what was written does not read back as it should: check the disk",
                self.typed
            );
            return Err(Failure::Message(message));
        }
        let (typed, on_disk) =
            (self.typed.clone(), self.graph.providers[self.id].parents.is_empty());
        // The kernel reads a table again only once the disk is no longer open for exclusive
        // writing.
        drop(self);
        if on_disk {
            tell_kernel(&typed);
        }
        Ok(())
    }
}

/// The name of a provider of the target in GEOM: `ada1`, `ada1s1`.
pub(crate) fn geom_name(target: &Target, graph: &Graph, id: Id) -> String {
    let paths = target.paths();
    let own = &graph.providers[id].name;
    let named = paths.len() > 1 || graph.providers[graph.root(id)].is_set;
    let disk = paths.first().and_then(|p| p.file_stem()).filter(|_| !named);
    disk.map_or_else(String::new, |n| n.to_string_lossy().into_owned()) + own
}

/// Site of a table on a provider: its topology, base and type.
pub(crate) fn site(graph: &Graph, id: Id) -> TableSite<'_> {
    let p = &graph.providers[id];
    TableSite { topology: &p.topology, base: p.base(), kind: p.kind }
}

/// Contents of the provider, in words, that an overwrite would destroy, a table included.
pub(crate) fn contents(target: &WriteTarget) -> Option<String> {
    let table = target.table().filter(|table| !table.is_bare_chain());
    table
        .map(|table| {
            format!(
                "there is {} with {}",
                named(table.scheme.name()),
                partitions(table.entries.len())
            )
        })
        .or_else(|| target.holds())
        .or_else(|| target.remains())
}

/// The table around it, in words, if the provider's first sectors hold it: a write there destroys
/// that table.
pub(crate) fn shared(target: &WriteTarget) -> Option<String> {
    let (scheme, parent, _) = target.table_within()?;
    let on = if parent.is_empty() { "the disk".into() } else { escape::plain(&parent) };
    Some(format!("its first sectors hold {}, that of {on}", named(scheme.name())))
}

/// Makes the kernel read the tables of the target's block devices again; warns on stderr if one is
/// in use.
pub(crate) fn tell_kernel(target: &Target) {
    for path in target.paths().into_iter().filter(|path| path.starts_with("/dev")) {
        if reread::reread(path) == Reread::Busy {
            let path = path.display();
            complain(&format!(
                "warning: {path} is in use, so the kernel keeps the old partitions: partx -u {path}, or restart"
            ));
        }
    }
}

pub(crate) fn no_provider(target: &Target, name: &str, graph: &Graph) -> Failure {
    let names: Vec<&str> = graph
        .providers
        .iter()
        .map(|p| p.name.as_str())
        .filter(|n| !n.is_empty())
        .take(20)
        .collect();
    let there = if names.is_empty() {
        "there is none".into()
    } else {
        format!("there are {}", names.join(", "))
    };
    let found = missing_members(target, name, graph)
        .unwrap_or_else(|| format!("{there}{}", not_followed(graph)));
    Failure::Message(format!("open {target}: no provider '{name}': {found}"))
}

/// The reason why something is not there that a key, or a set, should have shown; empty without
/// one.
pub(crate) fn not_followed(graph: &Graph) -> String {
    let findings = graph.providers.iter().flat_map(|p| &p.findings);
    let blind = findings
        .filter(|finding| *finding.rule == finding::BLIND && finding.severity > Severity::Note);
    blind.map(|finding| format!("; {}", finding.message)).next().unwrap_or_default()
}

/// The reason why a provider is absent, if members of its set are: which are missing, and how to
/// name them.
pub(crate) fn missing_members(target: &Target, name: &str, graph: &Graph) -> Option<String> {
    let set = graph.incomplete.iter().find(|set| set.would_have(name))?;
    let missing = vec!["DISK"; set.missing().min(3)];
    let disks: Vec<&str> = target.sources().iter().map(Source::typed).chain(missing).collect();
    Some(format!("{set}: name all of them: {}#{name}", disks.join(",")))
}

/// A scheme with its article: `an MBR`.
pub(crate) fn named(scheme: &str) -> String {
    let scheme = if scheme == "BSD" { "BSD label" } else { scheme };
    format!("{} {scheme}", if scheme.starts_with(['E', 'M']) { "an" } else { "a" })
}

/// A number of partitions in words: `1 partition`, `2 partitions`.
pub(crate) fn partitions(count: usize) -> String {
    format!("{count} {}", if count == 1 { "partition" } else { "partitions" })
}

/// The failure of a refused attempt; nothing was written.
pub(crate) fn refuse(attempt: &str, target: impl Display, refusal: &Refusal) -> Failure {
    Failure::Message(format!("{attempt} {target}: {}: nothing was written", refusal::text(refusal)))
}
