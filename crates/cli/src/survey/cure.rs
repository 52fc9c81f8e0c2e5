//! Cures in words: the commands that mend a finding, with the names and options of the command line
//! that found it.
//!
//! A command is printed only after the same tables have been edited here, in memory, as it would
//! edit them.

use crate::move_journal;
use crate::move_journal::sought::{self, Belonging};
use crate::placed::{Placed, extended, table_on};
use crate::target::{self, DiskOverrides, Target};
use crate::words::escape::shell;
use crate::words::refusal;
use moves::Room;
use std::path::Path;
use trueline_geom::base::finding::{Finding, Fix};
use trueline_geom::base::topology::{Fact, Source, Why};
use trueline_geom::format::Format;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::slices::place;
use trueline_geom::registry::CLASSES;
use trueline_geom::table::scheme::TableSite;
use trueline_geom::table::{Request, Rules};

pub(crate) mod advice;
mod moves;

/// Maker of cures for the findings on one target.
pub(crate) struct Cures<'a> {
    graph: &'a Graph,
    /// The disks to name; `None` if no command would find them again.
    disks: Option<Target>,
    /// Options that describe the disks, from the user or from their models, each after a blank.
    options: String,
}

/// Cures of one finding, as they are printed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cure {
    /// Shell commands that mend it without losing anything, in order; empty if there are none.
    pub(crate) commands: Vec<String>,
    /// All cures, the best first: the commands as one line, then sentences.
    pub(crate) fix: Vec<String>,
}

impl<'a> Cures<'a> {
    /// Cures for findings on `graph`, the graph of `target`, as the overrides describe it.
    pub(crate) fn new(
        target: &Target,
        overrides: Option<&DiskOverrides>,
        graph: &'a Graph,
    ) -> Cures<'a> {
        let typed = overrides.map_or_else(Vec::new, DiskOverrides::words);
        let known = target.known_disks().map(|_| target.disks());
        let (disks, models) = (known.and_then(|disks| images(disks, graph)), modelled(graph));
        let options = typed
            .iter()
            .chain(models.iter().flatten())
            .map(|word| format!(" {}", shell(word)))
            .collect();
        Cures { graph, disks: disks.filter(|_| models.is_some()), options }
    }

    /// The cures of `finding`, which is on provider `id`.
    pub(crate) fn cure(&self, id: Id, finding: &Finding) -> Cure {
        let mut cure = Cure::default();
        for fix in &finding.fix {
            match fix {
                Fix::Words(text) => cure.fix.push(text.clone()),
                Fix::StartAt(places) => {
                    cure.commands.extend(self.moves(id));
                    cure.fix.push(self.start_at(id, places));
                    if cure.commands.is_empty() {
                        cure.fix.extend(self.moved_by_hand(id));
                    }
                }
                Fix::StartLater(by) => {
                    cure.commands.extend(self.moves(id));
                    let p = &self.graph.providers[id];
                    let begin = || {
                        format!(
                            ": the area would begin at \
                        {}",
                            place(p.base().saturating_add(*by), p.topology.sector)
                        )
                    };
                    let begin = if p.placed { begin() } else { String::new() };
                    cure.fix.push(format!("start its partition {by} bytes later{begin}"));
                }
                Fix::Lengthen(by) => cure.commands.extend(self.lengthen(id, *by)),
                Fix::Recover => cure.commands.extend(self.recover(id)),
                Fix::Resume => self.resume(id, &mut cure),
                Fix::Recreate(kind) => cure.fix.extend(self.recreate(id, kind)),
                Fix::ShowSectors(size) => cure.fix.push(advice::show_sectors(*size)),
                Fix::ShowSectorsOrRemake(size) => cure.fix.push(advice::show_or_remake(*size)),
                Fix::Convert(written) => cure.fix.extend(self.convert(id, *written)),
                Fix::ChooseCopy => cure.fix.push(advice::CHOOSE_COPY.into()),
                Fix::NameMembers { missing, numbered_by } => {
                    cure.fix.push(advice::name_members(*missing, *numbered_by))
                }
                Fix::Follow => cure.fix.push(advice::FOLLOW.into()),
                Fix::State(statement) => {
                    let sector = self.graph.providers[id].topology.sector;
                    cure.fix.push(advice::state(statement, sector))
                }
            }
        }
        if !cure.commands.is_empty() {
            cure.fix.insert(0, cure.commands.join(" && "));
        }
        cure
    }

    /// Adds the command that goes on with the interrupted move of provider `id`, if there is one
    /// journal of it, and sentences if not.
    fn resume(&self, id: Id, cure: &mut Cure) {
        let found = self
            .disks
            .as_ref()
            .and_then(|disks| Some((disks, sought::of_provider(disks, self.graph, id)?)));
        let is_of_disk = move_journal::is_of_disk(self.graph, id);
        match found {
            Some((disks, Belonging::One(its))) => cure.commands.push(its.command(disks)),
            Some((disks, found)) => cure.fix.push(advice::resume(disks, found, is_of_disk)),
            None => cure.fix.push(advice::no_journal(is_of_disk)),
        }
    }

    /// A sentence with the command that converts the disk `id`, whose table counts sectors of
    /// `written` bytes, to those it has.
    fn convert(&self, id: Id, written: u64) -> Option<String> {
        let p = &self.graph.providers[id];
        let here = p.topology.sector;
        let is_possible = [written, here].iter().all(|size| [512, 4096].contains(size));
        let target = self.target(id).filter(|_| is_possible && p.parents.is_empty())?;
        Some(advice::convert(written, here, &target))
    }

    /// The target `#name`, as a word of a shell.
    fn named(&self, name: &str) -> Option<String> {
        let disks = self.disks.as_ref()?;
        Some(shell(&if name.is_empty() { disks.to_string() } else { format!("{disks}#{name}") }))
    }

    /// Provider `id` as the target of a command that writes; `None` if some of it is not written.
    fn target(&self, id: Id) -> Option<String> {
        let p = &self.graph.providers[id];
        self.named(&p.name).filter(|_| p.route().read_only_in_part().is_none())
    }

    /// Other starts of a partition, in words.
    fn start_at(&self, id: Id, places: &[u64]) -> String {
        let root = &self.graph.providers[self.graph.root(id)];
        let on = if root.is_set && !root.is_contents { root.name.as_str() } else { "the disk" };
        let places: Vec<String> = places.iter().map(|&x| place(x, root.topology.sector)).collect();
        match places.as_slice() {
            [] => format!("no free start near it is on every boundary beneath {on}"),
            places => format!("start it at {} of {on}", places.join(" or ")),
        }
    }

    /// The commands after which the first byte of `id` is on the grain: moves of its own partition,
    /// else of one around it.
    pub(crate) fn moves(&self, id: Id) -> Vec<String> {
        let mut carrier = Some(id);
        while let Some(at) = carrier {
            if self.graph.providers[at].kind.is_some() {
                let commands = Room::for_partition(self, at, id)
                    .and_then(|room| room.commands())
                    .unwrap_or_default();
                if !commands.is_empty() {
                    return commands;
                }
            }
            carrier = partition_around(self.graph, at);
        }
        Vec::new()
    }

    /// Advice where no command is sure to work.
    fn moved_by_hand(&self, id: Id) -> Option<String> {
        let p = &self.graph.providers[id];
        let root = &self.graph.providers[self.graph.root(id)];
        if root.is_contents && p.kind.is_some() {
            let kind = root.class;
            let class = CLASSES.iter().find(|class| class.name() == kind);
            let format = class.and_then(|class| class.sign()).map(|kind| kind.format);
            if let Some(unpack) = format.and_then(Format::unpack) {
                return Some(format!(
                    "trueline move does not write into a packed disk ({kind}): {unpack}, and trueline move --align what comes out of it"
                ));
            }
            return Some(format!(
                "trueline move does not write into a {kind}: qemu-img convert -O raw the file, trueline move --align what comes out of it, and convert it back"
            ));
        }
        if let Some(why) = p.route().read_only_in_part().filter(|_| p.kind.is_some()) {
            return Some(format!(
                "trueline move cannot, from images: {why}; it can on the device of the running set"
            ));
        }
        let target = self.target(id).filter(|_| p.kind.is_some())?;
        let options = &self.options;
        match Placed::find(self.graph, id) {
            Ok(placed) => {
                let (table, index) = (self.target(placed.on)?, placed.entry.partition.index);
                Some(format!(
                    "make room: shrink what is in it, then trueline part resize -i {index} -s SECTORS {table}, then trueline move --align{options} {target}"
                ))
            }
            // A table that was not read, only reported.
            Err(_) if !p.seen => {
                Some(format!("where there is room for it: trueline move --align{options} {target}"))
            }
            Err(refusal) => {
                table_on(self.graph, *p.parents.first()?)?;
                Some(format!("trueline move cannot: {}", refusal::text(&refusal)))
            }
        }
    }

    /// The command that lengthens the partition by `by` bytes, to the end of its last unit.
    fn lengthen(&self, id: Id, by: u64) -> Option<String> {
        let Placed { on, mut table, entry } = Placed::find(self.graph, id).ok()?;
        let p = &self.graph.providers[on];
        let site = TableSite { topology: &p.topology, base: p.base(), kind: p.kind };
        let size = entry.partition.length.checked_add(by)?;
        table
            .resize(
                &site,
                entry.partition.index,
                &Request { size: Some(size), ..Request::default() },
                Rules::Aligned,
            )
            .ok()?;
        let sectors = size / table.sector.max(1);
        Some(format!(
            "trueline part resize -i {} -s {sectors}{} {}",
            entry.partition.index,
            self.options,
            self.target(on)?
        ))
    }

    /// The command that writes the table on `id` anew from its good copy.
    fn recover(&self, id: Id) -> Option<String> {
        let table = table_on(self.graph, id)?;
        let p = &self.graph.providers[id];
        let site = TableSite { topology: &p.topology, base: p.base(), kind: p.kind };
        table.scheme.recover(&table, &site).ok().filter(|_| !table.damage.is_empty())?;
        Some(format!("trueline part recover{} {}", self.options, self.target(id)?))
    }

    /// A sentence with the command that makes format `kind` anew. Its contents are lost, so it is
    /// never among the commands.
    fn recreate(&self, id: Id, kind: &str) -> Option<String> {
        let p = &self.graph.providers[id];
        let at = match p.area_of {
            None => id,
            Some(own) if own.name == kind => *p.parents.first()?,
            // What is around it has to know of every write: a cache, a copy elsewhere.
            Some(_) => return None,
        };
        let target = self.target(at)?;
        Some(format!(
            "save what is in it, then make it anew: trueline mkfs --overwrite{} {kind} {target}",
            self.options
        ))
    }
}

/// The disks to write in order to mend `disks`: for simulated drives, the images on them. `None` if
/// there are none.
fn images(disks: Target, graph: &Graph) -> Option<Target> {
    if !disks.is_simulated() {
        return Some(disks);
    }
    // The graph's first providers are the disks. No command writes behind the end of an image.
    let image = |(id, disk): (Id, &target::Source)| {
        let image = disk.simulated()?.image()?;
        let length = graph.providers.get(id)?.topology.length;
        let is_whole = Path::new(image).metadata().is_ok_and(|file| file.len() == length);
        is_whole.then(|| target::Source::file(image))
    };
    let images =
        disks.sources().iter().enumerate().map(image).collect::<Option<Vec<target::Source>>>()?;
    Some(Target::from_sources(images, None))
}

/// Options that describe the model beneath the disks, a word each; `None` if the disks are on
/// different models.
fn modelled(graph: &Graph) -> Option<Vec<String>> {
    let disks = graph.providers.iter().filter(|p| p.class == "disk");
    let mut all: Vec<Vec<String>> = disks
        .map(|disk| {
            disk.topology
                .facts
                .iter()
                .filter(|fact| fact.source == Source::Model)
                .flat_map(option)
                .collect()
        })
        .collect();
    all.dedup();
    match all.len() {
        0 | 1 => Some(all.pop().unwrap_or_default()),
        _ => None,
    }
}

/// The option that states `fact` of a disk.
fn option(fact: &Fact) -> [String; 2] {
    let (size, phase, why) = (fact.grain.size(), fact.grain.phase(), fact.why.name());
    let grain = if phase == 0 { size.to_string() } else { format!("{size}+{phase}") };
    match fact.why {
        Why::Logical => ["--logical".into(), size.to_string()],
        Why::Physical => ["--physical".into(), grain],
        _ => ["--grain".into(), format!("{why}={grain}")],
    }
}

/// The partition around `id`: the one it is cut from, or the extended one whose chain it is in.
fn partition_around(graph: &Graph, id: Id) -> Option<Id> {
    let p = &graph.providers[id];
    if let Some(extended) = extended(graph, id) {
        return Some(extended);
    }
    p.parents.first().copied().filter(|_| !p.is_set)
}
