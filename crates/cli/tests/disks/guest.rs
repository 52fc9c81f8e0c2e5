//! Guests that are started by the boot loader of a disk: programs, kernel, loader, and what they
//! say on their serial line.

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Word on the kernel's command line, which its log repeats.
pub(crate) const WORD: &str = "trueline=moved";
/// Longest time for a guest, which starts in a few seconds where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(240);
/// Folder of GRUB's files for a BIOS.
pub(crate) const GRUB: &str = "/usr/lib/grub/i386-pc";

/// Runs a script in the scratch folder; its standard output.
pub(crate) fn sh(here: &Scratch, script: &str) -> String {
    let done = tool("sh", &["-e", "-c", script], here.path()).expect("a shell");
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Runs `trueline` with words that have no blanks; its standard output.
pub(crate) fn trueline(here: &Scratch, words: &str) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(words.split_whitespace())
        .current_dir(here.path())
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// True if all of these programs and files are here; else the test is skipped.
pub(crate) fn has(programs: &[&str], files: &[&str]) -> bool {
    let missing = missing_of(programs.iter().copied()).or_else(|| {
        files.iter().find(|file| !Path::new(file).exists()).map(|file| (*file).to_string())
    });
    if let Some(missing) = &missing {
        skip(&format!("moved disks: no {missing} here"));
    }
    missing.is_none()
}

/// A kernel; `None`, and the test is skipped, where that or a program is missing.
pub(crate) fn kernel(programs: &[&str], file: &str) -> Option<String> {
    let kernel = fs::read_dir("/boot").ok().into_iter().flatten().flatten();
    let mut names: Vec<String> =
        kernel.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.contains("/vmlinuz-") && name.ends_with("-amd64"));
    names.sort();
    let last = names.pop().unwrap_or("/boot/vmlinuz-*-amd64".into());
    let needs = [&["qemu-system-x86_64", "mke2fs"], programs].concat();
    has(&needs, &[file, &last]).then_some(last)
}

/// The kernel that `disk.img` starts has the loader's words.
pub(crate) fn boots(here: &Scratch) {
    boots_to(here, &[], &["Linux version", WORD]);
}

/// A guest of `disk.img`, with more options of QEMU, says all of `words`, of which the last one
/// comes last. What it writes is lost.
pub(crate) fn boots_to(here: &Scratch, options: &[&str], words: &[&str]) {
    start(here, "file=disk.img,format=raw,if=ide,snapshot=on", options, words);
}

/// Starts a guest with a drive and more options of QEMU; it says all of `words`, of which the last
/// one comes last.
pub(crate) fn start(here: &Scratch, drive: &str, options: &[&str], words: &[&str]) {
    let mut guest = Command::new("qemu-system-x86_64")
        .args(["-display", "none", "-monitor", "none", "-no-reboot", "-m", "256"])
        .args(["-serial", "file:serial", "-drive", drive])
        .args(options)
        .current_dir(here.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let begun = Instant::now();
    let last = words.last().expect("a word");
    let said = loop {
        let said = fs::read(here.path().join("serial")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let is_over = guest.try_wait().expect("a child").is_some();
        if said.contains(last) || is_over || begun.elapsed() > PATIENCE {
            break said;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let _ = guest.kill();
    let _ = guest.wait();
    let _ = fs::remove_file(here.path().join("serial"));
    for word in words {
        assert!(said.contains(word), "it did not come to {word}: {said}");
    }
}

/// Zeroes of the sectors `at` up to `end`, which no partition has any more.
pub(crate) fn wiped(here: &Scratch, at: u64, end: u64) {
    let count = end - at;
    sh(here, &format!("dd if=/dev/zero of=disk.img bs=512 seek={at} count={count} conv=notrunc"));
}

/// Puts GRUB's `boot.img` into the MBR and `core.img` at sector `at`, as grub-bios-setup does.
pub(crate) fn install(here: &Scratch, at: u64) {
    let path = here.path().join("disk.img");
    let file = fs::File::options().read(true).write(true).open(path).expect("an image");
    let boot = fs::read(format!("{GRUB}/boot.img")).expect("GRUB's boot.img");
    let mut mbr = [0; 440];
    mbr.copy_from_slice(&boot[..440]);
    mbr[0x5c..0x64].copy_from_slice(&at.to_le_bytes());
    mbr[0x64] = 0xff;
    mbr[0x66..0x68].fill(0x90);
    let mut core = fs::read(here.path().join("core")).expect("GRUB's core.img");
    core.resize(core.len().next_multiple_of(512), 0);
    assert!(at != 1 || core.len() < 63 * 512, "too long for the gap before sector 63");
    let rest = u16::try_from(core.len() / 512 - 1).expect("a short file");
    core[500..508].copy_from_slice(&(at + 1).to_le_bytes());
    core[508..510].copy_from_slice(&rest.to_le_bytes());
    core[510..512].copy_from_slice(&0x820u16.to_le_bytes());
    use std::os::unix::fs::FileExt;
    file.write_all_at(&mbr, 0).expect("a write");
    file.write_all_at(&core, at * 512).expect("a write");
}

/// Makes a folder `tree` with the kernel, GRUB's modules and a configuration.
pub(crate) fn grub_tree(here: &Scratch, kernel: &str) {
    sh(
        here,
        &format!(
            "mkdir -p tree/boot/grub/i386-pc; cp {kernel} tree/boot/vmlinuz
            cp {GRUB}/*.mod {GRUB}/*.lst tree/boot/grub/i386-pc
            printf 'linux /boot/vmlinuz console=ttyS0 {WORD}\\nboot\\n' > tree/boot/grub/grub.cfg"
        ),
    );
}
