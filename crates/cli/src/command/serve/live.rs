//! The live page, its events, and the metrics.

use super::counting::Counting;
use crate::out::{served_html, served_prometheus};
use std::sync::Arc;
use trueline_host::http::{Answer, NOTHING, Site};
use trueline_host::random;

/// What is counted, for browsers and Prometheus.
pub(super) struct Live {
    pub(super) counting: Arc<Counting>,
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
                let served = self.counting.served();
                let stack = self.counting.stack();
                let _ = served_html::write(&stack.target, &stack.numbers, &served, &nonce, &mut body);
                Some(Answer::Page { kind: "text/html; charset=utf-8", policy: served_html::policy(&nonce), body })
            }
            "/metrics" => {
                let _ = served_prometheus::write(&self.counting.served(), &mut body);
                Some(Answer::Page { kind: "text/plain; version=0.0.4; charset=utf-8", policy: NOTHING.into(), body })
            }
            "/events" => Some(Answer::Events),
            _ => None,
        }
    }

    fn event(&self) -> String {
        serde_json::to_string(&self.counting.served()).unwrap_or_default()
    }
}
