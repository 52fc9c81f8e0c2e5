//! Plans for sets of Linux, carried out by a Linux kernel and its tools as they are printed: what
//! `trueline plan` recommends, `trueline check` finds aligned.

use crate::recipe::Scratch;
use crate::skip::skip;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Stacks, and options that say what their disks are; as many disks as one boot has.
const PLANNED: &[(&str, &str)] = &[
    ("md0x3:128k+xfs", ""),
    ("md1x2+ext4", "--for ssd-16k"),
    ("md5x4:64k+lvm+xfs", ""),
    ("md6x5:64k+ext4", "--physical 4096+3584"),
    ("md10x4+lvm+swap", "--for 512n"),
    ("lvm+ext4", "--physical 4096+512"),
    ("lvm-thin+xfs", ""),
];

/// Bytes of a disk: some more than 300 MiB, less than which mkfs.xfs does not take by itself, from
/// four members.
const DISK: u64 = 120 << 20;

fn trueline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trueline")).args(arguments).output().expect("it runs")
}

fn json(arguments: &[&str]) -> Value {
    let ran = trueline(arguments);
    serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|e| panic!("{arguments:?}: {e}: {}", String::from_utf8_lossy(&ran.stderr)))
}

/// A plan with its disks: files that have the partitions it wants, and a recipe for the rest.
struct Planned {
    stack: &'static str,
    options: Vec<&'static str>,
    name: String,
    recipe: PathBuf,
    disks: usize,
}

impl Planned {
    /// The plan of `stack`, partitioned in `directory`.
    fn new(stack: &'static str, options: &'static str, directory: &Path) -> Planned {
        let options: Vec<&str> = options.split_whitespace().collect();
        let size = DISK.to_string();
        let asked = ["plan", "--json", "--use", stack, "--size", size.as_str()];
        let plan = json(&[&asked[..], &options[..]].concat());
        let commands = plan["commands"].as_array().expect("commands");
        let commands: Vec<&str> = commands.iter().filter_map(Value::as_str).collect();
        let disks = commands.iter().filter(|line| line.starts_with("DISK")).count();
        let name = format!("planned-{}", stack.replace([':', '+'], "-"));
        let image = |n: usize| directory.join(format!("{name}.{n}"));
        let (mut lines, mut images) = (Vec::new(), Vec::new());
        for n in 1..=disks {
            let file = fs::File::create(image(n)).expect("a file");
            file.set_len(DISK).expect("a sparse file");
            images.push(image(n).display().to_string());
        }
        for command in commands {
            // A disk by its variable: the only one has no number.
            let on = |line: &str, disk: &dyn Fn(usize) -> String| {
                let all = (1..=disks).rev();
                let line = all
                    .fold(line.to_string(), |line, n| line.replace(&format!("$DISK{n}"), &disk(n)));
                line.replace("$DISK", &disk(1))
            };
            match command.split(' ').next() {
                Some("trueline") => {
                    let command = on(command, &|n| images[n - 1].clone());
                    let words: Vec<&str> = command.split(' ').skip(1).collect();
                    let ran = trueline(&words);
                    assert!(
                        ran.status.success(),
                        "{command}: {}",
                        String::from_utf8_lossy(&ran.stderr)
                    );
                }
                Some("udevadm" | "mount" | "swapon") => {}
                _ if command.starts_with("DISK") => {}
                _ => {
                    // A small XFS is one for tests, as recipes have it; mkswap is not busybox's.
                    let command = on(command, &|n| format!("${{{n}}}"))
                        .replace("}-part1", "}1")
                        .replace("mkfs.xfs", "small_xfs")
                        .replace("mkswap", "/usr/sbin/mkswap");
                    lines.push(command);
                }
            }
        }
        let head = format!("# The plan of {stack}.\n# disks: {}\n", images.join(" "));
        let recipe = directory.join(format!("{name}.sh"));
        fs::write(&recipe, format!("{head}{}\nsynced\n", lines.join("\n"))).expect("a recipe");
        Planned { stack, options, name, recipe, disks }
    }

    /// Differences between what the kernel made of it in `directory` and a stack on the grain.
    fn faults(&self, directory: &Path) -> Vec<String> {
        let image =
            |n| directory.join(&self.name).join(format!("disk{n}.img")).display().to_string();
        let target = (0..self.disks).map(image).collect::<Vec<String>>().join(",");
        let checked =
            json(&[&["check", "--json", target.as_str()][..], &self.options[..]].concat());
        let mut faults = Vec::new();
        if checked["verdict"] != "aligned" {
            faults.push(format!("{}: {}", self.stack, checked["verdict"]));
        }
        let sign = self.stack.rsplit('+').next().unwrap_or_default();
        let providers = checked["targets"][0]["providers"].as_array().expect("providers");
        if !providers.iter().any(|p| p["sign"] == sign) {
            faults.push(format!("{}: there is no {sign}", self.stack));
        }
        for finding in checked["targets"][0]["findings"].as_array().expect("findings") {
            if finding["severity"] != "note" || finding["rule"] == "TL0005" {
                faults.push(format!("{}: {finding}", self.stack));
            }
        }
        faults
    }
}

#[test]
fn what_is_planned_for_sets_is_found_aligned() {
    let scratch = Scratch::new("planned");
    let directory = scratch.path().canonicalize().expect("a directory");
    let plans: Vec<Planned> =
        PLANNED.iter().map(|(stack, options)| Planned::new(stack, options, &directory)).collect();
    let made = directory.join("made");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kernel/sets.sh");
    let ran = Command::new("sh")
        .arg(script)
        .arg(&made)
        .args(plans.iter().map(|plan| &plan.recipe))
        .output()
        .expect("sh");
    match ran.status.code() {
        Some(0) => {}
        // Something to boot with is missing.
        Some(2) => return skip(String::from_utf8_lossy(&ran.stderr).trim()),
        _ => panic!("sets.sh: {}", String::from_utf8_lossy(&ran.stderr)),
    }
    let faults: Vec<String> = plans.iter().flat_map(|plan| plan.faults(&made)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
