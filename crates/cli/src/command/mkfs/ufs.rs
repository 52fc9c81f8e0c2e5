//! `mkfs ufs`: newfs, built in.

use super::{bar, wipe};
use crate::options::mkfs::Mkfs;
use crate::out::hexdump;
use crate::seat::Seat;
use crate::{Failure, complain};
use indicatif::ProgressBar;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use trueline_geom::error::Errno;
use trueline_geom::newfs::{Newfs, Options, SUPERBLOCK};
use trueline_geom::slices::place;
use trueline_geom::topology::{Trust, Why};
use trueline_host::random;

/// Bytes before the superblock.
const BOOT: usize = 65536;
const _: () = assert!(BOOT as u64 == SUPERBLOCK);

pub(super) fn run(args: &Mkfs, seat: Seat) -> Result<ExitCode, Failure> {
    let p = &seat.graph.providers[seat.id];
    let failed = |what: String| Failure::Message(format!("make ufs on {}: {what}", args.target));
    let sector = p.topology.sector;
    let options = Options::parse(&args.own, sector).map_err(&failed)?;
    let unit = p.topology.facts.iter().filter(|f| f.why == Why::Physical && f.trust > Trust::Untrusted).map(|f| f.grain.size()).max();
    let newfs = Newfs::new(p.topology.length, sector, unit, &options).map_err(|e| failed(e.to_string()))?;
    newfs.warnings().iter().for_each(|warning| complain(&format!("warning: {warning}")));
    let columns = terminal_size::terminal_size_of(std::io::stdout()).map_or(80, |(width, _)| usize::from(width.0));
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(columns);
    let only_print = args.print || newfs.options().only_print;
    if !args.dry_run {
        write!(BufWriter::new(anstream::stdout().lock()), "{}", newfs.lines(&args.target, columns))?;
    }
    if !only_print {
        write_all(&newfs, &seat, args.dry_run).map_err(|(attempt, errno)| failed(format!("{attempt}: {errno}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes it, or shows what would be written.
fn write_all(newfs: &Newfs, seat: &Seat, dry_run: bool) -> Result<(), (String, Errno)> {
    let (graph, id) = (&seat.graph, seat.id);
    let sector = graph.providers[id].topology.sector;
    let mut boot = [0; BOOT];
    graph.read_at(id, &mut boot, 0).map_err(|e| ("read what precedes the superblock".to_string(), e))?;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|t| i64::try_from(t.as_secs()).ok()).unwrap_or(0);
    let mut random = Random::default();
    let bar = if dry_run { ProgressBar::hidden() } else { bar("write", newfs.bytes_to_write()) };
    let mut out = BufWriter::new(anstream::stdout().lock());
    let mut superblocks = 0;
    let at = |attempt: &str, offset: u64| format!("{attempt} {}", place(offset, sector));
    let mut put = |offset: u64, bytes: &[u8]| {
        if dry_run {
            let shown = writeln!(out, "# {} bytes at {}", bytes.len(), place(offset, sector));
            return shown.and_then(|()| hexdump::write(offset, bytes, &mut out)).map_err(|_| ("print the writes".into(), Errno::Io));
        }
        // Nothing is there from the first superblock on until the last, whatever interrupts it.
        superblocks += usize::from(offset == SUPERBLOCK);
        if superblocks == 2 {
            graph.flush().map_err(|e| ("flush".to_string(), e))?;
        }
        graph.write_at(id, bytes, offset).map_err(|e| (at("write at", offset), e))?;
        if superblocks == 1 && offset == SUPERBLOCK {
            graph.flush().map_err(|e| ("flush".to_string(), e))?;
        }
        bar.inc(bytes.len() as u64);
        Ok(())
    };
    wipe(seat).iter().try_for_each(|patch| put(patch.offset, &patch.bytes))?;
    newfs.write(time, &mut || random.next(), &boot, &mut put)?;
    bar.finish_and_clear();
    if dry_run { out.flush().map_err(|_| ("print the writes".into(), Errno::Io)) } else { graph.flush().map_err(|e| ("flush".into(), e)) }
}

/// Random numbers, fetched some at a time: one is wanted for every inode.
#[derive(Default)]
struct Random {
    left: Vec<u8>,
}

impl Random {
    fn next(&mut self) -> u32 {
        if self.left.len() < 4 {
            // A generation number only tells old file handles from new ones; without the kernel's randomness it is 0.
            self.left = random::bytes::<4096>().map_or_else(|_| vec![0; 4096], Vec::from);
        }
        let at = self.left.len() - 4;
        let bytes = self.left.split_off(at);
        bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
    }
}
