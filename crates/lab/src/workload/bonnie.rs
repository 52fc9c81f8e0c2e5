//! `bonnie`: the phases of bonnie++ 1.96, with its table and its CSV line.
//!
//! A file is written a byte at a time, then in pieces of 8 KiB, then rewritten (read, and written
//! back), read a byte at a time, read in pieces, and read at random places, every tenth of which is
//! written back. Then empty files are made, looked up and removed, in the order of their names and
//! at random. Single bytes go through a stdio buffer, as with putc(3) and getc(3).
//!
//! # Limits
//! One process: bonnie++ seeks with three. Percentages of the processor are not measured and are
//! empty in the CSV line. In virtual time the processor costs nothing, so putc and getc are as fast
//! as blocks.

use super::{Needs, OnFiles, Watch, WorkloadKind};
use crate::error::Error;
use crate::files::{File, Files};
use crate::run::Run;
use trueline_sim::random::Random;

pub mod line;

/// The workload `bonnie` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "bonnie",
    title: "the phases of bonnie++ 1.96",
    needs: Needs::Files(make),
};

/// The size of a piece and of stdio's buffer in bytes, and the number of seeks.
const PIECE: u64 = 8192;
const STDIO: u64 = 4096;
const SEEKS: u64 = 8000;

/// The parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The size of the file in bytes; 0: only small files.
    pub size: u64,
    /// Small files, in units of 1024 as bonnie++ counts them; 0: only the large file.
    pub kilo_files: u64,
}

/// The phases, in the order of the CSV line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Writes through stdio, as putc(3).
    Putc,
    /// Writes of whole pieces, as write(2).
    Write,
    /// Reads of pieces, each followed by a write back.
    Rewrite,
    /// Reads through stdio, as getc(3).
    Getc,
    /// Reads of whole pieces, as read(2).
    Read,
    /// Reads at random places, after lseek(2).
    Seeks,
    /// Files made in the order of their names.
    CreateSequential,
    /// Lookups of these files, as stat(2).
    StatSequential,
    /// Removal of these files, as unlink(2).
    DeleteSequential,
    /// Files made with random names.
    CreateRandom,
    /// Lookups of these files, in another order.
    StatRandom,
    /// Removal of these files, in yet another order.
    DeleteRandom,
}

impl Phase {
    /// All phases in this order.
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

/// The measurements of every phase; `None` for one that was not run.
pub type Phases = [Option<Run>; 12];

struct Bonnie(Parameters);

fn make(said: &super::Parameters) -> Result<Box<dyn OnFiles>, Error> {
    Ok(Box::new(Bonnie(Parameters::from_options(said)?)))
}

impl Parameters {
    /// The parameters given, with bonnie++'s defaults for the others.
    pub fn from_options(said: &super::Parameters) -> Result<Parameters, Error> {
        let parameters =
            Parameters { size: said.size.unwrap_or(1 << 30), kilo_files: said.files.unwrap_or(16) };
        if parameters.kilo_files > 1 << 16 || parameters.size > 1 << 50 {
            return Err(Error::new(format!(
                "bonnie with {} bytes and {} x 1024 files: too many",
                parameters.size, parameters.kilo_files
            )));
        }
        Ok(parameters)
    }

    /// The steps of one run, for a progress bar.
    pub fn extent(&self) -> u64 {
        let Parameters { size, kilo_files } = *self;
        2 * size.div_ceil(STDIO) + 3 * size.div_ceil(PIECE) + SEEKS + 6 * 1024 * kilo_files
    }
}

/// The sum of all phases as one run.
pub fn whole(phases: &Phases) -> Run {
    let mut all = Run::new();
    phases.iter().flatten().for_each(|phase| all.append(phase));
    all
}

impl OnFiles for Bonnie {
    fn writes(&self) -> bool {
        true
    }

    fn extent(&self) -> u64 {
        self.0.extent()
    }

    fn run(&self, files: &mut dyn Files, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        Ok(whole(&run(files, &self.0, seed, watch)?))
    }
}

/// Runs every phase in an empty directory, and removes what was made.
pub fn run(
    files: &mut dyn Files,
    parameters: &Parameters,
    seed: u64,
    watch: &mut Watch<'_>,
) -> Result<Phases, Error> {
    let mut phases: Phases = Default::default();
    let mut watched = Watched { watch, asked: 0 };
    if parameters.size > 0 {
        large(files, parameters.size, seed, &mut watched, &mut phases)?;
    }
    if parameters.kilo_files > 0 {
        let count = parameters.kilo_files * 1024;
        for (random, first) in [(false, Phase::CreateSequential), (true, Phase::CreateRandom)] {
            small(
                files,
                count,
                random.then_some(seed),
                &mut watched,
                &mut phases[first as usize..],
            )?;
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

/// The operation of a phase on each piece of the large file: file, offset, length.
type Piece = fn(&mut dyn Files, File, u64, u64) -> Result<(), Error>;

fn large(
    files: &mut dyn Files,
    size: u64,
    seed: u64,
    watched: &mut Watched<'_, '_>,
    phases: &mut Phases,
) -> Result<(), Error> {
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
        // Phases that write make a new file; all others read from the medium.
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

/// The name of the large file.
const LARGE: &str = "Bonnie";

/// Makes, looks up and removes `count` empty files: in the order of their names, or at random.
fn small(
    files: &mut dyn Files,
    count: u64,
    random: Option<u64>,
    watched: &mut Watched<'_, '_>,
    phases: &mut [Option<Run>],
) -> Result<(), Error> {
    // bonnie++'s names: a number and letters, the number first where the order is that of the
    // names.
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
    let nth = |order: &[u64], at: u64| {
        usize::try_from(at).ok().and_then(|at| order.get(at).copied()).unwrap_or(0)
    };
    let made = phase(files, watched, count, |files, at| {
        let file = files.create(&name(at))?;
        files.close(file).map(|()| 0)
    })?;
    let there = made.ops;
    phases[0] = Some(made);
    order.truncate(usize::try_from(there).unwrap_or(usize::MAX));
    shuffle(&mut order);
    phases[1] = Some(phase(files, watched, there, |files, at| {
        files.stat(&name(nth(&order, at))).map(|_| 0)
    })?);
    shuffle(&mut order);
    // Removal is always completed, even if the observer has ended the run.
    let mut unwatched = Watched { watch: &mut |_| true, asked: 0 };
    phases[2] = Some(phase(files, &mut unwatched, there, |files, at| {
        files.remove(&name(nth(&order, at))).map(|()| 0)
    })?);
    Ok(())
}

#[cfg(test)]
mod tests;
