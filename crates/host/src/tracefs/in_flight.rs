//! Requests between their start and their end.

use super::event::{BlockEvent, EventKind, Phase, SeenRequest};
use super::rwbs::Operation;
use std::collections::HashMap;

/// The most requests that are followed at a time. With more, those so far have no end, and count
/// twice if they are put back.
const MOST: usize = 65_536;

/// Requests that were issued and are not done, by the byte behind their last one.
///
/// A request that is done in parts is done with its last part, which ends where it ends: a drive
/// may answer the first sectors early; md cuts what crosses a chunk, and every piece has an end; dm
/// does so too, and only the last piece has one. md and dm end that one after all others.
#[derive(Default)]
pub(super) struct InFlight {
    requests: HashMap<(u64, Operation), Issued>,
}

/// A request that was issued.
struct Issued {
    at_ns: u64,
    length: u64,
    /// True after a driver has put it back.
    again: bool,
}

impl InFlight {
    /// The request at this moment as a user sees it; `None` for one that is issued again, or whose
    /// start was not seen. `offset` is its place on the device that is traced.
    pub(super) fn follow(&mut self, event: BlockEvent, offset: Option<u64>) -> Option<SeenRequest> {
        let BlockEvent { at_ns, kind, flags, offset: place, length, process, .. } = event;
        let key = (place.saturating_add(length), flags.operation);
        match kind {
            EventKind::Issue => {
                // The rest of it, where a part is done.
                let same = |issued: &&mut Issued| issued.again && length <= issued.length;
                if let Some(issued) = self.requests.get_mut(&key).filter(same) {
                    issued.again = false;
                    return None;
                }
                if self.requests.len() >= MOST {
                    self.requests.clear();
                }
                self.requests.insert(key, Issued { at_ns, length, again: false });
                Some(SeenRequest { at_ns, phase: Phase::Issued(process), flags, offset, length })
            }
            EventKind::Requeue => {
                self.requests.get_mut(&key)?.again = true;
                None
            }
            EventKind::Complete => {
                let issued = self.requests.remove(&key)?;
                let phase = Phase::Completed(at_ns.saturating_sub(issued.at_ns));
                Some(SeenRequest { at_ns, phase, flags, offset, length: issued.length })
            }
        }
    }
}
