//! Texts that are no rule of faults.

use std::fmt;

/// Form of a rule, for messages.
const FORM: &str = "write OP:WHAT[,WHEN...], OP read, write, flush, discard or *; \
     WHAT error=NAME (eio, enospc, eperm, erofs, einval, enotsup), torn, flip, readonly or \
     delay=10ms; \
     WHEN probability=1%, every=N, after=N or offset=1m..2m";

/// Fault of a text that should be a rule. Its text tells the form of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidRule {
    /// Text without an operation and a colon.
    Form,
    /// Name of an operation that is none.
    Operation(String),
    /// Rule that does nothing to a request.
    Nothing,
    /// Fault of writes alone, on another operation.
    OnlyWrites,
    /// Fault of reads alone, on another operation.
    OnlyReads,
    /// Value that its item cannot have.
    Value {
        /// Item of the rule with its value, as it was given.
        item: String,
        /// Value within the item.
        value: String,
    },
    /// Item that is not known.
    Item(String),
    /// Item that makes a request fail in a second way.
    Second(String),
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidRule::Form => f.write_str(FORM),
            InvalidRule::Operation(name) => write!(f, "'{name}' is no operation: {FORM}"),
            InvalidRule::Nothing => write!(f, "what is to happen is missing: {FORM}"),
            InvalidRule::OnlyWrites => write!(f, "only writes can be that: {FORM}"),
            InvalidRule::OnlyReads => write!(f, "only reads can be that: {FORM}"),
            InvalidRule::Value { item, value } => {
                write!(f, "'{item}': '{value}' cannot be: {FORM}")
            }
            InvalidRule::Item(item) => write!(f, "'{item}' is not known: {FORM}"),
            InvalidRule::Second(item) => {
                write!(f, "'{item}': a request fails in one way: write a rule for each")
            }
        }
    }
}

impl std::error::Error for InvalidRule {}
