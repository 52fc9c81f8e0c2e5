//! `innodb`: the writes of MySQL's storage engine while its page cleaner works, in batches.
//!
//! A batch is the redo log of its changes, its pages in one sequential chunk to the doublewrite
//! buffer and a flush, the same pages in their places and a flush (MySQL 8.4 Reference Manual,
//! 17.6.4 "Doublewrite Buffer", 17.6.5 "Redo Log"). The log goes through the page cache, so that
//! the device sees its last page of 4096 bytes again after every commit, and a flush. The target
//! holds the log, the doublewrite buffer and the pages, in this order; `count` is batches.

use super::{Blocks, Needs, Parameters, Watch, WorkloadKind, whole};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::run::Run;
use crate::streams::{self, Ask, Limit};
use trueline_geom::base::topology::round_down;
use trueline_sim::random::Random;

/// The workload `innodb` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "innodb",
    title: "MySQL's redo log, doublewrite buffer and 16 KiB pages",
    needs: Needs::Blocks(make),
};

/// The page size in bytes (`innodb_page_size`).
const PAGE: u64 = 16384;
/// Pages of a batch: `innodb_doublewrite_pages` of MySQL 8.4.
const PAGES: u64 = 128;
/// Commits whose changes make a batch of pages dirty, and what each adds to the log: small
/// transactions, one page each.
const COMMITS: u64 = PAGES;
const COMMIT: u64 = 512;
/// The unit in which the page cache writes back the log, in bytes.
const LOG_PAGE: u64 = 4096;
/// The size of the log in bytes; it is written cyclically.
const LOG: u64 = 64 << 20;
const BATCHES: u64 = 16;

struct Innodb {
    page: u64,
    offset: u64,
    depth: usize,
    batches: u64,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let page = parameters.block(PAGE)?;
    if page > 65536 {
        return Err(Error::new(format!("innodb: pages of {page} bytes: at most 65536")));
    }
    let Limit::Count(batches) = parameters.limit(BATCHES)? else {
        return Err(Error::new(
            "innodb: a run ends after a count of batches, not after seconds".into(),
        ));
    };
    Ok(Box::new(Innodb { page, offset: parameters.offset, depth: parameters.depth(32)?, batches }))
}

impl Blocks for Innodb {
    fn writes(&self) -> bool {
        true
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn largest(&self) -> u64 {
        PAGES * self.page
    }

    fn extent(&self, _length: u64) -> Option<u64> {
        Some(self.batches.saturating_mul(2 * COMMITS + 1 + PAGES + 2))
    }

    fn run(&self, rig: &mut dyn Rig, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let Innodb { page, offset, batches, .. } = *self;
        whole(rig, "innodb pages", page, offset)?;
        whole(rig, "innodb's log", LOG_PAGE, offset)?;
        let buffer = offset.saturating_add(LOG);
        let data = buffer.saturating_add(PAGES * page);
        // A page is left free at the end, so that every offset has the same requests.
        let places = round_down(rig.length().saturating_sub(LOG + PAGES * page), page) / page;
        let places = places.saturating_sub(1 + offset.div_ceil(page));
        if places == 0 {
            return Err(Error::new(format!(
                "innodb at {offset}: the target has {} bytes, its log and buffer need {data}",
                rig.length()
            )));
        }
        let mut random = Random::new(seed);
        let mut whole = Run::new();
        let flush = Ask { op: Op::Flush, offset: 0, length: 0, fua: false };
        let write = |offset: u64, length: u64| Ask { op: Op::Write, offset, length, fua: false };
        let begin = rig.now();
        for commit in (0..batches).map(|batch| batch * COMMITS) {
            let log = (commit..commit + COMMITS).flat_map(|nth| {
                let at = round_down(nth * COMMIT % LOG, LOG_PAGE);
                [write(offset + at, LOG_PAGE), flush]
            });
            let pages: Vec<Ask> =
                (0..PAGES).map(|_| write(data + random.below(places) * page, page)).collect();
            let phases = [
                (1, log.collect()),
                (1, vec![write(buffer, PAGES * page), flush]),
                (self.depth, pages),
                (1, vec![flush]),
            ];
            for (depth, asks) in phases {
                let done = phase(rig, depth, asks, watch, &mut whole)?;
                if !done {
                    whole.ns = rig.now() - begin;
                    return Ok(whole);
                }
            }
        }
        whole.ns = rig.now() - begin;
        Ok(whole)
    }
}

/// Runs the requests of one phase to their end. True if the observer let all of them be made.
fn phase(
    rig: &mut dyn Rig,
    depth: usize,
    asks: Vec<Ask>,
    watch: &mut Watch<'_>,
    whole: &mut Run,
) -> Result<bool, Error> {
    let (before, mut asked, mut left) = (whole.ops, 0, asks.into_iter());
    let mut source = |_| {
        if !watch(before + asked) {
            return None;
        }
        asked += 1;
        left.next()
    };
    let run = streams::run(rig, depth, Limit::Source, &mut source)?;
    whole.append(&run);
    Ok(left.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::recorder::{Recorder, made};

    fn asked(parameters: &Parameters) -> (Vec<(Op, u64, u64)>, Run) {
        let mut rig = Recorder::new(1 << 30);
        let run = made(&KIND, parameters).run(&mut rig, 1, &mut |_| true).expect("runs");
        (rig.asked, run)
    }

    #[test]
    fn a_batch_is_a_log_a_chunk_and_the_same_bytes_in_their_places() {
        let (asked, run) = asked(&Parameters { count: Some(2), ..Parameters::default() });
        assert_eq!(asked.len(), 2 * (256 + 2 + 128 + 1));
        assert!(
            run.longest_ns >= 1000 && run.waited_ns >= 1000 * run.ops,
            "latencies are summed too"
        );
        let batch = &asked[..387];
        // Eight commits fill a page of the log, which is written after each.
        assert!(
            batch[..16]
                .chunks(2)
                .all(|pair| pair[0] == (Op::Write, 0, 4096) && pair[1].0 == Op::Flush)
        );
        assert_eq!(batch[16], (Op::Write, 4096, 4096));
        assert_eq!(batch[256], (Op::Write, 64 << 20, 128 * 16384));
        assert_eq!((batch[257].0, batch[386].0), (Op::Flush, Op::Flush));
        let pages = &batch[258..386];
        assert!(pages.iter().all(|&(op, offset, length)| op == Op::Write
            && offset >= (66 << 20)
            && offset % 16384 == 0
            && length == 16384));
        assert_eq!(run.bytes, 2 * (128 * 4096 + 2 * 128 * 16384));
        assert_eq!((run.ops, run.latency.len()), (774, 774));
        // The recorder takes a microsecond for a request, and none was told to have taken nothing.
        assert!(
            run.waited_ns >= 774 * 1000 && run.longest_ns >= 1000,
            "{} {}",
            run.waited_ns,
            run.longest_ns
        );
    }

    #[test]
    fn an_offset_moves_every_request_and_nothing_else() {
        let (on, _) = asked(&Parameters { count: Some(1), ..Parameters::default() });
        let (off, _) =
            asked(&Parameters { count: Some(1), offset: 16384, ..Parameters::default() });
        assert_eq!(on.len(), off.len());
        assert!(
            off.iter().filter(|(op, ..)| *op == Op::Write).all(|&(_, offset, _)| offset >= 16384)
        );
    }

    #[test]
    fn it_ends_when_it_is_told_and_refuses_what_is_too_small() {
        let mut rig = Recorder::new(1 << 30);
        let run = made(&KIND, &Parameters::default())
            .run(&mut rig, 1, &mut |asked| asked < 10)
            .expect("runs");
        assert_eq!(run.ops, 10);
        let refused =
            made(&KIND, &Parameters::default()).run(&mut Recorder::new(1 << 20), 1, &mut |_| true);
        assert!(refused.expect_err("too small").message.contains("need"));
    }
}
