//! Settings from files: what counts before what, which files are believed, and `config`.

use crate::counters::at_63;
use crate::terminal::show;
use crate::{Ran, program, run, scratch};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// A drive that claims sectors of 512 bytes, with a partition at sector 63, in a listing of another
/// host: blocks of its file system are not known, so at best its verdict is `unknown`.
const LISTING: &str = r#"{"blockdevices": [{"name": "sda", "type": "disk", "size": 1000204886016,
    "phy-sec": 512, "log-sec": 512, "min-io": 512, "alignment": 0, "model": "WDC WD10EARS",
    "serial": "WD-1", "pttype": "dos", "children": [{"name": "sda1", "type": "part",
    "start": 63, "size": 1000000000000, "phy-sec": 512, "log-sec": 512, "fstype": "ext4"}]}]}"#;

/// A run in which `HOME` is `home`, and no file of settings is named.
fn at_home(directory: &Path, words: &str) -> Command {
    let mut command = program(directory);
    command.env_remove("TRUELINE_CONFIG").env_remove("XDG_CONFIG_HOME");
    command.env("HOME", directory.join("home")).args(words.split_whitespace());
    command
}

fn ran(mut command: Command) -> Ran {
    Ran::of(&command.output().expect("the program can be run"))
}

/// Writes the user's file of settings in `home`.
fn write(directory: &Path, text: &str) {
    let place = directory.join("home/.config");
    fs::create_dir_all(&place).expect("a directory");
    fs::write(place.join("trueline.toml"), text).expect("a file");
    fs::set_permissions(place.join("trueline.toml"), Permissions::from_mode(0o644)).expect("ours");
}

/// The command line, the environment, the file beside an image, the settings: each counts before
/// the next, and the settings before what is measured and what a host reports.
#[test]
fn a_profile_and_a_unit_count_in_their_order() {
    let here = scratch();
    let path = here.path();
    at_63(path);
    let checked = |words: &str, profile: Option<&str>| {
        let mut command = at_home(path, words);
        command.envs(profile.map(|profile| ("TRUELINE_FOR", profile)));
        let json = ran(command).json();
        let judged = &json["targets"][0]["for"];
        [&judged["profile"], &judged["from"]].map(|text| text.as_str().map(str::to_owned))
    };
    let said = |name: &str, from: &str| [Some(name.to_owned()), Some(from.to_owned())];
    let line = format!("{}/home/.config/trueline.toml:2", path.display());
    assert_eq!(checked("check --json disk", None), [None, None]);
    write(path, "# mine\nfor = \"512n\"\n");
    assert_eq!(checked("check --json disk", None), said("512n", &line));
    fs::write(path.join(".trueline.toml"), "for = \"4kn\"").expect("a file");
    assert_eq!(checked("check --json disk", None), said("4kn", ".trueline.toml"));
    assert_eq!(checked("check --json disk", Some("ssd-16k")), said("ssd-16k", "TRUELINE_FOR"));
    assert_eq!(checked("check --json --for 512e disk", Some("ssd-16k")), said("512e", "--for"));

    fs::write(path.join("lsblk.json"), LISTING).expect("a file");
    let listed = |words: &str| {
        let ran = ran(at_home(path, &format!("check --json --from lsblk.json {words}")));
        let target = ran.json()["targets"][0].clone();
        let grains = target["providers"][0]["grains"].as_array().cloned().unwrap_or_default();
        let unit = grains.into_iter().find(|grain| grain["why"] == "physical").expect("a unit");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (ran.code, text(&target["verdict"]), unit["size"].as_u64(), text(&unit["source"]))
    };
    let is = |code, verdict: &str, size, source: &str| {
        (Some(code), verdict.to_owned(), Some(size), source.to_owned())
    };
    assert_eq!(listed(""), is(0, "unknown", 512, "sysfs"));
    let measured = r#"{"format": "trueline/measured/1", "drives": [{"model": "WDC WD10EARS",
        "serial": "WD-1", "size": 16384, "phase": 0, "confidence": 1}]}"#;
    fs::write(path.join(".measured.json"), measured).expect("a file");
    assert_eq!(listed(""), is(1, "misaligned", 16384, "measured"));
    write(path, "[[drive]]\nmodel = \"WDC WD10EARS\"\nserial = \"WD-1\"\nphysical = \"4k\"\n");
    assert_eq!(listed(""), is(1, "misaligned", 4096, "user"));
    // Units that begin with sector 63: the jumper.
    write(path, "[[drive]]\nserial = \"WD-1\"\nphysical = \"4k+3584\"\n");
    assert_eq!(listed(""), is(0, "unknown", 4096, "user"));
    // What is stated ends the doubt about a drive that claims 512.
    let said = ran(at_home(path, "check --from lsblk.json")).stdout;
    assert!(said.contains("s1 ") && !said.contains("TL0016"), "{said}");
    assert_eq!(listed("--physical 8k"), is(1, "misaligned", 8192, "user"));
    write(path, "[[drive]]\nserial = \"WD-2\"\nphysical = \"4k\"\n");
    assert_eq!(listed(""), is(1, "misaligned", 16384, "measured"));
}

#[test]
fn strictness_is_the_command_lines_before_that_of_the_settings() {
    let here = scratch();
    at_63(here.path());
    crate::zeroes(here.path(), "noise.img", 1 << 20);
    fs::write(here.path().join("noise.img"), b"no format that is known".repeat(1000))
        .expect("a file");
    let status = |words: &str| ran(at_home(here.path(), words)).code;
    assert_eq!([status("check disk"), status("check noise.img")], [Some(1), Some(0)]);
    write(here.path(), "[check]\nstrict = true\nfail-on = \"error\"\n");
    assert_eq!(status("check noise.img"), Some(3));
    assert_eq!(status("check --strict=false noise.img"), Some(0));
    write(here.path(), "[check]\nfail-on = \"note\"\n");
    assert_eq!(
        [status("check noise.img"), status("check --fail-on error noise.img")],
        [Some(1), Some(0)]
    );
    assert_eq!(status("check --nagios disk"), Some(2));
    write(here.path(), "[check]\nfail-on = \"never\"\n");
    assert_eq!([status("check disk"), status("check --fail-on error disk")], [Some(0), Some(1)]);
}

/// Names of files are bytes; no settings at all are named as the empty device, by any name of it.
#[test]
fn files_have_any_name_and_a_stream_is_none() {
    let here = scratch();
    let path = here.path();
    at_63(path);
    let home = path.join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&home).expect("a directory");
    fs::write(home.join("trueline.toml"), "for = \"512n\"").expect("a file");
    fs::set_permissions(home.join("trueline.toml"), Permissions::from_mode(0o644)).expect("ours");
    let judged = |words: &str| {
        let mut command = at_home(path, words);
        command.env("XDG_CONFIG_HOME", &home);
        ran(command).json()["targets"][0]["for"]["profile"].clone()
    };
    assert_eq!(judged("check --json disk"), "512n");
    for nothing in ["/dev/null", "//dev/null", "/dev/../dev/null"] {
        assert_eq!(judged(&format!("check --json disk --config {nothing}")), Value::Null);
    }
    let ran = run(path, "check --config - disk");
    assert!(ran.refused().contains("it is a file, not a stream: ./- is one"), "{}", ran.stderr);
}

/// A file is believed if its user or root wrote it and no other may; a named one is an error
/// otherwise, one that was only found is passed over with a word.
#[test]
fn files_of_others_are_not_read() {
    let here = scratch();
    let path = here.path();
    at_63(path);
    write(path, "for = \"512n\"\n");
    let file = path.join("home/.config/trueline.toml");
    let judged = |mut command: Command| {
        command.env("HOME", path.join("home"));
        let ran = ran(command);
        (ran.json()["targets"][0]["for"]["profile"].clone(), ran.stderr)
    };
    let check = || at_home(path, "check --json disk");
    assert_eq!(judged(check()), ("512n".into(), String::new()));
    fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("ours");
    let (profile, said) = judged(check());
    assert_eq!(profile, Value::Null);
    let wanted = "trueline.toml is not read: others may write it (mode 0666): --config FILE reads";
    assert!(said.contains(wanted), "{said}");
    let mut named = check();
    named.env("TRUELINE_CONFIG", &file);
    let ran_named = ran(named);
    assert!(ran_named.refused().contains("others may write it"), "{}", ran_named.stderr);
    // What the command line names is what was meant.
    let own = format!("check --json disk --config {}", file.display());
    assert_eq!(judged(at_home(path, &own)), ("512n".into(), String::new()));
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("ours");
    if chown(&file, Some(4321), None).is_ok() {
        // Root's programs are not stopped by what a user puts into a directory of its own.
        fs::rename(&file, path.join("kept")).expect("ours");
        assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
        chown(&file, Some(4321), None).expect("we are root");
        assert!(judged(check()).0.is_null());
        fs::remove_file(&file).expect("ours");
        std::os::unix::fs::symlink(path.join("disk"), &file).expect("a link");
        let directory = path.join("home/.config");
        chown(&directory, Some(4321), None).expect("we are root");
        let (profile, said) = judged(check());
        assert!(profile.is_null() && said.contains("its directory belongs to"), "{said}");
        chown(&directory, Some(0), None).expect("we are root");
        fs::rename(path.join("kept"), &file).expect("ours");
        let (profile, said) = judged(check());
        assert!(profile.is_null() && said.contains("it belongs to the user 4321"), "{said}");
        let shown = ran(at_home(path, "config --json"));
        assert_eq!(
            (shown.code, shown.json()["files"][0]["state"].clone()),
            (Some(0), "refused".into())
        );
    } else {
        println!("skipped: files of another user are made by root");
    }
}

/// A file that is wrong stops what reads disks, with its place; what helps to mend it goes on.
#[test]
fn a_file_that_is_wrong_is_named_with_its_line() {
    let here = scratch();
    let path = here.path();
    at_63(path);
    write(path, "# mine\nfro = \"512n\"\n[check]\nstrikt = true\n");
    let refused = ran(at_home(path, "check disk"));
    let wanted = "/home/.config/trueline.toml:2: no setting 'fro': did you mean for? there are ";
    assert!(refused.refused().contains(wanted), "{}", refused.stderr);
    for words in ["help check", "explain TL0001", "--help", "completions bash", "man home"] {
        let ran = ran(at_home(path, words));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words}");
    }
    let nagios = ran(at_home(path, "check --nagios disk"));
    assert_eq!(nagios.code, Some(3));
    assert!(
        nagios.stdout.contains("UNKNOWN") && nagios.stdout.contains("fro"),
        "{}",
        nagios.stdout
    );
    let shown = ran(at_home(path, "config"));
    assert_eq!((shown.code, shown.stderr.lines().count()), (Some(2), 2), "{}", shown.stderr);
    assert!(shown.stdout.contains("wrong"), "{}", shown.stdout);
    let checked = ran(at_home(path, "config --check home/.config/trueline.toml"));
    assert_eq!((checked.code, checked.stderr.lines().count()), (Some(2), 2), "{}", checked.stderr);
    fs::write(path.join("own.toml"), "for = \"512n\"\n").expect("a file");
    let fine = ran(at_home(path, "config --check own.toml"));
    assert_eq!(fine.ended(0).stdout, "own.toml: nothing is wrong: 1 setting, 0 drives\n");
    // Files that are none, and that are none of text.
    fs::write(path.join("bytes"), [0xff, 0xfe, 0]).expect("a file");
    assert!(Command::new("mkfifo").arg(path.join("pipe")).status().expect("mkfifo").success());
    for (name, says) in [
        ("pipe", "it is not a regular file"),
        (".", "it is not a regular file"),
        ("nowhere", "no such file"),
        ("bytes", "read bytes: "),
    ] {
        let line = run(path, &format!("check disk --config {name}"));
        assert!(line.refused().to_lowercase().contains(says), "{name}: {}", line.stderr);
        let checked = run(path, &format!("config --check {name}"));
        assert_eq!(checked.code, Some(2), "{name}");
    }
}

#[test]
fn every_setting_is_shown_with_its_origin_at_any_width() {
    let here = scratch();
    let path = here.path();
    let own = path.join("own.toml");
    let text = "for = \"ssd-16k\"\n[check]\nfail-on = \"error\"\n[[drive]]\n\
        model = \"WDC WD10EARS\"\nserial = \"WD-1\"\nphysical = \"4k+3584\"\nchunk = 65536\n\
        from = \"the maker's data sheet\"\n";
    fs::write(&own, text).expect("a file");
    let measured = |serial: &str| {
        format!(
            r#"{{"model": "WDC WD10EARS", "serial": "{serial}", "size": 16384, "phase": 0,
            "confidence": 1}}"#
        )
    };
    let measured = [measured("WD-1"), measured("WD-3")].join(",");
    fs::write(
        path.join(".measured.json"),
        format!(r#"{{"format": "trueline/measured/1", "drives": [{measured}]}}"#),
    )
    .expect("a file");
    let json = run(path, "config --json --config own.toml").json();
    assert_eq!(json["format"], "trueline/config/1");
    let settings = json["settings"].as_array().expect("settings");
    let row = |key: &str| settings.iter().find(|row| row["key"] == key).expect("a setting");
    assert_eq!((&row("for")["value"], &row("for")["from"]["line"]), (&"ssd-16k".into(), &1.into()));
    assert_eq!(row("check.fail-on")["from"]["path"], "own.toml");
    assert_eq!(row("check.strict")["from"]["path"], Value::Null);
    let units: Vec<_> = json["drives"]
        .as_array()
        .expect("drives")
        .iter()
        .map(|unit| {
            let text = |key: &str| unit[key].as_str().unwrap_or_default().to_owned();
            (text("serial"), text("why"), unit["size"].as_u64(), unit["from"]["line"].as_u64())
        })
        .collect();
    let unit = |serial: &str, why: &str, size, line| (serial.into(), why.into(), Some(size), line);
    assert_eq!(
        units,
        [
            unit("WD-1", "physical", 4096, Some(7)),
            unit("WD-1", "chunk", 65536, Some(8)),
            unit("WD-3", "physical", 16384, None),
        ]
    );
    let mut from_environment = program(path);
    from_environment.env("TRUELINE_FOR", "512n").args(["config", "--json", "--config", "own.toml"]);
    let json = ran(from_environment).json();
    assert_eq!(json["settings"][0]["from"]["variable"], "TRUELINE_FOR");
    for width in [40, 60, 80, 132] {
        let shown = show(path, width, &["--config", "own.toml", "config"]);
        assert_eq!(shown.code, Some(0), "{}", shown.text());
        // A path is not broken.
        let wider = shown.wider(width).into_iter().find(|line| !line.contains('/'));
        assert_eq!(wider, None, "{width}: {}", shown.text());
        assert!(shown.text().contains("own.toml:7"), "{width}: {}", shown.text());
    }
}
