//! A command of the user's shell that runs beside this program's own work: that of `--run`.

use crate::failure::Failure;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;
use trueline_host::process::tree::Running;

/// Time that a command has to end after it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A command that runs beside this program. It is ended when this is dropped.
pub(crate) struct Child {
    /// `None` once the command has ended.
    running: Option<Running>,
}

impl Child {
    /// Starts `shell`, which runs `command`, as its user wrote it.
    pub(crate) fn start(shell: &mut Command, command: &str) -> Result<Child, Failure> {
        let running = Running::start(shell).map_err(|e| format!("run {command}: {e}"))?;
        Ok(Child { running: Some(running) })
    }

    /// Its exit status; `None` while it runs.
    pub(crate) fn status(&mut self) -> Result<Option<ExitCode>, Failure> {
        let Some(running) = &mut self.running else { return Ok(None) };
        let ended = running.status().map_err(|e| format!("wait for the command: {e}"))?;
        // What it has left running is not ended with it.
        self.running.take_if(|_| ended.is_some());
        Ok(ended.map(code))
    }

    /// Returns once it has ended, or after `longest`.
    pub(crate) fn wait_at_most(&self, longest: Duration) {
        if let Some(running) = &self.running {
            running.wait_at_most(longest);
        }
    }

    /// Ends the command and its children, which are asked first, and have [`GRACE`] to finish.
    pub(crate) fn end(mut self) -> Result<ExitCode, Failure> {
        let Some(running) = self.running.take() else { return Ok(ExitCode::SUCCESS) };
        Ok(code(running.end(GRACE).map_err(|e| format!("wait for the command: {e}"))?))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // The reason why it is ended is already on its way.
            let _ = running.end(GRACE);
        }
    }
}

/// Exit code as a shell gives it: 128 plus the number of a signal.
fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
