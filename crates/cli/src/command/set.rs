//! `stripe`, `mirror`, `concat`: FreeBSD's metadata on the members of a set.
//!
//! A label is random, and every last sector is cleared before the first is labelled: halves of two
//! labellings never make a set.

pub(crate) mod args;
use super::info;
use crate::command::set::args::{
    Clear, Concat, ConcatVerb, Dump, Label, Mirror, MirrorVerb, Stripe, StripeVerb,
};
use crate::disk_options::DiskOptions;
use crate::failure::{Failure, Reason, complain};
use crate::style::Style;
use crate::survey::cure::advice;
use crate::survey::survey;
use crate::target::open::{open, open_for};
use crate::target::{DiskOverrides, Source, Target};
use crate::words::{columns, escape, refusal, say};
use crate::writing::{Job, carry_out};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::audit::members::{Objection, Weight, objections};
use trueline_geom::base::patch::Patch;
use trueline_geom::class::metadata::{self, Component, Field, Labelled, Value};
use trueline_geom::class::{Class, concat, mirror, stripe};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::table::Refusal;
use trueline_host::disk::file::Access;
use trueline_host::random;

/// One of the three kinds of sets.
struct SetKind {
    class: &'static dyn Class,
    magic: &'static str,
    dump: fn(&[u8]) -> Result<Vec<Field>, Refusal>,
}

const STRIPE: SetKind =
    SetKind { class: &stripe::Stripe, magic: "GEOM::STRIPE", dump: stripe::dump };
const MIRROR: SetKind =
    SetKind { class: &mirror::Mirror, magic: "GEOM::MIRROR", dump: mirror::dump };
const CONCAT: SetKind =
    SetKind { class: &concat::Concat, magic: "GEOM::CONCAT", dump: concat::dump };

pub(crate) fn stripe(args: &Stripe) -> Result<ExitCode, Failure> {
    match &args.verb {
        StripeVerb::Label(args) => STRIPE.label(&args.label, |l| stripe::label(l, args.chunk)),
        StripeVerb::Clear(args) => STRIPE.clear(args),
        StripeVerb::Dump(args) => STRIPE.print(args),
    }
}

pub(crate) fn mirror(args: &Mirror) -> Result<ExitCode, Failure> {
    match &args.verb {
        MirrorVerb::Label(args) => {
            let slice = u32::try_from(args.slice);
            let slice = slice.map_err(|_| {
                format!("mirror label: a slice of {} bytes: use less than 4 GiB", args.slice)
            })?;
            let ids = args
                .label
                .disks
                .iter()
                .map(|_| random_id())
                .collect::<Result<Vec<u32>, Failure>>()?;
            let (balance, no_autosync, no_failsync) =
                (args.balance.as_str(), args.no_autosync, args.no_failsync);
            let options = mirror::Options { balance, slice, no_autosync, no_failsync, ids: &ids };
            MIRROR.label(&args.label, |l| mirror::label(l, &options))
        }
        MirrorVerb::Clear(args) => MIRROR.clear(args),
        MirrorVerb::Dump(args) => MIRROR.print(args),
    }
}

pub(crate) fn concat(args: &Concat) -> Result<ExitCode, Failure> {
    match &args.verb {
        ConcatVerb::Label(args) => CONCAT.label(args, concat::label),
        ConcatVerb::Clear(args) => CONCAT.clear(args),
        ConcatVerb::Dump(args) => CONCAT.print(args),
    }
}

impl SetKind {
    fn label(
        &self,
        args: &Label,
        encode: impl FnOnce(&metadata::Label<'_>) -> Result<Vec<Labelled>, Refusal>,
    ) -> Result<ExitCode, Failure> {
        let attempt = format!("{} label {}", self.class.name(), args.name);
        let overrides = overrides_of(&args.disks, &args.disk)?;
        let members = Members::open(&args.disks, &overrides, args.write.access())?;
        let graph = &members.graph;
        let components: Vec<Component> =
            members.ids.iter().map(|&id| members.component(id, args.hardcode)).collect();
        let label = metadata::Label { name: &args.name, id: random_id()?, components: &components };
        let refuse =
            |why: String| Failure::Message(format!("{attempt}: {why}: nothing was written"));
        let labelled = encode(&label).map_err(|refusal| refuse(refusal::text(&refusal)))?;
        let made: Vec<_> = labelled.iter().map(|l| l.member.clone()).collect();
        let found = objections(graph, self.class, &members.ids, &made);
        weigh(&found, args.force).map_err(|why| refuse(why.0))?;
        for Objection { found, advice, .. } in &found {
            complain(&format!("warning: {attempt}: {}", advice::objection(found, advice)));
        }
        for (disk, component) in args.disks.iter().zip(&components) {
            let (used, has) = (made.iter().map(|m| m.length).min().unwrap_or(0), component.share());
            if used < has && self.class.name() != "concat" {
                complain(&format!("warning: {disk}: only {used} bytes from {has} bytes used."));
            }
        }
        let sector = |(id, label): (&Id, Labelled)| (*id, label.sector);
        let labels: Vec<(Id, Vec<u8>)> = members.ids.iter().zip(labelled).map(sector).collect();
        let cleared = labels.iter().map(|(id, sector)| {
            last_sector(graph, *id, vec![0; sector.len()], "cleared last sector")
        });
        let jobs = cleared
            .chain(
                labels
                    .iter()
                    .map(|(id, sector)| last_sector(graph, *id, sector.clone(), "metadata")),
            )
            .collect();
        carry_out(&members.target, graph, jobs, &args.write, false)?;
        if args.write.dry_run {
            return Ok(ExitCode::SUCCESS);
        }
        let target = members.target.clone();
        drop(members);
        let mut stdout = BufWriter::new(anstream::stdout().lock());
        for disk in args.disks.iter().filter(|_| args.verbose) {
            columns::line(
                &format!("Metadata value stored on {disk}."),
                Style::of_stdout().width,
                &mut stdout,
            )?;
        }
        // The set that is read back is the one a kernel will taste.
        let graph = open(&target, &overrides)?;
        let set = made.first().map_or("", |m| m.provider.as_str());
        let survey = survey(&target, &graph, Some(set))
            .map_err(|e| format!("{attempt}: it does not read back as it should: {e}"))?;
        if let Some(provider) = survey.providers.first() {
            info::text(&format!("{target}#{set}"), provider, None, &mut stdout)?;
        }
        stdout.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn clear(&self, args: &Clear) -> Result<ExitCode, Failure> {
        let members = Members::open(
            &args.disks,
            &overrides_of(&args.disks, &args.disk)?,
            args.write.access(),
        )?;
        for (disk, &id) in args.disks.iter().zip(&members.ids) {
            let found = match metadata::magic(&read_last(&members.graph, id, disk)?) {
                Some(magic) if magic == self.magic => continue,
                Some(magic) => format!("its last sector holds {magic}"),
                None => "its last sector holds no metadata".into(),
            };
            let found = format!(
                "{} clear {disk}: {found}, not {}: nothing was written",
                self.class.name(),
                self.magic
            );
            return Err(Failure::Message(found));
        }
        let zeros = |&id: &Id| {
            let sector = members.graph.providers[id].topology.sector;
            last_sector(
                &members.graph,
                id,
                vec![0; usize::try_from(sector).unwrap_or(0)],
                "cleared last sector",
            )
        };
        carry_out(
            &members.target,
            &members.graph,
            members.ids.iter().map(zeros).collect(),
            &args.write,
            false,
        )?;
        for disk in args.disks.iter().filter(|_| args.verbose && !args.write.dry_run) {
            say(&format!("Metadata cleared on {disk}."))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints the metadata of each disk. Like gstripe, it goes on after a disk that cannot be read.
    fn print(&self, args: &Dump) -> Result<ExitCode, Failure> {
        let overrides = overrides_of(&args.disks, &args.disk)?;
        let mut stdout = BufWriter::new(anstream::stdout().lock());
        let (mut code, mut dumped) = (ExitCode::SUCCESS, Vec::new());
        for disk in &args.disks {
            let read = || -> Result<Vec<Field>, Failure> {
                let members = Members::open(std::slice::from_ref(disk), &overrides, Access::Read)?;
                let sector = read_last(&members.graph, members.ids[0], disk)?;
                (self.dump)(&sector).map_err(|refusal| {
                    format!("{} dump {disk}: {}", self.class.name(), refusal::text(&refusal)).into()
                })
            };
            match read() {
                Ok(fields) if args.json => {
                    dumped.push(Dumped { target: disk.typed(), metadata: Fields(fields) })
                }
                Ok(fields) => text(disk, &fields, &mut stdout)?,
                Err(Failure::Message(message)) => {
                    complain(&message);
                    code = ExitCode::from(2);
                }
                Err(failure) => return Err(failure),
            }
        }
        if args.json {
            let document =
                Document { format: format!("trueline/{}/1", self.class.name()), members: dumped };
            serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
            writeln!(stdout)?;
        }
        stdout.flush()?;
        Ok(code)
    }
}

/// Overrides of the disks of a set, which are one target.
fn overrides_of(disks: &[Target], options: &DiskOptions) -> Result<DiskOverrides, Reason> {
    let sources = disks.iter().flat_map(|disk| disk.sources().iter().cloned());
    DiskOverrides::announced(options, &Target::from_sources(sources.collect(), None))
}

/// The document of `dump --json`.
#[derive(Serialize)]
struct Document<'a> {
    format: String,
    members: Vec<Dumped<'a>>,
}

/// The metadata of one member.
#[derive(Serialize)]
struct Dumped<'a> {
    target: &'a str,
    metadata: Fields,
}

/// The fields of a member's metadata, as an object.
struct Fields(Vec<Field>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |value: &Value| match value {
            Value::Number(n) => Json::from(*n),
            Value::Text(text) => text.as_str().into(),
            Value::Flags(flags) => flags.clone().into(),
        };
        serializer.collect_map(self.0.iter().map(|field| (field.key, value(&field.value))))
    }
}

/// Prints the metadata of a disk as gstripe(8) and its like do.
fn text(disk: &Target, fields: &[Field], out: &mut dyn Write) -> io::Result<()> {
    let width = fields.iter().map(|f| f.name.len()).max().unwrap_or(0);
    columns::line(&format!("Metadata on {disk}:"), Style::of_stdout().width, out)?;
    for field in fields {
        writeln!(out, "{:>width$}: {}", field.name, escape::plain(&field.value.print()))?;
    }
    writeln!(out)
}

/// The members of a set, old or new, on one graph of all their disks.
struct Members {
    /// The disks, as one target.
    target: Target,
    graph: Graph,
    ids: Vec<Id>,
}

impl Members {
    fn open(
        targets: &[Target],
        overrides: &DiskOverrides,
        access: Access,
    ) -> Result<Members, Failure> {
        let mut disks: Vec<Source> = Vec::new();
        let mut places = Vec::new();
        for target in targets {
            // Partitions of one disk share it; memory is new every time.
            let mut on: Vec<Id> = Vec::new();
            for source in target.sources() {
                let known = disks
                    .iter()
                    .position(|disk| disk.typed() == source.typed() && !source.is_made_up());
                on.push(known.unwrap_or(disks.len()));
                disks.extend(known.is_none().then(|| source.clone()));
            }
            places.push(on);
        }
        let target = Target::from_sources(disks, None);
        let graph = open_for(&target, overrides, access)?;
        let found = targets.iter().zip(&places).map(|(typed, on)| {
            find(&graph, on, typed.provider()).ok_or_else(|| {
                let wanted = match typed.provider() {
                    Some(name) => {
                        format!("no provider '{name}': trueline show lists those there are")
                    }
                    None => "several disks: name the provider after a #: #mirror/gm0".into(),
                };
                Failure::Message(format!("open {typed}: {wanted}"))
            })
        });
        let ids = found.collect::<Result<Vec<Id>, Failure>>()?;
        Ok(Members { target, graph, ids })
    }

    /// The description of member `id` that goes into a label.
    fn component(&self, id: Id, hardcode: bool) -> Component {
        let p = &self.graph.providers[id];
        // The only disk of a target has no name of its own, and its partitions have only the rest
        // of theirs.
        let alone = self.graph.providers[0].name.is_empty()
            && !self.graph.providers[self.graph.root(id)].is_set;
        let disk = Path::new(self.target.typed()).file_stem().filter(|_| alone);
        let name =
            || disk.map_or(String::new(), |stem| stem.to_string_lossy().into_owned()) + &p.name;
        Component {
            length: p.topology.length,
            sector: p.topology.sector,
            hardcoded: hardcode.then(name),
        }
    }
}

/// The provider called `name` of the disks `on`, which are the graph's first providers in the order
/// of its target; without a name, the only disk. With several disks a provider's name begins with
/// its disk's, which may be left out where that disk alone is named.
fn find(graph: &Graph, on: &[Id], name: Option<&str>) -> Option<Id> {
    let Some(name) = name else { return <[Id; 1]>::try_from(on).ok().map(|[disk]| disk) };
    let mut within = vec![false; graph.providers.len()];
    on.iter().for_each(|&disk| within[disk] = true);
    for id in 0..graph.providers.len() {
        let parents = &graph.providers[id].parents;
        within[id] |= !parents.is_empty() && parents.iter().all(|&parent| within[parent]);
    }
    let called = |full: &str| {
        full == name
            || matches!(on, [disk] if full.strip_prefix(&graph.providers[*disk].name) == Some(name))
    };
    (0..graph.providers.len()).find(|&id| within[id] && called(&graph.providers[id].name))
}

fn random_id() -> Result<u32, Failure> {
    random::bytes().map(u32::from_le_bytes).map_err(|e| Reason::from(e).into())
}

/// A write of the last sector of `id`.
fn last_sector(graph: &Graph, id: Id, bytes: Vec<u8>, what: &'static str) -> Job {
    let at = graph.providers[id].topology.length.saturating_sub(bytes.len() as u64);
    Job { id, patches: vec![Patch::new(at, bytes, what)] }
}

fn read_last(graph: &Graph, id: Id, disk: &Target) -> Result<Vec<u8>, Failure> {
    let probe = graph.probe(id);
    let read = probe
        .from_end(probe.sector())
        .and_then(|at| probe.bytes(at, usize::try_from(probe.sector()).ok()?));
    read.ok_or_else(|| Failure::Message(format!("read {disk}: its last sector cannot be read")))
}

/// Refuses if objections weigh too much: the heaviest of them, in one line.
fn weigh(found: &[Objection], force: bool) -> Result<(), Reason> {
    let Some(heaviest) = found.first().map(|o| o.weight) else { return Ok(()) };
    if heaviest == Weight::Warning || heaviest == Weight::Doubt && force {
        return Ok(());
    }
    let mut reasons = String::new();
    let mut heavy = found.iter().filter(|o| o.weight == heaviest).peekable();
    while let Some(objection) = heavy.next() {
        reasons += &objection.found;
        let advice = advice::advice(&objection.advice);
        // Advice that several share is given once.
        match heavy.peek() {
            Some(next) if next.advice == objection.advice => reasons += "; ",
            Some(_) => reasons += &format!(": {advice}; "),
            None => reasons += &format!(": {advice}"),
        }
    }
    let insist = if heaviest == Weight::Doubt { "; or insist with --force" } else { "" };
    Err(Reason(reasons + insist))
}
