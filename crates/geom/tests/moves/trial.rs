//! A plan for a disk that is carried out, interrupted anywhere, turned round and gone on with.

use crate::medium::{Medium, Random};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::relocate::bad::ROOM;
use trueline_geom::relocate::sequence::{Adapted, Goal, Movement, Sequence, Stop, run};

/// Disk with its plan, and what has to hold on the way.
pub(crate) trait Trial {
    fn name(&self) -> &str;

    /// The disk before the plan.
    fn before(&self) -> &[u8];

    fn sequence(&self) -> &Sequence;

    /// What adapts the partition of `moved` as `disk` is then.
    fn adapted(&self, disk: &Medium, moved: Movement) -> Result<Adapted, Errno>;

    /// Checks that nothing is lost in the middle of the plan.
    fn shown(&self, disk: &[u8]);

    /// Checks that all is at its place at the end `goal`.
    fn check(&self, disk: &[u8], goal: Goal);

    /// A journal, with something else in the room for moves.
    fn paper(&self) -> Vec<u8> {
        let (mut head, size) = self.sequence().head("words").unwrap();
        head.resize(usize::try_from(size - 2 * ROOM).unwrap(), 0xa5);
        head
    }

    /// Goes to each of `goals`, interrupted after so many requests; then to the last one's end.
    fn go(&self, goals: &[(Goal, u64, bool)], random: &mut Random) {
        let power = Arc::new(AtomicU64::new(0));
        let mut medium = Medium::new(self.before().to_vec(), &power);
        let mut file = Medium::new(self.paper(), &power);
        let last = goals.last().map_or(Goal::Forward, |goal| goal.0);
        for &(goal, budget, killed) in goals.iter().chain([&(last, u64::MAX, false)]) {
            power.store(budget, Ordering::Relaxed);
            let (read, words, room) = Sequence::open(&file).unwrap();
            let stages = self.sequence().stages.len();
            assert_eq!((words.as_str(), read.stages.len()), ("words", stages));
            let mut adapted = |moved| self.adapted(&medium, moved);
            match run(&read, &medium, (&file, room), goal, &mut adapted, &mut |_| true) {
                Ok(_) => self.check(&medium.after(random), goal),
                Err(Stop::Interrupted(_)) if !killed => self.shown(&medium.after(random)),
                Err(Stop::Interrupted(_)) => {}
                Err(other) => panic!("{}: {goals:?}: {other:?}", self.name()),
            }
            if !killed {
                medium = Medium::new(medium.after(random), &power);
                file = Medium::new(file.after(random), &power);
            }
        }
    }

    /// Requests after which a table was being written: the crash points that matter most.
    fn table_writes(&self) -> Vec<u64> {
        const ALL: u64 = 1 << 40;
        let power = Arc::new(AtomicU64::new(ALL));
        let (medium, file) =
            (Medium::new(self.before().to_vec(), &power), Medium::new(self.paper(), &power));
        let (read, _, room) = Sequence::open(&file).unwrap();
        let mut adapted = |moved| self.adapted(&medium, moved);
        run(&read, &medium, (&file, room), Goal::Forward, &mut adapted, &mut |_| true).unwrap();
        let sectors: Vec<u64> = self.sequence().tables().iter().map(|range| range.start).collect();
        let writes = medium.writes.lock().unwrap();
        let of_table = writes.iter().filter(|(at, _)| sectors.contains(at));
        let mut found: Vec<u64> =
            of_table.flat_map(|(_, left)| [ALL - left - 1, ALL - left, ALL - left + 1]).collect();
        found.dedup();
        found
    }
}
