//! fio's I/O logs, `--write_iolog`, versions 2 and 3 (fio(1), TRACE FILE FORMAT).
//!
//! Version 2 has no time but `wait`, in microseconds since the last `wait`; version 3 begins every
//! line with microseconds since the beginning (fio 3.33). A log may have many files; a replay has
//! one target, so requests on a second file are refused.

use super::{Entry, Format, Input, flush, transfer};
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
    fn require_file(&mut self, name: &str) -> Result<(), String> {
        match &self.file {
            Some(own) if own != name => {
                Err(format!("requests on {own} and on {name}: a replay has one target"))
            }
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
    fn read(&mut self, input: &mut Input<'_>, found: &mut VecDeque<Entry>) -> Result<bool, String> {
        let Some(line) = input.line()? else { return Ok(false) };
        let mut rest = line.as_str();
        if rest.is_empty() || input.place == super::Place::Line(1) {
            return Ok(true);
        }
        let mut at = self.at_ns;
        if self.version == 3 {
            let (time, after) = rest.split_once(' ').ok_or("not TIMESTAMP FILE ACTION")?;
            let us: u64 = time.parse().map_err(|_| format!("'{time}' is no timestamp"))?;
            at = us.checked_mul(MICROSECOND).ok_or_else(|| format!("a timestamp of {us} us"))?;
            rest = after.trim_start();
        }
        let (name, action, numbers) = taken_apart(rest)?;
        let both = || numbers.ok_or_else(|| format!("{action} without an offset and a length"));
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
                self.at_ns = ns.ok_or_else(|| format!("a wait of {us} us"))?;
            }
            // A line that was cut short ends in its first number.
            other if other.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err("not FILE ACTION [OFFSET LENGTH]: a number is missing".into());
            }
            other => return Err(format!("unknown action '{other}' in version {}", self.version)),
        }
        Ok(true)
    }
}

/// The parts of a line: file, action, offset and length.
type Taken<'a> = (&'a str, &'a str, Option<(u64, u64)>);

/// Splits a line into its parts. A file name may contain spaces, so the line is split from its end.
fn taken_apart(line: &str) -> Result<Taken<'_>, String> {
    let cut = |text: &'_ str| -> Option<(usize, usize)> {
        let text = text.trim_end();
        text.rfind(' ').map(|at| (at, text.len()))
    };
    let words = || "not FILE ACTION [OFFSET LENGTH]".to_owned();
    let numbers = || {
        let (at, end) = cut(line)?;
        let length: u64 = line[at + 1..end].parse().ok()?;
        let (before, end) = cut(&line[..at])?;
        let offset: u64 = line[before + 1..end].parse().ok()?;
        Some((before, offset, length))
    };
    let (rest, pair) = numbers()
        .map_or((line, None), |(at, offset, length)| (&line[..at], Some((offset, length))));
    let (at, end) = cut(rest).ok_or_else(words)?;
    Ok((rest[..at].trim(), &rest[at + 1..end], pair))
}
