//! The rules of the house: floors, lists, headings, sizes, words. Sources are read as text; a rule
//! that is broken names the file.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/decisions.rs"]
mod decisions;
#[path = "tidy/declarations.rs"]
mod declarations;
#[path = "tidy/errors.rs"]
mod errors;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/words.rs"]
mod words;

/// Folders and files under a crate's `src/`, the lowest first: each imports its own floor and those
/// before it.
const FLOORS: [(&str, &[&str]); 8] = [
    (
        "geom",
        &[
            "base", "mapping", "probe", "table", "format", "class", "registry", "graph", "audit",
            "layout", "relocate", "convert", "plan", "newfs",
        ],
    ),
    ("unlock", &["derive", "cipher", "antiforensic", "luks1", "luks2"]),
    ("sim", &["time", "random", "counters", "model", "drive", "world"]),
    (
        "host",
        &[
            "error", "errno", "random", "clock", "lock", "device", "disk", "nbd", "engine",
            "process", "ublk", "tracefs", "window",
        ],
    ),
    ("cloud", &["error", "runtime", "ranges", "choice", "known", "location", "object", "listing"]),
    (
        "lab",
        &[
            "error",
            "rig",
            "run",
            "statistics",
            "latency",
            "files",
            "os",
            "streams",
            "layer",
            "probe",
            "trace",
            "sweep",
            "ab",
            "result",
            "workload",
            "study",
        ],
    ),
    (
        "serve",
        &[
            "error_sequence",
            "export",
            "error",
            "notice",
            "generations",
            "workers",
            "retaste",
            "layer",
            "counting",
            "layer_stack",
            "selection",
            "front",
            "server",
        ],
    ),
    (
        "cli",
        &[
            "style",
            "words",
            "log",
            "fail_on",
            "failure",
            "child",
            "screen",
            "in_order",
            "appended",
            "shard",
            "names",
            "input_text",
            "typed",
            "key_file",
            "disk_options",
            "config",
            "remembered",
            "measured",
            "target",
            "report",
            "traffic",
            "tally",
            "placed",
            "move_journal",
            "progress",
            "replaced",
            "page_file",
            "checked",
            "render",
            "writing",
            "write_target",
            "media",
            "survey",
            "this_host",
            "command",
            "args",
            "checker",
        ],
    ),
];

/// Crates, the lowest first: each imports those before it.
const CRATES: [&str; 9] =
    ["geom", "unlock", "sim", "host", "cloud", "lab", "serve", "cli", "python"];

/// Imports that go up, and why each may: crate, importer, imported.
const UP: [(&str, &str, &str, &str); 4] = [
    ("sim", "model", "drive", "a model makes its drive"),
    ("cli", "words", "report", "findings and providers have their words there"),
    ("cli", "remembered", "target", "which file an image is, its spelling says"),
    (
        "cli",
        "command",
        "args",
        "help, man pages and completions are made of the whole command line",
    ),
];

/// Lines of a source file, at most.
const LONGEST: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust source under `directory`, with its text, in order.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The text without comments and without items marked `#[cfg(test)]`: a line that ends them, or a
/// block whose last brace stands as far in as the mark, as rustfmt has it.
fn code(text: &str) -> String {
    let mut kept = Vec::new();
    let mut test = None;
    for line in text.lines().map(|line| line.split("//").next().unwrap_or("").trim_end()) {
        let indent = line.len() - line.trim_start().len();
        match test {
            None if line.trim_start() == "#[cfg(test)]" => test = Some((indent, true)),
            None => kept.push(line),
            Some((_, true)) if line.trim_start().starts_with('#') => {}
            Some((_, true)) if line.ends_with([';', '}']) => test = None,
            Some((at, true)) => test = Some((at, false)),
            Some((at, false)) if indent == at && line.trim_start().starts_with('}') => test = None,
            Some(_) => {}
        }
    }
    kept.join("\n")
}

/// The first names of paths behind `prefix`, one or several in braces.
fn imported(code: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let word = |text: &str| {
            text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        };
        match rest.strip_prefix('{') {
            None => names.push(word(rest)),
            Some(list) => {
                let mut depth = 0;
                let mut start = true;
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && depth == 0 && !c.is_whitespace() => {
                            names.push(word(&list[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

/// The floor of a source: the first part of its path under `src/`.
fn floor(path: &Path, src: &Path) -> String {
    let inside = path.strip_prefix(src).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// A test's own file, which may use all of its crate.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

#[test]
fn every_arrow_goes_down() {
    let mut used = BTreeMap::new();
    for (name, floors) in FLOORS {
        let src = root().join("crates").join(name).join("src");
        for (path, text) in sources(&src) {
            let own = floor(&path, &src);
            if is_test(&path)
                || ["lib", "main", "samples"].contains(&own.as_str())
                || path.ends_with("samples.rs")
            {
                continue;
            }
            let at = floors.iter().position(|floor| *floor == own);
            let at = at.unwrap_or_else(|| {
                panic!("{}: '{own}' has no place among the floors of {name}", path.display())
            });
            let code = code(&text);
            let depth = path.strip_prefix(&src).unwrap().components().count();
            for import in imported(&code, "crate::")
                .into_iter()
                .chain(imported(&code, &"super::".repeat(depth)))
            {
                let Some(to) = floors.iter().position(|floor| *floor == import) else { continue };
                if to > at {
                    let allowed = UP.iter().position(|(krate, from, to, _)| {
                        (*krate, *from, *to) == (name, own.as_str(), import.as_str())
                    });
                    let allowed = allowed.unwrap_or_else(|| {
                        panic!("{}: '{own}' imports '{import}', which is higher", path.display())
                    });
                    used.insert(allowed, ());
                }
            }
            let place = CRATES.iter().position(|krate| *krate == name).unwrap();
            for higher in &CRATES[place + 1..] {
                assert!(
                    imported(&code, &format!("trueline_{higher}::")).is_empty(),
                    "{}: imports {higher}",
                    path.display()
                );
            }
        }
    }
    assert_eq!(used.len(), UP.len(), "an exception that no source needs: {used:?}");
}

/// Modules declared in the file of a folder.
fn modules(text: &str) -> Vec<String> {
    let declared = text.lines().filter_map(|line| {
        line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix("mod ")
    });
    declared.filter_map(|rest| rest.strip_suffix(';')).map(str::to_owned).collect()
}

#[test]
fn every_class_and_format_is_in_its_list_and_says_where_it_is_on_disk() {
    let src = root().join("crates/geom/src");
    let registry = fs::read_to_string(src.join("registry.rs")).unwrap();
    // Geoms that are made and not tasted; parts that labels, boot sectors, or all formats share.
    let none = [
        "container",
        "metadata",
        "nop",
        "zero",
        "boot_fields",
        "maker",
        "sign",
        "tests",
        "free_space",
    ];
    for (kind, headings) in
        [("class", &["On disk", "Topology", "Sources"][..]), ("format", &["On disk", "Sources"])]
    {
        let declared = modules(&fs::read_to_string(src.join(kind).with_extension("rs")).unwrap());
        assert!(declared.len() > 10, "{kind}");
        for name in declared.iter().filter(|name| !none.contains(&name.as_str())) {
            assert!(
                registry.contains(&format!("{kind}::{name}::")),
                "{kind}/{name}.rs is in no list of registry.rs"
            );
            let text = fs::read_to_string(src.join(kind).join(name).with_extension("rs")).unwrap();
            for heading in headings {
                // What is ours has no other source.
                let ours = name == "moving" && *heading == "Sources";
                assert!(
                    ours || text.contains(&format!("//! # {heading}\n")),
                    "{kind}/{name}.rs has no '# {heading}'"
                );
            }
        }
    }
}

/// Markdown that names sources: all of `docs`, and what stands at the top.
fn documents(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![
        root.join("docs"),
        root.join("benches"),
        root.join("tests"),
        root.join("fuzz"),
        root.to_path_buf(),
    ];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.starts_with(root.join("docs")) {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && !path.ends_with("CHANGELOG.md")
            {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_path_in_a_document_exists() {
    let root = root();
    let mut seen = 0;
    for (document, text) in documents(&root) {
        for path in text.split('`').skip(1).step_by(2) {
            let is_path = ["crates/", "docs/", "tests/", "benches/", "fuzz/", "labs/"]
                .iter()
                .any(|first| path.starts_with(first));
            if is_path && !path.contains(['<', '{', '*', ' ', '…', '\n']) {
                seen += 1;
                assert!(root.join(path).exists(), "{}: there is no {path}", document.display());
            }
        }
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn no_source_is_too_long() {
    for krate in CRATES {
        for (path, text) in sources(&root().join("crates").join(krate)) {
            let lines = text.lines().count();
            assert!(lines <= LONGEST, "{}: {lines} lines", path.display());
        }
    }
}

/// Names of our command line: of the program, and of options that no other program has here.
const OURS: [&str; 33] = [
    "leave out -",
    " part add",
    " part create",
    " part recover",
    " --replace",
    "trueline ",
    " --logical",
    " --physical",
    " --grain",
    " --for ",
    " --fault",
    " --strict",
    " --overwrite",
    " --dry-run",
    " --allow-busy",
    " --destructive",
    " --align ",
    " --resume",
    " --journal",
    " --delete-others",
    " --gpart-rules",
    " --tls-certificates",
    " --read-only",
    " --overlay",
    " --fuse ",
    " --buffered",
    " --row",
    " --sweep",
    " --trace",
    " --wrap",
    " --write",
    " --qd",
    " --set",
];

/// Sources of libraries that name them all the same, and why: the crate, and the beginning of the
/// path under its `src/`.
const NAME_THEM: [(&str, &str, &str); 3] = [
    ("geom", "format/moving/mark.rs", "the mark on a disk tells its reader how to go on"),
    ("serve", "layer/overlay/kept.rs", "the magic of a file begins with the name"),
    ("lab", "trace/own.rs", "the first line of a file begins with the name"),
];

#[test]
fn libraries_say_nothing_of_the_command_line() {
    let mut used = [false; NAME_THEM.len()];
    for krate in ["geom", "unlock", "sim", "host", "lab", "serve"] {
        let src = root().join("crates").join(krate).join("src");
        for (path, text) in sources(&src).into_iter().filter(|(path, _)| !is_test(path)) {
            let code = code(&text);
            // A longer option of another program may begin as ours does.
            let ends =
                |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c));
            let names = |name: &&&str| {
                let longer = name.starts_with(" --");
                code.split(**name).skip(1).any(|rest| !longer || ends(rest))
            };
            let Some(name) = OURS.iter().find(names) else { continue };
            let inside = path.strip_prefix(&src).unwrap().to_string_lossy();
            let is_exception =
                |(of, start, _): &(&str, &str, &str)| *of == krate && inside.starts_with(start);
            match NAME_THEM.iter().position(is_exception) {
                Some(at) => used[at] = true,
                None => panic!("{}: {name}: only the command line names it", path.display()),
            }
        }
    }
    for ((krate, start, _), used) in NAME_THEM.iter().zip(used) {
        assert!(used, "{krate} {start} names nothing any more: leave it out of the list");
    }
}

/// Columns of a line of code, at most.
const WIDEST: usize = 100;

/// Lines wider than that, but for those that are one string: most are strings behind `let` or in an
/// attribute, which rustfmt leaves as they are. The number only goes down.
const MOST_WIDE: usize = 69;

/// True for a line that is a string and no more, from its first quote to its last.
fn is_string(line: &str) -> bool {
    let start = line.trim_start().trim_start_matches(['b', 'r', '#']);
    let end = line.trim_end_matches([',', ';', ')', '#']);
    start.len() > 1 && start.starts_with('"') && end.ends_with('"')
}

#[test]
fn lines_are_a_hundred_columns_wide() {
    let (mut wide, mut total) = (Vec::new(), 0);
    for folder in ["crates", "fuzz/src", "fuzz/fuzz_targets", "tests"] {
        for (path, text) in sources(&root().join(folder)) {
            let long = |line: &&str| line.chars().count() > WIDEST && !is_string(line);
            let count = text.lines().filter(long).count();
            wide.extend((count > 0).then(|| format!("{count} {}", path.display())));
            total += count;
        }
    }
    assert!(
        total <= MOST_WIDE,
        "{total} lines wider than {WIDEST}: wrap them, or lower the number: {wide:#?}"
    );
}
