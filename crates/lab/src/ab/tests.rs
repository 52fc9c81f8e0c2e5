use super::*;
use trueline_sim::random::Random;

mod coverage;

fn plan(variants: &[&str], runs: usize) -> MeasurementPlan {
    let variants = variants.iter().map(|&name| name.to_owned()).collect();
    MeasurementPlan {
        variants,
        warmup: 0,
        runs,
        until: None,
        measure: Measure::Time,
        seed: 1,
        is_virtual: false,
    }
}

fn took(ns: u64) -> Run {
    let mut run = Run::new();
    run.record(4096, ns);
    run.ns = ns;
    run
}

/// Around `middle`, within ±`spread` of it.
fn noisy(random: &mut Random, middle: u64, spread: u64) -> Run {
    took(middle - spread + random.below(2 * spread + 1))
}

#[test]
fn two_variants_are_abba_abba() {
    assert_eq!(order(2, 4).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1, 1, 0]);
    assert_eq!(warmups(2, 1).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(warmups(2, 2).collect::<Vec<_>>(), [0, 1, 1, 0]);
    assert_eq!(order(1, 3).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(order(0, 3).count(), 0);
}

/// The law of the order: a steady drift adds the same to every variant.
#[test]
fn every_variant_has_the_same_mean_position() {
    for variants in 1..7 {
        for runs in (2..13).step_by(2) {
            let mut sums = vec![0; variants];
            for (position, variant) in order(variants, runs).enumerate() {
                sums[variant] += position;
            }
            assert!(
                sums.iter().all(|&sum| sum == sums[0]),
                "{variants} variants, {runs} runs: {sums:?}"
            );
        }
    }
}

/// The law of what a run leaves behind: of two variants, both runs of a block follow the same one,
/// and every variant follows itself in every other block.
#[test]
fn both_runs_of_a_block_follow_the_same_variant() {
    let all: Vec<usize> = warmups(2, 1).chain(order(2, 12)).collect();
    let follow = |block: usize, variant: usize| {
        let at = 2 + 2 * block + usize::from(all[2 + 2 * block] != variant);
        all[at - 1]
    };
    for block in 0..12 {
        assert_eq!((follow(block, 0), follow(block, 1)), (block % 2, block % 2), "block {block}");
    }
}

#[test]
fn a_slower_variant_is_shown_and_warm_up_is_not_looked_at() {
    let mut random = Random::new(3);
    let mut plan = plan(&["aligned", "unaligned"], 10);
    plan.warmup = 2;
    let mut seen = Vec::new();
    let mut one = |variant, run| {
        Ok(if run < 2 {
            took(1)
        } else {
            noisy(&mut random, [1_000_000, 2_500_000][variant], 50_000)
        })
    };
    let found = measure(&plan, &mut one, &mut |at| {
        seen.push((at.variant.to_owned(), at.run, at.warmup, at.planned))
    });
    assert_eq!(seen.len(), 24);
    assert_eq!(seen[3], ("aligned".into(), 1, true, 24));
    assert_eq!(seen[4], ("aligned".into(), 2, false, 24));
    assert!(found.runs.iter().all(|runs| runs.len() == 10 && runs.iter().all(|run| run.ns > 1)));
    let comparison = found.comparison.expect("a ratio");
    assert_eq!(comparison.verdict, Verdict::Slower);
    assert!(comparison.ratio.low < 2.5 && comparison.ratio.high > 2.5, "{comparison:?}");
    assert!(found.stopped.is_none());
}

/// A variant that slows the run after it, whichever that is: the ratio does not have it, and the
/// verdict says so.
#[test]
fn a_run_that_slows_the_next_is_told() {
    let with = |variants: &[&str], is_virtual: bool, slows: u64| {
        let (mut random, mut before) = (Random::new(8), 0);
        let plan = MeasurementPlan { warmup: 1, is_virtual, ..plan(variants, 12) };
        let mut one = |variant, _| {
            let left = if before == 1 { slows } else { 0 };
            before = variant;
            Ok(noisy(&mut random, [1_000_000, 1_300_000, 1_300_000][variant] + left, 20_000))
        };
        measure(&plan, &mut one, &mut |_| {}).comparison.expect("a ratio")
    };
    let slowed = with(&["a", "b"], false, 200_000);
    let effect = slowed.carry_over.expect("twelve runs");
    assert!(effect.decides && effect.probability < 0.01, "{effect:?}");
    assert!((1.1..1.3).contains(&effect.effect) && effect.first < 0.9 && effect.last > 1.1);
    assert!((effect.alone - 1.5).abs() < 0.1, "{effect:?}");
    assert!(slowed.ratio.median < 1.35, "{slowed:?}");
    assert!(slowed.to_string().contains("; the order decides: a run takes "), "{slowed}");
    let quiet = with(&["a", "b"], false, 0);
    assert!(!quiet.carry_over.expect("twelve runs").decides, "{quiet:?}");
    assert!(!quiet.to_string().contains("order"), "{quiet}");
    assert_eq!(with(&["a", "b"], true, 200_000).carry_over, None, "every run has new drives");
    assert_eq!(with(&["a", "b", "c"], false, 200_000).carry_over, None);
}

#[test]
fn a_failure_keeps_what_is_finished() {
    let mut left = 7;
    let mut one = |_, _| {
        left -= 1;
        if left == 0 { Err(Error::new("read at 0: it vanished".into())) } else { Ok(took(10)) }
    };
    let found = measure(&plan(&["a", "b"], 10), &mut one, &mut |_| {});
    assert_eq!(found.runs.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(found.stopped, Some(Error::new("read at 0: it vanished".into())));
    assert_eq!(found.comparison.expect("of three").runs, 3);
    assert_eq!(found.warnings, Vec::<String>::new(), "the comparison says that there are too few");
    let alone = measure(&plan(&["a"], 3), &mut |_, _| Ok(took(10)), &mut |_| {});
    assert_eq!(alone.warnings[0], "a: 3 runs, too few for 95 %, which needs 6, better 10");
    let nothing =
        measure(&plan(&["a", "b"], 10), &mut |_, _| Err(Error::new("no".into())), &mut |_| {});
    assert!(nothing.comparison.is_err());
}

#[test]
fn it_stops_when_the_interval_is_narrow_or_at_the_most() {
    let until = |width, spread| {
        let mut random = Random::new(5);
        let mut plan = plan(&["a", "b"], 4);
        plan.until = Some(Until { width, most: 30 });
        measure(&plan, &mut |_, _| Ok(noisy(&mut random, 1_000_000, spread)), &mut |_| {}).runs[0]
            .len()
    };
    assert_eq!(until(0.5, 1_000), 6);
    assert_eq!(until(0.000_01, 200_000), 30);
    let between = until(0.03, 50_000);
    assert!((8..30).contains(&between), "{between}");
}

#[test]
fn runs_of_equal_length_are_compared_by_the_request() {
    let mut plan = plan(&["a", "b"], 4);
    plan.measure = Measure::TimePerRequest;
    let mut one = |variant, _| {
        let mut run = Run::new();
        (0..[100, 50][variant]).for_each(|_| run.record(512, 10));
        run.ns = 1_000_000;
        Ok(run)
    };
    let found = measure(&plan, &mut one, &mut |_| {});
    assert!((found.comparison.as_ref().expect("a ratio").ratio.median - 2.0).abs() < 1e-9);
    assert_eq!(found.latency(0).len(), 400);
    // A run of no requests has no time a request, and that is said.
    let idle = measure(&plan, &mut |_, _| Ok(Run { ns: 5, ..Run::new() }), &mut |_| {});
    assert!(idle.comparison.is_err());
    assert_eq!(idle.warnings[0], "a: a run made no request, so it has no time per request");
}

#[test]
fn a_variant_that_does_less_is_not_faster() {
    let mut one = |variant, _| {
        let mut run = Run::new();
        (0..[16, 15][variant]).for_each(|_| run.record(4096, 1000));
        run.ns = 1000 * run.ops;
        Ok(run)
    };
    let found = measure(&plan(&["a", "b"], 4), &mut one, &mut |_| {});
    let ratio = found.comparison.expect("a ratio").ratio;
    assert!((ratio.median - 1.0).abs() < 1e-9 && (ratio.high - 1.0).abs() < 1e-9, "{ratio:?}");
    assert!(
        found.warnings[0].starts_with("the variants made different numbers of requests"),
        "{:?}",
        found.warnings
    );
}

#[test]
fn failed_requests_are_told() {
    let bad = || Run { errors: 2, first_error: Some("read at 512: no".into()), ..took(9) };
    let mut one = |variant, _| Ok(if variant == 1 { bad() } else { took(9) });
    let found = measure(&plan(&["a", "b"], 4), &mut one, &mut |_| {});
    assert!(
        found.warnings.contains(&"b: 8 requests failed, the first: read at 512: no".to_owned()),
        "{:?}",
        found.warnings
    );
    assert!(found.comparison.is_err_and(|e| e.message.ends_with("needs runs in which none did")));
}
