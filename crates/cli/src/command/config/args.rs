//! The options of `config`.

use clap::Args;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:
  trueline config
  trueline config --json
  trueline config --check /etc/trueline.toml
  trueline --config ./ci.toml config

Exit status:
  0  every file that is there is right, or is not read
  2  usage, or a file is wrong: FILE:LINE says where";

#[derive(Args)]
pub(crate) struct ShowConfig {
    /// Look through this file alone, as it is, and say what is wrong in it
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub check: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
