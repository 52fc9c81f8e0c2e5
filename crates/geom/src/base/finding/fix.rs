//! Cures as values: the command line words them, with the names and options that a user typed.

/// One cure of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A sentence about what a person or another program does.
    Words(String),
    /// Other starts of the provider, in bytes of its disk or set, the best first; none where none near it is free.
    StartAt(Vec<u64>),
    /// Bytes by which a later start of the partition beneath a data area puts that area on the grain.
    StartLater(u64),
    /// Bytes that the provider lacks to the end of its last unit, which are nobody's.
    Lengthen(u64),
    /// Another copy of the table on the provider, from which a damaged one is written anew.
    Recover,
    /// Go on with the move that was interrupted.
    Resume,
    /// A format that is made anew on the provider, laid out for its grain; what is in it has to be saved before.
    Recreate(&'static str),
}

impl Fix {
    /// The sentence, of a cure that is one.
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
