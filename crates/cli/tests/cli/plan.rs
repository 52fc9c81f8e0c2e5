//! `plan`: every use on every drive as before, the document's keys, and the real tools told what it
//! says.

use crate::mkfs::shell;
use crate::skip::skip;
use crate::{list, run, run_with, scratch, texts, zeroes};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use trueline_geom::audit::profile;
use trueline_geom::base::topology::{Fact, Topology, Why};
use trueline_geom::plan::{USES, btrfs, exfat, ext4, fat, ntfs, swap, xfs};

const DRIVES: [&str; 8] =
    ["512n", "512e", "4kn", "ssd-16k", "ssd-64k", "sd-4m", "raid64kx3", "raid512kx4"];

/// Stacks beside every kind by itself.
const STACKS: [&str; 9] = [
    "md5x4:64k+luks+lvm+xfs",
    "md6x8+xfs",
    "md10x3+ext4",
    "luks1+ext4",
    "lvm+vm-images",
    "xfs+vm-images+ntfs",
    "zfs+ext4",
    "raidz1x3+vm-images",
    "zfs+postgres",
];

#[test]
fn plans_are_as_before() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let (scratch, mut wrong) = (scratch(), String::new());
    for drive in DRIVES {
        let got: String = USES
            .iter()
            .map(|k| k.name)
            .chain(STACKS)
            .map(|wanted| brief(scratch.path(), drive, wanted))
            .collect();
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/plans/{drive}.want"));
        if bless {
            fs::write(&path, &got).expect("a golden text can be written");
        }
        let want = fs::read_to_string(&path).unwrap_or_default();
        let line = want.lines().zip(got.lines()).take_while(|(a, b)| a == b).count();
        if want != got {
            let at = |text: &str| text.lines().nth(line).unwrap_or("(no more)").to_owned();
            let _ =
                writeln!(wrong, "{drive}.want:{}\n--- {}\n+++ {}", line + 1, at(&want), at(&got));
        }
    }
    assert!(wrong.is_empty(), "{wrong}TRUELINE_BLESS=1 writes what is planned");
}

/// A plan in one line a choice: what it is set to, what it costs; then notes and commands.
fn brief(directory: &Path, drive: &str, wanted: &str) -> String {
    let ran = run(directory, &format!("plan --for {drive} --use {wanted} --size 256g --json"));
    let document = ran.ended(0).json();
    let mut text = format!("# {wanted}\n");
    let price = |v: &Value| {
        format!(
            "{} {:.2} {}",
            plain(&v["value"]),
            v["write_amplification"].as_f64().expect("a number"),
            v["space_cost"]["bytes"]
        )
    };
    for row in list(&document, "layers") {
        let others: String =
            list(row, "alternatives").iter().map(|other| format!(" | {}", price(other))).collect();
        let _ = writeln!(
            text,
            "{} {}: {}{others}",
            plain(&row["layer"]),
            plain(&row["parameter"]),
            price(row)
        );
    }
    document["notes"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(|note| writeln!(text, "note: {}", plain(note)).expect("text"));
    document["commands"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(|command| writeln!(text, "$ {}", plain(command)).expect("text"));
    text + "\n"
}

/// A string without its quotes, a number as it is.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn the_document_keeps_its_keys() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 30);
    let document =
        run(scratch.path(), "plan disk --physical 16k --use xfs+mysql --json").ended(0).json();
    assert_eq!(
        (&document["format"], &document["target"], &document["use"]),
        (&json!("trueline/plan/1"), &json!("disk"), &json!("xfs+mysql"))
    );
    assert_eq!(
        document["grains"],
        json!([{"size": 16384, "phase": 0, "why": "physical", "source": "user", "trust": "trusted"}])
    );
    let layers = list(&document, "layers");
    assert_eq!(texts(layers, "layer").first(), Some(&"partition"));
    for row in layers {
        assert!(
            row["parameter"].is_string() && row["unit"].is_string() && row["why"].is_string(),
            "{row}"
        );
        assert!(row["command"].is_string() || row["command"].is_null(), "{row}");
        for priced in list(row, "alternatives").iter().chain([row]) {
            assert!(priced["value"].is_u64() || priced["value"].is_string(), "{priced}");
            assert!(priced["write_amplification"].is_f64(), "{priced}");
            assert!(
                priced["space_cost"]["bytes"].is_u64() && priced["space_cost"]["what"].is_string(),
                "{priced}"
            );
        }
    }
    let page = layers
        .iter()
        .find(|row| row["layer"] == "mysql" && row["parameter"] == "page")
        .expect("a page");
    assert_eq!(
        (&page["value"], &page["unit"], &page["write_amplification"]),
        (&json!(16384), &json!("bytes"), &json!(1.75))
    );
    let nothing = run(scratch.path(), "plan --use ext4 --json").ended(0).json();
    assert_eq!(nothing["target"], Value::Null);
    assert!(nothing["commands"].is_array() && nothing["notes"].is_array());
}

#[test]
fn a_use_that_is_not_one_is_refused() {
    let scratch = scratch();
    zeroes(scratch.path(), "a", 1 << 30);
    zeroes(scratch.path(), "b", 1 << 30);
    for (arguments, word) in [
        ("plan --use nonsense", "nonsense"),
        ("plan --use ext4+luks", "does not stand on ext4"),
        ("plan a,b --use xfs", "2 disks"),
        ("plan a#s1 --use xfs", "#s1"),
        ("plan nowhere --use xfs", "nowhere"),
        ("plan --use xfs --size 64", "no layout fits into 64 bytes"),
        ("plan a", "--use"),
    ] {
        assert!(run(scratch.path(), arguments).refused().contains(word), "{arguments}");
    }
    // Two disks for a set of two, and one with another like it.
    let both = run(scratch.path(), "plan a,b --use md1x2+ext4").ended(0).stdout.clone();
    assert!(both.contains("LOOP1=$(losetup") && both.contains("${LOOP2}p1"), "{both}");
    assert!(
        run(scratch.path(), "plan a --use md1x2+ext4")
            .ended(0)
            .stdout
            .contains("1 of 2 disks are named")
    );
    let spaced = run_with(scratch.path(), &["plan", "md:1g", "--use", " luks + ext4"]);
    assert_eq!(spaced.code, Some(0), "{}", spaced.stderr);
}

#[test]
fn a_provider_off_the_grain_is_told() {
    let scratch = crate::golden("seed-001-sdd-63");
    let said =
        run(scratch.path(), "plan disk#s1 --physical 4096 --use ext4").ended(0).stdout.clone();
    assert!(
        said.contains("begins 3584 bytes past a boundary") && !said.contains("sfdisk"),
        "{said}"
    );
}

/// Output of a program; `None`, with a message, if it is not installed.
fn tool(name: &str, arguments: &[String]) -> Option<String> {
    match Command::new(name).args(arguments).env("MKE2FS_CONFIG", "/dev/null").output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr]
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .concat();
            assert!(output.status.success(), "{name} {}: {text}", arguments.join(" "));
            Some(text)
        }
        // Where a directory of the PATH may not be looked into, that is the error.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            skip(&format!("no {name} here"));
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// A topology of `length` bytes of a drive that `--for` knows.
fn topology_of(drive: &str, length: u64) -> Topology {
    let (sector, facts) = profile::named(drive).expect("a drive");
    Topology { facts, ..Topology::new(sector.unwrap_or(512), length) }
}

/// Makes a file system of `topology.length` bytes with `options`, and `flags` that a file needs;
/// its image, if the tool is there.
fn made(
    directory: &Path,
    name: &str,
    flags: &[&str],
    options: Vec<String>,
    topology: &Topology,
) -> Option<std::path::PathBuf> {
    let image = directory.join("image");
    let _ = fs::remove_file(&image);
    zeroes(directory, "image", topology.length);
    let arguments: Vec<String> = flags
        .iter()
        .map(|&f| f.to_owned())
        .chain(options)
        .chain([image.display().to_string()])
        .collect();
    tool(name, &arguments).map(|_| image)
}

/// A little-endian number of an image.
fn number(image: &Path, at: u64, width: usize) -> u64 {
    let (mut file, mut bytes) = (File::open(image).expect("an image"), [0; 8]);
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.read_exact(&mut bytes[..width]))
        .expect("it is as long");
    u64::from_le_bytes(bytes)
}

#[test]
fn mkfs_does_what_ext4_and_xfs_parameters_say() {
    let scratch = scratch();
    for drive in DRIVES {
        let t = topology_of(drive, 1 << 30);
        let p = ext4::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkfs.ext4", &["-q", "-F"], p.options(), &t) {
            // The superblock begins at 1024: s_log_block_size, s_raid_stride, s_raid_stripe_width.
            let seen = (
                1024 << number(&image, 1024 + 24, 4),
                number(&image, 1024 + 0x164, 2),
                number(&image, 1024 + 0x170, 4),
            );
            assert_eq!(
                seen,
                (p.block, p.stride.unwrap_or(0), p.stripe_width.unwrap_or(0)),
                "{drive}"
            );
        }
        let p = xfs::Parameters::for_topology(&t);
        if made(scratch.path(), "mkfs.xfs", &["-q", "-f"], p.options(), &t).is_some() {
            let words =
                ["-r", "-c", "sb 0", "-c", "p blocksize sectsize unit width logsunit", "image"]
                    .map(str::to_owned);
            let words = words.map(|w| {
                if w == "image" { scratch.path().join(w).display().to_string() } else { w }
            });
            let Some(seen) = tool("xfs_db", &words) else { continue };
            let blocks = |n: Option<u64>| n.unwrap_or(0) / p.block;
            // logsunit is 1 where the log has no stripe unit of its own, or its sector where that
            // is larger.
            let log = p.log_su.unwrap_or(if p.sector > 512 { p.sector } else { 1 });
            let row = p.su.zip(p.sw).map(|(su, sw)| su * sw);
            let want = format!(
                "blocksize = {}\nsectsize = {}\nunit = {}\nwidth = {}\nlogsunit = {log}\n",
                p.block,
                p.sector,
                blocks(p.su),
                blocks(row)
            );
            assert_eq!(seen, want, "{drive}");
        }
    }
}

#[test]
fn mkfs_does_what_the_other_parameters_say() {
    let scratch = scratch();
    for drive in DRIVES {
        let t = topology_of(drive, 1 << 30);
        let p = btrfs::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkfs.btrfs", &["-q", "-f"], p.options(), &t) {
            assert_eq!(
                (number(&image, 65536 + 0x90, 4), number(&image, 65536 + 0x94, 4)),
                (p.sector, p.node),
                "{drive}"
            );
        }
        let p = ntfs::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkntfs", &["-q", "-Q", "-F"], p.options(), &t) {
            // Above 128 sectors a cluster is 2 to the power of the negated byte.
            assert_eq!(
                (number(&image, 11, 2), number(&image, 11, 2) * number(&image, 13, 1)),
                (p.sector, p.cluster),
                "{drive}"
            );
        }
        let p = exfat::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkfs.exfat", &[], p.options(), &t) {
            let sector = 1 << number(&image, 108, 1);
            let (table, clusters) =
                (number(&image, 80, 4) * sector, number(&image, 88, 4) * sector);
            assert_eq!(sector << number(&image, 109, 1), p.cluster, "{drive}");
            assert_eq!((table % p.boundary, clusters % p.boundary), (0, 0), "{drive}");
        }
        let p = swap::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkswap", &["-q"], p.options(), &t) {
            assert_eq!(&number(&image, p.page - 10, 8).to_le_bytes(), b"SWAPSPAC", "{drive}");
        }
    }
}

#[test]
fn fat_data_begin_where_it_is_said() {
    let scratch = scratch();
    let (m, g) = (1 << 20, 1 << 30);
    for drive in ["512e", "4kn", "ssd-16k", "ssd-64k", "sd-4m"] {
        let lengths = [
            8 * m,
            17 * m,
            40 * m,
            100 * m,
            256 * m,
            260 * m,
            256 * m + (700 << 10),
            511 * m,
            777 * m + 512 * 8,
            500 * m,
            600 * m,
        ];
        for length in
            lengths.into_iter().chain([3 * g + 12288, 8 * g, 9_876_541_440, 20 * g, 40 * g])
        {
            // As of a partition that begins on the boundaries, or at one of these bytes.
            for start in [0, 63 * 512, m, 3 * 4096] {
                let disk = topology_of(drive, length + start);
                fat_is_as_said(
                    scratch.path(),
                    &disk.shift(start, length),
                    &format!("{drive} {length} at {start}"),
                );
            }
        }
    }
}

fn fat_is_as_said(directory: &Path, t: &Topology, which: &str) {
    let p = fat::Parameters::for_topology(t);
    let Some(image) = made(directory, "mkfs.vfat", &[], p.options(), t) else { return };
    let sector = number(&image, 11, 2);
    let table = if p.bits == 32 { number(&image, 36, 4) } else { number(&image, 22, 2) };
    let root = number(&image, 17, 2) * 32;
    let data = (number(&image, 14, 2) + number(&image, 16, 1) * table) * sector + root;
    assert_eq!((sector, sector * number(&image, 13, 1)), (p.sector, p.cluster), "{which}");
    assert_eq!((data, data % p.align), (p.data, p.phase), "{which}: {p:?}");
    let reached = |f: &&Fact| {
        f.grain.phase().is_multiple_of(p.sector)
            && (f.grain.size() <= p.cluster || f.why == Why::Erase && t.length >= 32 << 20)
    };
    assert!(t.facts.iter().filter(reached).all(|f| f.grain.contains(data)), "{which}: {p:?}");
}

#[test]
fn the_planned_partition_is_what_part_makes() {
    let scratch = scratch();
    for (options, length) in [
        ("--physical 4096+3584", 1 << 30),
        ("--for raid64kx3", 10_000_000_000),
        ("--physical 4096+512", 123_456_512),
        ("", 64 << 20),
    ] {
        let _ = fs::remove_file(scratch.path().join("disk"));
        zeroes(scratch.path(), "disk", length);
        let document =
            run(scratch.path(), &format!("plan disk {options} --use ext4 --json")).ended(0).json();
        let commands: Vec<String> = list(&document, "commands")
            .iter()
            .map(|c| plain(c).replace("${LOOP}", "disk"))
            .collect();
        let parts: Vec<&str> = commands
            .iter()
            .filter_map(|c| c.strip_prefix("trueline "))
            .filter(|c| c.starts_with("part "))
            .collect();
        assert_eq!(parts.len(), 2, "{commands:?}");
        for command in &parts {
            run(scratch.path(), &format!("{command} {options}")).ended(0);
        }
        let checked = run(scratch.path(), &format!("check disk {options} --json")).json();
        let providers = list(&checked["targets"][0], "providers");
        let start = providers.iter().find(|p| p["provider"] == "p1").map(|p| p["start"].clone());
        assert_eq!(start.as_ref(), Some(&list(&document, "layers")[0]["value"]), "{parts:?}");
        assert_eq!(checked["targets"][0]["findings"], json!([]), "{parts:?}");
    }
}

/// The commands of a plan for a disk of 2 GiB.
fn commands(directory: &Path, options: &str) -> Vec<String> {
    let document = run(directory, &format!("plan --size 2g {options} --json")).ended(0).json();
    list(&document, "commands").iter().map(plain).collect()
}

/// The words of the command that begins so, from its second on, with the last replaced.
fn words(commands: &[String], begins: &str, last: &Path) -> Vec<String> {
    let command = commands
        .iter()
        .find(|c| c.starts_with(begins))
        .unwrap_or_else(|| panic!("no {begins} in {commands:?}"));
    let mut words: Vec<String> = command.split(' ').skip(1).map(str::to_owned).collect();
    *words.last_mut().expect("a device") = last.display().to_string();
    words
}

#[test]
fn cryptsetup_and_qemu_take_what_is_planned() {
    let scratch = scratch();
    let image = scratch.path().join("image");
    fs::write(scratch.path().join("key"), "secret").expect("a key");
    let fast = ["-q", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file"]
        .map(str::to_owned);
    for (options, version) in [
        ("--for raid64kx3 --use luks", 2),
        ("--for 512n --use luks", 2),
        ("--for 4kn --use luks1", 1),
    ] {
        zeroes(scratch.path(), "image", 64 << 20);
        let planned = words(&commands(scratch.path(), options), "cryptsetup luksFormat", &image);
        let value = |option: &str| {
            planned.iter().skip_while(|w| *w != option).nth(1).and_then(|w| w.parse::<u64>().ok())
        };
        let arguments: Vec<String> = planned
            .iter()
            .cloned()
            .chain(fast.clone())
            .chain([scratch.path().join("key").display().to_string()])
            .collect();
        if tool("cryptsetup", &arguments).is_none() {
            return;
        }
        let dump = tool("cryptsetup", &["luksDump".to_owned(), image.display().to_string()])
            .expect("it is there");
        let offset = value("--offset").expect("an offset");
        let want = if version == 2 {
            format!("offset: {} [bytes]", offset * 512)
        } else {
            format!("Payload offset:\t{offset}\n")
        };
        assert!(dump.contains(&want), "{options}: {want}: {dump}");
        assert!(
            version == 1
                || dump.contains(&format!(
                    "sector: {} [bytes]",
                    value("--sector-size").expect("a sector")
                )),
            "{options}: {dump}"
        );
    }
    for drive in DRIVES {
        let planned = commands(scratch.path(), &format!("--for {drive} --use xfs+vm-images"));
        let mut arguments = words(&planned, "qemu-img create", Path::new("64M"));
        let file = arguments.len() - 2;
        arguments[file] = image.display().to_string();
        if tool("qemu-img", &arguments).is_none() {
            return;
        }
        let cluster = 1 << (number(&image, 20, 4).swap_bytes() >> 32);
        assert!(
            planned.iter().any(|c| c.contains(&format!("discard_granularity={cluster}"))),
            "{drive}: {cluster}: {planned:?}"
        );
    }
}

/// Runs the commands of a plan in order in a shell; gives the ones that were not run for want of a
/// tool or a kernel.
fn typed(directory: &Path, arguments: &str) -> Vec<String> {
    let document = run(directory, &format!("plan {arguments} --json")).ended(0).json();
    let (mut left, mut stopped) = (Vec::new(), false);
    for command in list(&document, "commands").iter().map(plain) {
        let program = command.split(' ').next().unwrap_or_default();
        let there = shell(directory, &format!("command -v {program}")).status.success();
        // Without loop devices, md and a kernel's mounts the rest has nothing to stand on.
        stopped |= !there || !matches!(program, "trueline" | "cd" | "mkdir");
        if stopped {
            left.push(command);
            continue;
        }
        let ran = shell(directory, &command);
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    left
}

#[test]
fn what_is_planned_on_an_image_runs_as_printed() {
    let missing =
        |tool: &str| !shell(Path::new("/"), &format!("command -v {tool}")).status.success();
    for (wanted, tool, sign) in [
        ("ext4", "mkfs.ext4", "ext4"),
        ("xfs", "mkfs.xfs", "xfs"),
        ("btrfs", "mkfs.btrfs", "btrfs"),
        ("vfat", "mkfs.vfat", "vfat"),
        ("exfat", "mkfs.exfat", "exfat"),
        ("ntfs", "mkntfs", "ntfs"),
        ("swap", "mkswap", "swap"),
        ("ufs", "sh", "ufs"),
    ] {
        if missing(tool) {
            skip(&format!("no {tool} here"));
            continue;
        }
        for options in ["", "--physical 4096+3584", "--logical 4096", "--for ssd-16k"] {
            if wanted == "exfat" && options == "--logical 4096" {
                continue;
            }
            let scratch = scratch();
            zeroes(scratch.path(), "my disk.img", 1 << 30);
            let words = ["plan", "my disk.img", "--use", wanted, "--json"];
            let document = run_with(
                scratch.path(),
                &[&words[..], &options.split_whitespace().collect::<Vec<_>>()].concat(),
            )
            .ended(0)
            .json();
            for command in list(&document, "commands").iter().map(plain) {
                let ran = shell(scratch.path(), &command);
                assert!(
                    ran.status.success(),
                    "{command}: {}",
                    String::from_utf8_lossy(&ran.stderr)
                );
            }
            let words = ["check", "my disk.img", "--json"];
            let checked = run_with(
                scratch.path(),
                &[&words[..], &options.split_whitespace().collect::<Vec<_>>()].concat(),
            )
            .json();
            let signs: Vec<&str> = list(&checked["targets"][0], "providers")
                .iter()
                .filter_map(|p| p["sign"].as_str())
                .collect();
            assert!(
                signs.contains(&sign) && checked["verdict"] == "aligned",
                "{wanted} {options}: {}",
                checked["targets"][0]["findings"]
            );
        }
    }
}

#[test]
fn a_card_is_made_as_printed() {
    if !shell(Path::new("/"), "command -v mkfs.vfat && command -v mkfs.exfat").status.success() {
        skip("no mkfs.vfat or no mkfs.exfat here");
        return;
    }
    // MiB; the MBR's type; bits of the FAT's entries; the boundary unit.
    for (mib, kind, bits, unit) in [
        (60, 0x01, 12, 16 << 10),
        (256, 0x06, 16, 32 << 10),
        (2048, 0x06, 16, 64 << 10),
        (4096, 0x0b, 32, 4 << 20),
        (32768, 0x0c, 32, 4 << 20),
        (65536, 0x07, 0, 16 << 20),
    ] {
        let scratch = scratch();
        zeroes(scratch.path(), "card.img", mib << 20);
        assert_eq!(typed(scratch.path(), "card.img --use sd-card"), Vec::<String>::new(), "{mib}");
        let card = scratch.path().join("card.img");
        let (start, sectors) = (number(&card, 454, 4) * 512, number(&card, 458, 4));
        assert_eq!((number(&card, 450, 1), start + sectors * 512), (kind, mib << 20), "{mib}");
        assert_eq!(
            (number(&card, 462, 8), number(&card, 510, 2)),
            (0, 0xaa55),
            "{mib}: one partition"
        );
        if bits == 0 {
            assert_eq!(number(&card, start + 88, 4) * 512 % unit, 0, "{mib}");
            assert_eq!(start, unit);
        } else {
            let fat = if bits == 32 {
                number(&card, start + 36, 4)
            } else {
                number(&card, start + 22, 2)
            };
            let data = number(&card, start + 14, 2) * 512
                + 2 * fat * 512
                + number(&card, start + 17, 2) * 32;
            assert_eq!((start + data) % unit, 0, "{mib}");
            assert_eq!(number(&card, start + 28, 4) * 512, start, "{mib}: hidden sectors");
            assert!(bits == 32 || number(&card, start + 14, 2) == 1, "{mib}");
        }
        let checked = run(scratch.path(), "check card.img --for sd-4m --json").json();
        let findings = list(&checked["targets"][0], "findings");
        assert!(mib < 4096 || findings.is_empty(), "{mib}: {findings:?}");
    }
}

#[test]
fn every_command_is_one_that_a_shell_reads() {
    let scratch = scratch();
    zeroes(scratch.path(), "it's.img", 4 << 30);
    for wanted in
        USES.iter().flat_map(|k| [k.name].into_iter().chain(k.also.iter().copied())).chain(STACKS)
    {
        let words =
            |target: &[&'static str]| [&["plan", "--use", wanted, "--json"], target].concat();
        let disks = if wanted.contains('x') && wanted.contains(|c: char| c.is_ascii_digit()) {
            Vec::new()
        } else {
            vec!["it's.img"]
        };
        for words in [words(&["--size", "64g"]), words(&disks)] {
            let document = run_with(scratch.path(), &words).ended(0).json();
            let commands: Vec<String> = list(&document, "commands").iter().map(plain).collect();
            assert!(!commands.is_empty(), "{wanted}");
            fs::write(scratch.path().join("commands"), commands.join("\n")).expect("a file");
            let ran = shell(scratch.path(), "sh -n commands");
            assert!(
                ran.status.success(),
                "{wanted}: {}: {commands:?}",
                String::from_utf8_lossy(&ran.stderr)
            );
        }
    }
}

#[test]
fn drbd_is_told_the_device_and_not_a_variable() {
    let scratch = scratch();
    zeroes(scratch.path(), "it's.img", 4 << 30);
    for (arguments, set, device) in [
        (&["--size", "64g"][..], "DISK=/dev/sdq", "/dev/sdq-part1"),
        (&["it's.img"][..], "LOOP=/dev/loop42", "/dev/loop42p1"),
        (&["--use", "md1x2+drbd", "--size", "64g"][..], "DISK=/dev/sdq", "/dev/md0"),
    ] {
        let wanted: &[&str] = if arguments.contains(&"--use") { &[] } else { &["--use", "drbd"] };
        let document = run_with(scratch.path(), &[&["plan", "--json"], arguments, wanted].concat())
            .ended(0)
            .json();
        let commands: Vec<String> = list(&document, "commands").iter().map(plain).collect();
        let command = commands
            .iter()
            .find(|c| c.contains("/etc/drbd.d/data.res"))
            .unwrap_or_else(|| panic!("{commands:?}"));
        let ran = shell(
            scratch.path(),
            &format!("{set}; {}", command.replace("/etc/drbd.d/data.res", "data.res")),
        );
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        let file =
            fs::read_to_string(scratch.path().join("data.res")).expect("a resource was written");
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(
            (lines.first(), lines.last()),
            (Some(&"resource data {"), Some(&"}")),
            "{command}"
        );
        assert!(
            lines.contains(
                &format!("device /dev/drbd0; disk {device}; meta-disk internal;").as_str()
            ),
            "{command}: {file}"
        );
    }
}

#[test]
fn the_uses_are_listed() {
    let scratch = scratch();
    let text = run(scratch.path(), "plan --list").ended(0).stdout.clone();
    assert!(
        USES.iter().all(|kind| text.contains(kind.about))
            && text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let document = run(scratch.path(), "plan --list --json").ended(0).json();
    assert_eq!(
        (&document["format"], list(&document, "uses").len()),
        (&json!("trueline/plan-uses/1"), USES.len())
    );
    assert!(
        run(scratch.path(), "plan --use postgress").refused().contains("did you mean postgres")
    );
}

#[test]
fn f2fs_and_sqlite_do_what_is_planned() {
    let scratch = scratch();
    let planned = commands(scratch.path(), "--grain erase=8m --use f2fs");
    zeroes(scratch.path(), "image", 2 << 30);
    let image = scratch.path().join("image");
    if tool("mkfs.f2fs", &[&["-q".to_owned()][..], &words(&planned, "mkfs.f2fs", &image)].concat())
        .is_some()
    {
        // The superblock is at 1024: log_blocks_per_seg at 20, segs_per_sec at 24.
        assert_eq!((number(&image, 1024 + 20, 4), number(&image, 1024 + 24, 4)), (9, 4));
    }
    let planned = commands(scratch.path(), "--physical 16k --use sqlite");
    let command =
        planned.last().expect("a command").replace("/mnt", &scratch.path().display().to_string());
    if tool("sqlite3", &["-version".to_owned()]).is_some() {
        assert!(shell(scratch.path(), &command).status.success(), "{command}");
        // Big-endian, and 2 is the log's version.
        let file = scratch.path().join("data.sqlite");
        assert_eq!((number(&file, 16, 2), number(&file, 18, 1)), (0x0040, 2), "{command}");
    }
}
