//! Containers on the command line: names, references and formats, and the disk in one as it is
//! served.

use crate::recipe::Scratch;
use crate::skip::skip;
use crate::{list, run, scratch};
use std::fs;
use std::process::Command;

/// A directory after a script of qemu-img and its like; `None`, and the test is skipped, without
/// them.
fn made(script: &str) -> Option<Scratch> {
    let scratch = scratch();
    let script = format!(
        "command -v qemu-img qemu-io sfdisk mke2fs >/dev/null || exit 77
        truncate -s 24M raw
        printf 'label: gpt\\nstart=2048, size=40960\\n' | sfdisk -q raw
        mke2fs -q -t ext4 -b 4096 -E offset=1048576 raw 20M
        {script}"
    );
    let done = Command::new("sh").args(["-ec", &script]).current_dir(scratch.path()).output();
    let done = done.expect("a shell");
    if done.status.code() == Some(77) {
        skip("no qemu-img, sfdisk or mke2fs here");
        return None;
    }
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(scratch)
}

/// Three images, each on the one before, and the disk that QEMU has of them.
const CHAIN: &str = "mkdir images; cd images
    qemu-img convert -O qcow2 ../raw base.qcow2
    qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 mid.qcow2
    qemu-io -f qcow2 -c 'write -P 7 22M 64k' mid.qcow2 >/dev/null
    qemu-img create -q -f qcow2 -b mid.qcow2 -F qcow2 top.qcow2 32M
    qemu-io -f qcow2 -c 'write -P 9 22M 4k' -c 'write -P 8 31M 512' top.qcow2 >/dev/null
    qemu-img convert -f qcow2 -O raw top.qcow2 whole";

#[test]
fn a_chain_is_followed_where_that_is_said() {
    let Some(here) = made(CHAIN) else { return };
    let images = here.path().join("images");
    for (arguments, verdict) in [
        ("check --json top.qcow2", "unknown"),
        ("check --json --follow top.qcow2", "aligned"),
        ("check --json top.qcow2,mid.qcow2,base.qcow2", "aligned"),
        // The one in between is not here.
        ("check --json top.qcow2,base.qcow2", "unknown"),
        ("check --json --format raw --follow top.qcow2", "unknown"),
    ] {
        let told = run(&images, arguments).json();
        assert_eq!(told["verdict"], verdict, "{arguments}");
    }
    let told = run(&images, "check --json --follow top.qcow2").json();
    let names: Vec<_> = list(&told["targets"][0], "providers")
        .iter()
        .map(|provider| provider["provider"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["", "mid", "base", "base.disk", "mid.disk", ".disk", "p1"]);
    let told = run(&images, "check top.qcow2");
    assert!(
        told.stdout.contains("mid.qcow2") && told.stdout.contains("--follow"),
        "{}",
        told.stdout
    );
}

#[test]
fn a_name_that_leads_elsewhere_is_not_followed() {
    let script = "qemu-img convert -O qcow2 raw secret.qcow2; mkdir images
        qemu-img convert -O qcow2 raw images/near.qcow2
        for name in ../secret.qcow2 \"$PWD/secret.qcow2\" /dev/null json:{} nbd://localhost/x \
            absent.qcow2 images/near.qcow2; do
            n=$((n + 1)); qemu-img create -q -f qcow2 -u -b \"$name\" -F qcow2 images/$n.qcow2 24M
        done
        ln -s ../secret.qcow2 images/link.qcow2
        qemu-img create -q -f qcow2 -u -b link.qcow2 -F qcow2 images/8.qcow2 24M
        qemu-img create -q -f qcow2 -u -b near.qcow2 -F qcow2 images/9.qcow2 24M";
    let Some(here) = made(script) else { return };
    let images = here.path().join("images");
    for n in 1..=9 {
        let told = run(&images, &format!("check --json --follow {n}.qcow2")).json();
        let verdict = if n == 9 { "aligned" } else { "unknown" };
        assert_eq!(told["verdict"], verdict, "{n}: {told}");
        let opened = list(&told["targets"][0], "providers").len();
        assert_eq!(opened, if n == 9 { 5 } else { 2 }, "{n}: {told}");
    }
}

#[test]
fn images_that_name_each_other_end() {
    let script = "qemu-img create -q -f qcow2 a.qcow2 24M
        qemu-img create -q -f qcow2 -u -b a.qcow2 -F qcow2 b.qcow2 24M
        qemu-img rebase -q -u -b b.qcow2 -F qcow2 a.qcow2
        qemu-img create -q -f qcow2 -u -b c.qcow2 -F qcow2 other.qcow2 24M; mv other.qcow2 c.qcow2";
    let Some(here) = made(script) else { return };
    for image in ["a.qcow2", "c.qcow2"] {
        let told = run(here.path(), &format!("check --json --follow {image}")).json();
        assert_eq!(told["verdict"], "unknown", "{told}");
    }
}

#[test]
fn the_disk_in_a_container_is_served_and_not_its_file() {
    let Some(here) = made(CHAIN) else { return };
    let images = here.path().join("images");
    let script = "for image in \"top.qcow2 whole\" \"base.qcow2 ../raw\"; do set -- $image
        $TRUELINE serve --follow $1 --run 'qemu-img compare -f raw -F raw '$2' \"$uri\"'
        done
        $TRUELINE serve base.qcow2# \
            --run 'qemu-img compare -f raw -F raw base.qcow2 \"$uri\"'";
    let done = Command::new("sh")
        .args(["-ec", script])
        .env("TRUELINE", env!("CARGO_BIN_EXE_trueline"))
        .current_dir(&images)
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&done.stdout);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{told}");
    assert_eq!(said.matches("Images are identical").count(), 3, "{said}{told}");
    assert!(told.contains("read-only"), "{told}");
    // Nothing is written to it.
    let before = fs::read(images.join("base.qcow2")).expect("the image");
    for arguments in ["part create -s gpt --overwrite base.qcow2", "part delete -i 1 base.qcow2"] {
        assert_ne!(run(&images, arguments).code, Some(0), "{arguments}");
    }
    assert!(fs::read(images.join("base.qcow2")).expect("the image") == before);
}

/// Five GiB, of which VMware's formats put two into a file, or eight.
const EXTENTS: &str = "truncate -s 5G large
    printf 'label: gpt\\nstart=2048, size=4190208\\nsize=4194304\\n' | sfdisk -q large
    mke2fs -q -t ext4 -b 4096 -E offset=2146435072 large 2G
    for kind in monolithicFlat twoGbMaxExtentFlat twoGbMaxExtentSparse; do
        mkdir $kind
        qemu-img convert -O vmdk -o subformat=$kind large $kind/vm.vmdk
    done";

#[test]
fn extents_in_files_of_their_own_are_one_disk() {
    let Some(here) = made(EXTENTS) else { return };
    for kind in ["monolithicFlat", "twoGbMaxExtentFlat", "twoGbMaxExtentSparse"] {
        let images = here.path().join(kind);
        let alone = run(&images, "check --json vm.vmdk").json();
        assert_eq!(alone["verdict"], "unknown", "{kind}: {alone}");
        let told = run(&images, "check --json --follow vm.vmdk").json();
        assert_eq!(told["verdict"], "aligned", "{kind}: {told}");
        let partition = list(&told["targets"][0], "providers")
            .iter()
            .find(|provider| provider["provider"] == "p2")
            .unwrap_or_else(|| panic!("{kind}: {told}"));
        assert_eq!(partition["kind"], "ext4", "{kind}: {partition}");
        let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["serve", "--follow", "vm.vmdk", "--run"])
            .arg("qemu-img compare -f raw -F raw ../large \"$uri\"")
            .current_dir(&images)
            .output()
            .expect("trueline");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("Images are identical"), "{kind}: {said}");
    }
    // An extent is no disk, and one that is gone is none that could be read past.
    let images = here.path().join("twoGbMaxExtentSparse");
    let told = run(&images, "check --json vm-s002.vmdk").json();
    assert_eq!(told["verdict"], "unknown", "{told}");
    fs::remove_file(images.join("vm-s002.vmdk")).expect("an extent");
    let told = run(&images, "check --json --follow vm.vmdk").json();
    assert_eq!(told["verdict"], "unknown", "{told}");
}

/// QEMU looks for a data file where it runs, and people keep it beside the image.
#[test]
fn clusters_in_a_data_file_are_where_the_guest_has_them() {
    let script = "mkdir images; cd images
        qemu-img convert -O qcow2 -o data_file=data.raw ../raw plain.qcow2
        qemu-img create -q -f qcow2 -o data_file=over.raw -b plain.qcow2 -F qcow2 over.qcow2
        qemu-io -f qcow2 -c 'write -P 7 22M 64k' -c 'write -P 9 0 512' over.qcow2 >/dev/null
        qemu-img convert -f qcow2 -O raw over.qcow2 whole";
    let Some(here) = made(script) else { return };
    let images = here.path().join("images");
    assert_eq!(run(&images, "check --json plain.qcow2").json()["verdict"], "unknown");
    let told = run(&images, "check --json --follow plain.qcow2 --for ssd-16k").json();
    assert_eq!(told["verdict"], "aligned", "{told}");
    for (image, disk) in [("plain.qcow2", "../raw"), ("over.qcow2", "whole")] {
        let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["serve", "--follow", image, "--run"])
            .arg(format!("qemu-img compare -f raw -F raw {disk} \"$uri\""))
            .current_dir(&images)
            .output()
            .expect("trueline");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.contains("Images are identical"), "{image}: {said}");
    }
}
