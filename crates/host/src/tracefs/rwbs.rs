//! The letters by which the kernel names a request: `WS`, `FWFS`, `RA`.

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read of bytes from the medium.
    Read,
    /// Write of bytes to the medium.
    Write,
    /// Discard of bytes that are not needed any more, secure erase included.
    Discard,
    /// Zeroing of bytes without sending them.
    WriteZeroes,
    /// Flush of the drive's cache.
    Flush,
    /// Another operation: a drive's own command, or one of zones.
    Other,
}

/// A request by its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFlags {
    /// The operation of the request.
    pub operation: Operation,
    /// True if a flush goes before it.
    pub preflush: bool,
    /// True if a write must be on the medium before it is done (force unit access).
    pub fua: bool,
}

impl RequestFlags {
    /// The meaning of `rwbs`. The letters are those of `blk_fill_rwbs`: `F` first means a flush
    /// before it, then comes the operation, and a later `F` means FUA. `None` without an operation.
    pub fn parse(rwbs: &str) -> Option<RequestFlags> {
        let before = rwbs
            .strip_prefix('F')
            .filter(|rest| rest.starts_with(['R', 'W', 'D', 'E', 'F', 'N', 'Z']));
        let rest = before.unwrap_or(rwbs);
        let flags = rest.get(1..).unwrap_or("");
        let operation = match rest.chars().next()? {
            'R' => Operation::Read,
            'W' if flags.starts_with('Z') => Operation::WriteZeroes,
            'W' => Operation::Write,
            'F' => Operation::Flush,
            'D' | 'E' => Operation::Discard,
            // A drive's own commands have the same letter, and no range.
            'N' => Operation::WriteZeroes,
            'Z' if flags.starts_with('A') => Operation::Write,
            'Z' => Operation::Other,
            _ => return None,
        };
        let preflush = before.is_some() && operation != Operation::Flush;
        let fua = operation == Operation::Write && flags.contains('F');
        Some(RequestFlags { operation, preflush, fua })
    }
}
