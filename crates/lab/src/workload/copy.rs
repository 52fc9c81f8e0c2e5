//! `copy`: one large file, written as cp and dd do and read as dd does, in pieces of one size.

use super::Watch;
use crate::error::Error;
use crate::files::Files;
use crate::run::Run;

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a piece.
    pub piece: u64,
    /// Bytes a second that come from where it is copied from; 0: as fast as can be. Spent where time is virtual.
    pub source_rate: u64,
    /// Whether the end is when everything is on the medium, rather than when the program ends.
    pub sync: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { bytes: 1 << 30, piece: 65536, source_rate: 0, sync: false }
    }
}

/// Writes the file. Operations are pieces.
pub fn run(files: &mut dyn Files, name: &str, parameters: &Parameters, watch: &mut Watch<'_>) -> Result<Run, Error> {
    let Parameters { bytes, piece, source_rate, sync } = *parameters;
    let begin = files.now();
    let file = files.create(name)?;
    let mut run = pieces(bytes, piece, watch, |at, length| {
        let before = files.now();
        files.think(length.saturating_mul(1_000_000_000).checked_div(source_rate).unwrap_or(0));
        files.write(file, at, length)?;
        Ok(files.now().saturating_sub(before))
    })?;
    if sync {
        files.sync_file(file)?;
    }
    files.close(file)?;
    run.ns = files.now().saturating_sub(begin);
    Ok(run)
}

/// Reads a file that is there, from the medium where the host can forget it.
pub fn read(files: &mut dyn Files, name: &str, parameters: &Parameters, watch: &mut Watch<'_>) -> Result<Run, Error> {
    files.forget()?;
    let begin = files.now();
    let file = files.open(name)?;
    let mut run = pieces(parameters.bytes, parameters.piece, watch, |at, length| {
        let before = files.now();
        files.read(file, at, length)?;
        Ok(files.now().saturating_sub(before))
    })?;
    files.close(file)?;
    run.ns = files.now().saturating_sub(begin);
    Ok(run)
}

/// Every piece, with what it took.
fn pieces(bytes: u64, piece: u64, watch: &mut Watch<'_>, mut each: impl FnMut(u64, u64) -> Result<u64, Error>) -> Result<Run, Error> {
    if bytes == 0 || piece == 0 {
        return Err(Error("copy a file of 0 bytes, or in pieces of 0: there is nothing to measure".into()));
    }
    let mut run = Run::new();
    let mut at = 0;
    while at < bytes && watch(run.ops) {
        let length = piece.min(bytes - at);
        let took = each(at, length)?;
        run.record(length, took);
        at += length;
    }
    Ok(run)
}
