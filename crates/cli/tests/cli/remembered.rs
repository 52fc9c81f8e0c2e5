//! `--for` as it is remembered: `TRUELINE_FOR` and `.trueline.toml` beside an image, by every
//! command that takes `--for`.

use crate::counters::at_63;
use crate::recipe::Scratch;
use crate::{Ran, program, run, scratch, zeroes};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Every command that takes `--for`, on images that [`images`] makes, with nothing written that
/// another of them needs.
const COMMANDS: [&str; 30] = [
    "check disk",
    "check disk disk2",
    "check --prometheus disk",
    "check --sarif disk",
    "check -o NAME disk",
    "show disk",
    "show -o NAME disk",
    "show --picture disk",
    "show --svg disk.svg disk",
    "info disk",
    "plan --use ext4 disk",
    "bench random-read disk --buffered --count 4 --runs 1",
    "bench raidtest disk --genfile requests.$",
    "part show disk",
    "part backup disk",
    "part create -s gpt --dry-run empty",
    "part add -t linux-data --dry-run disk",
    "part modify -i 1 -t swap --dry-run disk",
    "part resize -i 1 --dry-run disk",
    "part delete -i 1 --dry-run disk",
    "part apply --dry-run layout.toml empty",
    "part restore --dry-run empty",
    "part undo saved disk --dry-run",
    "mkfs ext4 --print disk#s1",
    "stripe label --force --dry-run st0 empty empty2",
    "mirror label --force --dry-run gm0 empty empty2",
    "concat label --force --dry-run gc0 empty empty2",
    "mirror dump member",
    "move --to 1048576 --dry-run disk#s1",
    "serve disk --run true",
];

/// A disk with a partition at LBA 63, another, and images with nothing on them.
fn images() -> Scratch {
    let here = scratch();
    let path = here.path();
    at_63(path);
    fs::hard_link(path.join("disk"), path.join("disk2")).expect("another name");
    ["empty", "empty2", "member"].iter().for_each(|name| zeroes(path, name, 64 << 20));
    fs::write(path.join("layout.toml"), "scheme = \"mbr\"\n[[partition]]\ntype = \"linux-data\"\n")
        .expect("a file");
    let table = run(path, "part backup disk").ended(0).stdout.clone();
    fs::write(path.join("table"), "MBR 4\n1 linux-data 2048 1000\n").expect("a file");
    assert!(table.starts_with("MBR 4\n"), "{table}");
    run(path, "mirror label gm1 member").ended(0);
    assert_eq!(run(path, "part modify -i 1 -t swap --save saved disk").code, Some(0));
    here
}

/// A run of a command in which `$` is a number of its own, with a profile in the environment or
/// without.
fn run_in(directory: &Path, profile: Option<&str>, command: &str, number: usize) -> Ran {
    let command = command.replace('$', &number.to_string());
    let words: Vec<&str> = command.split_whitespace().collect();
    let environment = profile.map(|profile| ("TRUELINE_FOR", profile));
    // What a table is restored from.
    let table = fs::File::open(directory.join("table")).expect("it was made");
    Ran::of(
        &program(directory)
            .envs(environment)
            .args(words)
            .stdin(table)
            .output()
            .expect("the program can be run"),
    )
}

/// Every origin that a run names for the profile it goes by, in its text and on stderr.
fn origins(ran: &Ran) -> Vec<String> {
    // A document for programs has texts of rules in it.
    let text = if ran.stdout.starts_with('{') { "" } else { &ran.stdout };
    let all = format!("{text}\n{}", ran.stderr);
    let said = all
        .lines()
        .filter_map(|line| line.split_once(" is for ").or_else(|| line.split_once("judged as ")));
    let said = said.filter_map(|(_, rest)| rest.split_once(", as ")?.1.split_once(" says"));
    let mut from: Vec<String> = said.map(|(from, _)| from.to_owned()).collect();
    // Of several targets with a tree of their own each says it.
    let trees = all.lines().filter(|line| line.starts_with("PROVIDER ")).count();
    from.dedup_by(|a, b| trees > 1 && a == b);
    from
}

/// The command line is believed before the environment, and that before the file beside an image;
/// what is not typed is said, once.
#[test]
fn every_command_goes_by_what_is_remembered_and_says_so_once() {
    let here = images();
    let file = here.path().join(".trueline.toml");
    for (number, command) in COMMANDS.into_iter().enumerate() {
        let from = |profile: Option<&str>, command: &str, which: usize| {
            let ran = run_in(here.path(), profile, command, number * 10 + which);
            assert!(matches!(ran.code, Some(0 | 1)), "{command}: {}{}", ran.stdout, ran.stderr);
            origins(&ran)
        };
        let _ = fs::remove_file(&file);
        assert_eq!(from(None, command, 0), [""; 0], "{command}");
        assert_eq!(from(Some("512n"), command, 1), ["TRUELINE_FOR"], "{command}");
        fs::write(&file, "for = \"512n\"\n").expect("a file");
        assert_eq!(from(None, command, 2), [".trueline.toml"], "{command}");
        assert_eq!(from(Some("512e"), command, 3), ["TRUELINE_FOR"], "{command}");
        let verb = if command.starts_with("part") { 2 } else { 1 };
        let verb = if ["stripe", "mirror", "concat"].iter().any(|set| command.starts_with(set)) {
            2
        } else {
            verb
        };
        let mut words: Vec<&str> = command.split_whitespace().collect();
        words.splice(verb..verb, ["--for", "512e"]);
        assert_eq!(from(Some("512n"), &words.join(" "), 4), [""; 0], "{command}");
    }
}

#[test]
fn a_file_that_cannot_be_what_it_should_is_an_error_with_its_place() {
    let here = images();
    let file = here.path().join(".trueline.toml");
    for (number, command) in COMMANDS.into_iter().enumerate() {
        fs::write(&file, "# this directory\nfor = \"nonsense\"\n").expect("a file");
        let ran = run_in(here.path(), None, command, number);
        let lines: Vec<&str> = ran.stderr.lines().collect();
        let wanted =
            "trueline: read .trueline.toml: line 2, column 7: no profile 'nonsense': there are ";
        assert!(
            ran.code == Some(2) && lines.iter().all(|line| line.starts_with(wanted)),
            "{command}: {}{}",
            ran.stdout,
            ran.stderr
        );
        let ran = run_in(here.path(), Some("nonsense"), command, number);
        let wanted = "trueline: TRUELINE_FOR: no profile 'nonsense'";
        assert!(
            ran.code == Some(2) && ran.stderr.starts_with(wanted),
            "{command}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    for (text, says) in [
        ("for = 7", "line 1, column 7: invalid type"),
        ("\nnonsense = \"512n\"", "line 2, column 1: unknown field"),
        ("for = \"512n\"\n".repeat(2).as_str(), "line 2, column 1: duplicate key"),
        ("[images.\"a b\"]\nfor = \"512x\"", "line 2, column 7: no profile '512x'"),
        ("#".repeat(70_000).as_str(), "more than 65536 bytes"),
        ("\u{0}", "line 1, column 2: "),
    ] {
        fs::write(&file, text).expect("a file");
        for command in
            ["check disk", "info disk", "plan --use ext4 disk", "stripe label st0 empty empty2"]
        {
            let line = run(here.path(), command);
            let wanted = format!("trueline: read .trueline.toml: {says}");
            assert!(line.refused().starts_with(&wanted), "{command}: {text:.40}: {}", line.stderr);
        }
        // What is said on the command line needs no file.
        run(here.path(), "check --for 512n disk").ended(0);
    }
    fs::remove_file(&file).expect("it is there");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    assert!(run(here.path(), "check disk").refused().contains("it is not a regular file"));
}

/// The profile and where it comes from, in what programs read.
#[test]
fn documents_name_the_profile_and_its_origin() {
    let here = images();
    fs::write(
        here.path().join(".trueline.toml"),
        "for = \"512n\"\n[images.other]\nfor = \"sd-4m\"\n",
    )
    .expect("a file");
    fs::hard_link(here.path().join("disk"), here.path().join("other")).expect("another name");
    let places: [(&str, &[&str]); 8] = [
        ("check --json other", &["targets", "0", "for"]),
        ("show --json other", &["targets", "0", "for"]),
        ("info --json other", &["for"]),
        ("plan --json --use ext4 other", &["for"]),
        ("bench random-read other --json --buffered --count 4 --runs 1", &["variants", "0", "for"]),
        ("part show --json other", &["tables", "0", "for"]),
        ("part apply --json layout.toml empty", &["for"]),
        ("serve --json other --run true", &["for"]),
    ];
    let at = |ran: &Ran, path: &[&str]| {
        let step = |value: Value, key: &&str| {
            key.parse::<usize>().map_or_else(|_| value[*key].clone(), |nth| value[nth].clone())
        };
        path.iter().fold(ran.json(), step)
    };
    for (command, path) in places {
        let profile = if command.contains("apply") { "512n" } else { "sd-4m" };
        assert_eq!(
            at(&run(here.path(), command), path),
            serde_json::json!({"profile": profile, "from": ".trueline.toml"}),
            "{command}"
        );
        let environment = at(&run_in(here.path(), Some("ssd-16k"), command, 0), path);
        assert_eq!(
            environment,
            serde_json::json!({"profile": "ssd-16k", "from": "TRUELINE_FOR"}),
            "{command}"
        );
    }
    // A move is told of when it is done.
    let moved = at(&run(here.path(), "move --json --align other#s1"), &["for"]);
    assert_eq!(moved, serde_json::json!({"profile": "sd-4m", "from": ".trueline.toml"}));
    // A device says itself what it is, and a disk that is only described is what the environment
    // says.
    let target = |ran: &Ran| at(ran, &["targets", "0", "for"]);
    assert_eq!(
        target(&run_in(here.path(), Some("ssd-16k"), "check --json zero:1m", 0)),
        Value::Null
    );
    let described = run_in(here.path(), Some("ssd-16k"), "plan --use ext4 --json", 0).json();
    assert_eq!(
        (&described["for"]["from"], &described["grains"][0]["size"]),
        (&"TRUELINE_FOR".into(), &16384.into())
    );
    // A simulated drive is what its model says.
    let emulated = run_in(
        here.path(),
        Some("ssd-64k"),
        "serve --json --drive wd10ears --emulate other --run true",
        0,
    );
    assert_eq!((at(&emulated, &["for"]), origins(&emulated)), (Value::Null, Vec::new()));
}

/// It is gone by, and not only named: sectors of 4096 bytes for a set's labels, boundaries of 16
/// KiB for a plan and a partition.
#[test]
fn what_is_remembered_counts() {
    let here = images();
    let file = here.path().join(".trueline.toml");
    let stripe =
        |directory: &Path| run(directory, "stripe label --dry-run st0 empty empty2").stdout;
    assert!(stripe(here.path()).contains("512 bytes at byte 67108352"), "{}", stripe(here.path()));
    fs::write(&file, "for = \"4kn\"").expect("a file");
    assert!(stripe(here.path()).contains("4096 bytes at byte 67104768"), "{}", stripe(here.path()));
    fs::write(&file, "for = \"ssd-16k\"").expect("a file");
    let planned = run(here.path(), "plan --json --use ext4 disk").json();
    assert_eq!(planned["grains"][0]["size"], 16384);
    assert_eq!(run(here.path(), "part create -s mbr empty").code, Some(0));
    assert_eq!(run(here.path(), "part add -t linux-data -b 72s empty").code, Some(0));
    let warned = run(here.path(), "check empty#s1").stdout;
    assert!(warned.contains("TL0001") && warned.contains("16384-byte physical unit"), "{warned}");
}

/// One target is judged by one profile: images that are for different drives are not one target
/// without a word.
#[test]
fn images_of_one_target_agree() {
    let here = images();
    fs::write(
        here.path().join(".trueline.toml"),
        "[images.empty]\nfor = \"512n\"\n[images.empty2]\nfor = \"4kn\"\n",
    )
    .expect("a file");
    let refused = run(here.path(), "stripe label st0 empty empty2");
    let wanted = "trueline: open empty,empty2: empty is for 512n, and empty2 for 4kn, as \
        .trueline.toml says: say --for for all of them";
    assert_eq!(refused.refused(), wanted);
    run(here.path(), "stripe label --for 512n --dry-run st0 empty empty2").ended(0);
    // What is said of each is said of each.
    let checked = run(here.path(), "check -n -o NAME empty empty2 member");
    let mut notes: Vec<&str> = checked.stderr.lines().collect();
    notes.sort_unstable();
    let wanted = ["empty2: judged as 4kn", "empty: judged as 512n"]
        .map(|said| format!("trueline: note: {said}, as .trueline.toml says"));
    assert_eq!(notes, wanted);
}
