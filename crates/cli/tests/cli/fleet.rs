//! Fleets: lists of targets, shares of them, lines that are written one after another and gone on
//! with, and the page of many.

use crate::containers::{CHAIN, made};
use crate::recipe::Scratch;
use crate::schemas::{fits, schema};
use crate::{Ran, lay_golden, program, run, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A directory `fleet` with disks of many kinds, one a directory, and a file that is none of them.
fn fleet() -> Scratch {
    let here = scratch();
    let kinds = ["qcow2-63", "image-vhd", "image-vdi-1g", "image-vmdk", "image-vhdx", "vhd-fixed"];
    for (nth, kind) in kinds.iter().enumerate() {
        let directory = here.path().join(format!("fleet/{nth}"));
        fs::create_dir_all(&directory).expect("a directory");
        lay_golden(kind, &directory);
    }
    fs::write(here.path().join("fleet/notes.txt"), "words ".repeat(200)).expect("a file");
    here
}

fn lines(ran: &Ran) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    ran.stdout.lines().map(line).collect()
}

/// Runs with a list on standard input.
fn with_list(here: &Scratch, arguments: &str, names: &[u8]) -> Ran {
    let mut child = program(here.path())
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    child.stdin.take().expect("a pipe").write_all(names).expect("it reads the list");
    Ran::of(&child.wait_with_output().expect("it ends"))
}

#[test]
fn every_line_is_as_its_schema_says() {
    let here = fleet();
    for (form, schema_name) in [("--jsonl", "jsonl"), ("--rows", "rows")] {
        let ran = run(here.path(), &format!("check {form} -r fleet absent.img"));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let schema = schema(schema_name);
        let lines = lines(&ran);
        assert!(lines.len() >= 7, "{}", ran.stdout);
        for line in &lines {
            fits(line, schema).unwrap_or_else(|why| panic!("{form}: {why}"));
        }
        let errors: Vec<&Value> =
            lines.iter().filter(|line| line["error_class"] == "not found").collect();
        assert_eq!(errors.len(), 1, "{}", ran.stdout);
        assert!(ran.stderr.contains("1 file that holds nothing known was passed over"));
    }
    // A row has what is known of the container of its target.
    let rows = lines(&run(here.path(), "check --rows fleet/2/disk"));
    assert!(
        rows.iter().all(|row| row["container"] == "vdi" && row["creator"] == "QEMU"),
        "{rows:?}"
    );
    assert!(rows.iter().any(|row| row["phase"] == 4608 && row["rules"] == "TL0030"), "{rows:?}");
}

/// Whatever is in a list, every target of it has a line, in its order.
#[test]
fn a_list_may_name_anything() {
    let here = fleet();
    fs::write(here.path().join("a b.img"), [0; 4096]).expect("a file");
    fs::set_permissions(here.path().join("a b.img"), fs::Permissions::from_mode(0o000))
        .expect("a file");
    let names: [&[u8]; 6] = [
        b"fleet/0/disk",
        b"absent.img",
        b"a b.img",
        b"\xff\xfe.img",
        b"ftp://host/key",
        b"fleet/3/disk",
    ];
    for (end, separator) in [(&b"\n"[..], "a line"), (b"\0", "a NUL")] {
        let text = [names.join(end), end.to_vec()].concat();
        let ran = with_list(&here, "check --jsonl --from -", &text);
        let lines = lines(&ran);
        assert_eq!(lines.len(), names.len(), "{separator}: {}", ran.stdout);
        let class = |nth: usize| lines[nth]["error_class"].as_str().unwrap_or("");
        assert_eq!((lines[0]["target"].as_str(), class(0)), (Some("fleet/0/disk"), ""));
        assert_eq!((class(1), class(3), class(4)), ("not found", "name", "not found"));
        assert_eq!(lines[5]["target"], "fleet/3/disk");
        assert_eq!(ran.code, Some(2));
    }
    // JSON is what lsblk or nvme print, as ever.
    let ran = with_list(&here, "check --from -", b" {\"blockdevices\": []}");
    assert!(!ran.stderr.contains("open {"), "{}", ran.stderr);
    // A list in a pipe, which is opened once; and a pipe in a list, which has no writer.
    let pipes = "mkfifo names pipe; (printf 'fleet/0/disk\\npipe\\nfleet/4/disk\\n' >names &)
        \"$TRUELINE\" check --jsonl --from names || true; rm names";
    let done = Command::new("sh")
        .args(["-ec", pipes])
        .env("TRUELINE", env!("CARGO_BIN_EXE_trueline"))
        .current_dir(here.path())
        .output()
        .expect("a shell");
    let told = String::from_utf8_lossy(&done.stdout);
    assert_eq!(told.lines().count(), 3, "{told}{}", String::from_utf8_lossy(&done.stderr));
    assert!(told.contains("\"target\":\"pipe\",\"error_class\":\"refused\""), "{told}");
    // A list in a file, and text for people.
    fs::write(here.path().join("names"), "fleet/0/disk\r\n\nfleet/4/disk\r\n").expect("a file");
    let ran = run(here.path(), "check --from names");
    assert!(ran.stdout.contains("fleet/0/disk") && ran.stdout.contains("fleet/4/disk"));
}

#[test]
fn shares_have_every_target_once() {
    let here = fleet();
    let names = |arguments: &str| -> Vec<String> {
        let name = |line: &Value| line["target"].as_str().expect("a name").to_owned();
        lines(&run(here.path(), arguments)).iter().map(name).collect()
    };
    let all = names("check --jsonl -r fleet");
    let shares: Vec<Vec<String>> =
        (0..3).map(|n| names(&format!("check --jsonl -r fleet --shard {n}/3"))).collect();
    let together: BTreeSet<&String> = shares.iter().flatten().collect();
    assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), all.len(), "{shares:?}");
    assert_eq!(together, all.iter().collect());
    assert!(run(here.path(), "check -r fleet --shard 3/3").refused().contains("0/3, 1/3, 2/3"));
}

/// A run that was stopped anywhere goes on from its own output, to the same bytes.
#[test]
fn an_interrupted_run_goes_on() {
    let here = fleet();
    let out = here.path().join("out");
    for form in ["--jsonl", "--rows"] {
        let command = format!("check {form} -r fleet --into out");
        run(here.path(), &command);
        let whole = fs::read(&out).expect("lines");
        assert_eq!(whole, run(here.path(), &format!("check {form} -r fleet")).stdout.into_bytes());
        for cut in (0..whole.len()).step_by(whole.len() / 20).chain([whole.len() - 1, whole.len()])
        {
            fs::write(&out, &whole[..cut]).expect("a file");
            run(here.path(), &command);
            assert!(fs::read(&out).expect("lines") == whole, "{form}: cut at byte {cut}");
        }
        // An image that was written since is checked again, and its old lines are gone.
        let disk = |nth: u32| here.path().join(format!("fleet/{nth}/disk"));
        fs::copy(disk(3), disk(0)).expect("a file");
        run(here.path(), &command);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let fresh = run(here.path(), &format!("check {form} -r fleet"));
        let now = fs::read_to_string(&out).expect("lines");
        assert_eq!(sorted(&now), sorted(&fresh.stdout), "{form}");
        fs::remove_file(&out).expect("a file");
        lay_golden("qcow2-63", &here.path().join("fleet/0"));
    }
    fs::write(&out, "an image\n").expect("a file");
    let refused = run(here.path(), "check --jsonl -r fleet --into out");
    assert!(refused.refused().contains("name a new file"));
    assert_eq!(fs::read(&out).expect("a file"), b"an image\n");
    for (wrong, part) in [
        ("check --into out fleet/0/disk", "--jsonl or --rows"),
        ("check --quiet --rows fleet/0/disk", "--into"),
    ] {
        assert!(run(here.path(), wrong).refused().contains(part), "{wrong}");
    }
    let quiet = run(here.path(), "check --quiet --rows fleet/0/disk --into rows");
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(1), "", ""));
}

/// What an image says depends on its backing files: a run goes on with it when one of them was
/// written since, has gone, or is back.
#[test]
fn an_image_is_checked_again_when_a_file_behind_it_changes() {
    let Some(here) = made(CHAIN) else { return };
    let images = here.path().join("images");
    let lines = |options: &str| {
        let ran = run(&images, &format!("check --rows {options} top.qcow2 --into out"));
        assert_eq!(ran.stdout, "");
        let text = fs::read_to_string(images.join("out")).expect("lines");
        fs::remove_file(images.join("out")).expect("a file");
        text
    };
    let first = lines("--follow");
    let etag = |text: &str| {
        let row: Value = serde_json::from_str(text.lines().next().expect("a row")).expect("JSON");
        row["etag"].as_str().expect("a word").to_owned()
    };
    assert_eq!(etag(&lines("--follow")), etag(&first));
    let base = images.join("base.qcow2");
    let kept = fs::read(&base).expect("a file");
    fs::write(&base, &kept).expect("a file");
    let written = lines("--follow");
    assert_ne!(etag(&written), etag(&first));
    fs::remove_file(&base).expect("a file");
    let gone = lines("--follow");
    assert_ne!(etag(&gone), etag(&written));
    // Where nothing is followed the image alone counts.
    let alone = lines("");
    fs::write(&base, &kept).expect("a file");
    assert_eq!(lines(""), alone);
    assert_ne!(etag(&lines("--follow")), etag(&gone));
}

/// As for text: nothing found is no success, and what a reader has seen has its status.
#[test]
fn lines_end_as_text_does() {
    let here = fleet();
    fs::create_dir(here.path().join("empty")).expect("a directory");
    for form in ["", "--jsonl", "--rows"] {
        let ran = run(here.path(), &format!("check {form} -r empty"));
        assert!(
            ran.stderr.contains("no image in it or beneath it") && ran.code == Some(2),
            "{form}"
        );
        let both =
            with_list(&here, &format!("check {form} --together fleet/0/disk --from -"), b"x\n");
        assert_eq!(both.code, Some(2), "{form}: {}", both.stderr);
    }
    let names = "fleet/0/disk\n".repeat(3000);
    let mut child = program(here.path())
        .args(["check", "--jsonl", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    let mut list = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || drop(list.write_all(names.as_bytes())));
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    writer.join().expect("it ends");
}

/// Of more targets than a page can show, it says how many, what mending each rule would gain, and
/// which are the worst; the same after a run that went on.
#[test]
fn the_page_of_many_targets_is_of_the_fleet() {
    let here = fleet();
    for nth in 0..40 {
        for kind in 0..3 {
            let (from, to) = (format!("fleet/{kind}/disk"), format!("fleet/{nth:02}-{kind}.img"));
            fs::hard_link(here.path().join(from), here.path().join(to)).expect("a link");
        }
    }
    let page = |name: &str| fs::read_to_string(here.path().join(name)).expect("a page");
    let whole = run(here.path(), "check --jsonl -r fleet --into one --html one.html");
    assert_eq!(whole.code, Some(1), "{}", whole.stderr);
    let one = page("one.html");
    for part in
        ["126 targets", "What mending each would gain", "The worst hundred", "TL0030", "QEMU"]
    {
        assert!(one.contains(part), "{part}: {one}");
    }
    let half = page("one").lines().take(50).map(|line| format!("{line}\n")).collect::<String>();
    fs::write(here.path().join("two"), half).expect("a file");
    run(here.path(), "check --jsonl -r fleet --into two --html two.html");
    let body = |text: &str| text.split_once("<p>").map(|(_, body)| body.to_owned());
    assert_eq!(body(&page("two.html")), body(&one));
    run(here.path(), "check -q -r fleet --html text.html");
    assert_eq!(run(here.path(), "check -r fleet/0 --html few.html").code, Some(1));
    assert!(!page("few.html").contains("worst hundred"));
}
