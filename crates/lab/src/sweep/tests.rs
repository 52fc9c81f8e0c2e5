use super::*;

/// A memory model with two ranges.
const TEXT: &str = r#"
name = "m"
title = "memory"
size = 1048576
logical_block_size = 512
physical_block_size = 4096
[memory]
command_ns = 100.5
rate_bytes = 100000
[range]
command_ns = [50, 150]
rate_bytes = [100000, 100003]
"#;

fn plan(text: &str) -> SweepPlan<'_> {
    SweepPlan { text, fixed: Vec::new(), points: 64, seed: 1, threads: 1 }
}

/// A ratio that rises with the time of a command, and a little with the rate.
fn ratio(set: &Set) -> Result<f64, Error> {
    let memory = Model::parse_with(TEXT, set).expect("was tried").memory.expect("memory");
    Ok(1.0
        + memory.command_ns / 100.0
        + f64::from(u32::try_from(memory.rate_bytes - 99_000).expect("small")) * 1e-6)
}

#[test]
fn every_part_of_every_range_is_used_once() {
    let parameters = parameters(TEXT, &[]).expect("ranges");
    let whole = |p: &Parameter| matches!(p.values, Values::Between { whole: true, .. });
    assert_eq!(
        parameters.iter().map(|p| (p.key.as_str(), whole(p))).collect::<Vec<_>>(),
        [("command_ns", false), ("rate_bytes", true)]
    );
    for count in [1, 2, 7, 64] {
        let points = points(&parameters, count, 5);
        let mut parts: Vec<usize> = Vec::new();
        for point in &points {
            let share = (point[0].1.as_float().expect("a float") - 50.0) / 100.0;
            parts.push(
                (0..count).find(|part| share < real(part + 1) / real(count)).expect("inside"),
            );
        }
        parts.sort_unstable();
        assert_eq!(parts, (0..count).collect::<Vec<_>>());
    }
    // Of whole numbers each has its share: 16 of 64 points.
    let drawn = points(&parameters, 64, 5);
    for value in 100_000..100_004 {
        assert_eq!(drawn.iter().filter(|point| point[1].1 == Value::Integer(value)).count(), 16);
    }
}

#[test]
fn parameters_are_not_drawn_together() {
    let parameter = |key: &str| Parameter {
        key: key.into(),
        values: Values::Between { low: 0.0, high: 1.0, whole: false },
    };
    let column = |points: &[Set], at: usize| {
        points.iter().map(|point| point[at].1.as_float().expect("a float")).collect::<Vec<_>>()
    };
    let drawn = points(&[parameter("a"), parameter("b"), parameter("c")], 64, 3);
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let together = rank::correlation(&column(&drawn, one), &column(&drawn, other));
        assert!(together.abs() < 0.4, "{together}");
    }
    // What is swept besides changes nothing.
    assert_eq!(column(&points(&[parameter("b")], 64, 3), 0), column(&drawn, 1));
    assert_ne!(column(&points(&[parameter("b")], 64, 4), 0), column(&drawn, 1));
}

#[test]
fn a_sweep_gives_the_ends_and_what_they_depend_on() {
    let sweep = run(&plan(TEXT), &ratio).expect("a sweep");
    assert!((sweep.default - 2.006).abs() < 1e-12);
    assert!(sweep.low < 1.52 && sweep.high > 2.48, "{} to {}", sweep.low, sweep.high);
    assert!(sweep.low < sweep.low_90 && (1.52..1.6).contains(&sweep.low_90), "{}", sweep.low_90);
    assert!(sweep.high > sweep.high_90 && (2.4..2.5).contains(&sweep.high_90), "{}", sweep.high_90);
    assert_eq!(sweep.points.len(), 64);
    let (key, by) = &sweep.sensitivity[0];
    assert!(key == "command_ns" && *by > 0.99, "{key} {by}");
    let said = sweep.to_string();
    assert!(
        said.starts_with(
            "64 points; it depends most on command_ns: the greater that, the greater it is (rank correlation"
        ),
        "{said}"
    );
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let of = |threads| run(&SweepPlan { threads, ..plan(TEXT) }, &ratio).expect("a sweep");
    let one = of(1);
    for threads in [0, 2, 7] {
        assert_eq!(of(threads), one);
    }
    let odd = |set: &Set| match set.first() {
        Some((_, value)) if value.as_float() > Some(120.0) => {
            Err(Error::new(format!("at {value:?}")))
        }
        _ => Ok(1.0),
    };
    let first = run(&plan(TEXT), &odd).expect_err("fails");
    for threads in [2, 7] {
        assert_eq!(run(&SweepPlan { threads, ..plan(TEXT) }, &odd).expect_err("fails"), first);
    }
}

#[test]
fn what_is_fixed_is_not_swept() {
    let fixed = vec![("memory.command_ns".to_owned(), Value::Integer(7))];
    let sweep = run(&SweepPlan { fixed, ..plan(TEXT) }, &ratio).expect("a sweep");
    assert_eq!(
        sweep.sensitivity.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        ["rate_bytes"]
    );
    assert!(sweep.points.iter().all(|(set, _)| set.len() == 2 && set[0].1 == Value::Integer(7)));
    assert!((sweep.default - 1.071).abs() < 1e-12, "{}", sweep.default);
}

#[test]
fn without_a_range_there_is_the_default_alone() {
    let text = TEXT.split("[range]").next().expect("a text");
    let sweep = run(&plan(text), &ratio).expect("a sweep");
    assert_eq!((sweep.low, sweep.high, sweep.points.len()), (sweep.default, sweep.default, 0));
    assert_eq!(sweep.to_string(), "the model has no range to sweep");
}

#[test]
fn points_that_cannot_be_are_counted() {
    let text = format!("{TEXT}alignment_offset = [0, 4608]\n");
    let sweep = run(&plan(&text), &|_| Ok(1.0)).expect("a sweep");
    assert!(sweep.impossible > 0 && sweep.impossible + sweep.points.len() == 64, "{sweep:?}");
    assert!(
        sweep.why.as_ref().is_some_and(|why| why.message.contains("alignment_offset")),
        "{:?}",
        sweep.why
    );
    assert!(sweep.to_string().contains("more were not possible"), "{sweep}");
    // Not one of them: then the default is all there is.
    let none = run(&plan(&format!("{TEXT}alignment_offset = [4608, 5120]\n")), &|_| Ok(2.0))
        .expect("a sweep");
    assert_eq!((none.impossible, none.low, none.high), (64, 2.0, 2.0));
    // What is no key is not taken for one that cannot be.
    let refusal =
        run(&plan(&format!("{TEXT}unheard_of = [0, 1]\n")), &|_| Ok(2.0)).expect_err("no such key");
    assert_eq!(refusal.message, "sweep: line 13: [range] unheard_of: the model has no such key");
}

#[test]
fn bad_ranges_and_ratios_are_refused() {
    for range in ["[3, 1]", "[nan, 1]", "[0, inf]"] {
        let text = format!(
            "{}[range]\ncommand_ns = {range}\n",
            TEXT.split("[range]").next().expect("a text")
        );
        let refusal = run(&plan(&text), &ratio).expect_err(range);
        assert!(refusal.message.starts_with("sweep: line 11: [range] command_ns = ["), "{refusal}");
    }
    // A range wider than numbers go is refused point by point, if at all.
    let wide = TEXT.replace("[50, 150]", "[-1.7e308, 1.7e308]");
    let wide = run(&plan(&wide), &|_| Ok(1.0)).expect("a sweep");
    assert_eq!(wide.points.len() + wide.impossible, 64);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(run(&plan(TEXT), &|_| Ok(bad)).is_err());
    }
}

#[test]
fn words_are_swept_alike_and_change_no_other_values() {
    let text = Model::named("512n").expect("it is built in");
    let text = text
        .split("\n[range]\n")
        .next()
        .map(|front| format!("{front}\n[range]\nsetup_ms = [0.4, 0.6]\n"))
        .expect("a text");
    let open = format!("{text}destage_order = [\"sptf\", \"clook\", \"fifo\"]\n");
    let of = |text: &str, fixed: &[(String, Value)]| {
        points(&parameters(text, fixed).expect("ranges"), 9, 1)
    };
    let (numbers, both) = (of(&text, &[]), of(&open, &[]));
    for word in ["sptf", "clook", "fifo"] {
        assert_eq!(
            both.iter().filter(|point| point[0].1.as_str() == Some(word)).count(),
            3,
            "{word}"
        );
    }
    assert!(numbers.iter().zip(&both).all(|(one, two)| one[0] == two[1]), "{both:?}");
    // A word fixed by the user is not swept.
    assert_eq!(of(&open, &[("disk.destage_order".into(), Value::String("fifo".into()))]), numbers);
    assert!(both.iter().all(|set| Model::parse_with(&open, set).is_ok()));
}
