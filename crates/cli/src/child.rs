//! A command of the user's shell that runs beside this program's own work: that of `--run`.

use crate::failure::Failure;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;
use trueline_host::process::tree::Running;

/// Time that a command has to end after it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A command that runs beside this program.
pub(crate) struct Child {
    running: Running,
}

impl Child {
    /// Starts `shell`, which runs `command`, as its user wrote it.
    pub(crate) fn start(shell: &mut Command, command: &str) -> Result<Child, Failure> {
        Ok(Child { running: Running::start(shell).map_err(|e| format!("run {command}: {e}"))? })
    }

    /// Its exit status; `None` while it runs.
    pub(crate) fn status(&mut self) -> Result<Option<ExitCode>, Failure> {
        let ended = self.running.status().map_err(|e| format!("wait for the command: {e}"))?;
        Ok(ended.map(code))
    }

    /// Returns once it has ended, or after `longest`.
    pub(crate) fn wait_at_most(&self, longest: Duration) {
        self.running.wait_at_most(longest);
    }

    /// Ends the command and its children, which are asked first, and have [`GRACE`] to finish.
    pub(crate) fn end(self) -> Result<ExitCode, Failure> {
        Ok(code(self.running.end(GRACE).map_err(|e| format!("wait for the command: {e}"))?))
    }
}

/// Exit code as a shell gives it: 128 plus the number of a signal.
fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
