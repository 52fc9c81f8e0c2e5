//! Runs that are killed, and power that fails later: what a killed run wrote and did not flush is
//! in a cache, and stays volatile into the next run.

use crate::case::{Came, SECTOR, SIZES, disk, is_moved, paper, plan, resume, tabled};
use crate::medium::{Medium, Random};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline_geom::base::store::Store;
use trueline_geom::relocate::{Journal, Move, Start, carry};

/// How a run ends before its time.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Power,
}

/// Runs a move, with an interruption after each of `budgets`, until it is done and the journal is
/// removed; then the power fails. Gives what is on the disk in the end.
fn carried(before: &[u8], plan: &Move, budgets: &[(u64, End)], random: &mut Random) -> Vec<u8> {
    let power = Arc::new(AtomicU64::new(0));
    let mut medium = Medium::new(before.to_vec(), &power);
    let mut file = Medium::new(paper(plan), &power);
    let mut begins = true;
    for (budget, end) in budgets.iter().copied().chain([(u64::MAX, End::Power); 2]) {
        power.store(budget, Ordering::Relaxed);
        let came = if begins {
            let (journal, read, _) = Journal::open(&file).unwrap();
            match carry(&read, &medium, Some(&journal), Start::default(), &mut |_| true) {
                Ok(_) => Came::Done,
                Err(_) => Came::Failed,
            }
        } else {
            resume(&medium, &file)
        };
        match came {
            // The command flushes before it removes the journal.
            Came::Done => return medium.after(random),
            Came::Refused => panic!("refused: {budgets:?}"),
            Came::Untouched | Came::Failed => {}
        }
        begins = came == Came::Untouched;
        if matches!(end, End::Power) {
            medium = Medium::new(medium.after(random), &power);
            file = Medium::new(file.after(random), &power);
        }
        if begins {
            assert!(medium.seen() == before);
            file = Medium::new(paper(plan), &power);
        }
    }
    panic!("it never ended: {budgets:?}");
}

fn cases() -> Vec<(&'static str, Vec<u8>, Move)> {
    let mut cases = Vec::new();
    for (name, from, to) in [
        ("up 1", 4, 5),
        ("down 1", 5, 4),
        ("up 2", 4, 6),
        ("down 2", 6, 4),
        ("up 4", 4, 8),
        ("down 4", 8, 4),
    ] {
        let before = disk(80, from * SECTOR);
        let plan = plan(&before, from * SECTOR, to * SECTOR, 30 * SECTOR, SIZES);
        cases.push((name, before, plan));
    }
    for (name, scheme, sector, from, to) in [
        ("mbr down 1", "mbr", 512, 41, 40),
        ("gpt 4k down 4", "gpt", 4096, 12, 8),
        ("gpt up 1", "gpt", 512, 40, 41),
        ("gpt 4k up 2", "gpt", 4096, 8, 10),
    ] {
        let (before, plan) = tabled(scheme, sector, from, to);
        cases.push((name, before, plan));
    }
    cases
}

#[test]
fn what_a_killed_run_did_not_flush_is_not_lost_later() {
    let mut failed = Vec::new();
    for (name, before, plan) in cases() {
        for kill in 0..110 {
            for seed in 0..8 {
                let after = carried(&before, &plan, &[(kill, End::Killed)], &mut Random(seed));
                if !is_moved(&before, &after, &plan) {
                    failed.push((name, kill));
                    break;
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn kills_and_losses_of_power_in_any_order_lose_nothing() {
    let mut random = Random(11);
    for (name, before, plan) in cases() {
        for round in 0..400 {
            let count = 1 + random.next(5);
            let budgets: Vec<_> = (0..count)
                .map(|_| {
                    (random.next(60), if random.next(2) == 0 { End::Killed } else { End::Power })
                })
                .collect();
            let after = carried(&before, &plan, &budgets, &mut random);
            assert!(is_moved(&before, &after, &plan), "{name}, round {round}: {budgets:?}");
        }
    }
}

/// A file system whose superblock is not in its first sector is whole behind the first mark, and
/// may be used there: what the journal knows of it is old then.
#[test]
fn what_was_used_behind_the_first_mark_is_not_written_over() {
    for (from, to) in [(4, 6), (6, 4)] {
        let before = disk(80, from * SECTOR);
        let plan = plan(&before, from * SECTOR, to * SECTOR, 30 * SECTOR, SIZES);
        let (medium, file) = (Medium::steady(before.clone()), Medium::steady(paper(&plan)));
        let (journal, read, _) = Journal::open(&file).unwrap();
        let mut steps = 0;
        let stopped = carry(&read, &medium, Some(&journal), Start::default(), &mut |_| {
            steps += 1;
            steps < 2
        });
        assert!(stopped.is_err());
        for at in [from + 2, from + 29] {
            let used = Medium::steady(medium.seen());
            used.write_at(&[1; 20], at * SECTOR).unwrap();
            assert_eq!(resume(&used, &Medium::steady(file.seen())), Came::Refused, "{from}: {at}");
        }
        assert_eq!(resume(&medium, &file), Came::Done, "{from}");
        assert!(is_moved(&before, &medium.seen(), &plan), "{from}");
    }
}
