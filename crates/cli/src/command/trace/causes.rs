//! Causes of what misses a unit, each with its evidence and what to do: the layer that the stack
//! leaves the grain at, sizes of blocks and sectors as they were tasted, and suspicions from the
//! shapes of requests.
//!
//! # Sources
//! Fixes of layers are those of `check`. cryptsetup-reencrypt(8) `--sector-size`; sqlite.org,
//! PRAGMA `page_size`; MySQL 8.4 manual, `innodb_page_size`; PostgreSQL 17 manual,
//! `--with-blocksize`.

use crate::command::trace::document::Traced;
use crate::command::trace::patterns::{LayerPatterns, Missed, Patterns};
use crate::command::trace::tasted::{Contents, Encryption, Tasted};
use crate::render::traffic::{Miss, reason, worst_first};
use crate::report::Finding;
use crate::traffic::{Blame, Row, rows};
use crate::words::{self, escape, size};
use serde::Serialize;
use trueline_geom::audit::io::{CLASSES, IoKind, class_start};
use trueline_geom::base::finding;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::Placement;

/// Least number of requests from which something is suspected.
const FEWEST: u64 = 8;
/// Least number of reads of a page or less, written again, from which something is suspected.
const FEWEST_REWRITTEN: u64 = 16;

/// A cause of requests that miss a unit, or of reads that writing needs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cause {
    /// Name of the layer that the requests begin in.
    pub provider: String,
    /// Number of that layer, as it stands among the layers.
    #[serde(skip)]
    pub id: usize,
    /// The misses that it is a cause of; `None` for reads.
    #[serde(skip)]
    pub miss: Option<Miss>,
    /// Name of the cause: a layer's, or a client's.
    pub cause: CauseName,
    /// True if the layer that was tasted is the cause; false for a suspicion.
    pub known: bool,
    /// Name of the layer to change; `None` if it is the client that could send other requests.
    pub blame: Option<String>,
    /// Id of the rule for `trueline explain`, if there is one.
    pub rule: Option<&'static str>,
    /// Number of requests that show it.
    pub requests: u64,
    /// Number of requests among which they are.
    pub of: u64,
    /// One sentence with the evidence.
    pub message: String,
    /// Cures in words, the best first.
    pub fix: Vec<String>,
    /// Shell commands that mend it and lose nothing, in order: the first of `fix`, each by itself.
    pub commands: Vec<String>,
}

/// Name of a cause in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CauseName {
    /// A layer begins off the grain.
    Start,
    /// A set cuts requests into chunks that are no whole units.
    Chunk,
    /// A file system writes blocks that are no whole units.
    Block,
    /// An encrypted volume has sectors that are no whole units.
    Sector,
    /// A program writes pages that are smaller than a unit.
    Page,
    /// A client sends requests that begin or end inside a unit.
    Client,
    /// Pages are read because parts of them are written.
    Rewrite,
}

/// Causes of what misses in a trace, those of the layer that misses most first.
pub(super) fn find(traced: &Traced, patterns: &Patterns, tasted: &Tasted) -> Vec<Cause> {
    let rows = rows(&traced.layers);
    let mut causes = Vec::new();
    for row in worst_first(&rows) {
        causes.extend(of_stack(row, tasted));
        let layer = &row.all;
        let Some(shapes) = patterns.layer(layer.id) else { continue };
        let one = OneLayer {
            row,
            shapes,
            contents: tasted.contents(layer.id, &layer.provider).cloned().unwrap_or_default(),
            unit: row.disks.iter().map(|disk| disk.unit).max().unwrap_or(0),
        };
        causes.extend(one.causes(tasted));
        causes.extend(one.rewrites());
    }
    causes
}

/// The layers at which the stack leaves the grain, with the fixes of `check`.
fn of_stack(row: &Row, tasted: &Tasted) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for disk in row.disks.iter().filter(|disk| disk.blamed_requests.sum() > 0) {
        let Some(blame) = &disk.blame else { continue };
        let same = |cause: &&mut Cause| {
            cause.blame.as_deref() == Some(blame.provider.as_str())
                && cause.rule == Some(blame.rule)
        };
        let requests = disk.blamed_requests.sum();
        match causes.iter_mut().find(same) {
            Some(cause) => cause.requests += requests,
            None => causes.push(off_start(row, blame, requests, disk.unit, tasted)),
        }
    }
    causes
}

fn off_start(row: &Row, blame: &Blame, requests: u64, unit: u64, tasted: &Tasted) -> Cause {
    let found = tasted.findings(&blame.provider, blame.rule, unit);
    let (mut fix, commands) = found
        .first()
        .map_or_else(Default::default, |found| (found.fix.clone(), found.commands.clone()));
    if fix.is_empty() && blame.chunk.is_some() {
        let name = words::name(&blame.provider);
        fix.push(format!("make {name} anew with chunks of whole {}", words::bytes(unit)));
    }
    Cause {
        miss: Some(Miss::Stack),
        cause: if blame.chunk.is_some() { CauseName::Chunk } else { CauseName::Start },
        known: true,
        blame: Some(blame.provider.clone()),
        rule: Some(blame.rule),
        fix,
        commands,
        ..cause(row, requests, row.all.requests.verdicts().sum(), reason(blame))
    }
}

/// A cause of a layer's requests that names none to blame, and nothing to do.
fn cause(row: &Row, requests: u64, of: u64, message: String) -> Cause {
    Cause {
        provider: row.all.provider.clone(),
        id: row.all.id,
        miss: None,
        cause: CauseName::Client,
        known: false,
        blame: None,
        rule: None,
        requests,
        of,
        message,
        fix: Vec::new(),
        commands: Vec::new(),
    }
}

/// One layer of a trace, with all that is known of it.
struct OneLayer<'a> {
    row: &'a Row,
    shapes: &'a LayerPatterns,
    contents: Contents,
    /// The largest unit of its disks in bytes.
    unit: u64,
}

impl OneLayer<'_> {
    /// Causes that lie above the starts of layers.
    fn causes(&self, tasted: &Tasted) -> Vec<Cause> {
        let missed = self.missed();
        let small = count(missed.iter().filter(|missed| is_small(missed)));
        let all = count(&missed);
        let miss = Some(if small > 0 { Miss::Small } else { Miss::Client });
        let mut causes = Vec::new();
        let mut blocks = 0;
        if let Some(block) = self.block(&missed, all, tasted) {
            blocks = block.requests;
            causes.push(Cause { miss, ..block });
        }
        let encryption = self.contents.encryption.as_ref();
        if let Some(sector) = encryption.and_then(|found| self.sector(found, &missed, all)) {
            causes.push(Cause { miss, ..sector });
        }
        causes.extend(self.page(&missed, small));
        // What is whole blocks has its cause.
        if blocks < all {
            causes.extend(self.client(&missed));
        }
        causes
    }

    /// Writes of less than a unit, and requests that miss one through no layer's fault. Reads of
    /// less than a unit cost no more than others.
    fn missed(&self) -> Vec<Missed<'_>> {
        let all = self.shapes.missed().into_iter();
        all.filter(|missed| missed.fit == Placement::Misaligned || is_small(missed)).collect()
    }

    /// A format whose blocks, or smaller pieces, are no whole units, if requests are of them.
    fn block(&self, missed: &[Missed<'_>], all: u64, tasted: &Tasted) -> Option<Cause> {
        let format = self.contents.format.as_ref()?;
        let holder = &self.contents.holder;
        let found = tasted.findings(holder, finding::SMALL.id, self.unit);
        let piece = self.contents.pieces.iter().find(|piece| {
            piece.size < self.unit && missed.iter().any(|one| one.whole_blocks(piece.size) > 0)
        })?;
        let requests: u64 = missed.iter().map(|missed| missed.whole_blocks(piece.size)).sum();
        let of: Vec<&&Finding> = found.iter().filter(|found| found.unit <= self.unit).collect();
        let mut fix: Vec<String> = Vec::new();
        for cure in of.iter().flat_map(|found| &found.fix) {
            if !fix.contains(cure) {
                fix.push(cure.clone());
            }
        }
        let message = format!(
            "{format} on {} writes a {} of {} bytes: {} whole {}s of it",
            words::name(holder),
            piece.name,
            piece.size,
            share(requests, all, "such request is", "such requests are"),
            piece.name
        );
        Some(Cause {
            cause: CauseName::Block,
            known: true,
            blame: Some(holder.clone()),
            rule: Some(finding::SMALL.id),
            fix,
            ..cause(self.row, requests, all, message)
        })
    }

    /// An encrypted volume whose sectors let smaller requests through than its largest would.
    fn sector(&self, found: &Encryption, missed: &[Missed<'_>], all: u64) -> Option<Cause> {
        let whole = self.unit.min(PAGE);
        let fits: u64 = missed.iter().map(|missed| missed.whole_blocks(whole)).sum();
        let requests = all.saturating_sub(fits);
        if found.sector >= whole || requests == 0 {
            return None;
        }
        let name = words::name(&found.holder);
        let message = format!(
            "{name} is encrypted in sectors of {} bytes, so what is in it may send less than \
                {whole} bytes: {} no whole {whole} bytes",
            found.sector,
            share(requests, all, "such request is", "such requests are")
        );
        let before = if found.is_first_version {
            "; LUKS1 has no other sectors: cryptsetup convert --type luks2 first"
        } else {
            ""
        };
        let fix = format!(
            "{}; a file system in it that has smaller sectors or blocks cannot be mounted \
                then{before}",
            found.enlarge
        );
        Some(Cause {
            cause: CauseName::Sector,
            known: true,
            blame: Some(found.holder.clone()),
            fix: vec![fix],
            ..cause(self.row, requests, all, message)
        })
    }

    /// Pages of one size, if most of the writes that are smaller than a unit are of it.
    fn page(&self, missed: &[Missed<'_>], small: u64) -> Option<Cause> {
        let writes = missed.iter().filter(|missed| is_small(missed));
        let most = writes.max_by_key(|missed| (missed.count(), missed.length))?;
        let (length, requests) = (most.length, most.at_multiples_of_itself());
        // Requests that the file system cuts so have their cause there.
        let is_block = self.contents.pieces.iter().any(|piece| piece.size == length);
        let is_page = requests >= FEWEST && requests.saturating_mul(2) > small && !is_block;
        // Others of that length lie elsewhere: it is no page.
        if !is_page || requests < most.count() - most.count() / 10 || length >= self.unit {
            return None;
        }
        let whose = match length {
            0..PAGE => "as of a database, or sectors",
            PAGE => "as of memory (the page cache), or of a database",
            _ => "as of a database",
        };
        let message = format!(
            "pages of {}, {whose}: {} of {length} bytes, at multiples of that",
            size::human(length),
            share(requests, small, "such write is", "such writes are"),
        );
        Some(Cause {
            miss: Some(Miss::Small),
            cause: CauseName::Page,
            rule: Some(finding::SMALL.id),
            fix: vec![larger_pages(self.unit)],
            ..cause(self.row, requests, small, message)
        })
    }

    /// A client whose requests begin or end inside a unit on a layer that is laid out well.
    fn client(&self, missed: &[Missed<'_>]) -> Option<Cause> {
        // Whole blocks have their cause in the file system.
        let sizes = self.contents.pieces.iter().map(|piece| piece.size);
        let block = sizes.filter(|&size| size < self.unit).max();
        let own: Vec<Missed<'_>> = missed
            .iter()
            .filter(|missed| missed.fit == Placement::Misaligned)
            .filter(|missed| block.is_none_or(|block| missed.whole_blocks(block) == 0))
            .copied()
            .collect();
        let all = count(&own);
        let starts = |class: usize| own.iter().map(|missed| missed.starts[class]).sum::<u64>();
        let class = (0..CLASSES).max_by_key(|&class| starts(class)).filter(|_| all >= FEWEST)?;
        let (begin, at) = (starts(class), class_start(class));
        let longest = own.iter().max_by_key(|missed| (missed.count(), missed.length))?;
        let begins = match at {
            0 => "begin inside a sector of 512 bytes".into(),
            _ if at >= self.unit => "begin on a unit, and end inside one".into(),
            _ => format!("begin at a multiple of {} and of no more", words::bytes(at)),
        };
        let whose = match self.contents.format.as_ref().zip(self.contents.pieces.first()) {
            Some((format, block)) if at < block.size => format!(
                "requests that bypass the page cache (O_DIRECT), or a log: {format} on {} has \
                    blocks of {} bytes",
                words::name(&self.contents.holder),
                block.size
            ),
            _ if at < PAGE => "a program that opens the device itself (O_DIRECT)".into(),
            _ => "pages of memory (the page cache), or of a program".into(),
        };
        let mut message = format!("{whose}; {begin} of {all} {begins}");
        // Lengths of all kinds say nothing.
        if longest.count().saturating_mul(2) > all {
            let length = size::human(longest.length);
            message.push_str(&format!(", {} of {all} are of {length}", longest.count()));
        }
        // Where blocks have a cause of their own, a sender of those is not told apart.
        let senders = Some(self.shapes).filter(|_| block.is_none());
        if let Some((process, sent)) = senders.and_then(LayerPatterns::worst_sender) {
            let name = escape::plain(&process.name);
            message.push_str(&format!("; {name} ({}) sent {sent} of them", process.pid));
        }
        let unit = words::bytes(self.unit);
        Some(Cause {
            miss: Some(Miss::Client),
            cause: CauseName::Client,
            fix: vec![format!("let it send whole multiples of {unit}, at multiples of that")],
            ..cause(self.row, begin, all, message)
        })
    }

    /// Reads of pages that are written again, if most small reads are.
    fn rewrites(&self) -> Option<Cause> {
        let (reads, rewritten) = (self.shapes.small_reads, self.shapes.rewritten);
        if rewritten < FEWEST_REWRITTEN || rewritten.saturating_mul(2) < reads {
            return None;
        }
        let message = format!(
            "writes of parts of pages: {rewritten} of {reads} reads of {PAGE} bytes or less were \
                written again within 70 s, as the page cache does for them; a program that changes \
                what it has read does so, too"
        );
        Some(Cause {
            cause: CauseName::Rewrite,
            fix: vec![format!("write whole pages of {PAGE} bytes to files, at multiples of that")],
            ..cause(self.row, rewritten, reads, message)
        })
    }
}

fn is_small(missed: &Missed<'_>) -> bool {
    missed.kind == IoKind::Write && missed.fit == Placement::Partial
}

fn count<'a>(missed: impl IntoIterator<Item = &'a Missed<'a>>) -> u64 {
    missed.into_iter().map(Missed::count).sum()
}

/// `1 of 4 is`, `3 of 4 are`.
fn share(some: u64, all: u64, one: &str, more: &str) -> String {
    format!("{some} of {all} {}", if all == 1 { one } else { more })
}

/// Advice for a program whose pages are smaller than `unit` bytes, with the words of databases that
/// have such pages.
fn larger_pages(unit: u64) -> String {
    let known = [
        (512..=65_536, format!("SQLite: PRAGMA page_size={unit}; VACUUM")),
        (4096..=65_536, format!("MySQL: innodb_page_size={unit} before it is initialised")),
        (1024..=32_768, format!("PostgreSQL: built --with-blocksize={}", unit >> 10)),
    ];
    let known: Vec<String> =
        known.into_iter().filter(|(sizes, _)| sizes.contains(&unit)).map(|(_, how)| how).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join("; ")) };
    format!("let it write {} at a time{known}", size::human(unit))
}
