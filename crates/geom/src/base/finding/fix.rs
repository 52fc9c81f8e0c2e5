//! Cures as values: the command line words them, with the names and options that a user typed.

/// One cure of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A sentence about an action of the user or of another program.
    Words(String),
    /// Other starts of the provider, in bytes of its disk or set, the best first; empty where none
    /// near it is free.
    StartAt(Vec<u64>),
    /// Bytes by which a later start of the partition beneath a data area puts that area on the
    /// grain.
    StartLater(u64),
    /// Bytes that the provider lacks to the end of its last unit, and that no other provider has.
    Lengthen(u64),
    /// Rewriting a damaged table from another copy of it on the provider.
    Recover,
    /// Resuming the move that was interrupted.
    Resume,
    /// Making the named format anew, laid out for the provider's grain; its contents have to be
    /// saved before.
    Recreate(&'static str),
}

impl Fix {
    /// The sentence of [`Fix::Words`]; `None` for every other cure.
    pub fn words(&self) -> Option<&str> {
        match self {
            Fix::Words(text) => Some(text),
            _ => None,
        }
    }
}

impl From<String> for Fix {
    fn from(text: String) -> Fix {
        Fix::Words(text)
    }
}

impl From<&str> for Fix {
    fn from(text: &str) -> Fix {
        Fix::Words(text.into())
    }
}
