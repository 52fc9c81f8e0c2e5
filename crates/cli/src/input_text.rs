//! Texts from users: read whole, or refused. The first part of a text that is too long would be
//! another text.

use crate::failure::Reason;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Linux's `O_NONBLOCK`: opening waits for no other process.
const NONBLOCK: i32 = 0o4000;

/// Opens a file that may hold a text. A pipe of that name, or one that it has become since it was
/// looked at, does not wait for its writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(NONBLOCK).open(path)
}

/// The text that `from` gives, of at most `most` bytes. Errors: a longer text, one that is not
/// UTF-8, a failed read.
pub(crate) fn read(from: impl Read, most: u64) -> Result<String, Reason> {
    let mut text = String::new();
    from.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most { Err(Reason(format!("more than {most} bytes"))) } else { Ok(text) }
}

/// The value that a TOML text describes. An error is one line: position, then message.
pub(crate) fn toml<T: DeserializeOwned>(text: &str) -> Result<T, Reason> {
    toml::from_str(text).map_err(|e| {
        let message = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
        match e.span() {
            None => Reason(message),
            Some(span) => Reason(message).behind(position(text, span.start)),
        }
    })
}

/// Position of byte `byte` of the text: line and column, both from 1, the column in characters.
fn position(text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {}, column {column}", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::{Reason, read};

    #[test]
    fn a_text_is_whole_or_refused() {
        assert_eq!(read(&b"four"[..], 4), Ok("four".into()));
        assert_eq!(read(&b"five5"[..], 4), Err(Reason("more than 4 bytes".into())));
        assert_eq!(read(std::io::repeat(b'x'), 4), Err(Reason("more than 4 bytes".into())));
        assert!(read(&b"\xff"[..], 4).is_err());
    }
}
