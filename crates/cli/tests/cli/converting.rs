//! `convert` against the tools of the formats: partitions as sfdisk has them, files of a FAT as
//! mtools has them, there and back; what is refused; an interruption.

use crate::moving::{done, refused};
use crate::skip::skip;
use crate::{run, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Tools that are used, as their packages' names.
const TOOLS: [(&str, &str); 4] = [
    ("mcopy", "mtools"),
    ("mdir", "mtools"),
    ("mkfs.vfat", "dosfstools"),
    ("fsck.fat", "dosfstools"),
];

pub(super) fn is_here(tool: &str) -> bool {
    ["/sbin", "/usr/sbin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(tool).exists())
}

/// What a command prints, if it succeeds.
pub(super) fn ran(directory: &Path, words: &[&str]) -> String {
    let out = Command::new(words[0])
        .args(&words[1..])
        .current_dir(directory)
        .env("MTOOLS_SKIP_CHECK", "1")
        .output()
        .unwrap_or_else(|e| panic!("{words:?}: {e}"));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// Files of a FAT with their bytes, and its directories with times, sizes and attributes.
fn files(directory: &Path, image: &str) -> String {
    let out = directory.join("out");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir(&out).expect("a directory");
    ran(directory, &["mcopy", "-s", "-n", "-m", "-Q", "-i", image, "::/", "out/"]);
    let sums = "cd out && find . -type f -print0 | sort -z | xargs -0 sha256sum";
    let listed = ran(directory, &["mdir", "-/", "-a", "-i", image, "::/"]);
    let listed: Vec<&str> = listed.lines().filter(|line| !line.contains("bytes free")).collect();
    let attributes = ran(directory, &["mattrib", "-/", "-i", image, "::/"]);
    ran(directory, &["sh", "-c", sums]) + &listed.join("\n") + &attributes
}

/// A FAT made by these options, with files of many lengths, long names, holes between them and
/// attributes.
fn fat(directory: &Path, mib: u64, options: &str) {
    let _ = fs::remove_file(directory.join("fat.img"));
    zeroes(directory, "fat.img", mib << 20);
    let mut words = vec!["mkfs.vfat", "-n", "VOLUME"];
    words.extend(options.split_whitespace());
    words.push("fat.img");
    ran(directory, &words);
    let source = directory.join("source");
    let deep = source.join("EFI/A directory of many/deep");
    fs::create_dir_all(&deep).expect("directories");
    for n in 1..48_usize {
        let bytes: Vec<u8> = (0..n * 777).map(|at| ((at * n) >> 3).to_le_bytes()[0]).collect();
        fs::write(source.join(format!("EFI/A long file name, number {n}.bin")), bytes)
            .expect("a file");
        fs::write(deep.join(format!("f{n}")), n.to_string()).expect("a file");
    }
    fs::write(source.join("empty"), "").expect("a file");
    fs::write(source.join("large.bin"), vec![7; 600_000]).expect("a file");
    for name in ["EFI", "empty", "large.bin"] {
        let from = format!("source/{name}");
        ran(directory, &["mcopy", "-s", "-m", "-Q", "-i", "fat.img", &from, "::/"]);
    }
    for n in 11..18 {
        let name = format!("::/EFI/A long file name, number {n}.bin");
        ran(directory, &["mdel", "-i", "fat.img", &name]);
    }
    ran(directory, &["mcopy", "-i", "fat.img", "source/large.bin", "::/EFI/in the gaps.bin"]);
    ran(directory, &["mattrib", "+h", "+r", "-i", "fat.img", "::/empty"]);
}

#[test]
fn files_of_a_fat_are_the_same_there_and_back() {
    if let Some((tool, package)) = TOOLS.iter().find(|(tool, _)| !is_here(tool)) {
        return skip(&format!("{tool} is not here: apt-get install {package}"));
    }
    let scratch = scratch();
    let directory = scratch.path();
    for (mib, options) in [
        (8, "-F 12 -s 4"),
        (12, "-F 12 -s 8"),
        (15, "-F 16 -s 1"),
        (40, "-F 16 -s 8 -a"),
        (64, "-F 32 -s 1"),
        (40, "-F 32 -s 1 -f 1"),
        (300, "-F 32 -s 2 -a"),
        (300, "-F 32 -s 8"),
    ] {
        fat(directory, mib, options);
        let before = files(directory, "fat.img");
        for name in ["large.img", "back.img", "copy.img", "copy.img.journal"] {
            let _ = fs::remove_file(directory.join(name));
        }
        done(directory, "convert --logical 512 --sector-size 4096 -o large.img fat.img");
        ran(directory, &["fsck.fat", "-n", "large.img"]);
        assert_eq!(files(directory, "large.img"), before, "{options}");
        done(directory, "convert --logical 4096 --sector-size 512 -o back.img large.img");
        ran(directory, &["fsck.fat", "-n", "back.img"]);
        assert_eq!(files(directory, "back.img"), before, "{options} and back");
        // In place it is the same image.
        fs::copy(directory.join("fat.img"), directory.join("copy.img")).expect("a copy");
        done(directory, "convert --logical 512 --sector-size 4096 copy.img");
        ran(directory, &["cmp", "large.img", "copy.img"]);
        assert!(!directory.join("copy.img.journal").exists());
    }
}

/// A volume that was not unmounted, and one whose files would not fit.
#[test]
fn a_fat_that_cannot_be_made_anew_is_refused() {
    if let Some((tool, package)) = TOOLS.iter().find(|(tool, _)| !is_here(tool)) {
        return skip(&format!("{tool} is not here: apt-get install {package}"));
    }
    let scratch = scratch();
    let directory = scratch.path();
    fat(directory, 15, "-F 16 -s 1");
    let whole = fs::read(directory.join("fat.img")).expect("an image");
    let mut dirty = whole.clone();
    // The second entry of the first FAT, behind the reserved sectors.
    let reserved = usize::from(u16::from_le_bytes([dirty[14], dirty[15]]));
    dirty[reserved * 512 + 3] &= 0x7f;
    fs::write(directory.join("fat.img"), &dirty).expect("an image");
    let refusal = || {
        let before = fs::read(directory.join("fat.img")).expect("an image");
        let ran = run(directory, "convert --logical 512 --sector-size 4096 fat.img");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(fs::read(directory.join("fat.img")).expect("an image") == before);
        ran.stderr
    };
    assert!(refusal().contains("it was not unmounted: fsck.fat -a"), "{}", refusal());
    fs::write(directory.join("fat.img"), &whole).expect("an image");
    for n in 0..3500 {
        fs::write(directory.join(format!("source/{n}")), "x").expect("a file");
    }
    let many = "cd source && mcopy -i ../fat.img [0-9]* ::/EFI/";
    ran(directory, &["sh", "-c", many]);
    let message = refusal();
    assert!(message.contains("its files do not fit: clusters of 4096 bytes"), "{message}");
}

/// Code before the FATs, other FATs than one copy can be made of, and members of sets.
#[test]
fn what_has_its_own_place_is_not_lost() {
    if let Some((tool, package)) = TOOLS.iter().find(|(tool, _)| !is_here(tool)) {
        return skip(&format!("{tool} is not here: apt-get install {package}"));
    }
    let scratch = scratch();
    let directory = scratch.path();
    let made = |options: &str, mib: u64| {
        let _ = fs::remove_file(directory.join("disk.img"));
        zeroes(directory, "disk.img", mib << 20);
        let mut words = vec!["mkfs.vfat"];
        words.extend(options.split_whitespace());
        words.push("disk.img");
        ran(directory, &words);
    };
    let put = |at: usize, bytes: &[u8]| {
        let mut disk = fs::read(directory.join("disk.img")).expect("an image");
        disk[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(directory.join("disk.img"), disk).expect("an image");
    };
    let to = "convert --logical 512 --sector-size 4096 disk.img";
    made("-F 32 -s 8 -R 64", 300);
    put(20 * 512, b"SECOND STAGE");
    done(directory, to);
    let disk = fs::read(directory.join("disk.img")).expect("an image");
    assert_eq!(&disk[20 * 512..][..12], b"SECOND STAGE");
    made("-F 32 -s 8 -R 64", 300);
    put(48 * 512, b"SECOND STAGE");
    assert!(refused(directory, to).contains("at byte 24576, there is code that would be lost"));
    for (options, at, bits, why) in [
        ("-F 16 -s 4", 37, 1, "it was not unmounted"),
        ("-F 32 -s 1", 65, 1, "it was not unmounted"),
        ("-F 12 -s 8 -r 17", 0, 0xeb, "its root directory is not in whole sectors"),
    ] {
        made(options, if options.contains("12") { 4 } else { 64 });
        put(at, &[bits]);
        let message = refused(directory, to);
        assert!(message.contains(why), "{options}: {message}");
    }
    fs::write(directory.join("bad"), "5000\n5001\n").expect("a list");
    made("-F 16 -s 1 -l bad", 15);
    assert!(refused(directory, to).contains("some of its clusters are marked bad"));
    // Nothing is known, and the file system counts from an end that would be another.
    let _ = fs::remove_file(directory.join("disk.img"));
    zeroes(directory, "disk.img", 200 << 20);
    assert!(refused(directory, to).contains("nothing on it is recognised"));
    if is_here("mkfs.nilfs2") {
        fs::File::options()
            .write(true)
            .open(directory.join("disk.img"))
            .and_then(|disk| disk.set_len((200 << 20) + 512))
            .expect("an image");
        ran(directory, &["mkfs.nilfs2", "-q", "-b", "4096", "disk.img"]);
        assert!(refused(directory, to).contains("what is on it counts from its end"));
    }
}

/// Two partitions, of which the last ends where a backup table of larger sectors would begin.
pub(super) fn disk(directory: &Path, scheme: &str) {
    zeroes(directory, "disk.img", 64 << 20);
    done(directory, &format!("part create -s {scheme} disk.img"));
    done(directory, "part add -t linux-data -s 20m disk.img");
    done(directory, "part add -t linux-data disk.img");
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    for (n, chunk) in (0_u64..).zip(bytes[1 << 20..60 << 20].chunks_mut(8)) {
        chunk.copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    bytes[(1 << 20) + 510] = 1;
    fs::write(directory.join("disk.img"), bytes).expect("an image");
}

#[test]
fn partitions_are_where_they_were_in_sectors_of_either_size() {
    let scratch = scratch();
    let directory = scratch.path();
    for (scheme, to) in
        [("gpt", "--sector-size 4096"), ("mbr", "--sector-size 4096"), ("gpt", "--universal")]
    {
        for name in ["disk.img", "out.img"] {
            let _ = fs::remove_file(directory.join(name));
        }
        disk(directory, scheme);
        let shown = |image: &str, sector: u64| {
            done(directory, &format!("show --logical {sector} -o START,SIZE -b -n {image}"))
        };
        let before = shown("disk.img", 512);
        let printed = done(directory, &format!("convert {to} -o out.img disk.img"));
        assert!(printed.contains("out.img: disk.img for sectors"), "{printed}");
        let sizes: &[u64] = if to == "--universal" { &[512, 4096] } else { &[4096] };
        for &sector in sizes {
            // The first line is the disk itself, which may have got longer.
            let rest = |text: String| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(rest(shown("out.img", sector)), rest(before.clone()), "{scheme} {to}");
            let checked =
                run(directory, &format!("check --json --logical {sector} out.img")).json();
            assert!(!checked.to_string().contains("\"error\""), "{checked}");
        }
        let from = if to == "--universal" { 512 } else { 4096 };
        done(directory, &format!("convert --logical {from} --sector-size 512 out.img"));
        assert_eq!(
            shown("out.img", 512).lines().skip(1).collect::<Vec<_>>(),
            before.lines().skip(1).collect::<Vec<_>>()
        );
    }
    // sfdisk reads what was written back for 512 bytes as it read the first image.
    disk(directory, "gpt");
    if is_here("sfdisk") {
        let dump = |image: &str| {
            let text = ran(directory, &["sfdisk", "-d", image]).replace(image, "disk");
            text.lines()
                .filter(|line| line.starts_with("disk"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let before = dump("disk.img");
        done(directory, "convert --sector-size 4096 disk.img");
        done(directory, "convert --sector-size 512 disk.img");
        assert_eq!(dump("disk.img"), before);
    }
}

#[test]
fn everything_in_the_way_is_named_at_once() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 64 << 20);
    done(directory, "part create -s gpt disk.img");
    done(directory, "part add -t linux-data -b 63 -s 2000 disk.img");
    done(directory, "part add -t linux-data -s 20m disk.img");
    done(directory, "mkfs ext4 disk.img#p2 -- -b 1024");
    let before = fs::read(directory.join("disk.img")).expect("an image");
    let message = refused(directory, "convert --sector-size 4096 disk.img");
    assert!(
        message.contains(
            "p1: it begins at byte 32256, no multiple of 4096: put it on the grain first"
        ) && message
            .contains("p2: ext4: it writes a block of 1024 bytes: make it with larger blocks")
            && message.contains("2 things stand in the way: nothing was written"),
        "{message}"
    );
    let message = refused(directory, "convert --sector-size 4096 disk.img#p2");
    assert!(message.contains("it is a part of a disk"), "{message}");
    assert!(fs::read(directory.join("disk.img")).expect("an image") == before);
    let message = refused(directory, "convert --sector-size 512 -o out.img disk.img");
    assert!(message.contains("it is for sectors of 512 bytes already: copy it"), "{message}");
    let message = done(directory, "convert --sector-size 512 disk.img");
    assert!(message.contains("it is for sectors of 512 bytes already"), "{message}");
}

/// Killed at any time in place, it goes on or back; meanwhile other commands leave it alone.
#[test]
fn a_killed_conversion_goes_on_or_back() {
    let scratch = scratch();
    let directory = scratch.path();
    disk(directory, "gpt");
    let before = fs::read(directory.join("disk.img")).expect("an image");
    done(directory, "convert --sector-size 4096 -o wanted.img disk.img");
    let wanted = fs::read(directory.join("wanted.img")).expect("an image");
    let journal = directory.join("disk.img.journal");
    let mut half = 0;
    for n in 0..24_u32 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["convert", "--sector-size", "4096", "disk.img"])
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        sleep(Duration::from_millis(2 + u64::from(n) * 2));
        let _ = child.kill();
        let _ = child.wait();
        if journal.exists() {
            half += 1;
            let command = if n % 2 == 0 { "--resume" } else { "--rollback" };
            let target = if n % 3 == 0 { "disk.img" } else { "disk.img.journal" };
            let ran = run(directory, &format!("convert {command} {target}"));
            if ran.code != Some(0) {
                // The journal was not whole yet, so nothing was written.
                assert!(ran.stderr.contains("begin again"), "{}", ran.stderr);
            }
            assert!(!journal.exists(), "{}", ran.stderr);
        }
        let now = fs::read(directory.join("disk.img")).expect("an image");
        assert!(now == before || now == wanted, "{n}");
        fs::write(directory.join("disk.img"), &before).expect("an image");
    }
    // Timing decides how often it is cut, and nothing else.
    println!("{half} of 24 were cut with a journal");
}

/// A volume whose FAT is where the boot regions of larger sectors go, and one whose clusters begin
/// too early.
#[test]
fn a_fat_of_exfat_makes_room_for_boot_regions() {
    for tool in ["mkfs.exfat", "fsck.exfat"] {
        if !is_here(tool) {
            return skip(&format!("{tool} is not here: apt-get install exfatprogs"));
        }
    }
    let scratch = scratch();
    let directory = scratch.path();
    let made = |options: &str| {
        let _ = fs::remove_file(directory.join("disk.img"));
        zeroes(directory, "disk.img", 64 << 20);
        let mut words = vec!["mkfs.exfat"];
        words.extend(options.split_whitespace());
        words.push("disk.img");
        ran(directory, &words);
    };
    let to = "convert --logical 512 --sector-size 4096 disk.img";
    made("-L volume -b 64K -c 32K");
    let before = fs::read(directory.join("disk.img")).expect("an image");
    done(directory, to);
    ran(directory, &["fsck.exfat", "-n", "disk.img"]);
    let after = fs::read(directory.join("disk.img")).expect("an image");
    assert_eq!(after[80..84], 24_u32.to_le_bytes());
    assert!(before[128 << 10..] == after[128 << 10..]);
    done(directory, "convert --logical 4096 --sector-size 512 disk.img");
    ran(directory, &["fsck.exfat", "-n", "disk.img"]);
    made("-b 64K -c 4K");
    let message = refused(directory, to);
    let wanted = "its FAT would begin at byte 98304 and take 65536, and its clusters begin at byte";
    assert!(message.contains(wanted), "{message}");
}
