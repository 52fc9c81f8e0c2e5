//! Sectors that may be unreadable, as `--skip-bad` lists them, and what came of them.

use crate::command::moving::args::Move as Options;
use crate::failure::Failure;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::Move;
use trueline_geom::relocate::bad::{BadSectors, MOST};
use trueline_geom::relocate::sequence::{Movement, Sequence, Tried};

/// Largest file with a list in bytes, and most ranges: a journal has room for as many that fail.
const LONGEST: u64 = 16 << 20;
const MOST_LISTED: usize = MOST / 2;
/// Ranges that are named one by one.
const NAMED: usize = 20;

/// The ranges of `--skip-bad` in bytes of the provider with the table, in order and apart.
pub(super) fn list(args: &Options, sector: u64) -> Result<Vec<Range<u64>>, Failure> {
    let Some(text) = args.skip_bad.as_deref() else { return Ok(Vec::new()) };
    let refused = |found: String| Failure::Message(format!("move --skip-bad {text}: {found}"));
    let wrong = |word: &str| refused(format!("{word}: not sectors: 2048, 4096-4103 or 8192+8"));
    let is_list = |c: char| c.is_ascii_digit() || "-+,".contains(c);
    let mut ranges = Vec::new();
    let sectors = |word: &str| sectors(word, sector).ok_or_else(|| wrong(word));
    if !text.is_empty() && text.chars().all(is_list) {
        for word in text.split(',') {
            ranges.push(sectors(word)?);
        }
    } else {
        let mut lines = String::new();
        let opened = File::open(text).map(|file| file.take(LONGEST + 1));
        let read = opened.and_then(|mut file| file.read_to_string(&mut lines));
        read.map_err(|e| refused(crate::words::os(&e)))?;
        if lines.len() as u64 > LONGEST {
            return Err(refused(format!("longer than {LONGEST} bytes")));
        }
        let is_map = lines.contains("0x");
        for line in lines.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            match is_map {
                true => ranges.extend(mapped(line, sector).ok_or_else(|| wrong(line))?),
                false => ranges.push(sectors(line)?),
            }
        }
    }
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match apart.last_mut().filter(|last| last.end >= range.start) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    if apart.len() > MOST_LISTED {
        return Err(refused(format!("more than {MOST_LISTED} ranges")));
    }
    Ok(apart)
}

/// The bytes of `7`, `7-9` or `7+3`, in sectors; `None` for other words, and for no sector.
fn sectors(word: &str, sector: u64) -> Option<Range<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (first, end) = if let Some((first, last)) = word.split_once('-') {
        (number(first)?, number(last)?.checked_add(1)?)
    } else if let Some((first, count)) = word.split_once('+') {
        (number(first)?, number(first)?.checked_add(number(count)?)?)
    } else {
        (number(word)?, number(word)?.checked_add(1)?)
    };
    let range = first.checked_mul(sector)?..end.checked_mul(sector)?;
    (range.start < range.end).then_some(range)
}

/// The sectors of a line of ddrescue's map, `0xPOSITION 0xSIZE STATUS`, which are not rescued: any
/// status but `+`, since what was not tried (`?`), trimmed (`*`) or scraped (`/`) is tried here.
/// `Some(None)` for a line that says other things.
fn mapped(line: &str, sector: u64) -> Option<Option<Range<u64>>> {
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [at, length, status] = words.as_slice() else { return Some(None) };
    // The first line has a position, a status and a pass.
    if !length.starts_with("0x") || *status == "+" {
        return Some(None);
    }
    let (at, end) = (number(at)?, number(at)?.checked_add(number(length)?)?);
    let whole = at / sector * sector..end.checked_next_multiple_of(sector)?;
    Some(Some(whole).filter(|range| range.start < range.end))
}

/// The parts of `bad` in the bytes `within`, counted from their first.
pub(super) fn inside(bad: &[Range<u64>], within: &Range<u64>) -> Vec<Range<u64>> {
    bad.iter()
        .map(|range| range.start.max(within.start)..range.end.min(within.end))
        .filter(|range| range.start < range.end)
        .map(|range| range.start - within.start..range.end - within.start)
        .collect()
}

/// A line on what a list has of the partition of `plan`, before anything is tried; none without.
pub(super) fn listed(plan: &Move) -> Option<String> {
    announced(&plan.bad.listed)
}

/// A line on what a list has of the partitions that the stages of `sequence` move; none without.
pub(super) fn listed_in(sequence: &Sequence) -> Option<String> {
    let ranges = (0..sequence.stages.len()).flat_map(|n| sequence.listed(n));
    announced(&ranges.collect::<Vec<_>>())
}

/// True for bytes of the provider that are in the list of `plan`.
pub(super) fn of_plan(plan: &Move) -> impl Fn(u64) -> bool + '_ {
    move |at| at.checked_sub(plan.from).is_some_and(|at| has(&plan.bad.listed, at))
}

/// True if `at` is in one of the ranges.
pub(super) fn has(ranges: &[Range<u64>], at: u64) -> bool {
    ranges.iter().any(|range| range.contains(&at))
}

fn announced(ranges: &[Range<u64>]) -> Option<String> {
    let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let line = format!("{bytes} bytes may be unreadable: each sector is tried when it is copied");
    (bytes > 0).then_some(line)
}

/// The outcome of the list for `plan`, whose sectors that failed are in `bad`.
pub(super) fn tried(plan: &Move, bad: &BadSectors) -> Tried {
    let failed = bad.failed.iter().map(|range| Movement {
        from: plan.from + range.start,
        to: plan.to + range.start,
        length: range.end - range.start,
    });
    Tried { failed: failed.collect(), readable: plan.readable(bad) }
}

/// A line for each range that could not be read, and one on what could.
pub(super) fn lines(tried: &Tried, sector: u64) -> Vec<String> {
    let line = |&Movement { from, to, length }: &Movement| {
        let (old, new) = (place(from, sector), place(to, sector));
        format!("{length} bytes at {old} cannot be read: zeros at {new}")
    };
    let mut lines: Vec<String> = tried.failed.iter().take(NAMED).map(line).collect();
    if let Some(more) = tried.failed.len().checked_sub(NAMED).filter(|&more| more > 0) {
        lines.push(format!("{more} more ranges cannot be read: zeros at the new place"));
    }
    if tried.readable > 0 {
        let readable = tried.readable;
        lines.push(format!("{readable} bytes of the list could be read after all, and are kept"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_one_some_or_as_many() {
        assert_eq!(sectors("7", 512), Some(3584..4096));
        assert_eq!(sectors("7-9", 512), Some(3584..5120));
        assert_eq!(sectors("7+3", 512), Some(3584..5120));
        for wrong in
            ["", "7-", "9-7", "7+0", "-7", "a", "36028797018963968", "18446744073709551615"]
        {
            assert_eq!(sectors(wrong, 512), None, "{wrong}");
        }
    }

    #[test]
    fn a_map_has_what_was_not_rescued() {
        assert_eq!(mapped("0x00000000 0x1000 +", 512), Some(None));
        assert_eq!(mapped("0x1234     ?     1", 512), Some(None));
        assert_eq!(mapped("0x00001100 0x00000200 -", 512), Some(Some(0x1000..0x1400)));
        assert_eq!(mapped("0x00001000 0xffffffffffffffff *", 512), None);
    }
}
