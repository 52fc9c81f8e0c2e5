//! Reasons for which tasting could not see everything.

use crate::base::error::Errno;

/// Reason for which tasting could not see everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blind {
    /// Exhausted budget of bytes to read.
    Budget,
    /// Failed read at this byte of the provider.
    Unreadable(u64, Errno),
}

impl Blind {
    /// True for what is compressed, and was not unpacked as far as that: nothing is wrong with it.
    pub fn is_packed(self) -> bool {
        matches!(self, Blind::Unreadable(_, Errno::Packed))
    }

    /// True for what is not here yet: all that was asked is asked again once it is.
    pub fn is_awaited(self) -> bool {
        matches!(self, Blind::Unreadable(_, Errno::Awaited))
    }
}
