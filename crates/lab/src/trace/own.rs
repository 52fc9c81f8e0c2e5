//! Our own format: text, a first line `trueline trace 1`, then a line a request: `NS OP OFFSET
//! LENGTH`, in ns and bytes.
//!
//! `OP` is `R`, `W`, `WF` (a write with force unit access) or `F` (a flush, whose offset and length
//! are 0). A line that begins with `#` is a comment.

use super::{Fault, Format, Input, TracedRequest, flush, transfer};
use crate::rig::Op;
use std::collections::VecDeque;

/// The first line of every such trace.
pub const HEAD: &str = "trueline trace 1";

/// A request as a line, without the newline.
pub fn line(entry: &TracedRequest) -> String {
    let op = match (entry.op, entry.fua) {
        (Op::Read, _) => "R",
        (Op::Write, false) => "W",
        (Op::Write, true) => "WF",
        (Op::Flush, _) => "F",
    };
    format!("{} {op} {} {}", entry.at_ns, entry.offset, entry.length)
}

pub(super) struct Own;

impl Own {
    pub(super) fn recognise(text: &str) -> Option<Own> {
        (text.lines().next().map(str::trim_end) == Some(HEAD)).then_some(Own)
    }
}

/// True of a comment on a request that the format has no line for: `# NS discard OFFSET LENGTH`,
/// or `zero`.
fn is_skipped(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    matches!(words.as_slice(), ["#", at, "discard" | "zero", offset, length]
        if is_number(at) && is_number(offset) && is_number(length))
}

impl Format for Own {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<bool, Fault> {
        let Some(line) = input.line()? else { return Ok(false) };
        if line == HEAD || line.is_empty() || line.starts_with('#') {
            input.skipped += u64::from(is_skipped(&line));
            return Ok(true);
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[at, op, offset, length] = words.as_slice() else {
            return Err(Fault::Form("NS OP OFFSET LENGTH"));
        };
        let number = |word: &str| {
            let wanted = "number";
            word.parse::<u64>().map_err(|_| Fault::Word { word: word.to_owned(), wanted })
        };
        let (at, offset, length) = (number(at)?, number(offset)?, number(length)?);
        found.push_back(match op {
            "R" => transfer(at, Op::Read, offset, length, false)?,
            "W" => transfer(at, Op::Write, offset, length, false)?,
            "WF" => transfer(at, Op::Write, offset, length, true)?,
            "F" => flush(at),
            other => return Err(Fault::Action(format!("'{other}': R, W, WF or F"))),
        });
        Ok(true)
    }
}
