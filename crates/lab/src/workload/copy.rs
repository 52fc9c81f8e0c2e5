//! `copy`: one large file, written as cp and dd do and read as dd does, in pieces of one size.

use super::{Needs, OnFiles, Watch, Way, WorkloadKind};
use crate::error::Error;
use crate::files::Files;
use crate::run::Run;

/// The workload `copy` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "copy",
    title: "one large file written, or read, in pieces",
    needs: Needs::Files(make),
};

struct Copy {
    parameters: Parameters,
    way: Way,
}

fn make(said: &super::Parameters) -> Result<Box<dyn OnFiles>, Error> {
    let own = Parameters::default();
    let parameters = Parameters {
        bytes: said.size.unwrap_or(own.bytes),
        piece: said.block(own.piece)?,
        source_rate: said.source_rate.unwrap_or(0),
        sync: said.sync,
    };
    if parameters.bytes == 0 {
        return Err(Error::new("a file of 0 bytes: there is nothing to measure".into()));
    }
    Ok(Box::new(Copy { parameters, way: said.op.unwrap_or(Way::Write) }))
}

impl OnFiles for Copy {
    fn writes(&self) -> bool {
        self.way == Way::Write
    }

    fn extent(&self) -> u64 {
        self.parameters.bytes.div_ceil(self.parameters.piece)
    }

    fn run(&self, files: &mut dyn Files, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let unwatched = &mut |_| true;
        let run = match self.way {
            Way::Write => run(files, NAME, &self.parameters, watch)?,
            Way::Read => {
                run(files, NAME, &self.parameters, unwatched)?;
                read(files, NAME, &self.parameters, watch)?
            }
        };
        // Where time is virtual, the whole file system is dropped with its rig.
        if !files.is_virtual() {
            files.remove(NAME)?;
        }
        Ok(run)
    }
}

/// The name of the file.
const NAME: &str = "copy";

/// The size, pieces and source of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The size of a piece in bytes.
    pub piece: u64,
    /// Bytes a second that the source delivers; 0: no limit. The delay is spent where time is
    /// virtual.
    pub source_rate: u64,
    /// True if the run ends when everything is on the medium, rather than with the program.
    pub sync: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { bytes: 1 << 30, piece: 65536, source_rate: 0, sync: false }
    }
}

/// Writes the file. A piece is an operation.
pub fn run(
    files: &mut dyn Files,
    name: &str,
    parameters: &Parameters,
    watch: &mut Watch<'_>,
) -> Result<Run, Error> {
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

/// Reads an existing file, from the medium if the host can empty its cache.
pub fn read(
    files: &mut dyn Files,
    name: &str,
    parameters: &Parameters,
    watch: &mut Watch<'_>,
) -> Result<Run, Error> {
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

/// Calls `each` for every piece with offset and length; it returns the latency in ns, which is
/// recorded.
fn pieces(
    bytes: u64,
    piece: u64,
    watch: &mut Watch<'_>,
    mut each: impl FnMut(u64, u64) -> Result<u64, Error>,
) -> Result<Run, Error> {
    let mut run = Run::new();
    let mut at = 0;
    while at < bytes && watch(run.ops) {
        let length = piece.max(1).min(bytes - at);
        let took = each(at, length)?;
        run.record(length, took);
        at += length;
    }
    Ok(run)
}
