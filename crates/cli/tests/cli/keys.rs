//! `--key-file`: LUKS volumes that cryptsetup made and QEMU wrote are opened, checked and served.
//!
//! QEMU writes LUKS1 only. A LUKS2 volume with the same key has the same payload.

use crate::counters::{here, serve};
use crate::{Ran, run, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;

const UUID: &str = "11111111-2222-3333-4444-555555555555";
/// A passphrase with newlines: they are a part of it.
const KEY: &str = "sec\nret\n";
const MEG: usize = 1 << 20;
/// The command that makes a volume of LUKS1.
const FORMAT: &str =
    "cryptsetup -q luksFormat --type luks1 --pbkdf-force-iterations 1000 --key-file key";

/// Runs a script in `directory`, which has to succeed.
#[track_caller]
fn sh(directory: &Path, script: &str) {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let script = format!("set -eu\n{script}");
    let ran = Command::new("sh")
        .args(["-c", &script])
        .current_dir(directory)
        .env("PATH", path)
        .output()
        .expect("a shell");
    assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A file system, `plain`, and the key file `key`.
fn inside(directory: &Path) -> Vec<u8> {
    fs::write(directory.join("key"), KEY).expect("a file can be written");
    sh(directory, "truncate -s 4M plain; mke2fs -q -t ext4 -b 4096 plain");
    // Every sector of the rest says its number.
    let mut plain = fs::read(directory.join("plain")).expect("mke2fs has made it");
    for (number, sector) in plain.chunks_exact_mut(512).enumerate().skip(2 * MEG / 512) {
        let number = number as u64;
        sector
            .copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(64));
    }
    fs::write(directory.join("plain"), &plain).expect("a file can be written");
    plain
}

/// The volume `image` of LUKS1, made with `options`, that holds `plain`.
fn luks1(directory: &Path, image: &str, options: &str) {
    sh(
        directory,
        &format!(
            "truncate -s 8M {image}
            {FORMAT} --uuid {UUID} {options} {image}
            qemu-img convert -n -f raw --object secret,id=s,file=key --target-image-opts plain \\
                driver=luks,key-secret=s,file.driver=file,file.filename={image}"
        ),
    );
}

/// Checks `image` and reads the whole of its payload through `serve`.
#[track_caller]
fn holds(directory: &Path, image: &str, plain: &[u8]) {
    let checked = run(directory, &format!("check --key-file key {image}"));
    let row = format!("luks/{UUID}  ext4");
    assert!(checked.stdout.contains(&row), "{image}: {}{}", checked.stdout, checked.stderr);
    let options = format!("--key-file key -r --no-counters {image}#luks/{UUID}");
    let ran = serve(directory, &options, "rm -f copy; qemu-img convert -O raw \"$uri\" copy");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let copy = fs::read(directory.join("copy")).expect("qemu-img has made it");
    let differ = plain.iter().zip(&copy).position(|(a, b)| a != b);
    assert!(copy.len() >= plain.len() && differ.is_none(), "{image}: from byte {differ:?}");
}

#[test]
fn volumes_are_opened_with_the_bytes_of_a_file() {
    if !here(&["cryptsetup", "qemu-img", "mke2fs"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let plain = inside(directory);
    luks1(directory, "xts", "--hash sha256 --key-size 512");
    luks1(directory, "xts256", "--hash sha512 --key-size 256");
    luks1(directory, "cbc", "--hash sha1 --key-size 256 --cipher aes-cbc-essiv:sha256");
    luks1(directory, "cbc128", "--hash sha1 --key-size 128 --cipher aes-cbc-plain");
    for image in ["xts", "xts256", "cbc", "cbc128"] {
        holds(directory, image, &plain);
    }
    sh(
        directory,
        "cryptsetup -q luksDump --dump-volume-key --key-file key --volume-key-file volume xts >dump
        sed -n 's/^Payload offset:[^0-9]*//p' dump >offset",
    );
    let cheap = "--pbkdf-force-iterations 4 --pbkdf-memory 64 --pbkdf-parallel 2";
    for (kind, cost) in [
        ("pbkdf2", "--hash sha512 --pbkdf-force-iterations 1000"),
        ("argon2i", cheap),
        ("argon2id", cheap),
    ] {
        sh(
            directory,
            &format!(
                "rm -f two; truncate -s 24M two
                cryptsetup -q luksFormat --type luks2 --uuid {UUID} --key-size 512 \\
                    --sector-size 512 --volume-key-file volume \\
                    --pbkdf {kind} {cost} --key-file key two
                dd if=xts of=two bs=512 skip=$(cat offset) seek=32768 conv=notrunc status=none"
            ),
        );
        holds(directory, "two", &plain);
    }
    // The first header is damaged, then both.
    sh(directory, "printf x | dd of=two bs=1 seek=4200 conv=notrunc status=none");
    holds(directory, "two", &plain);
    sh(directory, "printf x | dd of=two bs=1 seek=20584 conv=notrunc status=none");
    let closed = run(directory, "check --key-file key two");
    assert!(closed.stdout.contains("checksum is wrong"), "{}", closed.stdout);
}

#[test]
fn what_no_key_opens_is_as_without_keys() {
    if !here(&["cryptsetup"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    for (name, bytes) in [("key", KEY), ("stripped", "sec\nret"), ("empty", "")] {
        fs::write(directory.join(name), bytes).expect("a file can be written");
    }
    sh(directory, &format!("truncate -s 4M v; {FORMAT} --key-size 256 v"));
    let rows = |ran: &Ran| -> Vec<String> {
        ran.stdout.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let (closed, wrong) =
        (run(directory, "check v"), run(directory, "check --key-file stripped v"));
    assert!(rows(&wrong).iter().zip(rows(&closed)).take(4).all(|(one, other)| *one == other));
    let said =
        "warning TL0019 disk: the crypto_LUKS volume stays closed: no key in stripped opens it";
    assert!(wrong.stdout.contains(said), "{}", wrong.stdout);
    // A command that names what it would hold says so too.
    let info = run(directory, "info --key-file stripped v#luks/1234");
    assert!(
        info.code == Some(2) && info.stderr.contains("no key in stripped opens it"),
        "{}",
        info.stderr
    );
    // Each of several files is tried.
    let both = run(directory, "check --key-file stripped --key-file key v");
    assert!(both.stdout.contains("\nluks/"), "{}", both.stdout);
    for (file, want) in [("empty", "there is no passphrase in it"), ("none", "No such file")] {
        let refused = run(directory, &format!("check --key-file {file} v"));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
        assert!(refused.stderr.contains(want), "{}", refused.stderr);
    }
}

#[test]
fn an_opened_volume_is_served_for_reading_alone() {
    if !here(&["cryptsetup", "qemu-io"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("key"), KEY).expect("a file can be written");
    sh(directory, &format!("truncate -s 4M v; {FORMAT} --uuid {UUID} --key-size 256 v"));
    let before = fs::read(directory.join("v")).expect("it was made");
    let options = format!("--key-file key --no-counters v#luks/{UUID}");
    let ran = serve(directory, &options, "! qemu-io -f raw -c 'write 0 4k' \"$uri\"");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("it is decrypted here, never encrypted"), "{}", ran.stderr);
    assert!(fs::read(directory.join("v")).expect("it is there") == before);
}
