//! `bonnie`: the phases of bonnie++ 1.96, with its table and its CSV line.
//!
//! A file is written a byte at a time, then in pieces of 8 KiB, then rewritten (read, and written back), read a byte at a time, read in
//! pieces, and read at random places, every tenth of which is written back; then empty files are made, looked at and removed, in the
//! order of their names and at random. Bytes of one at a time go through a buffer of stdio, as putc(3) and getc(3) have one.
//!
//! # Limits
//! One process: bonnie++ seeks with three. Percentages of the processor are not measured and are empty in the CSV line. In virtual time
//! the processor costs nothing, so putc and getc are as fast as blocks.

use super::{Kind, Needs, OnFiles, Watch};
use crate::error::Error;
use crate::files::{File, Files};
use crate::run::Run;
use trueline_sim::random::Random;

pub mod line;

/// bonnie++.
pub const KIND: Kind = Kind { name: "bonnie", title: "the phases of bonnie++ 1.96", needs: Needs::Files(make) };

/// Bytes of a piece, of stdio's buffer, and of a file (bonnie++ parts its data in files of 1 GiB).
const PIECE: u64 = 8192;
const STDIO: u64 = 4096;
const SEEKS: u64 = 8000;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bytes of the file; 0: only small files.
    pub size: u64,
    /// Small files, in units of 1024 as bonnie++ counts them; 0: only the large file.
    pub kilo_files: u64,
}

/// The phases, in the order of the CSV line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// putc.
    Putc,
    /// write(2) in pieces.
    Write,
    /// Read, change, write back.
    Rewrite,
    /// getc.
    Getc,
    /// read(2) in pieces.
    Read,
    /// lseek(2) and read, at random.
    Seeks,
    /// Files made in the order of their names.
    CreateSequential,
    /// Looked at.
    StatSequential,
    /// Removed.
    DeleteSequential,
    /// Files made with names at random.
    CreateRandom,
    /// Looked at, in another order.
    StatRandom,
    /// Removed.
    DeleteRandom,
}

impl Phase {
    /// All.
    pub const ALL: [Phase; 12] = [
        Phase::Putc,
        Phase::Write,
        Phase::Rewrite,
        Phase::Getc,
        Phase::Read,
        Phase::Seeks,
        Phase::CreateSequential,
        Phase::StatSequential,
        Phase::DeleteSequential,
        Phase::CreateRandom,
        Phase::StatRandom,
        Phase::DeleteRandom,
    ];
}

/// What every phase measured; `None` of one that was not run.
pub type Phases = [Option<Run>; 12];

struct Bonnie(Parameters);

fn make(said: &super::Parameters) -> Result<Box<dyn OnFiles>, Error> {
    Ok(Box::new(Bonnie(Parameters::of(said)?)))
}

impl Parameters {
    /// What is said, and bonnie++'s own of the rest.
    pub fn of(said: &super::Parameters) -> Result<Parameters, Error> {
        let parameters = Parameters { size: said.size.unwrap_or(1 << 30), kilo_files: said.files.unwrap_or(16) };
        if parameters.kilo_files > 1 << 16 || parameters.size > 1 << 50 {
            return Err(Error(format!("bonnie with {} bytes and {} x 1024 files: too many", parameters.size, parameters.kilo_files)));
        }
        Ok(parameters)
    }

    /// Steps of one run, for a bar.
    pub fn extent(&self) -> u64 {
        let Parameters { size, kilo_files } = *self;
        2 * size.div_ceil(STDIO) + 3 * size.div_ceil(PIECE) + SEEKS + 6 * 1024 * kilo_files
    }
}

/// All phases as one run.
pub fn whole(phases: &Phases) -> Run {
    let mut all = Run::new();
    phases.iter().flatten().for_each(|phase| all.and(phase));
    all
}

impl OnFiles for Bonnie {
    fn extent(&self) -> u64 {
        self.0.extent()
    }

    fn run(&self, files: &mut dyn Files, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        Ok(whole(&run(files, &self.0, seed, watch)?))
    }
}

/// Runs every phase in an empty directory, and takes away what was made.
pub fn run(files: &mut dyn Files, parameters: &Parameters, seed: u64, watch: &mut Watch<'_>) -> Result<Phases, Error> {
    let mut phases: Phases = Default::default();
    let mut watched = Watched { watch, asked: 0 };
    if parameters.size > 0 {
        large(files, parameters.size, seed, &mut watched, &mut phases)?;
    }
    if parameters.kilo_files > 0 {
        let count = parameters.kilo_files * 1024;
        for (random, first) in [(false, Phase::CreateSequential), (true, Phase::CreateRandom)] {
            small(files, count, random.then_some(seed), &mut watched, &mut phases[first as usize..])?;
        }
    }
    Ok(phases)
}

struct Watched<'a, 'b> {
    watch: &'a mut Watch<'b>,
    asked: u64,
}

impl Watched<'_, '_> {
    fn goes_on(&mut self) -> bool {
        self.asked += 1;
        (self.watch)(self.asked - 1)
    }
}

/// Times a phase of `count` steps.
fn phase(
    files: &mut dyn Files,
    watched: &mut Watched<'_, '_>,
    count: u64,
    mut step: impl FnMut(&mut dyn Files, u64) -> Result<u64, Error>,
) -> Result<Run, Error> {
    let mut run = Run::new();
    let begin = files.now();
    let mut before = begin;
    for nth in 0..count {
        if !watched.goes_on() {
            break;
        }
        let bytes = step(files, nth)?;
        let now = files.now();
        run.record(bytes, now.saturating_sub(before));
        before = now;
    }
    run.ns = before.saturating_sub(begin);
    Ok(run)
}

/// What is done to each piece of the large file.
type Piece = fn(&mut dyn Files, File, u64, u64) -> Result<(), Error>;

fn large(files: &mut dyn Files, size: u64, seed: u64, watched: &mut Watched<'_, '_>, phases: &mut Phases) -> Result<(), Error> {
    let write: Piece = |files, file, at, length| files.write(file, at, length);
    let read: Piece = |files, file, at, length| files.read(file, at, length);
    let rewrite: Piece = |files, file, at, length| {
        files.read(file, at, length)?;
        files.write(file, at, length)
    };
    let steps = [
        (Phase::Putc, STDIO, write),
        (Phase::Write, PIECE, write),
        (Phase::Rewrite, PIECE, rewrite),
        (Phase::Getc, STDIO, read),
        (Phase::Read, PIECE, read),
    ];
    for (which, piece, each) in steps {
        // What is written is written to a new file; everything else finds it on the medium.
        let makes = matches!(which, Phase::Putc | Phase::Write);
        if which == Phase::Write {
            files.remove(LARGE)?;
        }
        let file = if makes { files.create(LARGE)? } else { files.open(LARGE)? };
        let mut run = phase(files, watched, size.div_ceil(piece), |files, nth| {
            let length = piece.min(size - nth * piece);
            each(files, file, nth * piece, length)?;
            Ok(length)
        })?;
        if makes || which == Phase::Rewrite {
            // bonnie++ ends a phase of writing with fsync.
            let before = files.now();
            files.sync_file(file)?;
            run.ns += files.now().saturating_sub(before);
        }
        files.close(file)?;
        files.forget()?;
        phases[which as usize] = Some(run);
    }
    let file = files.open(LARGE)?;
    let (mut random, places) = (Random::new(seed), (size / PIECE).max(1));
    let run = phase(files, watched, SEEKS, |files, nth| {
        let at = random.below(places) * PIECE;
        let length = PIECE.min(size - at);
        files.read(file, at, length)?;
        if nth % 10 == 0 {
            files.write(file, at, length)?;
        }
        Ok(length)
    })?;
    files.close(file)?;
    files.remove(LARGE)?;
    phases[Phase::Seeks as usize] = Some(run);
    Ok(())
}

/// What the large file is called.
const LARGE: &str = "Bonnie";

/// Makes, looks at and removes `count` empty files: in the order of their names, or at random.
fn small(
    files: &mut dyn Files,
    count: u64,
    random: Option<u64>,
    watched: &mut Watched<'_, '_>,
    phases: &mut [Option<Run>],
) -> Result<(), Error> {
    // bonnie++'s names: a number and letters, the number first where the order is that of the names.
    let name = |nth: u64| match random {
        None => format!("{nth:010}abc"),
        Some(seed) => format!("{:07x}{nth:010}", Random::new(seed ^ nth).bits() & 0xfff_ffff),
    };
    let mut random = random.map(Random::new);
    let mut order: Vec<u64> = (0..count).collect();
    let mut shuffle = |order: &mut Vec<u64>| {
        if let Some(random) = &mut random {
            for at in (1..order.len()).rev() {
                order.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap_or(0));
            }
        }
    };
    let nth = |order: &[u64], at: u64| usize::try_from(at).ok().and_then(|at| order.get(at).copied()).unwrap_or(0);
    let made = phase(files, watched, count, |files, at| {
        let file = files.create(&name(at))?;
        files.close(file).map(|()| 0)
    })?;
    let there = made.ops;
    phases[0] = Some(made);
    order.truncate(usize::try_from(there).unwrap_or(usize::MAX));
    shuffle(&mut order);
    phases[1] = Some(phase(files, watched, there, |files, at| files.stat(&name(nth(&order, at))).map(|_| 0))?);
    shuffle(&mut order);
    // Removed they are to the last, whoever looks on.
    let mut unwatched = Watched { watch: &mut |_| true, asked: 0 };
    phases[2] = Some(phase(files, &mut unwatched, there, |files, at| files.remove(&name(nth(&order, at))).map(|()| 0))?);
    Ok(())
}

#[cfg(test)]
mod tests;
