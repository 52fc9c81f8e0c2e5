//! Lines for people that come up while something is served.

use crate::failure::complain;
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that are kept while a table has the terminal; of more, the last.
const KEPT: usize = 100;

/// On stderr at once; while `--top` has the terminal, in its table, and on stderr when it gives it back.
#[derive(Default)]
pub(super) struct Notices {
    kept: Mutex<Option<VecDeque<String>>>,
}

impl Notices {
    fn kept(&self) -> MutexGuard<'_, Option<VecDeque<String>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says a line.
    pub(super) fn say(&self, line: &str) {
        match &mut *self.kept() {
            Some(kept) => {
                if kept.len() == KEPT {
                    kept.pop_front();
                }
                kept.push_back(line.to_owned());
            }
            None => complain(line),
        }
    }

    /// A table takes the terminal. Where stderr goes elsewhere nothing is kept back.
    pub(super) fn keep(&self) {
        if io::stderr().is_terminal() {
            self.kept().get_or_insert_default();
        }
    }

    /// The last line that was kept.
    pub(super) fn last(&self) -> Option<String> {
        self.kept().as_ref()?.back().cloned()
    }

    /// The terminal is given back.
    pub(super) fn release(&self) {
        let kept = self.kept().take();
        kept.iter().flatten().for_each(|line| complain(line));
    }
}
