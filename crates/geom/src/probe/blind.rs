//! Reasons for which tasting could not see everything.

use crate::base::error::Errno;
use crate::base::finding::{self, Finding, Severity};

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

    /// True for what is not fetched, by the bounds of an object: nothing is wrong with it.
    pub fn is_unfetched(self) -> bool {
        matches!(self, Blind::Unreadable(_, Errno::Unfetched))
    }

    /// True for what is not here yet: all that was asked is asked again once it is.
    pub fn is_awaited(self) -> bool {
        matches!(self, Blind::Unreadable(_, Errno::Awaited))
    }

    /// The finding that says so.
    pub(crate) fn finding(self) -> Finding {
        match self {
        Blind::Budget => Finding::new(
            &finding::BLIND,
            Severity::Warning,
            0,
            "the read budget was spent before everything here was looked at".into(),
        ),
        Blind::Unreadable(offset, Errno::Packed) => Finding::new(
            &finding::BLIND,
            Severity::Warning,
            offset,
            "it is compressed: what lies from here on was not unpacked, and not looked at".into(),
        )
        .fix("unpack it, and check what comes out"),
        Blind::Unreadable(offset, Errno::Unfetched) => Finding::new(
            &finding::BLIND,
            Severity::Warning,
            offset,
            "what lies from here on would take more requests than the bounds: it was not fetched, \
            and not looked at"
                .into(),
        )
        .fix("check it without the bounds"),
        Blind::Unreadable(offset, errno) => Finding::new(
            &finding::BLIND,
            Severity::Error,
            offset,
            format!("cannot be read at byte {offset}: {errno}"),
        ),
    }
    }
}
