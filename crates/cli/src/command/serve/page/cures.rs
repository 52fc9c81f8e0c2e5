//! Cures of the layers that miss, as the page shows them: those of `check`; the first may be
//! commands for this very disk.

use crate::report::Target;
use serde::Serialize;

/// Fixes of one provider, the best first; one that begins with `trueline` is for a shell.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cure<'a> {
    /// Name of the provider.
    provider: &'a str,
    /// The rule that they mend.
    rule: &'static str,
    fix: &'a [String],
}

/// Cures for every provider of `stack` that has any.
pub(super) fn list(stack: &Target) -> Vec<Cure<'_>> {
    let cures = stack.findings.iter().filter(|found| !found.fix.is_empty());
    cures
        .map(|found| Cure { provider: &found.provider, rule: found.rule, fix: &found.fix })
        .collect()
}
