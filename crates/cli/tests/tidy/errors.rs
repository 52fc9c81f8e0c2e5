//! Errors are types: a text cannot be told from another by the code that gets it.

use super::{code, is_test, root, sources};

/// Crates in which no error is a text. Messages are made where an error is shown.
const TYPED: [&str; 6] = ["geom", "sim", "host", "lab", "serve", "cli"];

/// The last parameter of every `Result<…>` in the code that has more than one.
fn error_types(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    // A comma before the end separates nothing.
    let ends = |rest: &str| rest.trim_start().starts_with('>');
    for (at, name) in code.match_indices("Result<") {
        let (mut depth, mut last) = (1, None);
        for (end, c) in code[at + name.len()..].char_indices() {
            match c {
                '<' | '(' | '[' => depth += 1,
                '>' if code[..at + name.len() + end].ends_with(['-', '=']) => {}
                '>' | ')' | ']' => depth -= 1,
                ',' if depth == 1 && !ends(&code[at + name.len() + end + 1..]) => {
                    last = Some(end + 1);
                }
                _ => {}
            }
            if depth == 0 {
                let all = &code[at + name.len()..][..end];
                found.extend(last.map(|from| all[from..].trim().trim_end_matches(',').to_owned()));
                break;
            }
        }
    }
    found
}

/// True if the code has an error that is a text.
fn has_text_for_error(code: &str) -> bool {
    let texts = ["String", "&str", "&'static str"];
    error_types(code).iter().any(|error| texts.contains(&error.as_str()))
        || texts.iter().any(|text| code.contains(&format!("type Err = {text};")))
        || texts.iter().any(|text| code.contains(&format!("type Error = {text};")))
}

#[test]
fn errors_are_types() {
    let mut texts = Vec::new();
    for krate in TYPED {
        for (path, text) in sources(&root().join("crates").join(krate).join("src")) {
            let has = !is_test(&path) && has_text_for_error(&code(&text));
            texts.extend(has.then(|| path.display().to_string()));
        }
    }
    assert!(texts.is_empty(), "an error is a text: give it a type: {texts:#?}");
}

#[test]
fn texts_for_errors_are_found() {
    for bad in [
        "fn a() -> Result<(), String> {",
        "fn a() -> Result<Vec<(u8, u8)>, String> {",
        "fn a(\n) -> Result<\n    A,\n    String,\n> {",
        "b: impl Fn() -> Result<u8, &'static str>,",
        "type Err = String;",
    ] {
        assert!(has_text_for_error(bad), "{bad}");
    }
    for good in [
        "fn a() -> Result<String, Error> {",
        "fn a() -> io::Result<String> {",
        "fn a() -> Result<Vec<Result<u8, B>>, C> {",
        "f: Result<fn(&str) -> String, E>",
    ] {
        assert!(!has_text_for_error(good), "{good}");
    }
}
