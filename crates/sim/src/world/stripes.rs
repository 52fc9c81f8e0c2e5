//! A set with parity as Linux's md writes it: pages of all members at one address make a stripe,
//! and a stripe is read as far as its new parity needs, then written.
//!
//! A read goes past this: md reads what lies inside a chunk from the member itself.
//!
//! # Model
//! Of a stripe md counts the pages that it would have to read in either way: for read-modify-write
//! those that are written and the parity, for reconstruct-write the data that are not wholly
//! written. Pages in the cache count for neither. The smaller number wins, and a tie is
//! reconstruct-write. A page that is written in part is read first. The pages of one request that
//! follow each other on a member are one command. A stripe under way takes further writes, and
//! goes on with all of them together once it is done. The cache holds [`STRIPES`] stripes; when all
//! are under way, requests wait until a quarter is free.
//!
//! # Limits
//! Delays of writes that a page cache sends (`STRIPE_DELAYED`), the write-intent bitmap and the
//! journal are left out: requests are those of direct I/O on a set without them.
//!
//! # Sources
//! Linux `drivers/md/raid5.c`: `handle_stripe_dirtying`, `fetch_block`, `raid5_get_active_stripe`;
//! `raid5.h`: `NR_STRIPES`.

use super::Slab;
use crate::drive::Op;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use trueline_geom::base::size::PAGE;
use trueline_geom::mapping::geom::{Geom, Rows};
use trueline_geom::mapping::route::Route;

/// Stripes in the cache: `NR_STRIPES`, md's `stripe_cache_size` by default.
const STRIPES: usize = 256;

/// The stripes of one set.
pub(super) struct Stripes {
    geom: Arc<dyn Geom>,
    slot: usize,
    /// The members, in order.
    pub(super) below: Arc<[Route]>,
    stripes: BTreeMap<u64, Stripe>,
    /// Stripes at rest, the one longest so first.
    idle: VecDeque<u64>,
    /// Writes for which the cache has no room.
    waiting: VecDeque<Ask>,
    /// True while writes wait for a quarter of the cache.
    full: bool,
    batches: Slab<Batch>,
    requests: Slab<Pending>,
}

/// One page of every member.
#[derive(Default)]
struct Stripe {
    /// Members whose page is in the cache, by bit.
    cached: u128,
    /// Writes that are not yet begun.
    asked: Vec<Ask>,
    busy: bool,
}

/// A write to one page.
#[derive(Clone, Copy)]
struct Ask {
    stripe: u64,
    member: usize,
    /// True if it covers the page.
    whole: bool,
    /// The request, in [`Stripes::requests`].
    request: usize,
}

/// Stripes that are read together, then written together.
struct Batch {
    writes: Vec<(usize, u64)>,
    stripes: Vec<u64>,
    asked: Vec<Ask>,
    /// Commands of members not yet done.
    left: usize,
    fua: bool,
    written: bool,
}

/// A request of the host in progress.
struct Pending {
    tag: u64,
    pages: usize,
    fua: bool,
}

/// A command for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberIo {
    /// The number of the batch that it belongs to.
    pub(super) batch: usize,
    pub(super) member: usize,
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) fua: bool,
}

/// Consequences of a write, or of a command that is done.
#[derive(Default)]
pub(super) struct Next {
    pub(super) commands: Vec<MemberIo>,
    /// Tags of requests that are done.
    pub(super) done: Vec<u64>,
}

impl Stripes {
    /// The stripes of the set in `slot` of `geom` over `below`, none of them in the cache; `None`
    /// if it has no parity, or more members than md allows.
    pub(super) fn new(geom: &Arc<dyn Geom>, slot: usize, below: &Arc<[Route]>) -> Option<Stripes> {
        geom.rows(slot).filter(|_| below.len() <= 128)?;
        Some(Stripes {
            geom: geom.clone(),
            slot,
            below: below.clone(),
            stripes: BTreeMap::new(),
            idle: VecDeque::new(),
            waiting: VecDeque::new(),
            full: false,
            batches: Slab::default(),
            requests: Slab::default(),
        })
    }

    /// True if these are the stripes of that set.
    pub(super) fn is_of(&self, geom: &Arc<dyn Geom>, slot: usize) -> bool {
        Arc::ptr_eq(&self.geom, geom) && self.slot == slot
    }

    /// Begins the write of `length` bytes at byte `offset` of the set.
    pub(super) fn write(&mut self, tag: u64, offset: u64, length: u64, fua: bool) -> Next {
        let request = self.requests.put(Pending { tag, pages: 0, fua });
        let geom = self.geom.clone();
        let Some(rows) = geom.rows(self.slot) else { return Next::default() };
        let (mut at, end, mut pages) = (offset, offset + length, 0);
        while at < end {
            let next = (at / PAGE + 1) * PAGE;
            let (stripe, member) = place(rows, at);
            let whole = at % PAGE == 0 && next <= end;
            self.waiting.push_back(Ask { stripe, member, whole, request });
            pages += 1;
            at = next;
        }
        if let Some(pending) = self.requests.get(request) {
            pending.pages = pages;
        }
        let mut next = Next::default();
        if pages == 0 {
            next.done.extend(self.requests.take(request).map(|pending| pending.tag));
        }
        self.admit();
        self.begin(rows, &mut next);
        next
    }

    /// Takes the end of a command of `batch`.
    pub(super) fn finish(&mut self, batch: usize) -> Next {
        let mut next = Next::default();
        let geom = self.geom.clone();
        let (Some(rows), Some(under_way)) = (geom.rows(self.slot), self.batches.get(batch)) else {
            return next;
        };
        under_way.left -= 1;
        if under_way.left > 0 {
            return next;
        }
        if !under_way.written {
            self.send_writes(rows, batch, &mut next);
            return next;
        }
        if let Some(batch) = self.batches.take(batch) {
            for at in batch.stripes {
                if let Some(stripe) = self.stripes.get_mut(&at) {
                    stripe.busy = false;
                    if stripe.asked.is_empty() {
                        self.idle.push_back(at);
                    }
                }
            }
            for ask in batch.asked {
                self.page_done(ask.request, &mut next);
            }
        }
        self.admit();
        self.begin(rows, &mut next);
        next
    }

    fn page_done(&mut self, request: usize, next: &mut Next) {
        let Some(pending) = self.requests.get(request) else { return };
        pending.pages -= 1;
        if pending.pages == 0 {
            next.done.extend(self.requests.take(request).map(|pending| pending.tag));
        }
    }

    /// Gives waiting writes to their stripes, as far as the cache has room.
    fn admit(&mut self) {
        let active = self.stripes.len() - self.idle.len();
        if self.full && active > STRIPES / 4 * 3 {
            return;
        }
        self.full = false;
        while let Some(&ask) = self.waiting.front() {
            if !self.stripes.contains_key(&ask.stripe) {
                if self.stripes.len() >= STRIPES {
                    let Some(old) = self.idle.pop_front() else {
                        self.full = true;
                        return;
                    };
                    self.stripes.remove(&old);
                }
                self.stripes.insert(ask.stripe, Stripe::default());
                self.idle.push_back(ask.stripe);
            }
            if let Some(stripe) = self.stripes.get_mut(&ask.stripe) {
                if stripe.asked.is_empty() && !stripe.busy {
                    self.idle.retain(|&at| at != ask.stripe);
                }
                stripe.asked.push(ask);
            }
            self.waiting.pop_front();
        }
    }

    /// Begins a batch of all stripes with writes that are not under way.
    fn begin(&mut self, rows: &dyn Rows, next: &mut Next) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let (mut stripes, mut asked) = (Vec::new(), Vec::new());
        for (&at, stripe) in &mut self.stripes {
            if stripe.busy || stripe.asked.is_empty() {
                continue;
            }
            let work = Work::new(rows, at, stripe);
            reads.extend(work.reads.into_iter().map(|member| (member, at)));
            writes.extend(work.writes.into_iter().map(|member| (member, at)));
            stripe.busy = true;
            asked.append(&mut stripe.asked);
            stripes.push(at);
        }
        if stripes.is_empty() {
            return;
        }
        let fua = asked.iter().any(|ask| self.requests.get(ask.request).is_some_and(|r| r.fua));
        let batch =
            self.batches.put(Batch { writes, stripes, asked, left: 0, fua, written: false });
        if reads.is_empty() {
            self.send_writes(rows, batch, next);
        } else {
            self.send(rows, batch, Op::Read, reads, next);
        }
    }

    fn send_writes(&mut self, rows: &dyn Rows, batch: usize, next: &mut Next) {
        if let Some(under_way) = self.batches.get(batch) {
            under_way.written = true;
            let writes = std::mem::take(&mut under_way.writes);
            self.send(rows, batch, Op::Write, writes, next);
        }
    }

    /// Sends the pages, each a member and a stripe; pages that follow each other on a member are
    /// one command.
    fn send(
        &mut self,
        rows: &dyn Rows,
        batch: usize,
        op: Op,
        mut pages: Vec<(usize, u64)>,
        next: &mut Next,
    ) {
        pages.sort_unstable();
        let before = next.commands.len();
        let fua = op == Op::Write && self.batches.get(batch).is_some_and(|batch| batch.fua);
        for (member, stripe) in pages {
            let offset = rows.begin(member) + stripe * PAGE;
            match next.commands[before..].last_mut() {
                Some(last) if last.member == member && last.offset + last.length == offset => {
                    last.length += PAGE;
                }
                _ => next.commands.push(MemberIo { batch, member, op, offset, length: PAGE, fua }),
            }
        }
        if let Some(under_way) = self.batches.get(batch) {
            under_way.left = next.commands.len() - before;
        }
    }
}

/// Number of the stripe, and member, of byte `at` of the set.
fn place(rows: &dyn Rows, at: u64) -> (u64, usize) {
    let (chunk, within) = (at / rows.chunk(), at % rows.chunk());
    let row = chunk / rows.data();
    ((row * rows.chunk() + within) / PAGE, rows.member(row, chunk % rows.data()))
}

/// Pages that one stripe reads, then writes: their members.
struct Work {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

impl Work {
    /// The work of the stripe numbered `at`; its cache then holds what is read and written.
    fn new(rows: &dyn Rows, at: u64, stripe: &mut Stripe) -> Work {
        let row = at * PAGE / rows.chunk();
        let data: Vec<usize> = (0..rows.data()).map(|nth| rows.member(row, nth)).collect();
        let parity: Vec<usize> = rows.parity(row).into_iter().flatten().collect();
        let asked = |member: usize| stripe.asked.iter().any(|ask| ask.member == member);
        let whole =
            |member: usize| stripe.asked.iter().any(|ask| ask.member == member && ask.whole);
        let bit = |member: usize| 1u128 << (member % 128);
        let mut cached = stripe.cached;
        let mut reads = Vec::new();
        for &member in data.iter().filter(|&&member| asked(member) && !whole(member)) {
            if cached & bit(member) == 0 {
                cached |= bit(member);
                reads.push(member);
            }
        }
        let missing = |member: &&usize| cached & bit(**member) == 0;
        let modify: Vec<usize> =
            data.iter().filter(|&&m| asked(m)).chain(&parity).filter(missing).copied().collect();
        let rebuild: Vec<usize> =
            data.iter().filter(|&&m| !whole(m)).filter(missing).copied().collect();
        if !modify.is_empty() && !rebuild.is_empty() {
            reads.extend(if modify.len() < rebuild.len() { &modify } else { &rebuild });
        }
        let writes: Vec<usize> =
            data.iter().copied().filter(|&m| asked(m)).chain(parity.iter().copied()).collect();
        for &member in reads.iter().chain(&writes) {
            cached |= bit(member);
        }
        stripe.cached = cached;
        Work { reads, writes }
    }
}

#[cfg(test)]
mod tests;
