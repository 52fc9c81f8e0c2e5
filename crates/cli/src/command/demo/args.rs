//! The options of `demo`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Demo {
    /// File to write the page to
    #[arg(long, value_name = "FILE", default_value = "trueline-demo.html")]
    pub html: PathBuf,
    /// Without the labs of the documents
    #[arg(long)]
    pub short: bool,
}
