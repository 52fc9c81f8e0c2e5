//! `drives`' part of the command line, and how keys of a model are set.

use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use std::ffi::OsStr;
use toml::Value;
use trueline_sim::model::MODELS;

/// Under `drives --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  trueline drives
  trueline drives qlc-16k
  trueline drives md --set command_ns=900
  trueline drives --template sd-4m > mine.toml
  trueline drives ./mine.toml
  trueline check drive:./mine.toml=disk.img";

#[derive(Args)]
pub(crate) struct Drives {
    /// A model by name, or a model file ./x.toml: its parameters; none: list the models
    #[arg(value_name = "MODEL", value_parser = ModelName, hide_possible_values = true)]
    pub model: Option<String>,
    /// Print the complete file of a model, to make one of your own from
    #[arg(long, value_name = "MODEL", value_parser = ModelName, hide_possible_values = true, conflicts_with_all = ["model", "set"])]
    pub template: Option<String>,
    /// Set a key of the model to another value
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set, requires = "model")]
    pub set: Vec<(String, Value)>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// A name that is completed, or a file.
#[derive(Clone)]
pub(crate) struct ModelName;

impl TypedValueParser for ModelName {
    type Value = String;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(MODELS.iter().map(|(name, _)| PossibleValue::new(*name))))
    }
}

/// `KEY=VALUE`, the value as in TOML; what is no such value is a word: `personality=window`.
pub(crate) fn parse_set(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE: rpm=7200, jumper=true, personality=window")?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Err(format!("'{key}' is not a key: trueline drives MODEL lists those of a model"));
    }
    if value.is_empty() {
        return Err(format!("{key}: the value is missing"));
    }
    Ok((key.into(), value.parse().unwrap_or_else(|_| Value::String(value.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml_and_words() {
        let read = |text: &str| parse_set(text).map(|(key, value)| format!("{key} {value:?}"));
        for (text, want) in [
            ("jumper=true", "jumper Boolean(true)"),
            ("disk.rpm=7200", "disk.rpm Integer(7200)"),
            ("tau_ms = 0.5", "tau_ms Float(0.5)"),
            ("personality=window", "personality String(\"window\")"),
            ("personality=\"window\"", "personality String(\"window\")"),
            ("size=1\nname=2", "size String(\"1\\nname=2\")"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(want), "{text}");
        }
        assert!(["rpm", "=1", "rpm=", "a b=1", "ä=1"].iter().all(|text| read(text).is_err()));
    }
}
