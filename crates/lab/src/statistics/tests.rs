use super::*;
use trueline_sim::random::Random;

#[test]
fn a_summary() {
    let of = Summary::from_values(&[4.0, 1.0, 3.0, 2.0, 100.0]).expect("finite");
    assert_eq!(
        (of.count, of.least, of.greatest, of.mean, of.median, of.mad),
        (5, 1.0, 100.0, 22.0, 3.0, 1.0)
    );
    assert!((of.deviation - 43.617_656_975_128_774).abs() < 1e-12, "{}", of.deviation);
    assert_eq!(Summary::from_values(&[2.0]).expect("one").deviation, 0.0);
    assert_eq!(Summary::from_values(&[]), None);
    assert_eq!(Summary::from_values(&[1.0, f64::NAN]), None);
    assert_eq!(Summary::from_values(&[1.0, f64::INFINITY]), None);
}

/// The figures of scipy 1.17.1.
#[test]
fn distributions_are_those_of_scipy() {
    use distribution::{normal, normal_quantile, student, student_quantile};
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}")
    };
    for (x, expected) in [
        (-3.0, 0.001_349_898_031_630_1),
        (0.5, 0.691_462_461_274_013),
        (6.0, 0.999_999_999_013_412_3),
        (9.0, 1.0),
    ] {
        close(normal(x), expected);
    }
    close(normal_quantile(0.975), 1.959_963_984_540_054);
    close(normal_quantile(1e-6), -4.753_424_308_822_899);
    let quantiles = [
        (1, 12.706_204_736_174_694),
        (2, 4.302_652_729_749_462),
        (3, 3.182_446_305_283_708),
        (9, 2.262_157_162_798_205),
    ];
    for (degrees, expected) in
        quantiles.into_iter().chain([(30, 2.042_272_456_301_238), (1000, 1.962_339_080_826_408)])
    {
        close(student_quantile(0.975, degrees), expected);
    }
    close(student(1.3, 4), 0.868_274_201_764_388);
    close(student(1.3, 9), 0.887_046_813_663_475);
}

/// scipy.stats.bootstrap(method='BCa') of 1.17.1 with a million resamples and two seeds; ours has
/// 20,000, and every end an error of drawing that is some 1 % of the width.
#[test]
fn intervals_are_those_of_scipy() {
    let near = |found: Interval, low: f64, high: f64| {
        let by = 0.03 * (high - low);
        assert!(
            (found.low - low).abs() < by && (found.high - high).abs() < by,
            "{found:?} for {low}..{high}"
        );
    };
    let skewed = [
        2.1, 3.4, 1.2, 9.8, 4.4, 2.7, 15.3, 6.1, 3.3, 7.9, 1.8, 22.4, 5.0, 4.1, 2.9, 11.7, 3.8,
        6.6, 8.2, 2.3, 4.9, 13.1, 5.7, 3.0, 1.5, 10.4, 7.2, 2.6, 4.6, 6.9,
    ];
    let mut mean = |drawn: &[u32]| {
        skewed.iter().zip(drawn).map(|(value, &times)| value * f64::from(times)).sum::<f64>()
            / total(drawn)
    };
    near(
        bootstrap::interval(30, bootstrap::reach(), bootstrap::RESAMPLES, 1, &mut mean)
            .expect("finite"),
        4.82,
        8.28,
    );

    let a = [1.021, 1.043, 0.998, 1.012, 1.087, 1.005, 1.031, 0.987, 1.154, 1.018, 1.027, 1.009];
    let b = [1.312, 1.341, 1.287, 1.402, 1.377, 1.298, 1.323, 1.279, 1.466, 1.309, 1.351, 1.290];
    let (below, above) = (bootstrap::Ascending::new(&a, 1), bootstrap::Ascending::new(&b, 1));
    let mut ratio = |drawn: &[u32]| above.median(drawn) / below.median(drawn);
    near(
        bootstrap::interval(12, bootstrap::reach(), bootstrap::RESAMPLES, 1, &mut ratio)
            .expect("finite"),
        1.283_220,
        1.335_97,
    );
    let of = |values: &[f64], drawn: &[u32]| {
        values.iter().zip(drawn).map(|(value, &times)| value * f64::from(times)).sum::<f64>()
    };
    let mut ratio = |drawn: &[u32]| of(&b, drawn) / of(&a, drawn);
    near(
        bootstrap::interval(12, bootstrap::reach(), bootstrap::RESAMPLES, 1, &mut ratio)
            .expect("finite"),
        1.282_90,
        1.322_56,
    );
}

fn total(drawn: &[u32]) -> f64 {
    drawn.iter().map(|&times| f64::from(times)).sum()
}

#[test]
fn the_median_of_what_was_drawn() {
    let ascending = bootstrap::Ascending::new(&[5.0, 1.0, 3.0], 1);
    for (drawn, expected) in
        [([1, 1, 1], 3.0), ([0, 2, 1], 1.0), ([1, 1, 0], 3.0), ([2, 0, 2], 4.0), ([3, 0, 0], 5.0)]
    {
        assert_eq!(ascending.median(&drawn), expected, "{drawn:?}");
    }
    assert!(ascending.median(&[0, 0, 0]).is_nan());
    // The same as of a series written out.
    assert_eq!(
        bootstrap::Ascending::new(&[4.0, 2.0, 9.0, 1.0], 1).median(&[1; 4]),
        median(&[4.0, 2.0, 9.0, 1.0])
    );
    // Neighbours are drawn together; the last may be alone.
    let paired = bootstrap::Ascending::new(&[4.0, 2.0, 9.0, 1.0, 7.0], 2);
    assert_eq!(paired.median(&[1, 1, 1]), 4.0);
    assert_eq!((paired.median(&[3, 0, 0]), paired.median(&[0, 2, 1])), (3.0, 7.0));
}

/// The number of intervals that contain the truth, of so many pairs of series of known ratio, with
/// the long tail that runs have.
fn held(runs: usize, truth: f64, of: usize) -> usize {
    let mut random = Random::new(11);
    let mut series =
        |middle: f64| (0..runs).map(|_| middle * tail(&mut random, 0.05)).collect::<Vec<f64>>();
    let mut ratio = || {
        Comparison::resampled(&series(2.0), &series(2.0 * truth), 2000, 7, 1).expect("finite").ratio
    };
    (0..of).map(|_| ratio()).filter(|ratio| ratio.low <= truth && truth <= ratio.high).count()
}

/// Log-normal, nearly: the exponential of a sum of twelve.
fn tail(random: &mut Random, deviation: f64) -> f64 {
    (deviation * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)).exp()
}

/// The coverage of intervals: of 300 with 95 %, 15 are expected to miss; 30 would be one in ten.
#[test]
fn intervals_cover_the_truth() {
    for runs in [6, 10] {
        let covered = held(runs, 1.3, 300);
        assert!((270..300).contains(&covered), "{covered} of 300 at {runs} runs");
    }
}

#[test]
fn no_difference_is_a_result() {
    let mut random = Random::new(2);
    let mut series =
        |middle: f64| (0..10).map(|_| middle * tail(&mut random, 0.02)).collect::<Vec<f64>>();
    let same = Comparison::between(&series(1.0), &series(1.0), 1).expect("finite");
    assert_eq!(same.verdict, Verdict::NoDifference);
    assert!(same.to_string().starts_with("no difference can be shown (−"), "{same}");
    // What it says could have been shown is shown.
    let could = same.could_show.expect("an interval");
    assert!((1.005..1.1).contains(&could), "{could}");
    let other = Comparison::between(&series(1.0), &series(could * 1.02), 1).expect("finite");
    assert_eq!(other.verdict, Verdict::Slower, "{other}");
}

#[test]
fn verdicts_in_words() {
    let say = |first: &[f64], last: &[f64]| {
        Comparison::between(first, last, 1).expect("finite").to_string()
    };
    let one = [1.0, 1.01, 1.02, 1.01, 1.0, 1.02];
    let other = [1.02, 1.0, 1.01, 1.02, 1.01, 1.0];
    let times = |by: f64| other.map(|value| value * by);
    assert_eq!(say(&one, &times(1.1)), "slower: takes 7.8 % to 12.2 % longer (95 %)");
    assert_eq!(say(&one, &times(0.9)), "faster: takes 8.2 % to 11.8 % less time (95 %)");
    assert_eq!(say(&one, &times(3.0)), "takes 2.94 to 3.06 times as long (95 %)");
    assert_eq!(say(&one, &times(0.25)), "takes 1/3.92 to 1/4.08 of the time (95 %)");
    assert_eq!(
        say(&[1.0], &[2.0]),
        "takes 2.000 times as long; 1 run each is too few for 95 %, which needs 6, better 10"
    );
    // What does not vary, as in virtual time, has the narrowest of intervals, and no noise hides a
    // difference.
    assert_eq!(say(&[2.0; 6], &[2.0; 6]), "no difference of 0.01 % or more (95 %)");
    assert_eq!(say(&[2.0; 6], &[2.000_001; 6]), "slower: takes less than 0.01 % longer (95 %)");
    assert_eq!(say(&[2.000_001; 6], &[2.0; 6]), "faster: takes less than 0.01 % less time (95 %)");
    assert_eq!(say(&[2.0; 6], &[3.0; 6]), "slower: takes 50 % longer (95 %)");
}

#[test]
fn what_is_no_time_never_gets_in() {
    for bad in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert!(Comparison::between(&[1.0, bad], &[1.0, 1.0], 1).is_err());
        assert!(Comparison::between(&[1.0, 1.0], &[bad, 1.0], 1).is_err());
    }
    assert!(Comparison::between(&[], &[1.0], 1).is_err());
    assert!(Comparison::between(&[f64::MIN_POSITIVE; 6], &[f64::MAX; 6], 1).is_err());
}

/// The sum of the widths of ten intervals of `runs` ratios, of which every value is there twice:
/// side by side, or half the runs apart.
fn widths(runs: usize, side_by_side: bool) -> f64 {
    let mut random = Random::new(17);
    let mut width = |_| {
        let values: Vec<f64> = (0..runs.div_ceil(2)).map(|_| tail(&mut random, 0.05)).collect();
        let at = |nth: usize| if side_by_side { nth / 2 } else { nth % values.len() };
        let last: Vec<f64> = (0..runs).map(|nth| values[at(nth)]).collect();
        let found = Comparison::resampled(&vec![1.0; runs], &last, 2000, 1, 1).expect("finite");
        found.ratio.high - found.ratio.low
    };
    (0..10).map(&mut width).sum()
}

/// Neighbours that resemble each other say less than as many strangers: from eight runs on the
/// interval knows.
#[test]
fn pairs_of_blocks_are_drawn_from_eight_runs_on() {
    let (pairs, strangers) = (widths(20, true), widths(20, false));
    assert!(pairs > 1.1 * strangers, "{pairs} of pairs, {strangers} of strangers");
}

/// The extremes of a few ratios are what was measured: nothing is concluded, and the probability
/// that they hold the true ratio is told.
#[test]
fn few_runs_have_extremes_and_their_confidence() {
    let few = Comparison::between(&[1.0, 1.1, 1.2], &[2.1, 2.2, 2.4], 1).expect("finite");
    assert_eq!((few.verdict, few.could_show, few.confidence), (Verdict::TooFew, None, 0.75));
    assert!((few.ratio.low - 2.0).abs() < 1e-12 && (few.ratio.high - 2.1).abs() < 1e-12);
    assert_eq!(
        few.to_string(),
        "takes 2.000 times as long; 3 runs each are too few for 95 %, which needs 6, better 10; \
         they measured 2.000 to 2.100, which holds the ratio with 75 %"
    );
    for (runs, confidence) in [(1, 0.0), (2, 0.5), (4, 0.875), (5, 0.9375), (6, CONFIDENCE)] {
        let of = Comparison::between(&vec![1.0; runs], &vec![2.0; runs], 1).expect("finite");
        assert_eq!(of.confidence, confidence, "{runs} runs");
        assert_eq!(of.verdict == Verdict::TooFew, runs < ENOUGH);
    }
}

/// The confidence that is told is the one that is kept: of four and five runs, within three
/// deviations of 400 draws.
#[test]
fn extremes_hold_the_truth_as_often_as_they_say() {
    for (runs, expected) in [(4, 350), (5, 375)] {
        let held = held(runs, 1.3, 400);
        assert!((held).abs_diff(expected) < 20, "{held} of 400 at {runs} runs");
    }
}

#[test]
fn equal_seeds_give_equal_intervals() {
    let (a, b) = ([1.0, 1.3, 0.9, 1.1, 1.2, 1.4], [1.5, 1.4, 1.6, 1.3, 1.7, 1.8]);
    let of = |seed| Comparison::between(&a, &b, seed).expect("finite").ratio;
    assert_eq!(of(4), of(4));
}

/// The figures of scipy 1.17.1: mannwhitneyu(method='asymptotic'), spearmanr, linregress.
#[test]
fn ranks_and_lines_are_those_of_scipy() {
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}")
    };
    close(
        rank::same(&[1.1, 2.2, 2.2, 3.5, 9.0], &[2.2, 4.1, 5.5, 6.0, 7.5, 8.0]),
        0.231_045_488_271_512_9,
    );
    close(
        rank::same(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]),
        0.012_185_780_355_344_8,
    );
    close(rank::same(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
    close(
        rank::correlation(&[1.0, 2.0, 2.0, 4.0, 5.0, 9.0], &[3.0, 1.0, 4.0, 4.0, 8.0, 7.0]),
        0.808_823_529_411_764_7,
    );
    close(rank::correlation(&[1.0, 2.0], &[3.0, 3.0]), 0.0);
    let points = [(0.0, 21.7), (1.0, 26.8), (2.0, 27.6), (3.0, 28.4), (4.0, 29.5), (5.0, 30.1)];
    let line = slope(&points).expect("a line");
    close(line.slope, 1.454_285_714_285_714_6);
    close(line.intercept, 23.714_285_714_285_71);
    close(line.interval.low, 0.483_185_810_773_223);
    close(line.interval.high, 2.425_385_617_798_205);
    assert_eq!(slope(&points[..2]), None);
    assert_eq!(slope(&[(1.0, 2.0), (1.0, 3.0), (1.0, 4.0)]), None);
    assert_eq!(slope(&[(1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)]), None);
}

#[test]
fn outliers_are_marked_also_where_most_is_equal() {
    assert_eq!(noise::outliers(&[1.0, 1.01, 0.99, 1.02, 5.0, 1.0]), [4]);
    assert_eq!(noise::outliers(&[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0]), [7]);
    assert!(noise::outliers(&[2.0; 8]).is_empty());
    assert!(noise::outliers(&[]).is_empty());
}

#[test]
fn warnings_in_words() {
    let of = |values: &[f64]| noise::of_series("aligned", values);
    assert_eq!(of(&[2.0; 8]), Vec::<String>::new());
    assert_eq!(of(&[2.0]), ["aligned: 1 run, too few for 95 %, which needs 6, better 10"]);
    let far = of(&[1.0, 1.01, 0.99, 1.02, 5.0, 1.0]);
    assert_eq!(far[0], "aligned: outliers (run 5 5.00 s) from a median of 1.00 s; all are kept");
    assert_eq!(far[1], "aligned: noisy: its runs deviate by 98 % of their mean");
    let two = of(&[0.01, 0.02, 0.0101, 0.0202, 0.0099, 0.0198, 0.0102, 0.0201]);
    assert!(
        two[0].starts_with(
            "aligned: the runs fall into two groups, about 10.05 ms and about 20.03 ms:"
        ),
        "{two:?}"
    );
}

/// Warnings are for what is wrong: series with nothing wrong are seldom warned of.
#[test]
fn quiet_series_raise_no_alarm() {
    let mut random = Random::new(9);
    let (mut kinds, mut drifts) = (0, 0);
    for _ in 0..500 {
        let mut series = || (0..10).map(|_| tail(&mut random, 0.02)).collect::<Vec<f64>>();
        let (a, b) = (series(), series());
        kinds += noise::of_series("a", &a)
            .iter()
            .filter(|warning| warning.contains("two kinds"))
            .count();
        drifts += usize::from(noise::drift(&[&a, &b]).is_some());
    }
    assert!(kinds < 10 && drifts < 10, "of 500: {kinds} of two kinds, {drifts} drift");
}

#[test]
fn a_drift_is_warned_of() {
    let mut random = Random::new(9);
    let mut rising = |by: f64| {
        (0..10).map(|at| (1.0 + by * real(at)) * tail(&mut random, 0.01)).collect::<Vec<f64>>()
    };
    let (a, b) = (rising(0.02), rising(0.02));
    let said = noise::drift(&[&a, &b]).expect("a drift");
    assert!(said.contains("slower than the first"), "{said}");
    let (a, b) = (rising(-0.02), rising(-0.02));
    assert!(noise::drift(&[&a, &b]).expect("a drift").contains("faster"), "{a:?}");
    assert_eq!(noise::drift(&[&[1.0; 10], &[2.0; 10]]), None);
    assert_eq!(noise::drift(&[&[], &[]]), None);
}
