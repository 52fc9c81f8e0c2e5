//! fio's I/O logs, `--write_iolog`, versions 2 and 3 (fio(1), TRACE FILE FORMAT).
//!
//! Version 2 has no time but `wait`, in microseconds since the last `wait`; version 3 begins every
//! line with microseconds since the beginning (fio 3.33). A log may have many files; a replay has
//! one target, so requests on a second file are refused.

use super::{Fault, Format, Input, TracedRequest, flush, transfer};
use crate::rig::Op;
use std::collections::VecDeque;

pub(super) struct Fio {
    version: u8,
    /// The file of all requests so far; `None` before the first.
    file: Option<String>,
    /// The time in ns that version 2 has counted from its waits.
    at_ns: u64,
}

impl Fio {
    pub(super) fn recognise(text: &str) -> Option<Fio> {
        let version = match text.lines().next()?.trim_end() {
            "fio version 2 iolog" => 2,
            "fio version 3 iolog" => 3,
            _ => return None,
        };
        Some(Fio { version, file: None, at_ns: 0 })
    }

    /// Refuses a request on a second file.
    fn require_file(&mut self, name: &str) -> Result<(), Fault> {
        match &self.file {
            Some(own) if own != name => Err(Fault::TwoTargets(own.clone(), name.to_owned())),
            Some(_) => Ok(()),
            None => {
                self.file = Some(name.to_owned());
                Ok(())
            }
        }
    }
}

const MICROSECOND: u64 = 1000;

impl Format for Fio {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<bool, Fault> {
        let Some(line) = input.line()? else { return Ok(false) };
        let mut rest = line.as_str();
        if rest.is_empty() || input.place == super::Position::Line(1) {
            return Ok(true);
        }
        let mut at = self.at_ns;
        if self.version == 3 {
            let (time, after) = rest.split_once(' ').ok_or(Fault::Form("TIMESTAMP FILE ACTION"))?;
            let wanted = "timestamp";
            let us: u64 =
                time.parse().map_err(|_| Fault::Word { word: time.to_owned(), wanted })?;
            at = us.checked_mul(MICROSECOND).ok_or(Fault::LongTime("timestamp", us))?;
            rest = after.trim_start();
        }
        let (name, action, numbers) = taken_apart(rest)?;
        let both = || {
            let without = || format!("{action} without an offset and a length");
            numbers.ok_or_else(|| Fault::NoRange(without()))
        };
        match action {
            "add" | "open" | "close" => {}
            "read" | "write" => {
                self.require_file(name)?;
                let (offset, length) = both()?;
                let op = if action == "read" { Op::Read } else { Op::Write };
                found.push_back(transfer(at, op, offset, length, false)?);
            }
            "sync" | "datasync" | "sync_file_range" => {
                self.require_file(name)?;
                found.push_back(flush(at));
            }
            "trim" => input.skipped += 1,
            "wait" if self.version == 2 => {
                let (us, _) = both()?;
                let ns = us.checked_mul(MICROSECOND).and_then(|ns| self.at_ns.checked_add(ns));
                self.at_ns = ns.ok_or(Fault::LongTime("wait", us))?;
            }
            // A line that was cut short ends in its first number.
            other if other.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(Fault::Form("FILE ACTION [OFFSET LENGTH]: a number is missing"));
            }
            other => {
                return Err(Fault::Action(format!("'{other}' in version {}", self.version)));
            }
        }
        Ok(true)
    }
}

/// The parts of a line: file, action, offset and length.
type Taken<'a> = (&'a str, &'a str, Option<(u64, u64)>);

/// Splits a line into its parts. A file name may contain spaces, so the line is split from its end.
fn taken_apart(line: &str) -> Result<Taken<'_>, Fault> {
    let cut = |text: &'_ str| -> Option<(usize, usize)> {
        let text = text.trim_end();
        text.rfind(' ').map(|at| (at, text.len()))
    };
    let numbers = || {
        let (at, end) = cut(line)?;
        let length: u64 = line[at + 1..end].parse().ok()?;
        let (before, end) = cut(&line[..at])?;
        let offset: u64 = line[before + 1..end].parse().ok()?;
        Some((before, offset, length))
    };
    let (rest, pair) = numbers()
        .map_or((line, None), |(at, offset, length)| (&line[..at], Some((offset, length))));
    let (at, end) = cut(rest).ok_or(Fault::Form("FILE ACTION [OFFSET LENGTH]"))?;
    Ok((rest[..at].trim(), &rest[at + 1..end], pair))
}
