//! The live page, its events, and the metrics.

use super::counting::Counting;
use super::history::History;
use crate::command::serve::summary::Event;
use crate::command::serve::{metrics, page};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use trueline_host::random;
use trueline_serve::front::http::{Answer, NOTHING, Site};

/// What is counted, for browsers and Prometheus.
pub(super) struct Live {
    counting: Arc<Counting>,
    history: Mutex<History>,
}

impl Live {
    /// Of what is counted there.
    pub(super) fn new(counting: Arc<Counting>) -> Live {
        Live { counting, history: Mutex::default() }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site for Live {
    fn answer(&self, path: &str) -> Option<Answer> {
        let mut body = Vec::new();
        match path {
            "/" => {
                // Without a number nobody can guess there is no page.
                let nonce = random::bytes::<16>().ok().map(|bytes| format!("{:032x}", u128::from_le_bytes(bytes)))?;
                // Writing to memory cannot fail, here and below.
                // In this order: a page whose stack is of later than its counts is told so by the next event.
                let (served, history) = (self.counting.served(), self.history().samples());
                let stack = self.counting.stack();
                let _ = page::write((&stack.target, &stack.numbers), &Event { served: &served, history: &history }, &nonce, &mut body);
                Some(Answer::Page { kind: "text/html; charset=utf-8", policy: page::policy(&nonce), body })
            }
            "/metrics" => {
                let _ = metrics::write(&self.counting.served(), &mut body);
                Some(Answer::Page { kind: "text/plain; version=0.0.4; charset=utf-8", policy: NOTHING.into(), body })
            }
            "/events" => Some(Answer::Events),
            _ => None,
        }
    }

    fn event(&self) -> String {
        let (served, history) = (self.counting.served(), self.history().newest());
        serde_json::to_string(&Event { served: &served, history: &history }).unwrap_or_default()
    }

    fn pass(&self) {
        self.history().pass(Instant::now(), &self.counting);
    }
}
