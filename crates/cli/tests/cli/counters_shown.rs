//! Counters of `serve` as they are shown: metrics, the page in a browser, the table on a terminal.

use crate::counters::{at_63, here, path, serve};
use crate::scratch;
use std::fs;
use std::process::Command;

#[test]
fn the_metrics_are_what_prometheus_reads() {
    if !here(&["nbdsh", "curl"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let script = r#"nbdsh -u "$uri" -c 'h.pwrite(bytes(4096), 63 * 512)' && curl -sS "${metrics}metrics" >text && curl -sSi "$metrics" >page &&
curl -sS -o none -w '%{http_code}' "${metrics}nothing" >status"#;
    let ran = serve(scratch.path(), "disk --metrics 127.0.0.1:0", script);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).expect("an answer");
    let series = r#"trueline_serve_requests_total{target="disk",export="",provider="s1",disk="",op="write",verdict="misaligned"} 1"#;
    assert!(read("text").lines().any(|line| line == series), "{}", read("text"));
    assert!(
        read("page").contains("Content-Security-Policy: default-src 'none'; script-src 'nonce-")
            && read("status") == "404"
    );
    if here(&["promtool"]) {
        let checked = Command::new("sh")
            .args(["-c", "promtool check metrics <text"])
            .env("PATH", path())
            .current_dir(scratch.path())
            .output()
            .expect("promtool");
        assert!(
            checked.status.success(),
            "{}{}",
            String::from_utf8_lossy(&checked.stdout),
            String::from_utf8_lossy(&checked.stderr)
        );
    }
}

/// A browser looks while a client writes: cells turn red, and nothing is complained of.
#[test]
fn the_page_shows_in_a_browser_what_misses() {
    if !here(&["nbdsh", "chromium"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    fs::rename(scratch.path().join("disk"), scratch.path().join("<i>disk"))
        .expect("a file can be renamed");
    // The client writes until the browser is done.
    let script = r#"nbdsh -u "$uri" -c '
import os
n = 0
while not os.path.exists("done"):
    h.pwrite(bytes(4096), 63 * 512 + n % 1000 * 4096)
    if n == 0: open("begun", "w")
    n += 1
' & n=0; until [ -e begun ] || [ $n -ge 6000 ]; do n=$((n + 1)); sleep 0.1; done; TMPDIR=$PWD chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking \
    --no-proxy-server --user-data-dir=profile --enable-logging=stderr --dump-dom "$metrics" >dom 2>log; touch done; wait"#;
    let ran = serve(scratch.path(), "<i>disk --metrics 127.0.0.1:0", script);
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap_or_default();
    let (dom, log) = (read("dom"), read("log"));
    assert_eq!(ran.code, Some(0), "{}{log}", ran.stderr);
    let complaints: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("CONSOLE") || line.contains("Content Security"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(
        dom.contains("class=\"piece misaligned") && dom.contains("<td class=\"misaligned l4\""),
        "{dom}{log}"
    );
    assert!(dom.contains("&lt;i&gt;disk") && !dom.contains("<i>"), "{dom}");
    assert!(
        dom.contains("of the I/O is misaligned")
            && dom.contains("because s1 begins 3584 bytes past a boundary"),
        "{dom}"
    );
}

/// Without `--run` there is a line of where it is served on the terminal as it was before, too.
#[test]
fn the_table_hides_nothing_that_was_said() {
    if !here(&["script"]) {
        return;
    }
    let scratch = scratch();
    let serve =
        format!("{} serve md:1m --nbd unix:s --metrics 0 --top", env!("CARGO_BIN_EXE_trueline"));
    let command = format!("script -qefc 'echo $$ >server; exec {serve}' shown");
    let lines = format!(
        "{command} & n=0; until grep -q 'at nbd[+]unix.*http:' shown 2>/dev/null || [ $n -ge 6000 ]; do n=$((n + 1)); sleep 0.1; done; kill $(cat server); wait"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &lines]).env("PATH", path()).env("TERM", "xterm").current_dir(scratch.path());
    assert!(shell.output().expect("a shell").status.success());
    let shown =
        String::from_utf8_lossy(&fs::read(scratch.path().join("shown")).expect("what was shown"))
            .into_owned();
    let (before, table) = shown.split_once("\x1b[?1049h").unwrap_or_else(|| panic!("{shown:?}"));
    assert!(
        before.contains("trueline: serving md:1m at nbd+unix:///?socket=")
            && before.contains("serving md:1m at http://"),
        "{shown:?}"
    );
    assert!(
        table.contains("\nat nbd+unix:///?socket=") && table.contains("/s, http://127.0.0.1:"),
        "{shown:?}"
    );
}

/// Through a terminal that `script` makes: the table is on its other screen, which is given back.
#[test]
fn the_terminal_is_given_back() {
    if !here(&["nbdsh", "script"]) {
        return;
    }
    let scratch = scratch();
    let run = r#"n=0; until nbdsh -u "$uri" -c 'h.pwrite(bytes(4096), 512)' && grep -q '4[.]00 x' shown; do
[ $n = 3000 ] && exit 1; n=$((n + 1)); sleep 0.2; done"#;
    fs::write(scratch.path().join("run"), run).expect("a file can be written");
    let command = format!(
        "script -qefc \"{} serve md:1m --physical 4096 --top --run 'sh run'\" shown",
        env!("CARGO_BIN_EXE_trueline")
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &command])
        .env("PATH", path())
        .env("TERM", "xterm")
        .current_dir(scratch.path());
    let ran = shell.output().expect("a shell");
    let shown =
        String::from_utf8_lossy(&fs::read(scratch.path().join("shown")).expect("what was shown"))
            .into_owned();
    assert!(ran.status.success(), "{shown}");
    let (table, after) = shown
        .split_once("\x1b[?25h\x1b[?1049l")
        .unwrap_or_else(|| panic!("not given back: {shown:?}"));
    assert!(
        table.contains("\x1b[?1049h")
            && table.contains("MISALIGNED")
            && !after.contains("\x1b[?1049h"),
        "{shown:?}"
    );
    assert!(after.contains("served md:1m: "), "{shown:?}");
    // The table names the ways in, above the counters.
    assert!(table.contains("\nat nbd+unix:///?socket=/"), "{shown:?}");
}
