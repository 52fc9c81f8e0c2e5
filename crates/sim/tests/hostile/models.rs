//! What must hold of any text that is read as a model; the fuzz target `model` says the same of
//! others.

use trueline_sim::drive::{Command, Op};
use trueline_sim::model::{Model, Parameter};
use trueline_sim::random::Random;

/// Commands that a drive is given.
const COMMANDS: u64 = 50;

/// A text is refused in one line, or is a model whose drive does everything it is asked to, once
/// and in order of time.
pub fn model_holds(text: &str, seed: u64) {
    match Model::parse(text) {
        Err(refusal) => {
            assert!(!refusal.to_string().contains('\n'), "{refusal:?}");
            assert!(
                refusal.line.is_none_or(|line| line <= text.matches('\n').count() + 1),
                "{refusal:?}"
            );
            assert!(Parameter::list(text, &[]).is_err());
        }
        Ok(model) => {
            serves(&model, seed);
            assert!(Parameter::list(text, &[]).is_ok(), "{text}");
            model.topology(model.size);
        }
    }
}

/// Gives the drive random commands of up to 1 MiB, and has them all done.
fn serves(model: &Model, seed: u64) {
    let (mut drive, mut done, mut random) = (model.drive(seed), Vec::new(), Random::new(seed));
    let sectors = model.size / model.logical_block_size;
    let mut now = 0;
    for tag in 0..COMMANDS {
        let first = random.below(sectors);
        let count =
            1 + random.below((sectors - first).min((1 << 20) / model.logical_block_size).max(1));
        let op = [Op::Read, Op::Write, Op::Write, Op::Flush]
            [usize::try_from(random.below(4)).unwrap_or_default()];
        let (offset, length) = (
            first * model.logical_block_size,
            count.min(sectors - first) * model.logical_block_size,
        );
        drive.submit(now, Command { tag, op, offset, length, fua: random.below(4) == 0 });
        if let Some(next) = drive.next().filter(|_| random.below(2) == 0) {
            now = next.max(now);
            drive.advance(now, &mut done);
        }
    }
    // A drive that never comes to rest would never end; one that needs so long for so little would
    // neither.
    for _ in 0..10_000_000 {
        let Some(next) = drive.next() else { break };
        now = next.max(now);
        drive.advance(now, &mut done);
    }
    let mut tags: Vec<u64> = done.iter().map(|completion| completion.tag).collect();
    tags.sort_unstable();
    assert_eq!(
        tags,
        (0..COMMANDS).collect::<Vec<u64>>(),
        "{}: every command is done, and once",
        model.name
    );
    assert!(
        done.windows(2).all(|pair| pair[0].at <= pair[1].at),
        "{}: in order of time",
        model.name
    );
    let counters = drive.counters(now);
    assert_eq!(counters.reads + counters.writes + counters.flushes, COMMANDS);
}
