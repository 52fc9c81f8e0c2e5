//! The command line as it was typed, for messages that say how to go on.

use crate::words::escape::shell;
use std::env;

/// This command once more, with `option`: in front of what is meant for another program.
pub(crate) fn with(option: &str) -> String {
    let mut words: Vec<String> = env::args_os().skip(1).map(|word| shell(&word.to_string_lossy())).collect();
    let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(at, option.to_owned());
    format!("trueline {}", words.join(" "))
}
