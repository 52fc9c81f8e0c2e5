//! Words that are no options of newfs(8).

use super::Error;
use std::fmt;

/// Fault of a word among newfs's options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidOption {
    /// Option without the value that it needs.
    NoValue(String),
    /// Option with two dashes that is not known.
    Long(String),
    /// Letter that is not known.
    Letter(char),
    /// Word that is no option.
    Word(String),
    /// Letter of newfs that is not supported, and the reason, or another way.
    Unsupported(char, &'static str),
    /// Version of UFS other than 2.
    Version(String),
    /// Preference of `-o` that is none.
    Preference(String),
    /// Number that is none, or that cannot be: its property, and its text.
    Number(&'static str, String),
    /// Release of FreeBSD that is none.
    Flavour(String),
    /// Value past a limit of the file system.
    Limit(Error),
}

impl From<Error> for InvalidOption {
    fn from(error: Error) -> InvalidOption {
        InvalidOption::Limit(error)
    }
}

impl fmt::Display for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("newfs: ")?;
        match self {
            InvalidOption::NoValue(option) => write!(f, "option {option} needs a value"),
            InvalidOption::Long(word) => write!(
                f,
                "unknown option {word}: there are --maxphys, --flavour, and newfs(8)'s letters"
            ),
            InvalidOption::Letter(letter) => {
                write!(f, "unknown option -{letter}: newfs(8) has the list")
            }
            InvalidOption::Word(word) => {
                write!(f, "unexpected {word:?}: the device is what stands before --")
            }
            InvalidOption::Unsupported(letter, why) => {
                write!(f, "-{letter} is not supported: {why}")
            }
            InvalidOption::Version(text) => {
                write!(f, "-O {text} is not supported: only UFS2 (-O 2) is made here")
            }
            InvalidOption::Preference(text) => {
                write!(f, "{text}: unknown optimization preference: use `space' or `time'")
            }
            InvalidOption::Number(what, text) => write!(f, "{text}: bad {what}"),
            InvalidOption::Flavour(text) => {
                write!(f, "--flavour {text}: a release of FreeBSD is wanted: 9, 11, 12, 13, 14")
            }
            InvalidOption::Limit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InvalidOption {}
