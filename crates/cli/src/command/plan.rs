//! `plan`: the parameters of every layer, for an existing disk or one that is described.

pub(crate) mod args;
pub(crate) mod text;
mod words;
use crate::command::plan::args::PlanArgs;
use crate::command::plan::text as out;
use crate::command::plan::text::Document;
use crate::failure::{Failure, Reason};
use crate::style::Style;
use crate::target::open::{described, open};
use crate::target::{DiskOverrides, Source, Target};
use crate::words::size;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::Graph;
use trueline_geom::plan::{Command, Host, InvalidUse, LayerBase, Note, Plan, Use};

/// Size in bytes of a described disk without `--size`.
const USUAL: u64 = 1 << 40;
/// Least size in bytes: a smaller disk has no room for a table and a partition on the grain, so the
/// unit was left out.
const LEAST: u64 = 1 << 20;

pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    if args.list {
        return list(args.json);
    }
    let text = args.wanted.as_deref().unwrap_or_default();
    let overrides = match &args.target {
        Some(target) => DiskOverrides::for_target(&args.disk, target)?,
        None => DiskOverrides::for_described(&args.disk)?,
    };
    let wanted =
        Use::parse(text).map_err(|wrong| format!("plan --use {text}: {}", invalid(&wrong)))?;
    if let Some(small) = args.size.filter(|&size| size < LEAST) {
        return Err(Failure::Message(format!(
            "plan --size {small}: no layout fits into {small} bytes: say it with a unit, 64g, 1TiB"
        )));
    }
    let mut asked = match &args.target {
        Some(target) => of_target(target, &overrides, &wanted)?,
        None => {
            overrides.refuse_model_keys("plan")?;
            PlanStart::described(&overrides, args.size.unwrap_or(USUAL), &wanted)
        }
    };
    if args.target.is_none() && args.size.is_none() {
        asked.notes.push(format!(
            "a disk of {} is taken: --size says how large it is",
            size::human(USUAL)
        ));
    }
    if let Some(size) =
        args.size.filter(|&size| args.target.is_some() && size < asked.base.topology.length)
    {
        asked.base.topology.length = size;
    }
    let needed = usize::try_from(wanted.disks()).unwrap_or(usize::MAX);
    asked.complete(needed)?;
    let grains = asked.base.topology.facts.clone();
    let mut plan = Plan::make(&wanted, asked.base);
    plan.notes.splice(0..0, asked.notes.into_iter().map(Note::Text));
    plan.commands.splice(0..0, asked.commands.into_iter().map(Command::Shell));
    let document = Document::new(
        args.target.as_ref().map(Target::typed),
        overrides.judged(),
        text,
        &grains,
        &plan,
    );
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        out::write(&document, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The fault of a use, and how to list them all.
fn invalid(wrong: &InvalidUse) -> String {
    match wrong {
        InvalidUse::Unknown { near, .. } if near.is_empty() => {
            format!("{wrong}: trueline plan --list shows them")
        }
        InvalidUse::Unknown { .. } | InvalidUse::Level { .. } => {
            format!("{wrong} trueline plan --list shows all")
        }
        _ => wrong.to_string(),
    }
}

/// Prints the uses, by group.
fn list(json: bool) -> Result<ExitCode, Failure> {
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if json {
        serde_json::to_writer_pretty(&mut stdout, &out::Uses::all()).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        out::uses(&mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The base of a plan, with the commands and notes that come before its own.
struct PlanStart {
    base: LayerBase,
    commands: Vec<String>,
    notes: Vec<String>,
}

impl PlanStart {
    /// The base of a described disk.
    fn described(overrides: &DiskOverrides, length: u64, wanted: &Use) -> PlanStart {
        let topology = described(overrides, length);
        let host = wanted.host(&topology, false);
        PlanStart {
            base: LayerBase::disk(topology, Vec::new()).with_host(host),
            commands: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds names until as many disks as needed have one. Errors: too many, or one provider where
    /// whole disks are needed.
    fn complete(&mut self, needed: usize) -> Result<(), Reason> {
        let names = &mut self.base.names;
        if names.len() > needed {
            return Err(Reason(format!(
                "plan: {} disks are named, and {needed} needed: name as many as the use has",
                names.len()
            )));
        }
        if names.len() < needed && !self.base.whole {
            return Err(Reason(format!(
                "plan: one provider is named, and {needed} disks are needed: name whole disks"
            )));
        }
        if !names.is_empty() && names.len() < needed {
            self.notes.push(format!(
                "{} of {needed} disks are named: the others are taken to be like them",
                names.len()
            ));
        }
        for number in names.len() + 1..=needed {
            let name = if needed == 1 { "DISK".to_owned() } else { format!("DISK{number}") };
            self.commands.push(placeholder(&name, self.base.host));
            names.push(format!("${name}"));
        }
        Ok(())
    }
}

/// The line that sets `$NAME` to a disk.
fn placeholder(name: &str, host: Host) -> String {
    let example = if host == Host::FreeBsd { "/dev/ada..." } else { "/dev/disk/by-id/..." };
    format!("{name}={example}  # the disk")
}

fn of_target(
    target: &Target,
    overrides: &DiskOverrides,
    wanted: &Use,
) -> Result<PlanStart, Reason> {
    let graph = open(target, overrides)?;
    let several = graph.providers.iter().filter(|p| p.class == "disk").count() > 1;
    let disks: Vec<&str> = target.sources().iter().map(Source::typed).collect();
    let together = together(&graph);
    let host = wanted.host(&together, disks.iter().all(|disk| Path::new(disk).is_file()));
    let (mut commands, mut names) = (Vec::new(), Vec::new());
    for (disk, source) in disks.iter().zip(target.sources()) {
        let numbered = |name: &str| {
            if several { format!("{name}{}", names.len() + 1) } else { name.to_owned() }
        };
        let is_file = Path::new(disk).is_file();
        if is_file && host != Host::Image {
            // Device nodes are used as they are; a file gets one first.
            let name = numbered(if host == Host::FreeBsd { "MD" } else { "LOOP" });
            let sector = together.sector;
            commands.push(match (host, sector) {
                (Host::FreeBsd, 512) => {
                    format!("{name}=$(mdconfig -a -t vnode -f {})", quoted(disk))
                }
                (Host::FreeBsd, _) => {
                    format!("{name}=$(mdconfig -a -t vnode -S {sector} -f {})", quoted(disk))
                }
                (_, 512) => format!("{name}=$(losetup --find --show --partscan {})", quoted(disk)),
                _ => format!(
                    "{name}=$(losetup --find --show --partscan --sector-size {sector} {})",
                    quoted(disk)
                ),
            });
            names.push(if host == Host::FreeBsd {
                format!("/dev/${{{name}}}")
            } else {
                format!("${{{name}}}")
            });
        } else if source.simulated().is_some() {
            // A plan for a simulated drive is typed on the real one.
            let name = numbered("DISK");
            commands.push(placeholder(&name, host));
            names.push(format!("${name}"));
        } else {
            names.push(quoted(disk));
        }
    }
    let base = match target.provider() {
        None => LayerBase::disk(together, names),
        Some(name) => {
            let id = graph.find(name).ok_or_else(|| {
                format!(
                    "open {target}: no provider #{name}; trueline show {} lists them",
                    quoted(&disks.join(","))
                )
            })?;
            let node = |disk: &String| {
                if host == Host::Image { quoted(target.typed()) } else { node(disk, name) }
            };
            let names = names.first().map(node).into_iter().collect();
            let whole = graph.providers[id].class == "disk";
            LayerBase { whole, ..LayerBase::disk(graph.providers[id].topology.clone(), names) }
        }
    };
    Ok(PlanStart { base: base.with_host(host), commands, notes: Vec::new() })
}

/// Topology with the boundaries that all disks have in common.
fn together(graph: &Graph) -> Topology {
    let disks: Vec<Topology> =
        graph.providers.iter().filter(|p| p.class == "disk").map(|p| p.topology.clone()).collect();
    match &disks[..] {
        [one] => one.clone(),
        all => Topology::mirror(all, all.iter().map(|t| t.length).min().unwrap_or(0)),
    }
}

/// The device node of a provider: `s2` and `p2` are Linux's partition 2; other providers have no
/// known one.
fn node(disk: &str, provider: &str) -> String {
    let number = provider.strip_prefix(['p', 's']).filter(|n| n.parse::<u32>().is_ok());
    match number {
        Some(n) if disk.ends_with(|c: char| c.is_ascii_digit() || c == '}') => {
            format!("{disk}p{n}")
        }
        Some(n) => format!("{disk}{n}"),
        None => format!("{disk}#{provider}"),
    }
}

/// One word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_word_of_a_shell() {
        assert_eq!(
            ["/dev/sda", "a b", "it's", ""].map(quoted),
            ["/dev/sda", "'a b'", r"'it'\''s'", "''"]
        );
        assert_eq!(
            [("/dev/sda", "s2"), ("/dev/nvme0n1", "p1"), ("${LOOP}", "s1")]
                .map(|(d, p)| node(d, p)),
            ["/dev/sda2", "/dev/nvme0n1p1", "${LOOP}p1"]
        );
    }
}
