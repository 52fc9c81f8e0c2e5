//! Requests between their start and their end.

use super::event::{BlockEvent, EventKind, Phase, SeenRequest};
use super::rwbs::Operation;
use std::collections::HashMap;

/// The most requests that are followed at a time. Those beyond have no end, and count twice if they
/// are put back.
const MOST: usize = 65_536;

/// Requests that were issued and are not done.
#[derive(Default)]
pub(super) struct InFlight {
    /// By first byte and operation: the time of issue, and true for one that was put back.
    requests: HashMap<(u64, Operation), (u64, bool)>,
}

impl InFlight {
    /// The request at this moment as a user sees it; `None` for one that is issued again, or whose
    /// start was not seen. `offset` is its place on the device that is traced.
    pub(super) fn follow(&mut self, event: BlockEvent, offset: u64) -> Option<SeenRequest> {
        let BlockEvent { at_ns, kind, flags, offset: place, length, process, .. } = event;
        let key = (place, flags.operation);
        let phase = match kind {
            EventKind::Issue => {
                if let Some((_, again @ true)) = self.requests.get_mut(&key) {
                    *again = false;
                    return None;
                }
                if self.requests.len() < MOST {
                    self.requests.insert(key, (at_ns, false));
                }
                Phase::Issued(process)
            }
            EventKind::Requeue => {
                self.requests.get_mut(&key)?.1 = true;
                return None;
            }
            EventKind::Complete => {
                Phase::Completed(at_ns.saturating_sub(self.requests.remove(&key)?.0))
            }
        };
        Some(SeenRequest { at_ns, phase, flags, offset, length })
    }
}
