//! The options of `drives`.

use crate::disk_options::parse_set;
use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use std::ffi::OsStr;
use toml::Value;
use trueline_sim::model::MODELS;

/// Examples of `drives --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  trueline drives
  trueline drives qlc-16k
  trueline drives md --set command_ns=900
  trueline drives --template sd-4m > mine.toml
  trueline drives ./mine.toml
  trueline check drive:./mine.toml=disk.img";

#[derive(Args)]
pub(crate) struct Drives {
    /// Print the parameters of this model, or of a model file ./x.toml; without it, list the models
    #[arg(value_name = "MODEL", value_parser = ModelName, hide_possible_values = true)]
    pub model: Option<String>,
    /// Print the complete file of a model, to make one of your own from
    #[arg(
        long,
        value_name = "MODEL",
        value_parser = ModelName,
        hide_possible_values = true,
        conflicts_with_all = ["model", "set"],
    )]
    pub template: Option<String>,
    /// Set a key of the model to another value
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set, requires = "model")]
    pub set: Vec<(String, Value)>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A model's name, which is completed, or a file.
#[derive(Clone)]
pub(crate) struct ModelName;

impl TypedValueParser for ModelName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(MODELS.iter().map(|(name, _)| PossibleValue::new(*name))))
    }
}
