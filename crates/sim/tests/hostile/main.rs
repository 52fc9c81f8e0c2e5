//! Model files made at random: one that is read serves commands, any other is refused.

pub mod models;

use models::model_holds;
use trueline_sim::model::{MODELS, Model};

/// A built-in model with the line of `key` in another form.
fn with(name: &str, key: &str, value: &str) -> String {
    let text = Model::named(name).expect("a model that is built in");
    let text = ["\n[range]", "\n[origin]"]
        .iter()
        .find_map(|table| text.split_once(table))
        .map_or(text, |(front, _)| front);
    let line = |line: &str| {
        if line.starts_with(&format!("{key} =")) {
            format!("{key} = {value}\n")
        } else {
            format!("{line}\n")
        }
    };
    text.lines().map(line).collect()
}

#[test]
fn every_model_serves_commands() {
    for (_, text) in MODELS {
        for seed in 0..8 {
            model_holds(text, seed);
        }
    }
}

#[test]
fn every_value_is_refused_or_served() {
    const VALUES: &[&str] = &[
        "0",
        "1",
        "-1",
        "2",
        "3",
        "512",
        "513",
        "4096",
        "16384",
        "65536",
        "4194304",
        "1073741824",
        "4294967296",
        "72057594037927936",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "0.0",
        "-0.0",
        "1e-300",
        "0.5",
        "1e9",
        "1e300",
        "nan",
        "inf",
        "-inf",
        "true",
        "false",
        "\"\"",
        "\"nan\"",
        "[]",
        "[1, 2]",
        "{}",
        "{ a = { b = 1 } }",
        "1979-05-27",
    ];
    for (name, text) in MODELS {
        let keys = text
            .lines()
            .take_while(|line| *line != "[origin]")
            .filter_map(|line| line.split_once(" = "))
            .map(|(key, _)| key);
        for key in keys.filter(|key| !key.starts_with('#')) {
            for value in VALUES {
                model_holds(&with(name, key, value), 1);
            }
        }
    }
}

#[test]
fn texts_that_are_no_model_are_refused() {
    for text in [
        "",
        "\0",
        "a",
        "[ssd]",
        "[[ssd]]",
        "name = 1",
        "ssd = 1\ndisk = 2",
        "\u{feff}",
        "x = \"",
        "[range]\na = [1e400, 2]",
    ] {
        model_holds(text, 0);
        assert!(Model::parse(text).is_err(), "{text:?}");
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in
        [format!("name = {nested}"), nested, "a.".repeat(50_000) + "b = 1", "a = {".repeat(50_000)]
    {
        model_holds(&text, 0);
    }
}
