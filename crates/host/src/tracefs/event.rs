//! One record of an event, decoded.

use super::layout::EventLayout;
use super::rwbs::{Operation, RequestFlags};

/// The unit of sectors in events, in bytes.
const SECTOR: u64 = 512;
/// Bits of a device's number that are its minor number (`MINORBITS`).
const MINOR_BITS: u32 = 20;

/// Process that handed a request to the driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The number of the thread, which of most programs is the process.
    pub pid: u32,
    /// The name of the thread, of at most 15 bytes.
    pub name: String,
}

/// A moment of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The driver has the request, from this process.
    Issued(Process),
    /// The request is done, so many ns after it was issued.
    Completed(u64),
}

/// A request at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The time in ns of the monotonic clock.
    pub at_ns: u64,
    /// The moment of the request.
    pub phase: Phase,
    /// The operation and its flags.
    pub flags: RequestFlags,
    /// The first byte, from the start of the device that is traced; `None` of a request that begins
    /// in front of it.
    pub offset: Option<u64>,
    /// The length in bytes; 0 for a flush.
    pub length: u64,
}

/// EventKind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A request goes to the driver.
    Issue,
    /// A request, or its first part, is done.
    Complete,
    /// A driver puts a request back.
    Requeue,
}

/// An event of a block device as the kernel records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockEvent {
    pub(super) at_ns: u64,
    pub(super) kind: EventKind,
    /// The major and the minor number of the device.
    pub(super) device: (u32, u32),
    pub(super) flags: RequestFlags,
    /// The first byte on the whole device.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) process: Process,
}

impl BlockEvent {
    /// The event in a record of `kind`; `None` if a field is missing or cannot be true.
    pub(super) fn decode(
        at_ns: u64,
        kind: EventKind,
        layout: &EventLayout,
        record: &[u8],
    ) -> Option<BlockEvent> {
        let number = |name| layout.number(record, name);
        let device = u32::try_from(number("dev")?).ok()?;
        let mut flags = RequestFlags::parse(&layout.text(record, "rwbs")?)?;
        // A request without a place has the sector 0, or all ones.
        let offset = number("sector")?.checked_mul(SECTOR).unwrap_or(0);
        let length = number("nr_sector")?.checked_mul(SECTOR)?;
        // A flush as it is submitted: a write of nothing, with a flush before it.
        if length == 0 && flags.preflush {
            flags = RequestFlags { operation: Operation::Flush, preflush: false, fua: false };
        }
        let pid = u32::try_from(number("common_pid")?).ok()?;
        let name = layout.text(record, "comm").unwrap_or_default();
        Some(BlockEvent {
            at_ns,
            kind,
            device: (device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1)),
            flags,
            offset,
            length,
            process: Process { pid, name },
        })
    }
}
