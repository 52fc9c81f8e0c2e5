//! The page of a lab as a browser shows it: no complaint, nothing fetched, every row there, and no
//! wider than a telephone.
//!
//! The lab is hostile: names and notes with markup in them. Where there is no Chromium these tests
//! are skipped, and that is said; with `TRUELINE_ORACLE=all` it is a failure.

use super::{run, scratch};
use crate::skip::skip;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const LAB: &str = r#"
name = "hostile <b>lab</b>"
title = "\"><script>document.title = 'ran'</script><img src=http://nowhere.invalid/x>"
seed = "000"
source = "ours & <i>ours</i> else"
drives = [{ model = "md", set = { physical_block_size = 4096 } }]

[[row]]
id = "crossing"
title = "4 KiB past a boundary, with aVeryLongWordThatHasNoPlaceToBreakAndMustNotMakeThePageWiderThanItsScreen"
unit = "s"
published = { aligned = 0.0181, unaligned = 0.04 }
bound = 0.1
workload = { kind = "random-write", bs = 4096, count = 500 }
aligned = {}
unaligned = { offset = 512 }
note = "</p></article></main>"

[[row]]
id = "level"
title = "a value without a ratio"
unit = "ns"
published = { aligned = 18100 }
bound = 0.1
workload = { kind = "random-read", bs = 512, count = 500 }
aligned = {}

[[row]]
id = "unknown"
title = "of which nothing is said"
unit = "req/s"
published = { aligned = 100, unaligned = 30 }
note = "the number of files was not written down"
"#;

const ROWS: [&str; 3] = ["crossing", "level", "unknown"];

/// Reports every element that reaches past the right edge, but for what scrolls by itself.
const MEASURE: &str = "<script>addEventListener('load', () => \
    {document.querySelectorAll('details').forEach(d => d.open = true);const wide = \
    [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > \
    innerWidth + 1&& !e.closest('.scroll,figure:not(.chart)') && !e.closest('defs'));const worst = \
    wide.map(e => e.tagName + '.' + (e.getAttribute('class') || '') + ':' + e.textContent.slice(0, \
    30));const page = document.documentElement;parent.postMessage(innerWidth + ' pixels, ' + \
    (page.scrollWidth > page.clientWidth ? 'scrolls' : 'fits') + ' [' + worst.join(';') + ']', \
    '*');})</script>";

/// A page of a telephone's width around `page.html`, which says here what it measured.
const TELEPHONE: &str = "<!DOCTYPE html><body><pre \
    id=said></pre><script>addEventListener('message', e => said.textContent = \
    e.data)</script><iframe src=measured.html style='width:360px;height:800px;border:0'></iframe>";

/// Chromium on a file of `directory`; `None` where there is none.
fn browse(directory: &Path, file: &str, flags: &[&str]) -> Option<Output> {
    let url = format!("file://{}/{file}", directory.display());
    let profile = format!("--user-data-dir={}/profile", directory.display());
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(|name| {
        // In some systems it only tells how to install it.
        Command::new(name).arg("--version").output().ok().filter(|ran| ran.status.success())?;
        let fixed =
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking --dump-dom";
        let mut command = Command::new(name);
        command.env("TMPDIR", directory).args(fixed.split(' ')).args(flags).args([&profile, &url]).stdin(Stdio::null());
        command.output().ok()
    });
    if found.is_none() {
        skip("no chromium here");
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes the page of [`LAB`] into `directory`.
fn page(directory: &Path) -> String {
    std::fs::write(directory.join("lab.toml"), LAB).expect("a file can be written");
    run(directory, "lab run lab.toml --html page.html").ended(0);
    std::fs::read_to_string(directory.join("page.html")).expect("a page was written")
}

/// Writes the page of a demo into `directory`.
fn demo(directory: &Path) -> String {
    run(directory, "demo --short --html demo.html").ended(0);
    std::fs::read_to_string(directory.join("demo.html")).expect("a page was written")
}

#[test]
fn the_page_names_nothing_to_fetch_and_allows_no_script() {
    let scratch = scratch();
    let page = page(scratch.path());
    assert!(page.contains(r#"content="default-src 'none'; style-src 'unsafe-inline'""#));
    // Outside quotes: what a file says stands inside, escaped, or is text.
    for tag in page.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or("")) {
        let pieces: Vec<&str> = tag.split('"').collect();
        for (nth, piece) in pieces.iter().enumerate().step_by(2) {
            let refused = ["src", "srcset", "data", "onload", "onerror"]
                .iter()
                .find(|name| piece.contains(&format!(" {name}=")));
            assert!(
                refused.is_none() && !piece.starts_with("script") && !piece.starts_with("link"),
                "<{tag}>"
            );
            assert!(!piece.ends_with("href=") || pieces[nth + 1].starts_with('#'), "<{tag}>");
        }
    }
    assert!(!page.contains("@import") && !page.replace("url(#", "").contains("url("));
}

#[test]
fn a_browser_has_no_complaint_and_shows_every_row() {
    let scratch = scratch();
    page(scratch.path());
    let log = ["--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND"];
    let Some(output) = browse(scratch.path(), "page.html", &log) else { return };
    let (dom, said) = (text(&output.stdout), text(&output.stderr));
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("CONSOLE") || line.contains("Content Security"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    for row in ROWS {
        assert!(dom.contains(&format!("data-row=\"{row}\"")), "{row} is missing: {said}{dom}");
    }
    assert!(dom.contains("<title>Trueline lab") && dom.contains("</main>\n"), "{dom}");
    assert_eq!(dom.matches("<article").count(), ROWS.len());
    demo(scratch.path());
    let Some(output) = browse(scratch.path(), "demo.html", &log) else { return };
    let (dom, said) = (text(&output.stdout), text(&output.stderr));
    assert!(!said.contains("CONSOLE") && dom.contains("data-row=\"random-write\""), "{said}");
}

#[test]
fn a_browser_that_complains_is_heard() {
    let scratch = scratch();
    let bad = page(scratch.path()).replace("</main>", "<img src=http://nowhere.invalid/x></main>");
    std::fs::write(scratch.path().join("bad.html"), bad).expect("a file can be written");
    let Some(output) = browse(scratch.path(), "bad.html", &["--enable-logging=stderr"]) else {
        return;
    };
    let said = text(&output.stderr);
    assert!(
        said.lines().any(|line| line.contains("CONSOLE") && line.contains("Content Security")),
        "{said}"
    );
}

#[test]
fn nothing_is_wider_than_a_telephone() {
    let scratch = scratch();
    let page = page(scratch.path());
    let measure = |text: &str| {
        // The measuring copy may run the script that measures.
        let copy = text
            .replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
            .replace("</body>", &format!("{MEASURE}</body>"));
        std::fs::write(scratch.path().join("measured.html"), copy).expect("a file can be written");
        std::fs::write(scratch.path().join("telephone.html"), TELEPHONE)
            .expect("a file can be written");
        let output = browse(scratch.path(), "telephone.html", &["--virtual-time-budget=5000"])?;
        let dom = text_of_pre(&output.stdout);
        Some(dom.unwrap_or_else(|| {
            panic!("nothing was measured: {}", String::from_utf8_lossy(&output.stderr))
        }))
    };
    let Some(said) = measure(&page) else { return };
    assert_eq!(said, "360 pixels, fits []");
    // And the page of a demo, where a lab stands beside a check.
    assert_eq!(measure(&demo(scratch.path())).as_deref(), Some("360 pixels, fits []"));
    // The measure itself finds what is too wide.
    let wide = measure(&page.replace("</main>", "<p style=\"width:400px\">wide</p></main>"))
        .expect("the browser is here");
    assert!(wide.contains("scrolls") && wide.contains("P.:wide"), "{wide}");
}

/// The text of the only `pre`, if there is any.
fn text_of_pre(dom: &[u8]) -> Option<String> {
    let dom = text(dom);
    let said = dom.split_once("<pre id=\"said\">")?.1.split_once("</pre>")?.0.to_owned();
    (!said.is_empty()).then_some(said)
}
