//! Words of docstrings and comments.

use super::{CRATES, root, sources};

/// A line's comment, in lower case; `//` after a colon belongs to an address.
fn comment(line: &str) -> Option<String> {
    let at = line.match_indices("//").map(|(at, _)| at).find(|&at| !line[..at].ends_with(':'))?;
    Some(line[at..].to_ascii_lowercase())
}

#[test]
fn docstrings_begin_with_a_noun_and_speak_of_things() {
    let mut short = 0;
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
                    short += usize::from((1..4).contains(&words.len()));
                }
                if let Some(comment) = comment(line) {
                    let person = ["nobody", "somebody", "anybody", "whoever"]
                        .into_iter()
                        .find(|word| comment.contains(word));
                    assert!(person.is_none(), "{at}: name the thing: {line}");
                }
            }
        }
    }
    assert!(
        short <= MOST_SHORT,
        "{short} docstrings of under four words, at most {MOST_SHORT}: say more, or lower the number"
    );
}

/// Docstrings of under four words. Most are help texts of options, and titles of crates; the number
/// only goes down.
const MOST_SHORT: usize = 73;
