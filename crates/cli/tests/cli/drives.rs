//! Simulated drives: as targets, as a list, as files of one's own.

use crate::{golden, list, run, run_with, scratch, texts, zeroes};
use serde_json::Value;
use std::fs;

/// A model of 4096-byte sectors of which the first begins at byte 512.
const SHIFTED: &str = "name = \"shifted\"\ntitle = \"a test's\"\nsize = 67108864\n\
    logical_block_size = 512\nphysical_block_size = 4096\nalignment_offset = 512\n[memory]\n\
    command_ns = 1\n";

/// The disk of a target's document.
fn disk(document: &Value) -> &Value {
    &document["targets"][0]["providers"][0]
}

#[test]
fn a_drive_is_a_disk_with_the_boundaries_of_its_model() {
    let scratch = scratch();
    fs::write(scratch.path().join("x.toml"), SHIFTED).unwrap();
    let document = run(scratch.path(), "check --json drive:./x.toml").ended(0).json();
    assert_eq!(disk(&document)["length"], 64 << 20);
    let grains = list(disk(&document), "grains");
    let physical = grains.iter().find(|g| g["why"] == "physical").unwrap();
    assert_eq!(
        (&physical["size"], &physical["phase"], &physical["source"]),
        (&4096.into(), &512.into(), &"model".into())
    );
    assert!(
        grains.iter().all(|g| g["source"] == "model"),
        "nothing is assumed of a drive that is known: {grains:?}"
    );
    // The user knows better.
    let said = run(scratch.path(), "check --json --physical 16k drive:./x.toml").ended(0).json();
    let physical: Vec<&Value> =
        list(disk(&said), "grains").iter().filter(|g| g["why"] == "physical").collect();
    assert_eq!((physical.len(), &physical[0]["size"]), (1, &16384.into()));
}

#[test]
fn a_size_and_an_image_are_said_behind_the_model() {
    let scratch = golden("gpt-sfdisk");
    fs::write(scratch.path().join("x.toml"), SHIFTED).unwrap();
    let length = fs::metadata(scratch.path().join("disk")).unwrap().len();
    let document = run(scratch.path(), "check --json drive:md@1g").ended(0).json();
    assert_eq!(
        (texts(list(&document["targets"][0], "providers"), "provider"), &disk(&document)["length"]),
        (vec![""], &(1 << 30).into())
    );
    let document = run(scratch.path(), "check --json drive:md=disk").ended(0).json();
    assert_eq!(
        texts(list(&document["targets"][0], "providers"), "provider"),
        ["", "p1", "p2", "p3"]
    );
    assert_eq!(disk(&document)["length"], length);
    let document = run(scratch.path(), "check --json drive:md=disk#p2").json();
    assert_eq!(texts(list(&document["targets"][0], "providers"), "provider"), ["p2"]);
    // On a drive whose boundaries are elsewhere the same table is misaligned.
    let on = |target: &str| {
        run(scratch.path(), &format!("check --json {target}")).json()["verdict"].clone()
    };
    assert_eq!((on("drive:./x.toml@1g=disk"), on("disk")), ("misaligned".into(), "aligned".into()));
    let document = run(scratch.path(), "check --json drive:md@1g=disk").json();
    assert_eq!(disk(&document)["length"], 1 << 30);
    let names = |target: &str| {
        let document = run(scratch.path(), &format!("check --json {target}")).json();
        list(&document["targets"][0], "providers")
            .iter()
            .filter(|p| p["class"] == "disk")
            .map(|p| p["provider"].clone())
            .collect::<Vec<_>>()
    };
    fs::copy(scratch.path().join("disk"), scratch.path().join("ada1.img")).unwrap();
    assert_eq!(names("drive:md=ada1.img,drive:md=disk"), ["ada1", "disk"]);
    assert_eq!(names("drive:md,drive:./x.toml"), ["md", "x"]);
    assert_eq!(names("drive:md,drive:md"), ["drive:md-1", "drive:md-2"]);
}

#[test]
fn an_image_on_a_drive_is_read_and_never_written() {
    let scratch = golden("gpt-sfdisk");
    let before = fs::read(scratch.path().join("disk")).unwrap();
    let shown = run(scratch.path(), "part delete -i 3 --dry-run drive:md=disk");
    assert!(shown.ended(0).stdout.contains("drive:md=disk"), "{}", shown.stdout);
    run(scratch.path(), "part delete -i 3 drive:md=disk").refused();
    run(scratch.path(), "part create -s gpt drive:md@64m").refused();
    assert_eq!(fs::read(scratch.path().join("disk")).unwrap(), before);
    assert!(
        run(scratch.path(), "part create -s gpt --dry-run drive:md@64m")
            .ended(0)
            .stdout
            .contains("GPT")
    );
}

#[test]
fn what_is_wrong_with_a_drive_is_said_with_its_line() {
    let scratch = scratch();
    zeroes(scratch.path(), "big.img", 2 << 30);
    zeroes(scratch.path(), "odd.img", 1000);
    fs::create_dir(scratch.path().join("d.toml")).unwrap();
    for (name, text) in [
        ("syntax.toml", "name = \"a\"\nsize = \n"),
        ("key.toml", &SHIFTED.replace("title", "titel")),
        ("value.toml", &SHIFTED.replace("size = 67108864", "size = 1000")),
    ] {
        fs::write(scratch.path().join(name), text).unwrap();
    }
    for (target, want) in [
        ("drive:", "no model ''"),
        ("drive:nope", "no model 'nope': there are wd10ears"),
        ("drive:nope@1g", "no model 'nope': there are wd10ears"),
        ("drive:./nope.toml", "no such file"),
        ("drive:./d.toml", "it is not a regular file"),
        ("drive:/dev/null", "it is not a regular file"),
        ("drive:md@", "'' is not a size"),
        ("drive:md@1x", "'1x' is not a size"),
        ("drive:md@15e", "more than a drive has"),
        ("drive:md@7e", "at most 64 PiB"),
        ("drive:md@1000", "not a multiple of logical_block_size"),
        ("drive:md=", "the name of the image is missing"),
        ("drive:md=nope.img", "nope.img: no such file"),
        ("drive:md=big.img", "drive:md@2147483648=big.img"),
        ("drive:md@1m=big.img", "drive:md@2147483648=big.img"),
        ("drive:md=odd.img", "not whole sectors of 512"),
        ("drive:./syntax.toml", "line 2: "),
        ("drive:./key.toml", "line 2: unknown field `titel`"),
        ("drive:./value.toml", "line 3: size = 1000: not a multiple"),
    ] {
        let ran = run_with(scratch.path(), &["check", target]);
        assert!(ran.refused().contains(want), "{target}: {}", ran.stderr);
    }
    // A file of that name is a file.
    zeroes(scratch.path(), "drive:md", 4096);
    assert_eq!(disk(&run(scratch.path(), "check --json drive:md").json())["length"], 4096);
}

#[test]
fn models_are_listed_with_every_number_and_its_origin() {
    let scratch = scratch();
    let all = run(scratch.path(), "drives --json").ended(0).json();
    assert_eq!(all["format"], "trueline/drives/1");
    let names = texts(list(&all, "models"), "name");
    let text = run(scratch.path(), "drives").ended(0).stdout.clone();
    assert_eq!(
        text.lines().skip(1).map(|l| l.split_whitespace().next().unwrap()).collect::<Vec<_>>(),
        names
    );
    for (name, whole) in names.iter().zip(list(&all, "models")) {
        let one = run(scratch.path(), &format!("drives --json {name}")).ended(0).json();
        assert_eq!(&one["models"][0], whole, "{name}");
        let text = run(scratch.path(), &format!("drives {name}")).ended(0).stdout.clone();
        for parameter in list(whole, "parameters") {
            let row =
                text.lines().find(|l| l.split_whitespace().next() == parameter["key"].as_str());
            assert!(
                row.is_some_and(|row| row.contains(parameter["origin"].as_str().unwrap())),
                "{name}: {parameter}"
            );
        }
        // A template is the whole file: the same drive.
        let template =
            run(scratch.path(), &format!("drives --template {name}")).ended(0).stdout.clone();
        fs::write(scratch.path().join("own.toml"), &template).unwrap();
        let own = run(scratch.path(), "drives --json ./own.toml").ended(0).json();
        assert_eq!(own, one, "{name}");
        let document =
            run(scratch.path(), &format!("drives --json --template {name}")).ended(0).json();
        assert_eq!(document["models"][0]["template"], template.as_str());
        let check = |target: &str| {
            list(
                disk(&run(scratch.path(), &format!("check --json drive:{target}")).json()),
                "grains",
            )
            .to_vec()
        };
        assert_eq!(check(name), check("./own.toml"), "{name}");
    }
}

#[test]
fn keys_are_set_and_what_cannot_be_is_refused() {
    let scratch = scratch();
    let document =
        run(scratch.path(), "drives md --json --set command_ns=5 --set memory.rate_bytes=700000")
            .ended(0)
            .json();
    let parameters = list(&document["models"][0], "parameters");
    let of = |key: &str| {
        parameters
            .iter()
            .find(|p| p["key"] == key)
            .map(|p| (p["value"].clone(), p["origin"].clone()))
    };
    assert_eq!(
        (of("command_ns"), of("rate_bytes")),
        (Some((5.into(), "user".into())), Some((700_000.into(), "user".into())))
    );
    for (arguments, want) in [
        ("drives nope", "no model 'nope': there are wd10ears"),
        ("drives --template nope", "no model 'nope'"),
        ("drives md --set rpm", "write KEY=VALUE"),
        ("drives md --set rpm=7200", "unknown field `rpm`"),
        ("drives md --set size=-1", "size: invalid value"),
        ("drives md --set name.x=1", "no table [name]"),
        ("drives --set size=512", "MODEL"),
        ("drives md --template md", "cannot be used with"),
    ] {
        assert!(
            run(scratch.path(), arguments).refused().contains(want),
            "{arguments}: {}",
            run(scratch.path(), arguments).stderr
        );
    }
}

/// A command that takes a simulated drive takes keys of its model.
#[test]
fn every_command_that_looks_at_a_drive_takes_keys_of_its_model() {
    let scratch = scratch();
    for (command, without, with) in [
        ("info drive:wd10ears", "4096            0  physical", "4096         3584  physical"),
        ("check --json drive:wd10ears", "\"phase\": 0", "\"phase\": 3584"),
        ("show --json drive:wd10ears", "\"phase\": 0", "\"phase\": 3584"),
        ("plan --json --use ext4 drive:wd10ears", "\"phase\": 0", "\"phase\": 3584"),
    ] {
        let (off, on) = (
            run(scratch.path(), command),
            run(scratch.path(), &format!("{command} --set jumper=true")),
        );
        assert!(
            off.ended(0).stdout.contains(without) && !off.stdout.contains(with),
            "{command}\n{}",
            off.stdout
        );
        assert!(on.ended(0).stdout.contains(with), "{command}\n{}", on.stdout);
    }
    run(scratch.path(), "part create -s gpt --dry-run drive:wd10ears --set jumper=true").ended(0);
    fs::write(scratch.path().join("disk.img"), [0; 4096]).expect("a file can be written");
    for (command, what) in [
        ("check disk.img", "open disk.img"),
        ("check", "check"),
        ("info disk.img", "open disk.img"),
        ("show md:1m", "open md:1m"),
        ("plan --use ext4", "plan"),
        ("part show disk.img", "open disk.img"),
    ] {
        let said = run(scratch.path(), &format!("{command} --set jumper=true"));
        assert!(
            said.refused()
                .contains(&format!("{what}: --set jumper is for simulated drives: drive:MODEL")),
            "{command}: {}",
            said.stderr
        );
    }
    let unknown = run(scratch.path(), "check drive:wd10ears --set jmper=true");
    assert!(unknown.refused().contains("unknown field `jmper`"), "{}", unknown.stderr);
}

#[test]
fn names_of_models_are_completed() {
    let scratch = scratch();
    let completed =
        run_with(scratch.path(), &["complete", "--", "drives", ""]).ended(0).stdout.clone();
    assert!(
        list(&run(scratch.path(), "drives --json").json(), "models")
            .iter()
            .all(|m| completed.contains(m["name"].as_str().unwrap()))
    );
}
