//! `bench` of more than two variants: each against the first, and what is said of all together.

use crate::{list, run, scratch};
use serde_json::Value;

/// The document of a measurement.
fn bench(arguments: &str) -> Value {
    run(scratch().path(), &format!("bench {arguments} --json")).ended(0).json()
}

/// Intervals of several comparisons are wider than alone, and of two variants there is one.
#[test]
fn every_variant_is_compared_with_the_first() {
    let arguments = "random-write drive:wd10ears --count 100 --offset 0,8,1";
    let document = bench(&format!("{arguments} --runs 8"));
    let all = list(&document, "comparisons");
    let told: Vec<_> = all.iter().map(|c| (&c["variant"], &c["against"])).collect();
    let text = Value::from;
    let first = text("offset 0");
    assert_eq!(told, [(&text("offset 8"), &first), (&text("offset 1"), &first)]);
    assert_eq!(all[1]["verdict"], "slower");
    let number = |value: &Value| value.as_f64().expect("a number");
    let widths = [&document["ratio"], &all[1]["ratio"]]
        .map(|ratio| number(&ratio["high"]) - number(&ratio["low"]));
    assert!(widths[0] <= widths[1], "{widths:?}");
    assert_eq!(
        (&document["comparison"]["confidence"], &all[1]["confidence"]),
        (&0.95.into(), &0.975.into())
    );
    assert_eq!(document["correction"]["comparisons"], 2);
    let few = run(scratch().path(), &format!("bench {arguments} --runs 3"));
    let said = "3 runs each are too few for 95 %, which needs 7";
    assert_eq!(few.ended(0).stdout.matches(said).count(), 2, "{}", few.stdout);
    assert!(
        few.stdout
            .contains("the 95 % are of these 2 comparisons together: each interval is of 97.5 %"),
        "{}",
        few.stdout
    );
    let pair = bench("random-write drive:wd10ears --count 100 --runs 8");
    assert!(pair["correction"].is_null() && pair["comparisons"][0]["ratio"] == pair["ratio"]);
}
