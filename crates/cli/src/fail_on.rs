//! Findings that count for the exit status of `check`.

use clap::ValueEnum;
use trueline_geom::base::finding::Severity;

/// Least severity of a finding at which a run fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    #[default]
    Warning,
    Note,
    Never,
}

impl FailOn {
    /// Name on the command line and in settings.
    pub(crate) fn name(self) -> &'static str {
        self.least().map_or("never", Severity::name)
    }

    /// True if a finding of that severity counts.
    pub(crate) fn counts(self, severity: Severity) -> bool {
        self.least().is_some_and(|least| severity >= least)
    }

    fn least(self) -> Option<Severity> {
        match self {
            FailOn::Error => Some(Severity::Error),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Note => Some(Severity::Note),
            FailOn::Never => None,
        }
    }
}
