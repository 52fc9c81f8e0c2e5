//! Errors of objects, by classes that a fleet counts.

use object_store::Error;
use std::fmt;

/// Class of an error: the same words whichever store it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Name that no store understands.
    Name,
    /// Absent object or bucket.
    NotFound,
    /// Missing or wrong credentials, or ones that may not read it.
    Denied,
    /// Too many requests, or a busy server, after all retries.
    Throttled,
    /// Object that was written while it was read.
    Changed,
    /// Reply shorter or longer than what was asked for.
    Truncated,
    /// Request that the server does not take, such as one for a range.
    Refused,
    /// Silence of the server.
    Timeout,
    /// Process that was forked from one that had asked a server, and lacks its threads.
    Forked,
    /// Failure of any other kind.
    Unreadable,
}

impl ErrorClass {
    /// The word for it in lines of a fleet.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Name => "name",
            ErrorClass::NotFound => "not found",
            ErrorClass::Denied => "denied",
            ErrorClass::Throttled => "throttled",
            ErrorClass::Changed => "changed",
            ErrorClass::Truncated => "truncated",
            ErrorClass::Refused => "refused",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Forked => "forked",
            ErrorClass::Unreadable => "unreadable",
        }
    }
}

/// Failure to read or list objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// URI of the object, or the prefix of a listing.
    pub uri: String,
    /// Class of the error.
    pub class: ErrorClass,
    /// Reason in a few words.
    pub why: String,
}

/// Longest text of a server that is repeated, in characters.
const LONGEST: usize = 200;

impl ObjectError {
    pub(crate) fn new(uri: &str, class: ErrorClass, why: impl Into<String>) -> ObjectError {
        ObjectError { uri: uri.into(), class, why: why.into() }
    }

    /// The error that a store gave about `uri`.
    pub(crate) fn from_store(uri: &str, error: &Error) -> ObjectError {
        let root = root(error);
        let class = match error {
            Error::NotFound { .. } => ErrorClass::NotFound,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorClass::Denied,
            Error::Precondition { .. } => ErrorClass::Changed,
            Error::NotSupported { .. } | Error::NotImplemented { .. } => ErrorClass::Refused,
            Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => ErrorClass::Name,
            _ => class_of(&format!("{error} {root}")),
        };
        let why = match class {
            ErrorClass::NotFound => "it is not there".into(),
            ErrorClass::Denied => "the credentials do not allow it".into(),
            ErrorClass::Changed => "it was written while it was read".into(),
            _ => shortened(&root),
        };
        ObjectError::new(uri, class, why)
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "open {}: {}", self.uri, self.why)
    }
}

impl std::error::Error for ObjectError {}

/// The class of an error whose status stands in its text alone.
fn class_of(text: &str) -> ErrorClass {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["429 Too Many", "503 Service", "503 Slow", "SlowDown"]) {
        ErrorClass::Throttled
    } else if has(&["412 Precondition"]) {
        ErrorClass::Changed
    } else if has(&["416 Range", "200 OK"]) {
        ErrorClass::Refused
    } else if has(&["timed out", "timeout", "TimedOut", "operation timed"]) {
        ErrorClass::Timeout
    } else {
        ErrorClass::Unreadable
    }
}

/// The text of the error that caused all others.
fn root(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// A text of a stranger on one line, without its end if it is long.
fn shortened(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain,
    }
}
