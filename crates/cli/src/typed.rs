//! The command line as typed, for messages that name the next command.

use crate::words::escape::shell;
use std::env;

/// This command line with `option` added, in front of `--` and the words for another program.
pub(crate) fn with_option(option: &str) -> String {
    let mut words: Vec<String> =
        env::args_os().skip(1).map(|word| shell(&word.to_string_lossy())).collect();
    let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(at, option.to_owned());
    format!("trueline {}", words.join(" "))
}
