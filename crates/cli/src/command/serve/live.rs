//! The live page, its events, and the metrics.

use super::telemetry::Telemetry;
use crate::command::serve::summary::{Event, Sample};
use crate::command::serve::{metrics, page};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use trueline_host::lock::lock;
use trueline_host::random;
use trueline_serve::counting::{self, History};
use trueline_serve::front::http::{Answer, NOTHING, Site};

/// Counts for browsers and Prometheus.
pub(super) struct Live {
    telemetry: Arc<Telemetry>,
    history: Mutex<History>,
}

impl Live {
    /// A site of what `telemetry` tells.
    pub(super) fn new(telemetry: Arc<Telemetry>) -> Live {
        Live { telemetry, history: Mutex::default() }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// The page, whose script may run by the number `nonce`.
    fn page(&self, nonce: &str) -> Vec<u8> {
        let mut body = Vec::new();
        // In this order: a page whose stack is of later than its counts is told so by the next
        // event.
        let (served, history) = (self.telemetry.served(), told(self.history().samples()));
        let (report, stack) = self.telemetry.report();
        // Writing to memory cannot fail.
        let _ = page::write(
            (&report, &stack.numbers),
            &Event { served: &served, history: &history },
            nonce,
            &mut body,
        );
        body
    }
}

/// Samples as the page has them.
fn told(samples: Vec<counting::Sample>) -> Vec<Sample> {
    samples.into_iter().map(Sample::from).collect()
}

impl Site for Live {
    fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/" => {
                // Without a number that cannot be guessed there is no page.
                let nonce = random::bytes::<16>()
                    .ok()
                    .map(|bytes| format!("{:032x}", u128::from_le_bytes(bytes)))?;
                Some(Answer::Page {
                    kind: "text/html; charset=utf-8",
                    policy: page::policy(&nonce),
                    body: self.page(&nonce),
                })
            }
            "/metrics" => {
                let mut body = Vec::new();
                // Writing to memory cannot fail.
                let _ = metrics::write(&self.telemetry.served(), &mut body);
                Some(Answer::Page {
                    kind: "text/plain; version=0.0.4; charset=utf-8",
                    policy: NOTHING.into(),
                    body,
                })
            }
            "/events" => Some(Answer::Events),
            _ => None,
        }
    }

    fn event(&self) -> String {
        let (served, history) = (self.telemetry.served(), told(self.history().newest()));
        serde_json::to_string(&Event { served: &served, history: &history }).unwrap_or_default()
    }

    fn pass(&self) {
        self.history().pass(Instant::now(), self.telemetry.counting());
    }
}
