//! `mkfs ufs`: newfs, built in.

use super::arguments::ourselves;
use super::wipe;
use crate::command::mkfs::args::Mkfs;
use crate::failure::{Failure, complain};
use crate::progress::of_bytes;
use crate::style::Style;
use crate::words::{columns, hexdump};
use crate::write_target::WriteTarget;
use indicatif::ProgressBar;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{Trust, Why};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::slices::place;
use trueline_geom::newfs::{Newfs, Options, SUPERBLOCK};
use trueline_host::{random, window};

/// Bytes before the superblock.
const BOOT: usize = 65536;
/// Bytes after which writeback to the device is started.
const HASTE: u64 = 512 << 10;
const _: () = assert!(BOOT as u64 == SUPERBLOCK);

pub(super) fn run(args: &Mkfs, target: WriteTarget) -> Result<ExitCode, Failure> {
    let p = &target.graph.providers[target.id];
    let failed = |what: String| Failure::Message(format!("make ufs on {}: {what}", args.target));
    let sector = p.topology.sector;
    let options = Options::parse(&args.own, sector).map_err(|wrong| failed(wrong.to_string()))?;
    let unit = p
        .topology
        .facts
        .iter()
        .filter(|f| f.why == Why::Physical && f.trust > Trust::Untrusted)
        .map(|f| f.grain.size())
        .max();
    let newfs =
        Newfs::new(p.topology.length, sector, unit, &options).map_err(|e| failed(e.to_string()))?;
    newfs.warnings().iter().for_each(|warning| complain(&format!("warning: {warning}")));
    let terminal = window::columns(std::io::stdout());
    let columns =
        terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok()).unwrap_or_default();
    let only_print = args.print || newfs.options().only_print;
    if args.print {
        writeln!(anstream::stdout(), "{}", command(args, &newfs, sector))?;
    }
    if !args.dry_run {
        write!(
            BufWriter::new(anstream::stdout().lock()),
            "{}",
            newfs.lines(args.target.typed(), columns)
        )?;
    }
    if !only_print {
        write_all(&newfs, &target, args.dry_run).map_err(|stop| match stop {
            Stop::At(attempt, errno) => failed(format!("{attempt}: {errno}")),
            Stop::Print(error) => error.into(),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// True if the options ask newfs for its lines alone (-N).
pub(super) fn only_prints(own: &[String]) -> bool {
    Options::parse(own, 512).is_ok_and(|options| options.only_print)
}

/// The same command line, with the sizes that were chosen.
fn command(args: &Mkfs, newfs: &Newfs, sector: u64) -> String {
    let (block, fragment) =
        (newfs.geometry().bsize.to_string(), newfs.geometry().fsize.to_string());
    let sizes = [("-b", block), ("-f", fragment)];
    let unsaid =
        sizes.into_iter().filter(|(flag, _)| !args.own.iter().any(|word| word.starts_with(flag)));
    ourselves(
        args,
        sector,
        unsaid
            .flat_map(|(flag, size)| [flag.to_owned(), size])
            .chain(args.own.iter().cloned())
            .collect(),
    )
}

/// Writes the file system, or prints the writes with `--dry-run`.
fn write_all(newfs: &Newfs, target: &WriteTarget, dry_run: bool) -> Result<(), Stop> {
    let (graph, id) = (&target.graph, target.id);
    let sector = graph.providers[id].topology.sector;
    let at = |attempt: &str, offset: u64| format!("{attempt} {}", place(offset, sector));
    let flush = || graph.flush().map_err(|e| ("flush".to_string(), e));
    let mut writer = Writer {
        out: dry_run.then(|| BufWriter::new(anstream::stdout().lock())),
        graph,
        id,
        at: &at,
    };
    let read = |bytes: &mut [u8], offset| {
        graph.read_at(id, bytes, offset).map_err(|e| (at("read from", offset), e))
    };
    let wiped = wipe(target);
    let mut old = vec![0; usize::try_from(newfs.geometry().sbsize).unwrap_or_default()];
    read(&mut old, SUPERBLOCK)?;
    // Without recognised contents nothing has to be removed before the first change.
    let fresh = wiped.is_empty() && old.iter().all(|&b| b == 0);
    wiped.iter().try_for_each(|patch| writer.write(patch.offset, &patch.bytes))?;
    if let Some(range) = newfs.erase() {
        writer.zero(range)?;
    }
    let mut boot = [0; BOOT];
    read(&mut boot, 0)?;
    // A dry run has not wiped it.
    for patch in wiped {
        let (from, bytes) =
            (usize::try_from(patch.offset).unwrap_or(BOOT).min(BOOT), patch.bytes.len());
        let to = from.saturating_add(bytes).min(BOOT);
        boot[from..to].copy_from_slice(&patch.bytes[..to - from]);
    }
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|t| i64::try_from(t.as_secs()).ok())
        .unwrap_or(0);
    let mut random = Random::default();
    let bar =
        if dry_run { ProgressBar::hidden() } else { of_bytes("write", newfs.bytes_to_write()) };
    let (mut superblocks, mut count, mut hastened, mut end) = (0, 0, 0, 0);
    newfs.write(time, &mut || random.next(), &boot, &mut |offset, bytes| -> Result<(), Stop> {
        // An interrupt between the first superblock and the last leaves no file system.
        superblocks += usize::from(offset == SUPERBLOCK);
        let (first, last) =
            (offset == SUPERBLOCK && superblocks == 1, offset == SUPERBLOCK && superblocks == 2);
        if last && !dry_run {
            flush()?;
        }
        writer.write(offset, bytes)?;
        if first && !fresh && !dry_run {
            flush()?;
        }
        bar.inc(bytes.len() as u64);
        // The device works while the next groups are made; left to the flush, all of it takes half
        // as long again.
        (count, end) = (count + bytes.len() as u64, end.max(offset + bytes.len() as u64));
        if count >= HASTE && !dry_run {
            graph
                .start_writeback(id, hastened, end - hastened)
                .map_err(|e| (at("write at", offset), e))?;
            (count, hastened) = (0, end);
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    writer.finish()
}

/// The destination of the bytes: the provider or, as text, the user.
struct Writer<'a, W: Write> {
    out: Option<W>,
    graph: &'a Graph,
    id: Id,
    /// Names an attempt with its place, in words.
    at: &'a dyn Fn(&str, u64) -> String,
}

impl<W: Write> Writer<'_, W> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Stop> {
        let Some(out) = &mut self.out else {
            return self
                .graph
                .write_at(self.id, bytes, offset)
                .map_err(|e| Stop::At((self.at)("write at", offset), e));
        };
        let width = Style::of_stdout().width;
        let shown =
            columns::comment(&(self.at)(&format!("{} bytes at", bytes.len()), offset), width, out);
        shown.and_then(|()| hexdump::write_fitting(offset, bytes, width, out)).map_err(Stop::Print)
    }

    fn zero(&mut self, range: Range<u64>) -> Result<(), Stop> {
        let length = range.end - range.start;
        match &mut self.out {
            None => self
                .graph
                .zero(self.id, range.start, length)
                .map_err(|e| Stop::At((self.at)("erase from", range.start), e)),
            Some(out) => {
                let zero = (self.at)(&format!("zero: {length} bytes at"), range.start);
                columns::comment(&zero, Style::of_stdout().width, out).map_err(Stop::Print)
            }
        }
    }

    fn finish(&mut self) -> Result<(), Stop> {
        match &mut self.out {
            None => self.graph.flush().map_err(|e| Stop::At("flush".into(), e)),
            Some(out) => out.flush().map_err(Stop::Print),
        }
    }
}

/// Reason for which the writing ended early.
enum Stop {
    /// The attempt in words, and its error.
    At(String, Errno),
    /// The writes could not be printed.
    Print(std::io::Error),
}

impl From<(String, Errno)> for Stop {
    fn from((attempt, errno): (String, Errno)) -> Stop {
        Stop::At(attempt, errno)
    }
}

/// Random numbers, fetched some at a time: every inode takes one.
#[derive(Default)]
struct Random {
    left: Vec<u8>,
}

impl Random {
    fn next(&mut self) -> u32 {
        if self.left.len() < 4 {
            // A generation number only tells old file handles from new ones; without the kernel's
            // randomness it is 0.
            self.left = random::bytes::<4096>().map_or_else(|_| vec![0; 4096], Vec::from);
        }
        let number = self.left.last_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        self.left.truncate(self.left.len() - size_of::<u32>());
        number
    }
}
