//! Words of docstrings, comments and whatever else a reader sees.

use super::{CRATES, documents, root, sources};
use std::fs;

/// A line's comment, in lower case; `//` after a colon belongs to an address.
fn comment(line: &str) -> Option<String> {
    let at = line.match_indices("//").map(|(at, _)| at).find(|&at| !line[..at].ends_with(':'))?;
    Some(line[at..].to_ascii_lowercase())
}

/// Words for a person where a client, a program or a user is meant.
const PERSONS: [&str; 6] = ["nobody", "somebody", "anybody", "anyone", "someone", "whoever"];

/// The first of `words` that stands in a lower-case text as a word of its own.
fn word_in<'a>(text: &str, words: &[&'a str]) -> Option<&'a str> {
    let own =
        |word: &&&str| text.split(|c: char| !c.is_alphanumeric()).any(|other| other == **word);
    words.iter().find(own).copied()
}

#[test]
fn docstrings_begin_with_a_noun_and_have_four_words() {
    for krate in CRATES {
        for (path, text) in sources(&root().join("crates").join(krate).join("src")) {
            let mut doc = false;
            for (number, line) in text.lines().map(str::trim).enumerate() {
                let at = format!("{}:{}", path.display(), number + 1);
                let begins = (line.starts_with("///") || line.starts_with("//!")) && !doc;
                doc = line.starts_with("///") || line.starts_with("//!");
                if begins {
                    let words: Vec<&str> = line[3..].split_whitespace().collect();
                    let first = words
                        .first()
                        .map_or("", |word| word.trim_end_matches(|c: char| !c.is_alphabetic()));
                    assert!(
                        !["What", "Who", "Which", "Whether", "How", "Whose"].contains(&first),
                        "{at}: begin with a noun: {line}"
                    );
                    assert!(words.is_empty() || words.len() >= 4, "{at}: say more: {line}");
                }
                let who = comment(line).and_then(|comment| word_in(&comment, &["who"]));
                assert!(who.is_none(), "{at}: name the thing: {line}");
            }
        }
    }
}

#[test]
fn things_are_named_and_not_persons() {
    let root = root();
    let mut texts = documents(&root);
    for folder in ["crates", "fuzz/src", "fuzz/fuzz_targets", "tests"] {
        texts.extend(sources(&root.join(folder)));
    }
    for folder in ["labs", "crates/sim/models"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                texts.push((path.clone(), fs::read_to_string(path).unwrap()));
            }
        }
    }
    for (path, text) in texts.iter().filter(|(path, _)| !path.ends_with(file!())) {
        for (number, line) in text.lines().enumerate() {
            let person = word_in(&line.to_ascii_lowercase(), &PERSONS);
            assert!(person.is_none(), "{}:{}: {line}", path.display(), number + 1);
        }
    }
}
