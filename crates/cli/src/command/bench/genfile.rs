//! `bench raidtest --genfile`: requests in a file, written and reported like raidtest's own genfile
//! does.

use super::backend::{self, Backend};
use crate::command::bench::args::Bench;
use crate::failure::Failure;
use crate::target::DiskOverrides;
use crate::words::{self, escape};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use trueline_lab::rig::Op;
use trueline_lab::workload::raidtest::{
    self,
    file::{self, GenfileParameters, Record},
};

/// Requests of a file without `--count`.
const COUNT: u64 = 1000;

pub(super) fn run(args: &Bench, path: &Path) -> Result<(), Failure> {
    let failed =
        |why: &dyn std::fmt::Display| Failure::Message(format!("write {}: {why}", path.display()));
    let Some(target) = args.targets.first() else { return Err(failed(&"for which target?")) };
    let overrides = DiskOverrides::announced(&args.disk, target)?;
    let backend: Backend = backend::open(target, &overrides, args, &raidtest::KIND, false)?;
    let op = match (args.read, args.write) {
        (true, _) => Some(Op::Read),
        (_, true) => Some(Op::Write),
        (false, false) => None,
    };
    let shape = GenfileParameters {
        medium: backend.length(),
        sector: backend.sector(),
        fixed: args.bs,
        op,
    };
    let records = file::generate(args.count.unwrap_or(COUNT), shape, args.seed)
        .map_err(|why| failed(&why))?;
    // Never over another file, like genfile without -f.
    let new = File::options()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|e| failed(&words::os(&e)))?;
    (&new)
        .write_all(&file::render(&records))
        .and_then(|()| new.sync_all())
        .map_err(|e| failed(&words::os(&e)))?;
    let mut out = anstream::stdout();
    writeln!(out, "File {} generated.", escape::plain(&path.display().to_string()))?;
    tell(&records, &mut out)?;
    Ok(())
}

/// Prints the sums that the port's genfile prints.
fn tell(records: &[Record], out: &mut dyn Write) -> std::io::Result<()> {
    let reads = records.iter().filter(|record| record.op == Op::Read).count();
    let bytes: u64 = records.iter().map(|record| u64::from(record.length)).sum();
    writeln!(out, "Number of READ requests: {reads}.")?;
    writeln!(out, "Number of WRITE requests: {}.", records.len() - reads)?;
    writeln!(out, "Number of bytes to transmit: {bytes}.")
}
