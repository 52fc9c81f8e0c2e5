//! The live page of `serve` in a browser: it follows clients, says when the server is gone, and is
//! no wider than a telephone.
//!
//! Where there is no Chromium these tests are skipped, and that is said; with `TRUELINE_ORACLE=all`
//! it is a failure.

use crate::browser::{Browser, LONG};
use crate::counters::{at_63, here, path, striped};
use crate::serve_again::TABLE;
use crate::{golden, program, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that is killed with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves `disk`, and where its page is.
fn serve(directory: &Path) -> (Server, String) {
    serve_target(directory, "disk")
}

fn serve_target(directory: &Path, target: &str) -> (Server, String) {
    serve_with(directory, target, &[])
}

fn serve_with(directory: &Path, target: &str, options: &[&str]) -> (Server, String) {
    let mut command = program(directory);
    let _ = fs::remove_file(directory.join("s"));
    command
        .args(["serve", target, "--nbd", "unix:s", "--metrics", "127.0.0.1:0"])
        .args(options)
        .stdout(Stdio::null());
    let said = fs::File::create(directory.join("said")).expect("a file can be made");
    let server = Server(command.stderr(said).spawn().expect("the program can be run"));
    let end = Instant::now() + LONG;
    loop {
        let said = fs::read_to_string(directory.join("said")).expect("it was made");
        if let Some((place, _)) =
            said.split_once(" at http://").and_then(|(_, rest)| rest.split_once('\n'))
        {
            return (server, format!("http://{place}"));
        }
        assert!(Instant::now() < end, "{said}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lets a client do something; it is done when this returns.
fn client(directory: &Path, does: &str) {
    let mut command = Command::new("nbdsh");
    command
        .args(["-u", "nbd+unix:///?socket=s", "-c", does])
        .current_dir(directory)
        .env("PATH", path());
    assert!(command.status().expect("nbdsh").success(), "{does}");
}

/// A cell of the table of layers, by the name of the layer and the heading of the column.
fn cell(layer: &str, heading: &str) -> String {
    format!(
        "[...document.querySelectorAll('#layers tbody tr')].find(r => r.cells[0].textContent === '{layer}')?.querySelector('[data-head=\"{heading}\"]')"
    )
}

#[test]
fn the_page_follows_what_clients_do_and_says_when_the_server_is_gone() {
    let scratch = scratch();
    at_63(scratch.path());
    if !here(&["nbdsh"]) {
        return;
    }
    let Some(mut browser) = Browser::start(scratch.path()) else { return };
    let (server, page) = serve(scratch.path());
    browser.open(&page, 1280);
    browser.wait("document.getElementById('state').textContent.startsWith('live, ')");
    let red = "document.querySelectorAll('.piece.misaligned, #layers .bad, #write .misaligned, \
        #lead.misaligned').length";
    assert_eq!(
        (browser.is(red), browser.is("document.getElementById('lead').className")),
        (0.into(), "none".into())
    );
    // Of what nothing was asked, nothing is said: no time is "at most 0 ns".
    let axes =
        "[...document.querySelectorAll('#history .axis')].map(a => a.textContent).join('; ')";
    browser.wait(&format!("{axes} === '{}'", ["nothing in the last 60 s"; 3].join("; ")));
    // What is aligned is not red.
    client(scratch.path(), "for i in range(7): h.pwrite(bytes(4096), (20 << 20) + i * 4096)");
    browser.wait(&format!("{}?.textContent === '7'", cell("disk", "Aligned")));
    assert_eq!(
        (browser.is(red), browser.is("document.getElementById('lead').className")),
        (0.into(), "aligned".into())
    );
    // What misses is, wherever it is shown, and as it goes on it is more.
    let of = |n| format!("{}?.textContent === '{n}'", cell("s1", "Misaligned"));
    client(scratch.path(), "for i in range(10): h.pwrite(bytes(4096), 63 * 512 + i * 4096)");
    browser.wait(&of(10));
    client(scratch.path(), "for i in range(5): h.pwrite(bytes(4096), 63 * 512 + i * 4096)");
    browser.wait(&of(15));
    assert_eq!(browser.is("document.querySelector('#write td.misaligned').textContent"), "15");
    assert_eq!(
        browser.is("[...document.querySelectorAll('.piece.misaligned .name')].map(n => \
        n.textContent).join()"),
        "s1"
    );
    let colour = |of: &str| format!("getComputedStyle({of}).color");
    assert_eq!(browser.is(&colour(&cell("s1", "Misaligned"))), "rgb(197, 54, 44)");
    assert_ne!(browser.is(&colour(&cell("disk", "Misaligned"))), "rgb(197, 54, 44)");
    assert_eq!(
        browser.is("document.getElementById('verdict').textContent"),
        "\u{2717} 68 % of the I/O is misaligned"
    );
    // The same sentence as on the terminal.
    let why = "[...document.querySelectorAll('#why li')].map(li => li.textContent).join('|')";
    let said = "s1: 15 of 15 requests are off the 4096-byte physical unit, because s1 begins 3584 \
        bytes past a boundary";
    let why = browser.is(why);
    assert!(
        why.as_str()
            .is_some_and(|why| why.starts_with(said) && why.ends_with(": trueline explain TL0001")),
        "{why}"
    );
    // What to do about it is said for this very disk, and what happened is drawn.
    let todo =
        "document.getElementById('todo').hidden ? '' : document.getElementById('todo').textContent";
    let todo = browser.is(todo);
    assert!(
        todo.as_str().is_some_and(|todo| todo.contains("trueline move --align 'disk#s1'")),
        "{todo}"
    );
    let drawn = "[...document.querySelectorAll('#history path')].filter(p => \
        p.getAttribute('d').length > 20).length";
    browser.wait(&format!("document.getElementById('history').checkVisibility() && {drawn} === 8"));
    browser.wait(
        "document.querySelector('[data-chart=latency] output').textContent === 'nothing \
        waits for a device'",
    );
    assert_eq!(browser.is("document.getElementById('state').textContent.includes(' MB/s')"), true);
    // A page that is opened now has what was before it.
    browser.open(&page, 1280);
    browser.wait(
        "HISTORY.length > 3 && HISTORY[0].verdicts.misaligned === 0 && \
        HISTORY[HISTORY.length - 1].verdicts.misaligned === 15",
    );
    browser.wait("document.getElementById('state').textContent.startsWith('live, ')");
    // Rates are those of the last second: when nothing comes they are 0, and the counts stay.
    browser
        .wait("document.getElementById('state').textContent.includes(': 0 reads/s, 0 writes/s')");
    assert_eq!(browser.is(&of(15)), true);
    assert_eq!(browser.complaints(), [""; 0]);
    drop(server);
    browser.wait(
        "document.getElementById('state').textContent.startsWith('the server does not answer')",
    );
    assert_eq!(
        (browser.is("document.getElementById('state').className"), browser.is(&of(15))),
        ("gone".into(), true.into())
    );
    // The lack of an answer is the browser's complaint, and no script's.
    let complaints = browser.complaints();
    assert!(
        complaints.iter().all(|complaint| complaint["entry"]["source"] == "network"),
        "{complaints:?}"
    );
}

#[test]
fn the_page_shows_what_a_client_makes() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 32 << 20);
    if !here(&["nbdsh"]) {
        return;
    }
    let Some(mut browser) = Browser::start(scratch.path()) else { return };
    let (_server, page) = serve(scratch.path());
    browser.open(&page, 1280);
    browser.wait("document.getElementById('state').textContent.startsWith('live, ')");
    let drawn = "[...document.querySelectorAll('.piece .name')].map(n => n.textContent).join()";
    assert_eq!(browser.is(drawn), "disk");
    client(scratch.path(), "for i in range(7): h.pwrite(bytes(4096), (1 << 20) + i * 4096)");
    browser.wait(&format!("{}?.textContent === '7'", cell("disk", "Aligned")));
    client(scratch.path(), &format!("{TABLE}h.pwrite(table((63, 32768)), 0)\nh.flush()"));
    browser.wait(&format!("{drawn} === 'disk,s1'"));
    // What was counted before it was drawn anew is still there.
    browser.wait(&format!("{}?.textContent === '7'", cell("disk", "Aligned")));
    client(scratch.path(), "for i in range(10): h.pwrite(bytes(4096), 63 * 512 + i * 4096)");
    browser.wait(&format!("{}?.textContent === '10'", cell("s1", "Misaligned")));
    assert_eq!(
        browser.is("[...document.querySelectorAll('.piece.misaligned .name')].map(n => \
        n.textContent).join()"),
        "s1"
    );
    // It goes, and its counts do not.
    client(scratch.path(), "h.pwrite(bytes(512), 0)\nh.flush()");
    browser.wait(&format!("{drawn} === 'disk'"));
    browser.wait(&format!("{}?.textContent === '10'", cell("s1 (gone)", "Misaligned")));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A set is one row of the table, and its members have the colour of what comes to them.
#[test]
fn the_page_colours_members_of_a_set() {
    let scratch = scratch();
    if !here(&["nbdsh"]) {
        return;
    }
    striped(scratch.path());
    let Some(mut browser) = Browser::start(scratch.path()) else { return };
    let (_server, page) = serve_target(scratch.path(), "d0,d1,d2,d3#stripe/data");
    browser.open(&page, 1280);
    // Two blocks in the third and fourth chunk of the set, of which the second is cut.
    client(scratch.path(), "for i in range(2): h.pwrite(bytes(4096), 63 * 512 + 12288 + i * 4096)");
    browser.wait(&format!("{}?.textContent === '2'", cell("stripe/datas1", "Misaligned")));
    assert_eq!(browser.is("document.querySelectorAll('#layers tbody tr').length"), 1);
    let red = "[...document.querySelectorAll('.piece.misaligned .name')].map(n => \
        n.textContent).sort().join()";
    let disks = browser.is(red);
    let disks: Vec<&str> = disks.as_str().unwrap_or_default().split(',').collect();
    assert!(
        disks.contains(&"stripe/datas1") && disks.contains(&"d2") && disks.contains(&"d3"),
        "{disks:?}"
    );
    assert_eq!(disks.len(), 3, "members that nothing came to are not red: {disks:?}");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Elements past the right edge, and texts wider than their box; a description for each.
const TOO_WIDE: &str = "[...document.body.querySelectorAll('*')].filter(e => \
    e.getBoundingClientRect().right > innerWidth + 1).concat([...document.querySelectorAll('.piece \
    text')].filter(t => t.getComputedTextLength() > \
    t.closest('.piece').querySelector('.box').getBoundingClientRect().width)).concat([...document.querySelectorAll('.scroll')].filter(e \
    => e.scrollWidth > e.clientWidth)).map(e => e.tagName + '.' + (e.getAttribute('class') || '') \
    + ':' + e.textContent.slice(0, 30)).join(';')";

#[test]
fn a_telephone_shows_all_of_it() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = golden("seed-000-openbsd");
    let Some(mut browser) = Browser::start(scratch.path()) else { return };
    let (_server, page) = serve(scratch.path());
    let everywhere = "for i in range(512, h.get_size() - 4096, h.get_size() // 300): i = i // 512 \
        * 512; h.pwrite(h.pread(4096, i), i)";
    client(scratch.path(), everywhere);
    for width in [320, 400, 640, 1280] {
        browser.open(&page, width);
        browser.wait("document.querySelectorAll('.piece.misaligned').length > 1");
        assert_eq!(
            browser.is("[innerWidth, document.documentElement.scrollWidth <= innerWidth].join()"),
            format!("{width},true")
        );
        assert_eq!(browser.is(TOO_WIDE), "", "{width}");
        let heads = "document.querySelector('#layers td').checkVisibility() && \
            document.querySelector('#layers thead').checkVisibility()";
        assert_eq!(browser.is(heads), width > 640, "{width}");
    }
    // The measure itself finds what is too wide, and a window that is made narrower is drawn anew.
    browser.is("document.querySelector('h1').style.minWidth = '2000px'");
    assert!(browser.is(TOO_WIDE).as_str().is_some_and(|wide| wide.starts_with("H1.")));
    browser.is("document.querySelector('h1').style.minWidth = ''");
    browser.resize(320);
    browser.wait(&format!("innerWidth === 320 && {TOO_WIDE} === ''"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// The cure on the page is the command line's own: for the disk as it was described, by options, by
/// what is remembered, or by a model.
#[test]
fn the_page_says_the_cure_for_the_disk_as_it_was_described() {
    let scratch = scratch();
    if !here(&["nbdsh"]) {
        return;
    }
    let Some(mut browser) = Browser::start(scratch.path()) else { return };
    let described: [(&[&str], &str, &str); 4] = [
        (
            &["--physical", "16k+512", "--logical", "512"],
            "",
            "trueline move --align --logical 512 --physical 16384+512 'disk#s1'",
        ),
        (&["--for", "ssd-64k"], "", "trueline move --align --for ssd-64k 'disk#s1'"),
        (&[], "ssd-16k", "trueline move --align --for ssd-16k 'disk#s1'"),
        (
            &["--drive", "wd10ears", "--emulate", "--speed", "1000"],
            "ssd-64k",
            "trueline move --align --logical 512 --physical 4096 'disk#s1'",
        ),
    ];
    for (options, remembered, wanted) in described {
        at_63(scratch.path());
        fs::write(
            scratch.path().join(".trueline.toml"),
            if remembered.is_empty() { String::new() } else { format!("for = {remembered:?}") },
        )
        .expect("a file");
        let (server, page) = serve_with(scratch.path(), "disk", options);
        browser.open(&page, 1280);
        client(scratch.path(), "for i in range(10): h.pwrite(bytes(65536), 63 * 512 + i * 65536)");
        let shown = "[...document.querySelectorAll('#cures-shown code')].map(c => c.textContent)";
        browser.wait(&format!("{shown}.length > 0"));
        assert_eq!(
            browser.is(&format!("{shown}[0]")),
            wanted,
            "{}",
            browser.is("document.getElementById('todo').textContent")
        );
        // What is copied from the page does what it says, once the disk is served no more.
        drop(server);
        let moved = Command::new("sh")
            .args(["-c", wanted])
            .current_dir(scratch.path())
            .env("PATH", beside_program())
            .output()
            .expect("sh");
        assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
        fs::remove_file(scratch.path().join("disk")).expect("it is there");
    }
}

/// The path on which a shell finds the program as `trueline`.
fn beside_program() -> String {
    let program =
        Path::new(env!("CARGO_BIN_EXE_trueline")).parent().expect("a program is in a directory");
    format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default())
}
