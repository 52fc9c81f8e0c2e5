//! Lines for people about events while the server runs.

use crate::failure::complain;
use crate::log::{self, LogEvent};
use crate::words;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard};
use trueline_host::lock::lock;
use trueline_serve::notice::Notice;

/// Most lines that are kept while a table has the terminal; of more, the last ones.
const KEPT: usize = 100;

/// Writer of notices: to stderr at once, or, while `--top` has the terminal, into its table, and to
/// stderr when the terminal is given back.
#[derive(Default)]
pub(super) struct Notices {
    kept: Mutex<Option<VecDeque<String>>>,
}

impl Notices {
    fn kept(&self) -> MutexGuard<'_, Option<VecDeque<String>>> {
        lock(&self.kept)
    }

    /// Says what happened to a server of `target`.
    pub(super) fn tell(&self, target: &str, notice: &Notice) {
        let of_target = || format!("{target}: {notice}");
        match notice {
            Notice::TooMuch | Notice::Slow(_) => self.say(LogEvent::Counting, &of_target(), &[]),
            Notice::RecordingEnds { path, error } => {
                let (path, why) = (path.display().to_string(), words::os(error));
                let line =
                    format!("record {path}: {why}: the trace ends here, what is served does not");
                self.say(LogEvent::Recording, &line, &[("path", path.into())]);
            }
            Notice::ReadFailed { disk, offset, length, count, .. } => {
                let fields = [
                    ("disk", disk.as_str().into()),
                    ("offset", (*offset).into()),
                    ("length", (*length).into()),
                    ("failed_reads", (*count).into()),
                ];
                self.say(LogEvent::ReadFailed, &of_target(), &fields);
            }
            Notice::Exposed { place } => {
                let line = format!("{notice}: --tls-certificates DIR");
                self.say(LogEvent::Exposed, &line, &[("place", place.as_str().into())]);
            }
            Notice::Client(line) => self.say(LogEvent::Client, line, &[]),
        }
    }

    /// Writes or keeps a line.
    fn say(&self, event: LogEvent, line: &str, fields: &[(&str, Value)]) {
        match &mut *self.kept() {
            Some(kept) => {
                if kept.len() == KEPT {
                    kept.pop_front();
                }
                kept.push_back(line.to_owned());
            }
            None => log::write(event, line, fields),
        }
    }

    /// Keeps lines from now on, because a table takes the terminal. If stderr is no terminal,
    /// nothing is kept.
    pub(super) fn keep(&self) {
        if io::stderr().is_terminal() {
            self.kept().get_or_insert_default();
        }
    }

    /// The last line that was kept.
    pub(super) fn last(&self) -> Option<String> {
        self.kept().as_ref()?.back().cloned()
    }

    /// Writes the kept lines, because the terminal is given back.
    pub(super) fn release(&self) {
        let kept = self.kept().take();
        kept.iter().flatten().for_each(|line| complain(line));
    }
}
