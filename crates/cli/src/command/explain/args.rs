//! The options of `explain`.

use clap::Args;

#[derive(Args)]
pub(crate) struct Explain {
    /// A rule id, a profile or a word; none: list them
    pub rule: Option<String>,
}
