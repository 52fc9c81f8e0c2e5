//! Tables made by sfdisk, sgdisk and parted, described by a script and made again from it: the same
//! text, the same bytes.
//!
//! Of disks with 512-byte sectors the script is `sfdisk --dump`'s, and ours has to be the same;
//! sfdisk reads no image with sectors of 4096 bytes, so there the script is ours. What is skipped
//! is printed; with `TRUELINE_ORACLE=all` it is a failure.

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Sector, MiB, and the shell line that makes `a.img`.
const DISKS: &[(u64, u64, &str)] = &[
    (512, 64, "printf 'label: gpt\\n,10M,U\\n,20M,S\\n;\\n' | sfdisk -q a.img"),
    (
        512,
        64,
        "printf 'label: gpt\\nname=\"a \\\\x22b\\\\x22 $c\", size=8M, attrs=\"RequiredPartition,60\"\\n7 : size=2048\\n' | sfdisk -q a.img",
    ),
    (512, 2, "printf 'label: gpt\\n,1M\\n' | sfdisk -q a.img"),
    (512, 64, "printf 'label: dos\\n,10M,c,*\\n,20M,S\\n;\\n' | sfdisk -q a.img"),
    (512, 64, "printf 'label: dos\\n,10M\\n,,E\\n,5M\\n,6M,S\\n,\\n' | sfdisk -q a.img"),
    (512, 64, "printf 'label: dos\\n,10M\\n,10M\\n,10M\\n,,Ex\\n,5M\\n,5M\\n' | sfdisk -q a.img"),
    (512, 1, "printf 'label: dos\\n,100K\\n' | sfdisk -q a.img"),
    (512, 64, "printf 'label: dos\\n' | sfdisk -q a.img"),
    (512, 64, "sgdisk -n 1:0:+8M -t 1:ef00 -c 1:esp -n 3:0:0 -t 3:8300 -A 3:set:2 a.img"),
    (512, 64, "sgdisk -S 256 a.img && sgdisk -a 8 -n 2:4000:+1M a.img"),
    (
        512,
        64,
        "parted -s a.img mklabel gpt mkpart one ext4 1MiB 20MiB mkpart two 20MiB 100% set 1 esp on",
    ),
    (
        512,
        64,
        "parted -s a.img mklabel msdos mkpart primary ext4 1MiB 20MiB mkpart extended 20MiB 100% mkpart logical 21MiB 40MiB mkpart logical 41MiB 100%",
    ),
    (
        4096,
        64,
        "PARTED_SECTOR_SIZE=4096 parted -s a.img mklabel gpt mkpart one ext4 1MiB 20MiB mkpart two 20MiB 90%",
    ),
    (
        4096,
        64,
        "PARTED_SECTOR_SIZE=4096 parted -s a.img mklabel msdos mkpart primary ext4 1MiB 20MiB mkpart extended 20MiB 100% mkpart logical 21MiB 40MiB mkpart logical 41MiB 60MiB",
    ),
];

#[test]
fn a_dump_makes_the_same_table_again() {
    let mut running = Vec::new();
    for (n, &(sector, size, line)) in DISKS.iter().enumerate() {
        let program = ["sgdisk", "parted"]
            .into_iter()
            .find(|p| line.contains(&format!("{p} -")))
            .unwrap_or("sfdisk");
        if let Some(missing) = missing_of([program, "sfdisk"]) {
            skip(&format!("'{line}': no {missing} here"));
            continue;
        }
        // Most of them wait for a tool that sleeps.
        running.push(std::thread::spawn(move || {
            round(n, sector, size << 20, line).map_err(|why| format!("{line}\n{why}"))
        }));
    }
    let wrong: Vec<String> =
        running.into_iter().filter_map(|round| round.join().expect("a round ends").err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn round(n: usize, sector: u64, size: u64, line: &str) -> Result<(), String> {
    let scratch = Scratch::new(&format!("apply-{n}"));
    let at = |name: &str| scratch.path().join(name);
    for name in ["a.img", "b/a.img"] {
        fs::create_dir_all(at(name).parent().unwrap_or(Path::new("/")))
            .and_then(|()| fs::File::create(at(name))?.set_len(size))
            .map_err(|e| e.to_string())?;
    }
    let run = |program: &str, arguments: &[&str], directory: &Path| {
        let ran = tool(program, arguments, directory).map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() {
            Ok(text)
        } else {
            Err(format!("{program} {arguments:?}: {text}{}", String::from_utf8_lossy(&ran.stderr)))
        }
    };
    run("sh", &["-c", line], scratch.path())?;
    let ours = dump(&at("a.img"), sector)?;
    if sector == 512 {
        let theirs = run("sfdisk", &["-d", "a.img"], scratch.path())?;
        if ours != theirs {
            return Err(format!("sfdisk -d\n{theirs}ours\n{ours}"));
        }
    }
    fs::write(at("script"), &ours).map_err(|e| e.to_string())?;
    let apply = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
        let ran = command
            .args(["part", "apply", "--sfdisk", "../script", "a.img"])
            .current_dir(at("b"))
            .output()
            .map_err(|e| e.to_string())?;
        let text =
            [ran.stdout, ran.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
        if ran.status.success() { Ok(text) } else { Err(text) }
    };
    apply()?;
    let again = if sector == 512 {
        run("sfdisk", &["-d", "a.img"], &at("b"))?
    } else {
        dump(&at("b/a.img"), sector)?
    };
    if again != ours {
        return Err(format!("described\n{ours}made\n{again}"));
    }
    if !apply()?.contains("nothing was written") {
        return Err("a second run writes".into());
    }
    let (first, second) = (
        fs::read(at("a.img")).map_err(|e| e.to_string())?,
        fs::read(at("b/a.img")).map_err(|e| e.to_string())?,
    );
    // sgdisk and parted put other CHS fields and boot code into the first sector, and parted other
    // CHS fields into every EBR.
    let from = match line {
        _ if line.contains("mklabel msdos") => first.len(),
        _ if line.contains("sfdisk") => 0,
        _ => 512,
    };
    if first[from..] == second[from..] {
        return Ok(());
    }
    // One byte after another is slow in a test, so it is only done to say which one differs.
    let differ = first.iter().zip(&second).skip(from).position(|(a, b)| a != b).map(|at| at + from);
    Err(match differ {
        Some(byte) => format!("byte {byte} is {:02x} and not {:02x}", second[byte], first[byte]),
        None => format!("{} bytes, and not {}", second.len(), first.len()),
    })
}

/// The script for the table of an image.
fn dump(image: &Path, sector: u64) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    let directory = image.parent().ok_or("an image lies in a directory")?;
    let ran = command
        .args(["part", "backup", "--sfdisk", "--logical", &sector.to_string(), "a.img"])
        .current_dir(directory)
        .output();
    let ran = ran.map_err(|e| e.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if ran.status.success() { Ok(text(ran.stdout)) } else { Err(text(ran.stderr)) }
}
