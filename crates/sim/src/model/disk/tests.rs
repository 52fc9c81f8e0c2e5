//! Requirements on every built-in model, and refusals.

use super::super::{MODELS, ModelRefusal, Range};
use super::*;
use crate::drive::{Command, Op};
use crate::random::Random;
use toml::{Table, Value};

fn number(value: &Value) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "parameters")]
    value.as_float().or(value.as_integer().map(|value| value as f64))
}

/// Keys with their values, those of the drive's table too.
fn values(table: &Table) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !["origin", "range"].contains(&key.as_str()) => {
                all.extend(inner.clone())
            }
            Value::Table(_) => {}
            _ if ["name", "title"].contains(&key.as_str()) => {}
            _ => all.push((key.clone(), value.clone())),
        }
    }
    all
}

#[test]
fn every_number_of_every_model_has_an_origin() {
    for (name, text) in MODELS {
        let (model, table) = (Model::parse(text).unwrap(), toml::from_str::<Table>(text).unwrap());
        assert_eq!(model.name, *name);
        let values = values(&table);
        for (key, _) in &values {
            let origin =
                model.origin.get(key).unwrap_or_else(|| panic!("{name}: {key} has no origin"));
            let kind = origin.split(':').next().unwrap();
            assert!(
                ["published", "generic", "calibrated", "fitted"].contains(&kind),
                "{name}: {key}: {origin}"
            );
            assert!(origin.len() > kind.len() + 4, "{name}: {key}: {origin}");
        }
        for key in model.origin.keys().chain(model.range.keys()) {
            assert!(values.iter().any(|(own, _)| own == key), "{name}: {key} is not a key of it");
        }
    }
}

#[test]
fn every_range_contains_its_value_and_every_end_of_it_is_a_drive() {
    for (name, text) in MODELS {
        let (model, values) = (Model::parse(text).unwrap(), values(&toml::from_str(text).unwrap()));
        for (key, range) in &model.range {
            let Range::Numbers([low, high]) = range else { continue };
            let value = values
                .iter()
                .find(|(own, _)| own == key)
                .and_then(|(_, value)| number(value))
                .unwrap();
            assert!(
                low < high && *low <= value && value <= *high,
                "{name}: {key} = {value}, {low} to {high}"
            );
        }
    }
}

/// True if a drive completes 200 random commands, four at a time.
fn serves(model: &Model) -> bool {
    let (mut drive, mut random, mut done, mut now) =
        (model.drive(1), Random::new(1), Vec::new(), 0);
    for tag in 0..200 {
        let sectors = model.size / model.logical_block_size;
        let first = random.below(sectors - 64);
        let (offset, length) =
            (first * model.logical_block_size, (1 + random.below(64)) * model.logical_block_size);
        let op = if random.below(3) == 0 { Op::Read } else { Op::Write };
        drive.submit(now, Command { tag, op, offset, length, fua: random.below(9) == 0 });
        while tag + 1 - done.len() as u64 >= 4 {
            now = drive.next().unwrap_or(u64::MAX);
            drive.advance(now, &mut done);
        }
    }
    drive.submit(now, Command { tag: 200, op: Op::Flush, offset: 0, length: 0, fua: false });
    while let Some(at) = drive.next() {
        drive.advance(at, &mut done);
    }
    done.len() == 201 && done.windows(2).all(|pair| pair[0].at <= pair[1].at)
}

#[test]
fn no_disk_is_known_to_destage_in_one_order() {
    // Where a value comes from drives like it, or from none, a ratio is shown with what the other
    // order would make of it.
    for (name, text) in MODELS {
        let model = Model::parse(text).unwrap();
        assert_eq!(model.range.contains_key("destage_order"), model.disk.is_some(), "{name}");
    }
}

#[test]
fn both_ends_of_every_range_are_drives_that_serve() {
    for (name, text) in MODELS {
        let values = values(&toml::from_str(text).unwrap());
        for (key, range) in Model::parse(text).unwrap().range {
            let whole = values.iter().any(|(own, value)| *own == key && value.is_integer());
            let number = |end: f64| {
                if whole {
                    Value::Integer(format!("{end:.0}").parse().unwrap())
                } else {
                    Value::Float(end)
                }
            };
            let ends: Vec<Value> = match range {
                Range::Numbers(ends) => ends.map(number).into(),
                Range::Words(words) => words.into_iter().map(Value::String).collect(),
            };
            for value in ends {
                let end = value.clone();
                let set = [(key.clone(), value)];
                let model = Model::parse_with(text, &set).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(serves(&model), "{name}: {key} = {end:?}");
            }
        }
    }
}

#[test]
fn the_first_of_several_keys_that_cannot_be_set_is_named() {
    let text = Model::named("wd10ears").unwrap();
    let set = |keys: &[(&str, Value)]| {
        keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<Vec<_>>()
    };
    let fine = ("rpm", Value::Float(7200.0));
    for (keys, says) in [
        ([fine.clone(), ("heads", Value::Integer(-1)), ("nonsense", Value::Integer(1))], "heads: "),
        (
            [fine.clone(), ("nonsense", Value::Integer(1)), ("heads", Value::Integer(-1))],
            "nonsense: ",
        ),
        (
            [("ssd.dies", Value::Integer(1)), fine, ("heads", Value::Integer(-1))],
            "ssd.dies: the model has no table [ssd]",
        ),
    ] {
        let refusal = Model::parse_with(text, &set(&keys)).unwrap_err();
        assert!(refusal.message.starts_with(says) && refusal.line.is_none(), "{refusal}");
    }
}

/// wd10ears with a line in the place of another.
fn refused(key: &str, value: &str) -> (ModelRefusal, usize) {
    let text = Model::named("wd10ears").unwrap();
    let at = text.lines().position(|line| line.starts_with(&format!("{key} = "))).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[at] = format!("{key} = {value}");
    (Model::parse(&lines.join("\n")).expect_err(&lines[at]), at + 1)
}

#[test]
fn what_no_drive_can_have_is_refused_with_its_line_and_the_reason() {
    for (key, value, says) in [
        ("rpm", "0", "platters that turn"),
        ("rpm", "nan", "platters that turn"),
        ("rpm", "-5400.0", "platters that turn"),
        ("rpm", "inf", "60 to 100000"),
        ("rpm_spread_percent", "50.0", "percent"),
        ("full_size_bytes", "0", "at least one physical sector"),
        ("heads", "0", "at least one"),
        ("zones", "0", "at least one"),
        ("zones", "100000", "1024"),
        ("outer_track_bytes", "4095", "at least one physical sector"),
        ("outer_track_bytes", "4096", "cylinders"),
        ("inner_outer_ratio", "0.0", "more than 0"),
        ("inner_outer_ratio", "1.01", "at most 1"),
        ("inner_outer_ratio", "nan", "more than 0"),
        ("head_switch_ms", "-1.0", "a time"),
        ("track_to_track_ms", "nan", "a time"),
        ("track_to_track_ms", "9.6", "the shortest"),
        ("average_seek_ms", "-1.0", "a time"),
        ("average_seek_ms", "0.9", "the shortest"),
        ("write_settle_ms", "-0.1", "a time"),
        ("setup_ms", "1e9", "a time"),
        ("command_overhead_ms", "nan", "a time"),
        ("age_limit_ms", "-1.0", "a time"),
        ("idle_ms", "-1.0", "a time"),
        ("link_rate_bytes", "0", "bytes a second"),
        ("link_rate_bytes", "99999", "bytes a second"),
        ("tags", "0", "at least one command"),
        ("cache_bytes", "4095", "at least one physical sector"),
        ("read_ahead_bytes", "62914561", "no more than cache_bytes"),
        ("slots", "1", "one is kept free"),
        ("slots", "200000", "more than cache_bytes"),
        ("high_percent", "101.0", "percent"),
        ("low_percent", "26.0", "no more than high_percent"),
        ("destage_bytes", "512", "at least one physical sector"),
        ("window_bytes", "0", "at least one physical sector"),
        ("log_bytes", "0", "at least one physical sector"),
    ] {
        let (refusal, line) = refused(key, value);
        let named =
            if key == "track_to_track_ms" && value == "9.6" { "average_seek_ms" } else { key };
        assert!(refusal.message.starts_with(&format!("{named} = ")), "{key} = {value}: {refusal}");
        assert!(refusal.message.contains(says), "{key} = {value}: {refusal}");
        assert!(refusal.line.is_some_and(|own| own == line || named != key), "{refusal}");
    }
}

#[test]
fn what_is_not_a_value_at_all_is_refused_with_its_line() {
    for (key, value) in [
        ("heads", "-1"),
        ("personality", "\"E\""),
        ("order", "\"best\""),
        ("tags", "4.5"),
        ("jumper", "1"),
    ] {
        let (refusal, line) = refused(key, value);
        assert_eq!(refusal.line, Some(line), "{refusal}");
    }
}

#[test]
fn personalities_go_by_letter_too() {
    for (letter, personality) in [
        ("A", Personality::Command),
        ("b", Personality::Stream),
        ("C", Personality::Window),
        ("D", Personality::Log),
    ] {
        let set = [("personality".to_owned(), Value::String(letter.to_owned()))];
        let model = Model::parse_with(Model::named("wd10ears").unwrap(), &set).unwrap();
        assert_eq!(model.disk.unwrap().personality, personality);
    }
}
