//! Links of documents: each leads to a file or a directory of the repository, and to a heading that
//! is there. `make site` renders the same documents, so that their links hold there too.

use super::{documents, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Every document that has links to others.
fn linking(root: &Path) -> Vec<(PathBuf, String)> {
    let more = ["CHANGELOG.md", "contrib/README.md", "crates/python/README.md"];
    let more = more.map(|name| (root.join(name), fs::read_to_string(root.join(name)).unwrap()));
    documents(root).into_iter().chain(more).collect()
}

/// Lines of a document that are no code, without what stands between backticks where `spans` is
/// false.
fn prose(text: &str, spans: bool) -> Vec<String> {
    let (mut fenced, mut indented) = (false, true);
    let mut lines = Vec::new();
    for line in text.lines() {
        // Indented lines are code behind an empty line; behind a line of text they go on with it.
        indented = line.is_empty() || indented && line.starts_with("    ");
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !indented {
            let kept = line.split('`').enumerate().filter(|(n, _)| spans || n % 2 == 0);
            lines.push(kept.map(|(_, part)| part).collect());
        }
    }
    lines
}

/// Targets of the links in a document.
fn targets(text: &str) -> Vec<String> {
    let links = prose(text, false).into_iter().flat_map(|line| {
        let behind: Vec<String> = line.split("](").skip(1).map(str::to_owned).collect();
        behind
    });
    links.filter_map(|behind| Some(behind.split_once(')')?.0.to_owned())).collect()
}

/// Name by which a link reaches a heading: letters, digits, `-` and `_` stay, spaces become `-`.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Anchors of a document's headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text, true).into_iter().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (document, text) in linking(&root()) {
        for target in targets(&text).iter().filter(|target| !target.contains("://")) {
            seen += 1;
            let (path, place) = target.split_once('#').unwrap_or((target, ""));
            let to = match path {
                "" => document.clone(),
                _ => document.parent().unwrap().join(path),
            };
            let is_there = to.exists()
                && (place.is_empty()
                    || fs::read_to_string(&to)
                        .is_ok_and(|to| anchors(&to).contains(&place.into())));
            if !is_there {
                wrong.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 200, "{seen}");
}

#[test]
fn links_and_headings_are_found() {
    let text = "# `nbd.sh`: a test\n[a](b.md#c), ![d](e.png) `[f](g)`\n```\n[h](i)\n```\n\n\
                \x20   [j](k)\nx\n    [l](m)\n";
    assert_eq!(targets(text), ["b.md#c", "e.png", "m"]);
    assert_eq!(anchors(text), ["nbdsh-a-test"]);
}
