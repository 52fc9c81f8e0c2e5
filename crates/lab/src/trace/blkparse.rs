//! blkparse's text in its default format, `%D %2c %8s %5T.%9t %5p %2a %3d %S + %n [%C]`
//! (blkparse(1)); the final summary is ignored.
//!
//! A request is taken at its queue event (`Q`), in sectors of 512 bytes.

use super::{Fault, Format, Input, TracedRequest, flush, transfer};
use crate::rig::Op;
use std::collections::VecDeque;
use trueline_host::tracefs::{Operation, RequestFlags};

/// Every action that blkparse prints (blkparse(1), ACTION IDENTIFIERS), and messages.
const ACTIONS: &[&str] = &[
    "A", "B", "C", "D", "F", "G", "I", "M", "P", "Q", "R", "S", "T", "U", "UT", "W", "X", "m", "a",
    "d", "Z",
];

/// The beginning of the line that names an input file.
const INPUT: &str = "Input file ";

const SECTOR: u64 = 512;

#[derive(Default)]
pub(super) struct Blkparse {
    /// The device of all requests so far: `8,0`.
    device: Option<String>,
    /// True once the summary has begun.
    ended: bool,
}

/// True if a text begins like blkparse's output.
pub(super) fn begins(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    text.starts_with(INPUT)
        || words.next().is_some_and(is_device)
            && words.next().is_some_and(|cpu| cpu.parse::<u32>().is_ok())
}

fn is_device(word: &str) -> bool {
    word.split_once(',')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
}

impl Format for Blkparse {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<bool, Fault> {
        let Some(line) = input.line()? else { return Ok(false) };
        let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        self.ended |= words.first().is_some_and(|word| word.starts_with("CPU") || *word == "Total");
        if self.ended || words.is_empty() || line.starts_with(INPUT) {
            return Ok(true);
        }
        let &[device, _cpu, _sequence, time, _pid, action, rwbs, ..] = words.as_slice() else {
            let form = "DEVICE CPU SEQUENCE TIME PID ACTION RWBS".into();
            return Err(Fault::Cut { what: "a line of blkparse".into(), form });
        };
        if !is_device(device) {
            let wanted = "device: MAJOR,MINOR";
            return Err(Fault::Word { word: device.to_owned(), wanted });
        }
        let at_ns = nanoseconds(time).ok_or_else(|| Fault::Word {
            word: time.to_owned(),
            wanted: "time: SECONDS.NANOSECONDS",
        })?;
        if !ACTIONS.contains(&action) {
            return Err(Fault::Action(format!("'{action}'")));
        }
        if action != "Q" {
            return Ok(true);
        }
        match &self.device {
            Some(own) if own != device => {
                return Err(Fault::TwoTargets(own.clone(), device.to_owned()));
            }
            Some(_) => {}
            None => self.device = Some(device.to_owned()),
        }
        let range = || -> Option<(u64, u64)> {
            let &[sector, "+", count] = words.get(7..10)? else { return None };
            Some((
                sector.parse::<u64>().ok()?.checked_mul(SECTOR)?,
                count.parse::<u64>().ok()?.checked_mul(SECTOR)?,
            ))
        };
        let is_cut = words.get(7).is_some_and(|word| !word.starts_with('['));
        self.queued(at_ns, rwbs, range(), is_cut, input, found)?;
        Ok(true)
    }
}

impl Blkparse {
    /// Appends a queued request, with the flush that goes before it.
    fn queued(
        &self,
        at_ns: u64,
        rwbs: &str,
        range: Option<(u64, u64)>,
        is_cut: bool,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<(), Fault> {
        let flags = RequestFlags::parse(rwbs).ok_or_else(|| Fault::NoTransfer(rwbs.to_owned()))?;
        found.extend(flags.preflush.then(|| flush(at_ns)));
        let op = match flags.operation {
            Operation::Read => Op::Read,
            Operation::Write => Op::Write,
            Operation::Flush => {
                found.push_back(flush(at_ns));
                return Ok(());
            }
            Operation::Discard | Operation::WriteZeroes | Operation::Other => {
                input.skipped += 1;
                return Ok(());
            }
        };
        match range {
            // A flush has no range, but its process in brackets; another word is a range cut short.
            None if is_cut && flags.preflush => {
                let form = "SECTOR + COUNT".into();
                Err(Fault::Cut { what: "a queued request".into(), form })
            }
            Some((_, 0)) | None if flags.preflush => Ok(()),
            Some((offset, length)) => {
                found.push_back(transfer(at_ns, op, offset, length, flags.fua)?);
                Ok(())
            }
            None => Err(Fault::NoRange("a queued request without SECTOR + COUNT".into())),
        }
    }
}

/// A time such as `12.000000345` in nanoseconds; `None` if it has another form.
fn nanoseconds(time: &str) -> Option<u64> {
    let (seconds, fraction) = time.split_once('.')?;
    if fraction.len() != 9 {
        return None;
    }
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction.parse().ok()?)
}
