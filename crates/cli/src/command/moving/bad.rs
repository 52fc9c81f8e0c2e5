//! Sectors that cannot be read, as `--skip-bad` lists them.

use crate::command::moving::args::Move as Options;
use crate::failure::Failure;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::Move;
use trueline_geom::relocate::sequence::{Movement, Sequence};

/// Largest file with a list in bytes, and most ranges.
const LONGEST: u64 = 16 << 20;
const MOST: usize = 1 << 16;
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
    if apart.len() > MOST {
        return Err(refused(format!("more than {MOST} ranges")));
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
/// status but `+`. `Some(None)` for a line that says other things.
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

/// A line for each range that `plan` does not read.
pub(super) fn lines(plan: &Move) -> Vec<String> {
    let ranges = plan.unreadable.iter();
    let ranges = ranges.map(|r| (plan.from + r.start, plan.to + r.start, r.end - r.start));
    worded(&ranges.collect::<Vec<_>>(), plan.sector)
}

/// A line for each range that the moves of `sequence` do not read.
pub(super) fn of_sequence(sequence: &Sequence) -> Vec<String> {
    let mut ranges = Vec::new();
    for (n, stage) in sequence.stages.iter().enumerate() {
        let Some(moved) = stage.moved else { continue };
        for range in sequence.unreadable(n) {
            let (old, mut new) = (moved.from + range.start, moved.to + range.start);
            // What is in a partition may go on within it.
            for Movement { from, to, length } in
                sequence.stages[n + 1..].iter().filter_map(|stage| stage.moved)
            {
                if let Some(inside) = new.checked_sub(from).filter(|&inside| inside < length) {
                    new = to + inside;
                }
            }
            ranges.push((old, new, range.end - range.start));
        }
    }
    worded(&ranges, sequence.sector)
}

/// A line for each range of so many bytes that is not read at one place, and zero at another.
fn worded(ranges: &[(u64, u64, u64)], sector: u64) -> Vec<String> {
    let line = |&(old, new, bytes): &(u64, u64, u64)| {
        let (old, new) = (place(old, sector), place(new, sector));
        format!("{bytes} bytes at {old} are not read: zeros at {new}")
    };
    let mut lines: Vec<String> = ranges.iter().take(NAMED).map(line).collect();
    if let Some(more) = ranges.len().checked_sub(NAMED).filter(|&more| more > 0) {
        lines.push(format!("{more} more ranges are not read: zeros at the new place"));
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
