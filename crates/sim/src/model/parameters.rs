//! A model's parameters one by one, for people: key, value, range, origin.

use super::{Model, ModelRefusal, Range, line_of};
use toml::{Table, Value};

/// A key of a model, except name and title, with what its file says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key as `--set` takes it: `rpm`.
    pub key: String,
    /// The value in use.
    pub value: Value,
    /// The range of the value in a sweep.
    pub range: Option<Range>,
    /// The origin of the value, if the file states it.
    pub origin: Option<String>,
}

impl Parameter {
    /// The parameters of a model in the order of its file. Keys in `set` have the user's values,
    /// and `user` as their origin.
    pub fn list(text: &str, set: &[(String, Value)]) -> Result<Vec<Parameter>, ModelRefusal> {
        let (model, table) = Model::set(text, set)?;
        let mut found = Vec::new();
        flatten("", &table, &mut found);
        let is_set = |key: &str| {
            set.iter().any(|(set, _)| set == key || set.rsplit('.').next() == Some(key))
        };
        let parameter = |(key, value): (String, Value)| Parameter {
            range: model.range.get(&key).cloned(),
            origin: if is_set(&key) {
                Some("user".into())
            } else {
                model.origin.get(&key).cloned()
            },
            key,
            value,
        };
        let mut all: Vec<Parameter> = found
            .into_iter()
            .filter(|(key, _)| key != "name" && key != "title")
            .map(parameter)
            .collect();
        all.sort_by_key(|parameter| line_of(text, &parameter.key).unwrap_or(usize::MAX));
        Ok(all)
    }
}

/// Appends every value of a table. Keys of nested tables are dotted, except for those of the
/// drive's kind.
fn flatten(within: &str, table: &Table, found: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        match value {
            Value::Table(_) if within.is_empty() && matches!(key.as_str(), "origin" | "range") => {}
            Value::Table(inner)
                if within.is_empty() && matches!(key.as_str(), "disk" | "ssd" | "memory") =>
            {
                flatten("", inner, found)
            }
            Value::Table(inner) => flatten(&format!("{within}{key}."), inner, found),
            value => found.push((format!("{within}{key}"), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MODELS;

    #[test]
    fn every_number_of_a_built_in_model_has_an_origin_and_lies_in_its_range() {
        for (name, text) in MODELS {
            let model = Model::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(model.name, *name);
            let all = Parameter::list(text, &[]).unwrap();
            for p in &all {
                let origin = p
                    .origin
                    .as_deref()
                    .unwrap_or_else(|| panic!("{name}: {} has no origin", p.key));
                let (word, words) = origin
                    .split_once(": ")
                    .unwrap_or_else(|| panic!("{name}: {}: {origin}", p.key));
                assert!(
                    ["published", "generic", "calibrated", "fitted"].contains(&word)
                        && !words.is_empty(),
                    "{name}: {}: {origin}",
                    p.key
                );
            }
            let keys = || model.origin.keys().chain(model.range.keys());
            for key in keys() {
                assert!(
                    all.iter().any(|p| p.key == *key),
                    "{name}: [origin] or [range] speaks of {key}, which the model does not have"
                );
            }
            for (key, range) in &model.range {
                let value = &all.iter().find(|p| p.key == *key).unwrap().value;
                let [least, most] = match range {
                    Range::Numbers(numbers) => numbers,
                    Range::Words(words) => {
                        assert!(
                            words.iter().any(|word| value.as_str() == Some(word)),
                            "{name}: {key} = {value:?}: {words:?}"
                        );
                        for word in words {
                            let set = [(key.clone(), Value::String(word.clone()))];
                            Model::parse_with(text, &set)
                                .unwrap_or_else(|e| panic!("{name}: {key} of its own range: {e}"));
                        }
                        continue;
                    }
                };
                let number = value
                    .as_float()
                    .or_else(|| value.as_integer().and_then(|n| n.to_string().parse().ok()));
                assert!(
                    number.is_some_and(|n| least <= most && (*least..=*most).contains(&n)),
                    "{name}: {key} = {value:?}: {least}..{most}"
                );
                for end in [least, most] {
                    let end = if value.is_integer() && end.fract() == 0.0 {
                        format!("{end:.0}").parse().unwrap()
                    } else {
                        Value::Float(*end)
                    };
                    Model::parse_with(text, &[(key.clone(), end)])
                        .unwrap_or_else(|e| panic!("{name}: {key} of its own range: {e}"));
                }
            }
        }
    }

    #[test]
    fn what_is_set_comes_from_the_user() {
        let text = Model::named("md").unwrap();
        let set = [
            ("memory.command_ns".to_owned(), Value::Integer(5)),
            ("rate_bytes".to_owned(), Value::Integer(700_000)),
        ];
        let all = Parameter::list(text, &set).unwrap();
        let of = |key: &str| {
            all.iter()
                .find(|p| p.key == key)
                .map(|p| (p.value.clone(), p.origin.clone().unwrap_or_default()))
        };
        assert_eq!(of("command_ns"), Some((Value::Integer(5), "user".into())));
        assert_eq!(of("rate_bytes"), Some((Value::Integer(700_000), "user".into())));
        assert!(of("size").unwrap().1.starts_with("generic"));
        assert_eq!(
            all.iter().map(|p| p.key.as_str()).take(3).collect::<Vec<_>>(),
            ["size", "logical_block_size", "physical_block_size"],
            "the order of the file"
        );
        assert!(
            Parameter::list(text, &[("ssd.dies".into(), Value::Integer(1))])
                .unwrap_err()
                .message
                .contains("no table [ssd]")
        );
    }
}
