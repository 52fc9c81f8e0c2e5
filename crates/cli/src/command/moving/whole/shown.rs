//! A plan for a whole disk as it is shown: places, a picture of before and after, bytes and time;
//! and what would make room for one.

use crate::command::moving::decide::sizes;
use crate::placed::Placed;
use crate::remembered::Remembered;
use crate::render::draw::places::{Spot, write as draw};
use crate::style::Style;
use crate::target::Target;
use crate::words::columns::{self, Cell, Spare};
use crate::words::{escape, size};
use crate::write_target::WriteTarget;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use trueline_geom::base::topology::{round_down, round_up};
use trueline_geom::graph::Id;
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::sequence::{Goal, Movement, Sequence};
use trueline_geom::relocate::whole::{Planned, Room, Whole};
use trueline_geom::table::{Refusal, Table};

/// Bytes a second that an estimate supposes: those of a disk of 2012.
const PACE: u64 = 100 << 20;
/// Bytes to which a shorter file system is rounded.
const PAGE: u64 = 4096;

/// Bytes of each partition that are not copied, by its first byte.
type LeftOut = BTreeMap<u64, u64>;

/// Prints the plan: a line for each partition, the picture, and what it takes.
pub(super) fn plan(
    typed: &Target,
    target: &WriteTarget,
    table: &Table,
    (whole, gaps): (&Whole, LeftOut),
) -> io::Result<()> {
    let style = Style::of_stdout();
    let mut out = BufWriter::new(anstream::stdout().lock());
    let name = |p: &Planned| target.graph.providers[p.id].name.clone();
    let at = |start: u64| place(start, table.sector);
    let head = ["PARTITION", "SIZE", "FROM", "TO"].map(Cell::left).to_vec();
    // Of one whose contents are planned too, those are shown; it too, if it goes with them.
    let rows = whole.partitions.iter().filter(|p| !p.carries || p.own.is_some()).map(|p| {
        let to = if p.to == p.now.start { "stays".into() } else { at(p.to) };
        let long = size::human(p.now.end - p.now.start);
        vec![Cell::left(name(p)), Cell::right(long), Cell::left(at(p.now.start)), Cell::left(to)]
    });
    let rows: Vec<Vec<Cell>> = [head].into_iter().chain(rows).collect();
    columns::write(&rows, &Spare::NONE, style.width, &mut out)?;
    writeln!(out)?;
    let places = |moved: bool| {
        let start = move |p: &Planned| if moved { p.to } else { p.now.start };
        let one = |p: &Planned| {
            let start = start(p);
            Spot { name: name(p), start, end: start.saturating_add(p.now.end - p.now.start) }
        };
        whole.partitions.iter().filter(|p| !p.carries).map(one).collect::<Vec<_>>()
    };
    draw(&[("before", places(false)), ("after", places(true))], table.length, style, &mut out)?;
    writeln!(out)?;
    columns::line(&cost(typed, target, (whole, gaps)), style.width, &mut out)?;
    out.flush()
}

/// Bytes and time of the plan, in a sentence.
fn cost(typed: &Target, target: &WriteTarget, (whole, mut gaps): (&Whole, LeftOut)) -> String {
    let far = sizes(&target.graph).far;
    let (mut moves, mut all, mut bytes, mut twice) = (0, 0_u64, 0_u64, 0_u64);
    for moved in whole.stages.iter().filter_map(|stage| stage.moved) {
        // A partition that moves twice has its gaps both times.
        let left = gaps.remove(&moved.from).unwrap_or(0);
        gaps.insert(moved.to, left);
        let copied = moved.length.saturating_sub(left);
        moves += 1;
        all = all.saturating_add(moved.length);
        bytes = bytes.saturating_add(copied);
        if moved.from.abs_diff(moved.to) < far.min(moved.length) {
            twice = twice.saturating_add(copied);
        }
    }
    // Each byte is read and written; those in the journal are written once more.
    let seconds = bytes.saturating_mul(2).saturating_add(twice) / PACE;
    let time = match seconds {
        0..60 => "under a minute".to_string(),
        seconds => format!("about {} min", seconds.div_ceil(60)),
    };
    let journal = match twice {
        0 => String::new(),
        bytes => format!(", {} of them by way of the journal", size::human(bytes)),
    };
    let rest = match bytes {
        bytes if bytes == all => String::new(),
        bytes => format!(", {} without holes and what is free", size::human(bytes)),
    };
    format!(
        "{}: {moves} {} of {}{rest}{journal}; {time} where a disk reads and writes 100 MiB/s",
        escape::plain(typed.typed()),
        if moves == 1 { "move" } else { "moves" },
        size::human(all)
    )
}

/// The document of `move --json` for a whole disk.
#[derive(Serialize)]
pub(super) struct Report {
    format: &'static str,
    target: String,
    #[serde(rename = "for")]
    judged: Option<Remembered>,
    /// Bytes that are moved.
    bytes: u64,
    partitions: Vec<Partition>,
    /// Sentences on what the moves leave as it is: boot loaders.
    notes: Vec<String>,
}

/// One partition of that document.
#[derive(Serialize)]
struct Partition {
    provider: Option<String>,
    from: u64,
    to: u64,
    length: u64,
}

impl Report {
    fn new(
        target: &WriteTarget,
        bytes: u64,
        partitions: Vec<Partition>,
        notes: &[String],
    ) -> Report {
        Report {
            format: "trueline/move-disk/1",
            target: target.typed.typed().into(),
            judged: target.judged.clone(),
            bytes,
            partitions,
            notes: notes.to_vec(),
        }
    }
}

/// The document of a plan: all partitions, those that stay too.
pub(super) fn planned(target: &WriteTarget, whole: &Whole, notes: &[String]) -> Report {
    let partition = |p: &Planned| Partition {
        provider: Some(target.graph.providers[p.id].name.clone()),
        from: p.now.start,
        to: p.to,
        length: p.now.end - p.now.start,
    };
    let moved = whole.stages.iter().filter_map(|stage| stage.moved);
    let bytes = moved.fold(0, |sum: u64, moved| sum.saturating_add(moved.length));
    Report::new(target, bytes, whole.partitions.iter().map(partition).collect(), notes)
}

/// The document of what was done: the partitions that moved.
pub(super) fn moved(
    target: &WriteTarget,
    sequence: &Sequence,
    goal: Goal,
    notes: &[String],
) -> Report {
    let graph = target.graph.again();
    let partition = |moved: Movement| {
        let moved = if goal == Goal::Forward { moved } else { moved.back() };
        let provider = graph
            .partition_at(target.id, moved.to, moved.length)
            .map(|id| graph.providers[id].name.clone());
        Partition { provider, from: moved.from, to: moved.to, length: moved.length }
    };
    Report::new(target, sequence.bytes(), sequence.moves().map(partition).collect(), notes)
}

/// The document where nothing had to move.
pub(super) fn nothing(target: &WriteTarget) -> Report {
    Report::new(target, 0, Vec::new(), &[])
}

/// Prints a document, on lines of its own.
pub(super) fn print(report: &Report) -> io::Result<()> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    serde_json::to_writer_pretty(&mut out, report).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()
}

/// The refusal for want of room, with the commands that would make the least that is needed.
pub(super) fn want_of_room(
    typed: &Target,
    target: &WriteTarget,
    table: &Table,
    room: &Room,
) -> Refusal {
    let name = &target.graph.providers[room.on].name;
    let inside = if room.on == target.id { String::new() } else { format!(" in {name}") };
    let found = format!(
        "there is no room{inside} to put all {} partitions on the grain ({})",
        room.partitions.len(),
        room.free
    );
    Refusal::new(found, making_room(typed, target, table, room))
}

/// The commands that would make the least room that is needed, in a sentence.
pub(super) fn making_room(
    typed: &Target,
    target: &WriteTarget,
    table: &Table,
    room: &Room,
) -> String {
    let again = format!("trueline move --align {}", escape::shell(typed.typed()));
    let longer = match room.on == target.id {
        true => longer(typed, target, table, room),
        false => longer_within(target, room),
    };
    match longer.or_else(|| shorter(target, table, room)) {
        Some(commands) => format!("these make room and move them: {commands} && {again}"),
        None => "make room first: shrink what is in one of them and then the partition (part \
            resize), or delete one"
            .into(),
    }
}

/// The commands by which a partition gets long enough for the table in it, where there is room
/// behind it.
fn longer_within(target: &WriteTarget, room: &Room) -> Option<String> {
    let graph = &target.graph;
    let placed = Placed::find(graph, room.on).ok()?;
    let (sector, partition) = (placed.table.sector, &placed.entry.partition);
    let longer = round_up(room.longer?, sector)?;
    let end = partition.end().checked_add(longer)?;
    let is_free = placed.table.free().iter().any(|r| r.start <= partition.end() && end <= r.end);
    let length = partition.length.checked_add(longer).filter(|_| is_free)?;
    let disks = target.typed.known_disks()?;
    let named = |id: Id| match graph.providers[id].name.as_str() {
        "" => escape::shell(&disks),
        name => escape::shell(&format!("{disks}#{name}")),
    };
    let (index, on) = (partition.index, named(placed.on));
    let resize = format!("trueline part resize -i {index} -s {} {on}", length / sector);
    let class = graph.providers[room.on].table.as_ref().map(|(class, _)| *class);
    Some(match class {
        Some("mbr") => resize,
        _ => format!("{resize} && trueline part recover {}", named(room.on)),
    })
}

/// The commands by which an image gets long enough.
fn longer(typed: &Target, target: &WriteTarget, table: &Table, room: &Room) -> Option<String> {
    let file = typed.only_path()?.metadata().ok().filter(|file| file.is_file())?;
    let p = &target.graph.providers[target.id];
    if !p.parents.is_empty() || p.topology.length != file.len() {
        return None;
    }
    let image = escape::shell(typed.typed());
    let grow = format!("truncate -s +{}M {image}", room.longer?.div_ceil(1 << 20));
    Some(match table.scheme.name() {
        "GPT" => format!("{grow} && trueline part recover {image}"),
        _ => grow,
    })
}

/// The commands that shrink the file system which has to shrink least.
fn shorter(target: &WriteTarget, table: &Table, room: &Room) -> Option<String> {
    let graph = &target.graph;
    let mut partitions: Vec<_> = room.partitions.iter().zip(&room.shorter).collect();
    partitions.sort_by_key(|(_, less)| less.unwrap_or(u64::MAX));
    partitions.into_iter().find_map(|(p, less)| {
        let length = (p.now.end - p.now.start).checked_sub((*less)?)?;
        let length = round_down(length, PAGE.max(table.sector));
        let [sign] = graph.providers[p.id].signs.as_slice() else { return None };
        let shorten = sign.kind.format.shorten(sign.kind, "\"$file\"", length)?;
        let placed = Placed::find(graph, p.id).ok()?;
        let disks = target.typed.known_disks()?;
        let named = |name: &str| match name {
            "" => escape::shell(&disks),
            name => escape::shell(&format!("{disks}#{name}")),
        };
        Some(format!(
            "trueline serve --fuse \"$(mktemp)\" {} --run '{shorten}' && trueline part resize \
             -i {} -s {} {}",
            named(&graph.providers[p.id].name),
            placed.entry.partition.index,
            length / table.sector,
            named(&graph.providers[placed.on].name),
        ))
    })
}
