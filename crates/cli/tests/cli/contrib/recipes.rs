//! The recipes of image builders: each builds its disk and passes its check, and fails with a
//! layout that is misaligned.

use super::{beside_trueline, contrib};
use crate::counters::here as installed;
use crate::recipe::Scratch;
use crate::serve_tls::shell;
use crate::skip::skip;
use crate::{Ran, lay_golden, scratch, zeroes};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies the files of a directory, and of those in it.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a recipe") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).expect("a directory");
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a file");
        }
    }
}

/// A directory with a copy of a recipe's files, as its user has them.
fn copied(name: &str) -> Scratch {
    let here = scratch();
    copy(&contrib("recipes").join(name), here.path());
    here
}

/// Breaks a recipe: replaces what stands in one of its files.
#[track_caller]
fn replace(here: &Scratch, file: &str, from: &str, to: &str) {
    let path = here.path().join(file);
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains(from), "{file} has no {from}: {text}");
    fs::write(path, text.replacen(from, to, 1)).expect("a file");
}

/// Output of a program, which finds `trueline`.
fn ran(command: &mut Command) -> Ran {
    Ran::of(&command.output().expect("it can be run"))
}

/// That a build passed its check.
#[track_caller]
fn passes(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

/// That a build failed because of a finding of `rule`.
#[track_caller]
fn fails(ran: &Ran, rule: &str) {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert_ne!(ran.code, Some(0), "{all}");
    assert!(all.contains(rule), "{all}");
}

#[test]
fn genimage_makes_a_card() {
    if !installed(&["genimage", "mke2fs", "mkfs.fat"]) {
        return;
    }
    let build = |here: &Scratch| {
        shell(here.path(), "mkdir -p root input; echo words >root/words");
        let words = ["--rootpath", "root", "--inputpath", "input", "--config", "genimage.cfg"];
        ran(beside_trueline(here.path(), "genimage").args(words))
    };
    let here = copied("genimage");
    let built = build(&here);
    passes(&built);
    assert!(built.stderr.contains("card.img: 2 aligned"), "{}", built.stderr);
    let here = copied("genimage");
    replace(&here, "genimage.cfg", "align = 4M", "");
    fails(&build(&here), "TL0001");
    let here = copied("genimage");
    replace(&here, "genimage.cfg", " -R 8032", "");
    fails(&build(&here), "TL0003");
}

#[test]
fn growpart_keeps_the_start() {
    if !installed(&["growpart", "sfdisk"]) {
        return;
    }
    let grow = |table: &str, partition: &str| {
        let here = copied("growpart");
        let table = table.replace(' ', "\n");
        shell(
            here.path(),
            &format!("truncate -s 64M cloud.img; echo '{table}' | /sbin/sfdisk -q cloud.img"),
        );
        let words = ["./grown.sh", "cloud.img", partition, "256M"];
        let ran = ran(beside_trueline(here.path(), "sh").args(words));
        let left = fs::read_dir(here.path()).expect("a directory").count();
        assert_eq!(left, 2, "the copy goes: {}", ran.stderr);
        ran
    };
    for label in ["label:gpt", "label:dos"] {
        let grown = grow(&format!("{label} start=2048,type=L"), "1");
        passes(&grown);
        assert!(grown.stdout.contains("CHANGED: partition=1"), "{}", grown.stdout);
        assert_eq!(grown.stdout.matches("1 aligned").count(), 2, "{}", grown.stdout);
        fails(&grow(&format!("{label} start=2049,type=L"), "1"), "TL0001");
    }
    // The first of two cannot grow: the build says so.
    fails(&grow("label:gpt start=2048,size=2048,type=L type=L", "1"), "NOCHANGE");
}

#[test]
fn ansible_asserts_that_everything_is_aligned() {
    if !installed(&["ansible-playbook"]) {
        return;
    }
    let here = copied("ansible");
    for (name, file) in [("gpt-sfdisk", "good.img"), ("gpt-unaligned", "bad.img")] {
        lay_golden(name, here.path());
        fs::rename(here.path().join("disk"), here.path().join(file)).expect("a disk");
    }
    let play = |file: &str| {
        let variables = json!({
            "targets": [here.path().join(file)],
            "judged": ["--for", "512e"],
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_remote_tmp": here.path().join("tmp"),
        });
        let mut command = beside_trueline(here.path(), "ansible-playbook");
        command.args(["-i", "localhost,", "-c", "local", "check.yml"]);
        command.args(["-e", &variables.to_string()]).env("HOME", here.path());
        // It refuses a locale that is not UTF-8.
        ran(command.env("LC_ALL", "C.UTF-8").env("ANSIBLE_NOCOLOR", "1"))
    };
    let good = play("good.img");
    passes(&good);
    assert!(good.stdout.contains("failed=0"), "{}", good.stdout);
    let bad = play("bad.img");
    fails(&bad, "starts at byte 17408 (LBA 34)");
    assert!(bad.stdout.contains("trueline move --align"), "what mends it: {}", bad.stdout);
}

/// Runs the program of Terraform's data source with a query; how it ended.
fn external(here: &Scratch, query: &str) -> Ran {
    let mut child = beside_trueline(here.path(), "sh")
        .arg("trueline-external.sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    child.stdin.take().expect("a pipe").write_all(query.as_bytes()).expect("it reads the query");
    Ran::of(&child.wait_with_output().expect("it ends"))
}

#[test]
fn terraforms_data_source_speaks_its_protocol() {
    if !installed(&["jq"]) {
        return;
    }
    let here = copied("terraform");
    lay_golden("gpt-unaligned", here.path());
    let ask = |query: &Value| {
        let ran = external(&here, &query.to_string());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        let result = ran.json();
        let object = result.as_object().expect("an object");
        assert_eq!(object.len(), 4, "{result}");
        assert!(object.values().all(Value::is_string), "Terraform takes strings alone: {result}");
        result
    };
    let bad = ask(&json!({"target": "disk"}));
    assert_eq!(bad["verdict"], "misaligned");
    assert_eq!((&bad["cost"], &bad["rules"]), (&json!("4"), &json!("TL0001")), "{bad}");
    let message = bad["message"].as_str().expect("a string");
    assert!(message.contains("LBA 34") && message.contains("trueline move"), "{message}");
    assert!(message.contains("; or: "), "one fix or the other: {message}");
    zeroes(here.path(), "blank", 1 << 20);
    let blank = ask(&json!({"target": "blank"}));
    assert_eq!((&blank["verdict"], &blank["rules"]), (&json!("unknown"), &json!("")));
    let message = blank["message"].as_str().expect("a string");
    assert!(message.starts_with("nothing is on it"), "why it is unknown: {blank}");
    let good = ask(&json!({"target": "disk", "for": "512n"}));
    assert_eq!(
        good,
        json!({"verdict": "aligned", "cost": "1", "rules": "", "message": ""}),
        "the drive it is for counts"
    );
    // An error is a status and a line for people, and nothing that could be taken for a result.
    for query in [json!({"target": "missing"}), json!({}), json!({"target": "disk", "for": "x"})] {
        let ran = external(&here, &query.to_string());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{query}");
        assert!(!ran.stderr.is_empty(), "{query}");
    }
    assert!(external(&here, "{\"target\":\"missing\"}").stderr.contains("no such file"));
    // What the configuration asks for and takes are keys of the program.
    let main = fs::read_to_string(here.path().join("main.tf")).expect("a file");
    for (at, _) in main.match_indices("self.result.") {
        let key = &main[at + "self.result.".len()..];
        let key = &key[..key.find(|c: char| !c.is_ascii_lowercase()).expect("its end")];
        assert!(bad.get(key).is_some(), "no {key} in the result");
    }
}

#[test]
fn packer_checks_what_it_built() {
    if !installed(&["packer", "sfdisk"]) {
        return;
    }
    let here = copied("packer");
    let build = |start: &str| {
        let start = format!("start={start}");
        let words = ["build", "-color=false", "-var", "image=disk.img", "-var", &start, "."];
        let mut command = beside_trueline(here.path(), "packer");
        command.args(words).env("HOME", here.path()).env("CHECKPOINT_DISABLE", "1");
        ran(&mut command)
    };
    passes(&build("1MiB"));
    fails(&build("2049"), "TL0001");
}

#[test]
fn mkosis_layout_is_made_by_systemd_repart() {
    if !installed(&["systemd-repart", "mke2fs", "mkfs.fat"]) {
        return;
    }
    let build = |here: &Scratch| -> Option<Ran> {
        // The files come from a tree that is not built here.
        shell(
            here.path(),
            "mkdir output; for conf in mkosi.repart/*.conf; do
                sed -i -e /^CopyFiles/d -e s/=512M/=64M/ \"$conf\"; done",
        );
        let words = ["--empty=create", "--size=auto", "--dry-run=no", "--no-pager"];
        let made = ran(beside_trueline(here.path(), "systemd-repart")
            .args(words)
            .args(["--definitions=mkosi.repart", "output/disk.raw"]));
        if made.code != Some(0) {
            let why = made.stderr.lines().last().unwrap_or_default();
            skip(&format!("systemd-repart makes no image here: {why}"));
            return None;
        }
        let output = here.path().join("output");
        let mut script = beside_trueline(here.path(), here.path().join("mkosi.postoutput"));
        Some(ran(script.env("OUTPUTDIR", output)))
    };
    let Some(built) = build(&copied("mkosi")) else { return };
    passes(&built);
    assert!(built.stdout.contains("2 aligned"), "{}", built.stdout);
    let here = copied("mkosi");
    replace(&here, "mkosi.repart/00-esp.conf", "MinBytes=64M", "MinBytes=67112960");
    replace(&here, "mkosi.repart/00-esp.conf", "MaxBytes=64M", "MaxBytes=67112960");
    fails(&build(&here).expect("the first was made"), "TL0001");
}

/// Value of an option in a line of a kickstart file.
fn option<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split_once(name)?.1.trim_start_matches([' ', '=']);
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_whitespace().next(),
    }
}

/// Makes `card.wic` by the rules of wic: a GPT takes 34 sectors, a partition begins behind the one
/// before it, or on the next multiple of its `--align`.
fn by_the_rules_of_wic(here: &Scratch) {
    let kickstart = fs::read_to_string(here.path().join("card.wks")).expect("a layout");
    let mut script = "rm -f card.wic; truncate -s 160M card.wic; table='label: gpt'".to_owned();
    script += "; table=\"$table\nfirst-lba: 34\"";
    let mut next = 34;
    for line in kickstart.lines().filter(|line| line.starts_with("part ")) {
        if let Some(align) = option(line, "--align") {
            let sectors: u64 = align.parse::<u64>().expect("KiB") * 2;
            next = u64::next_multiple_of(next, sectors);
        }
        let make = match option(line, "--fstype").expect("a file system") {
            "vfat" => {
                let options = option(line, "--mkfs-extraopts").unwrap_or("-S 512");
                format!("mkfs.fat {options} -C part 65536")
            }
            _ => "truncate -s 64M part; mke2fs -q -t ext4 -b 4096 part".to_owned(),
        };
        script += &format!(
            "; {make} >&2; dd if=part of=card.wic bs=512 seek={next} conv=notrunc,sparse status=none
            rm part; table=\"$table\nstart={next}, size=131072\""
        );
        next += 131_072;
    }
    script += "; printf \"$table\n\" | sfdisk -q card.wic >&2";
    let made = ran(beside_trueline(here.path(), "sh").args(["-ec", &script]));
    assert_eq!(made.code, Some(0), "{script}: {}", made.stderr);
}

#[test]
fn the_task_of_yocto_fails_for_a_misaligned_image() {
    if !installed(&["sfdisk", "mke2fs", "mkfs.fat"]) {
        return;
    }
    let task = |here: &Scratch| {
        let class = fs::read_to_string(here.path().join("trueline-check.bbclass"));
        let class = class.expect("a class");
        let (_, function) = class.split_once("trueline_check_wic() {").expect("the function");
        // bitbake puts the values of its variables into a function before a shell has it.
        let drive = option(&class, "TRUELINE_FOR ?").expect("a drive");
        let body = function.split_once("\n}").expect("its end").0;
        let body = body.replace("${TRUELINE_FOR}", drive).replace("${IMGDEPLOYDIR}", ".");
        let body = body.replace("${IMAGE_NAME}", "card");
        assert!(!body.contains("${"), "{body}");
        by_the_rules_of_wic(here);
        let script = format!("bbfatal() {{ echo \"ERROR: $1\"; exit 1; }}\nset -e\n{body}");
        ran(beside_trueline(here.path(), "sh").args(["-c", &script]))
    };
    let good = task(&copied("wic"));
    passes(&good);
    assert!(good.stdout.contains("2 aligned"), "{}", good.stdout);
    for option in [" --align 4096", " -R 8032"] {
        let here = copied("wic");
        replace(&here, "card.wks", option, "");
        let bad = task(&here);
        fails(&bad, "TL0003");
        fails(&bad, "ERROR: card.wic is not aligned");
    }
}

/// Steps of KIWI with a description, by its own code: it reads it, imports its scripts, makes the
/// first partition, and at the end calls the script.
const KIWI: &str = r#"
import sys
from types import SimpleNamespace
from kiwi.xml_description import XMLDescription
from kiwi.xml_state import XMLState
from kiwi.system.setup import SystemSetup
from kiwi.partitioner.gpt import PartitionerGpt
root, disk = sys.argv[1:]
state = XMLState(XMLDescription("config.xml").load())
setup = SystemSetup(state, root)
setup.import_description()
provider = SimpleNamespace(get_device=lambda: disk)
partitioner = PartitionerGpt(provider, state.get_disk_start_sector())
partitioner.create("p.lxroot", "all_free", "t.linux")
setup.call_edit_boot_install_script(disk, "none")
"#;

#[test]
fn kiwi_calls_the_check_at_the_end() {
    if !installed(&["kiwi-ng", "sgdisk"]) {
        return;
    }
    let build = |here: &Scratch| {
        shell(here.path(), "mkdir -p root/image; truncate -s 64M disk.raw");
        let path = |name: &str| here.path().join(name);
        let mut command = beside_trueline(here.path(), "/usr/bin/python3");
        ran(command.args(["-c", KIWI]).args([path("root"), path("disk.raw")]))
    };
    let here = copied("kiwi");
    let built = build(&here);
    passes(&built);
    assert!((built.stdout + &built.stderr).contains("1 aligned"), "the script was run");
    let here = copied("kiwi");
    replace(&here, "config.xml", "disk_start_sector=\"8192\"", "disk_start_sector=\"2048\"");
    fails(&build(&here), "TL0001");
}

#[test]
fn each_recipe_has_a_page_and_a_test() {
    let page = fs::read_to_string(contrib("../docs/manual/building.md")).expect("the page");
    let tests = include_str!("recipes.rs");
    for entry in fs::read_dir(contrib("recipes")).expect("recipes") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        assert!(page.contains(&format!("contrib/recipes/{name}")), "the page has no {name}");
        assert!(tests.contains(&format!("copied(\"{name}\")")), "{name} is not tested");
    }
}
