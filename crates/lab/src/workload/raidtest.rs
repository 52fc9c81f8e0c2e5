//! `raidtest`: benchmarks/raidtest of FreeBSD's ports, as the stripe test of 2009 used it.
//!
//! Requests are made beforehand, or read from a file of its genfile. Each of `n` processes has its
//! own part of them and does one after another: process j does q requests from `j · q` on, where q
//! is the whole part of requests / n. As in the original, the rest is never done; unlike there, it
//! is not counted either.

use super::{Blocks, Needs, Parameters, Watch, Way, WorkloadKind, regular, watched, whole};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::run::Run;
use crate::streams::{Ask, Limit};
use file::{GenfileParameters, Record};
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

pub mod file;

/// The workload `raidtest` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "raidtest",
    title: "the requests of a file, or random ones of up to 128 KiB, by several processes",
    needs: Needs::Blocks(make),
};

const COUNT: u64 = 1000;

struct Raidtest {
    /// The requests of a file; `None`: made anew for every run.
    records: Option<Vec<Record>>,
    count: u64,
    bs: Option<u64>,
    offset: u64,
    op: Option<Op>,
    processes: usize,
    /// The duration of a run in ns; `None`: a count ends it.
    time: Option<u64>,
    sync: bool,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let op = parameters.op.map(|way| if way == Way::Read { Op::Read } else { Op::Write });
    let records = parameters.file.as_deref().map(read).transpose()?;
    let there = records.as_ref().map(|records| records.len() as u64);
    if there == Some(0) {
        return Err(Error::new("raidtest: the file has no requests".into()));
    }
    let (time, count) = match parameters.limit(there.unwrap_or(COUNT))? {
        Limit::Time(span) => (Some(span), there.unwrap_or(COUNT)),
        Limit::Count(count) => (None, count.min(there.unwrap_or(count))),
        Limit::Source => (None, COUNT),
    };
    let processes = parameters.depth(1)?;
    if count < processes as u64 {
        return Err(Error::new(format!(
            "raidtest: {count} requests for {processes} processes: each needs one"
        )));
    }
    let (offset, bs) = (parameters.offset, parameters.bs);
    Ok(Box::new(Raidtest {
        records,
        count,
        bs,
        offset,
        op,
        processes,
        time,
        sync: parameters.sync,
    }))
}

/// The records of a file.
fn read(path: &Path) -> Result<Vec<Record>, Error> {
    let failed =
        |why: &dyn std::fmt::Display| Error::new(format!("read {}: {why}", path.display()));
    let most = file::MOST * file::RECORD;
    let mut bytes = Vec::new();
    let read = regular(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|e| Error::unread(path, &e))?;
    if read as u64 > most {
        return Err(failed(&format!("more than {most} bytes of requests")));
    }
    file::parse(&bytes).map_err(|refusal| failed(&refusal))
}

impl Raidtest {
    /// The requests of a run.
    fn records(&self, rig: &dyn Rig, seed: u64) -> Result<Cow<'_, [Record]>, Error> {
        let room = rig.length().saturating_sub(self.offset);
        // As much is left free at the end at every offset within a request, so that all have the
        // same requests but for the offset.
        let made = rig.length().saturating_sub(self.offset.max(file::LONGEST));
        let Some(records) = &self.records else {
            let shape = GenfileParameters {
                medium: made,
                sector: rig.sector(),
                fixed: self.bs,
                op: self.op,
            };
            return file::generate(self.count, shape, seed)
                .map(Cow::Owned)
                .map_err(|why| Error::new(format!("raidtest: {why}")));
        };
        let end = |record: &Record| record.offset.checked_add(u64::from(record.length));
        let outside: Vec<usize> = records
            .iter()
            .enumerate()
            .filter(|(_, record)| end(record).is_none_or(|end| end > room))
            .map(|(nth, _)| nth)
            .collect();
        if let Some(first) = outside.first() {
            let (all, byte) = (records.len(), *first as u64 * file::RECORD);
            let count = outside.len();
            return Err(Error::new(format!(
                "raidtest: {count} of {all} requests end past the target, the first at byte {byte} of the file"
            )));
        }
        Ok(Cow::Borrowed(records))
    }
}

impl Blocks for Raidtest {
    fn writes(&self) -> bool {
        match self.op {
            Some(op) => op == Op::Write,
            None => self
                .records
                .as_ref()
                .is_none_or(|records| records.iter().any(|record| record.op == Op::Write)),
        }
    }

    fn depth(&self) -> usize {
        self.processes
    }

    fn largest(&self) -> u64 {
        file::LONGEST
    }

    fn extent(&self, _length: u64) -> Option<u64> {
        let processes = self.processes as u64;
        self.time.is_none().then_some(self.count / processes * processes)
    }

    fn run(&self, rig: &mut dyn Rig, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        whole(rig, "raidtest", self.bs.unwrap_or(0), self.offset)?;
        let records = self.records(rig, seed)?;
        if rig.depth() < self.processes {
            return Err(Error::new(format!(
                "raidtest: {} processes: the target takes at most {} requests at a time",
                self.processes,
                rig.depth()
            )));
        }
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).min(records.len());
        let each = count / self.processes;
        let mut next: Vec<usize> = (0..self.processes).map(|process| process * each).collect();
        let limit = self.time.map_or(Limit::Source, Limit::Time);
        watched(rig, self.processes, limit, watch, &mut |process| {
            let at = next.get_mut(process)?;
            if *at == (process + 1) * each {
                // By time, from the beginning again.
                self.time?;
                *at = process * each;
            }
            let Record { offset, length, op } = *records.get(*at)?;
            *at += 1;
            Some(Ask {
                op: self.op.unwrap_or(op),
                offset: offset + self.offset,
                length: length.into(),
                fua: self.sync,
            })
        })
    }
}

#[cfg(test)]
mod tests;
