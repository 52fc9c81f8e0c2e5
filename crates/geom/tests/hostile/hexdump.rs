//! A disk as the text that golden disks are kept in.

use std::collections::BTreeSet;
use std::fmt::Write;
use trueline_geom::base::store::{Sparse, Store};

const LINE: u64 = 16;

/// The disk as `hexdump -C` prints it.
pub fn hexdump(disk: &Sparse) -> String {
    let filled: BTreeSet<u64> = disk
        .runs()
        .flat_map(|(at, bytes)| at / LINE..=(at + bytes.len() as u64 - 1) / LINE)
        .map(|line| line * LINE)
        .collect();
    let mut out = Lines { text: String::new(), previous: None, starred: false };
    let mut next = 0;
    for &at in &filled {
        out.zeros(next, at);
        out.line(at, disk);
        next = at.saturating_add(LINE);
    }
    out.zeros(next, disk.length() / LINE * LINE);
    if next.max(disk.length() / LINE * LINE) < disk.length() {
        out.line(disk.length() / LINE * LINE, disk);
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out.text, "{:08x}", disk.length());
    out.text
}

struct Lines {
    text: String,
    previous: Option<Vec<u8>>,
    starred: bool,
}

impl Lines {
    /// The lines of `[from, to)`, all zero: two at most are printed.
    fn zeros(&mut self, from: u64, to: u64) {
        if from < to {
            self.bytes(from, vec![0; 16]);
        }
        if from.saturating_add(LINE) < to {
            self.bytes(from + LINE, vec![0; 16]);
        }
    }

    fn line(&mut self, at: u64, disk: &Sparse) {
        let length = (disk.length() - at).min(LINE);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        if disk.read_at(&mut bytes, at).is_ok() {
            self.bytes(at, bytes);
        }
    }

    fn bytes(&mut self, at: u64, bytes: Vec<u8>) {
        if self.previous.as_ref() == Some(&bytes) {
            if !self.starred {
                self.text.push_str("*\n");
            }
            self.starred = true;
            return;
        }
        let hex: Vec<String> = bytes
            .chunks(8)
            .map(|half| half.iter().map(|b| format!("{b:02x} ")).collect())
            .collect();
        let ascii: String = bytes
            .iter()
            .map(|&b| if b.is_ascii_graphic() || b == b' ' { char::from(b) } else { '.' })
            .collect();
        let _ = writeln!(self.text, "{at:08x}  {:<49} |{ascii}|", hex.join(" "));
        (self.previous, self.starred) = (Some(bytes), false);
    }
}
