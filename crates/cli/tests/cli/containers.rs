//! Containers on the command line: names, references and formats, and the disk in one as it is
//! served.

use crate::recipe::Scratch;
use crate::skip::skip;
use crate::{list, run, scratch};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A directory after a script of qemu-img and its like; `None`, and the test is skipped, without
/// them.
pub(crate) fn made(script: &str) -> Option<Scratch> {
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
pub(crate) const CHAIN: &str = "mkdir images; cd images
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

/// References by which hosts of clouds were made to read files of their own, each written into an
/// image as its CVE has it. None is opened, with `--follow` or without.
#[test]
fn published_attacks_lead_nowhere() {
    let script = "long=$(printf %0190d 0)
        qemu-img create -q -f qcow2 -o data_file=$long,data_file_raw=on long.qcow2 24M
        qemu-img create -q -f qcow2 -u -b $(printf %0190d 1) -F raw back.qcow2 24M
        rm -f 000*";
    let Some(here) = made(script) else { return };
    let images = here.path().join("images");
    fs::create_dir(&images).expect("a directory");
    let secret = here.path().join("raw");
    let secret = secret.to_str().expect("a path");
    let with = |template: &str, digit: &str, name: &str| {
        let mut bytes = fs::read(here.path().join(template)).expect("an image");
        let old = format!("{digit:0>190}");
        let at = bytes.windows(190).position(|part| part == old.as_bytes()).expect("the name");
        // What is left of the old name is a comment, or part of a path that leads nowhere.
        let padded = format!("{name}{}", "/".repeat(190 - name.len()));
        bytes[at..at + 190].copy_from_slice(padded.as_bytes());
        bytes
    };
    let json = format!("json:{{\"driver\":\"raw\",\"file\":{{\"filename\":\"{secret}\"}}}}");
    let vmdk = |kind: &str, name: &str| {
        format!(
            "# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID=ffffffff\n\
             createType=\"monolithicFlat\"\n\nRW 49152 {kind} \"{name}\" 0\n"
        )
        .into_bytes()
    };
    for (cve, bytes) in [
        ("2010-3851", with("back.qcow2", "1", secret)),
        ("2015-5163", with("back.qcow2", "1", "/etc/passwd")),
        ("2022-47951", vmdk("FLAT", secret)),
        ("2022-47951-relative", vmdk("FLAT", "../raw")),
        ("2022-47951-device", vmdk("VMFSRAW", "/dev/zero")),
        ("2024-32498", with("long.qcow2", "0", secret)),
        ("2024-4467", with("long.qcow2", "0", &json)),
        ("2024-44082", with("back.qcow2", "1", &json)),
        ("2026-24708", with("back.qcow2", "1", "nbd:localhost:10809")),
    ] {
        let name = format!("{cve}.img");
        fs::write(images.join(&name), bytes).expect("a file");
        for follow in ["", "--follow "] {
            let told = run(&images, &format!("check --json {follow}{name}"));
            let target = &told.json()["targets"][0];
            assert_eq!(target["verdict"], "unknown", "{cve} {follow}: {}", told.stdout);
            assert!(list(target, "providers").len() <= 2, "{cve} {follow}: {}", told.stdout);
        }
        // The disk may be a bare one, whose guest wrote that to its first sectors.
        let told = run(&images, &format!("check --json --format raw --follow {name}"));
        assert_eq!(list(&told.json()["targets"][0], "providers").len(), 1, "{cve}");
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
        $TRUELINE serve --read-only --follow $1 --run 'qemu-img compare -f raw -F raw '$2' \"$uri\"'
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
    // No command but the server writes to it.
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
        assert_eq!(partition["sign"], "ext4", "{kind}: {partition}");
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

/// A disk that is compressed as a whole: its begin is looked at, what lies behind that is never
/// called aligned, and the file is never off.
#[test]
fn a_compressed_disk_is_looked_into() {
    let script = "command -v gzip xz zstd bzip2 lz4 >/dev/null || exit 77
        truncate -s 3M small; printf 'label: dos\\nstart=2048\\n' | sfdisk -q small
        mke2fs -q -t ext4 -b 4096 -E offset=1048576 small 2M
        truncate -s 3M old; printf 'label: dos\\nstart=63\\n' | sfdisk -q --force old
        mke2fs -q -t ext4 -b 4096 -E offset=32256 old 2M
        for disk in raw small old; do
            gzip -k $disk; xz -k $disk; xz -9 -c $disk >$disk.9.xz; zstd -q -k $disk
            zstd -q --ultra -22 --long=27 -c $disk >$disk.22.zst
            bzip2 -k $disk; lz4 -q $disk $disk.lz4; lz4 -q --content-size $disk $disk.size.lz4
            zstd -q -c <$disk >$disk.stream.zst; head -c 3000 $disk.xz >$disk.cut.xz
            xz -k --x86 --lzma2 -c $disk >$disk.x86.xz; xz --block-size=256KiB -c $disk >$disk.b.xz
            head -c 2M $disk | xz >$disk.two.xz; tail -c +2097153 $disk | xz >>$disk.two.xz
            head -c 2M $disk >half; zstd -q -c half >$disk.two.zst
            tail -c +2097153 $disk >half; zstd -q -c half >>$disk.two.zst
        done
        head -c 400 small.bz2 >small.cut.bz2; head -c 2000 small.lz4 >small.cut.lz4
        tail -c 23M raw | bzip2 >part.bz2; tail -c 23M raw | lz4 -q >part.lz4
        head -c 2000 small.gz >small.cut.gz; head -c 600 small.zst >small.cut.zst
        (head -c 1500 small.gz; printf xxxx; tail -c +1505 small.gz) >small.bad.gz
        # The same frames with a window of 4 MiB and a length of 2^63 bytes, and of 2^32.
        (printf '\\050\\265\\057\\375\\304\\140\\0\\0\\0\\0\\0\\0\\0\\200'
        tail -c +11 raw.zst) >raw.long.zst
        (printf '\\050\\265\\057\\375\\304\\140\\0\\0\\0\\0\\1\\0\\0\\0'
        tail -c +11 small.zst) >small.more.zst";
    let Some(here) = made(script) else { return };
    for ending in ["gz", "xz", "9.xz", "b.xz", "zst", "22.zst", "bz2", "lz4", "size.lz4"] {
        for (disk, verdict) in [("small", "aligned"), ("old", "misaligned"), ("raw", "unknown")] {
            let ran = run(here.path(), &format!("check --json {disk}.{ending}"));
            let told = ran.json();
            assert_eq!(told["verdict"], verdict, "{disk}.{ending}: {}", ran.stdout);
            let target = &told["targets"][0];
            let contents = list(target, "providers").iter().find(|p| p["provider"] == ".disk");
            let contents = contents.unwrap_or_else(|| panic!("{disk}.{ending}: {told}"));
            let length = fs::metadata(here.path().join(disk)).expect("the disk").len();
            assert_eq!(contents["length"], length, "{disk}.{ending}");
            let partition = list(target, "providers").iter().find(|p| p["parent"] == ".disk");
            assert_eq!(partition.expect("a partition")["sign"], "ext4", "{disk}.{ending}");
            // What is behind the begin is not taken for damage.
            let rules: Vec<&Value> = list(target, "findings").iter().map(|f| &f["rule"]).collect();
            assert!(disk != "raw" || rules.iter().all(|rule| **rule == "TL0019"), "{told}");
        }
    }
    // Those whose length or filters are not known, and those that were cut, stay files.
    for name in [
        "raw.stream.zst",
        "raw.cut.xz",
        "raw.x86.xz",
        "small.two.xz",
        "raw.two.zst",
        "small.cut.gz",
        "small.cut.bz2",
        "small.cut.lz4",
        // File systems alone, whose length nothing says.
        "part.bz2",
        "part.lz4",
        "small.cut.zst",
        "small.bad.gz",
        "raw.long.zst",
        "small.more.zst",
    ] {
        let told = run(here.path(), &format!("check --json {name}")).json();
        assert_eq!(told["verdict"], "unknown", "{name}: {told}");
        assert_eq!(list(&told["targets"][0], "providers").len(), 1, "{name}: {told}");
    }
    // The disk is served as far as it is unpacked.
    let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["serve", "small.xz", "--run", "qemu-img compare -f raw -F raw small \"$uri\""])
        .current_dir(here.path())
        .output()
        .expect("trueline");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("Images are identical"), "{said}");
}

/// Archives of tar in each of its forms, an OVA among them, and what Android's tools make: the disk
/// in them is the disk that went in.
#[test]
fn an_archive_is_looked_into() {
    let script = "command -v tar img2simg >/dev/null || exit 77
        printf x >vm.ovf; mkdir disk deep; cp raw disk.raw
        qemu-img convert -O vmdk -o subformat=streamOptimized raw vm.vmdk
        qemu-img convert -O qcow2 raw disk/vm.qcow2
        tar --format=ustar -cf vm.ova vm.ovf vm.vmdk
        tar --format=gnu -cf gnu.tar disk.raw; tar --format=v7 -cf v7.tar disk.raw
        tar --format=posix --pax-option=exthdr.name=x -cf posix.tar disk.raw
        tar --format=oldgnu -Scf sparse.tar disk.raw vm.vmdk
        tar --format=posix -Scf sparse.posix.tar disk.raw
        tar --format=posix --sparse-version=0.1 -Scf sparse.old.tar disk.raw
        tar -Sczf disk.raw.tar.gz disk.raw; tar -czf whole.tar.gz disk.raw; tar -cf layer.tar disk
        img2simg raw phone.simg 4096
        name=deep/$(printf %0150d 1); cp raw $name.img; tar --format=gnu -cf long.tar $name.img
        # A label, what macOS keeps beside a file, and one that is older.
        printf x >._disk.raw; truncate -s 24M older; mkdir some; mv older some/disk.raw
        tar -V label --format=gnu -cf odd.tar ._disk.raw; tar -C some -rf odd.tar disk.raw
        tar -rf odd.tar disk.raw disk
        # More than 64 KiB of a map.
        truncate -s 64M holes.raw; dd if=raw of=holes.raw conv=notrunc,sparse status=none
        for nth in $(seq 6000); do printf x; head -c 8191 /dev/zero; done |
            dd of=holes.raw bs=4k seek=7168 conv=notrunc,sparse status=none
        tar --format=posix -Scf holes.tar holes.raw";
    let Some(here) = made(script) else { return };
    let listed = |target: &str| {
        let told = run(here.path(), &format!("check --json {target}")).json();
        let target = &told["targets"][0];
        let partitions = list(target, "providers").iter().filter(|p| p["class"] == "gpt");
        let seen = |p: &Value| (p["base"].as_u64(), p["length"].as_u64(), p["sign"].clone());
        (told["verdict"].clone(), partitions.map(seen).collect::<Vec<_>>())
    };
    let expected = listed("raw");
    assert_eq!((&expected.0, expected.1.len()), (&Value::from("aligned"), 1));
    let whole =
        ["vm.ova", "v7.tar", "gnu.tar", "posix.tar", "sparse.tar", "sparse.posix.tar", "layer.tar"];
    for name in whole.into_iter().chain(["long.tar", "phone.simg"]) {
        assert_eq!(listed(name), expected, "{name}");
        let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["serve", name, "--run", "qemu-img compare -f raw -F raw raw \"$uri\""])
            .current_dir(here.path())
            .output()
            .expect("trueline");
        let said = String::from_utf8_lossy(&done.stdout);
        let layers = ["vm.ova", "layer.tar"].contains(&name);
        assert!(layers || said.contains("Images are identical"), "{name}: {said}");
    }
    // A compressed one is unpacked as far as others are: all of it if it is sparse.
    assert_eq!(listed("disk.raw.tar.gz"), expected);
    let packed = run(here.path(), "check --json whole.tar.gz").json();
    assert_eq!(packed["verdict"], "unknown");
    let found = list(&packed["targets"][0], "providers").iter().any(|p| p["sign"] == "ext4");
    assert!(found, "{packed}");
    assert_eq!(listed("sparse.old.tar"), ("unknown".into(), Vec::new()));
    assert_eq!(listed("odd.tar"), expected);
    assert_eq!(listed("holes.tar"), listed("holes.raw"));
    // A further disk is named.
    let told = run(here.path(), "check sparse.tar").stdout;
    assert!(told.contains("disk.raw is looked into, and not vm.vmdk"), "{told}");
}

/// A name leads to the file that it names, and to no other of the same last part.
#[test]
fn a_name_means_its_own_path_first() {
    let script = "mkdir images old; cd images
        qemu-img convert -O qcow2 ../raw base.qcow2
        qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 top.qcow2
        truncate -s 24M ../other; printf 'label: dos\\nstart=63\\n' | sfdisk -q --force ../other
        qemu-img convert -O qcow2 ../other ../old/base.qcow2
        mkdir sub; qemu-img create -q -f qcow2 -b ../base.qcow2 -F qcow2 sub/base.qcow2";
    let Some(here) = made(script) else { return };
    let images = here.path().join("images");
    for (target, disk, verdict) in [
        ("top.qcow2,../old/base.qcow2,base.qcow2", "top.qcow2.disk", "aligned"),
        ("sub/base.qcow2,base.qcow2", "sub/base.qcow2.disk", "aligned"),
        // Two disks with the last part of a name, and none with all of it.
        ("top.qcow2,../old/base.qcow2,sub/base.qcow2", "top.qcow2.disk", "unknown"),
    ] {
        let told = run(&images, &format!("check --json {target}")).json();
        let is_disk = |provider: &&Value| provider["provider"] == disk;
        let found = list(&told["targets"][0], "providers").iter().find(is_disk);
        assert_eq!(found.expect("a disk in it")["verdict"], verdict, "{target}: {told}");
    }
}

/// The bytes of a bare extent are a guest's: what they look like decides nothing.
#[test]
fn a_bare_extent_is_bare_however_it_begins() {
    let script = "mkdir images; cd images
        qemu-img convert -O qcow2 ../raw vm-flat.vmdk; size=$(stat -c %s vm-flat.vmdk)
        printf '# Disk DescriptorFile\\nversion=1\\nCID=12345678\\nparentCID=ffffffff\\n' >vm.vmdk
        printf 'RW %s FLAT \"vm-flat.vmdk\" 0\\n' $((size / 512)) >>vm.vmdk";
    let Some(here) = made(script) else { return };
    let images = here.path().join("images");
    for arguments in ["--follow vm.vmdk", "vm.vmdk,vm-flat.vmdk"] {
        let told = run(&images, &format!("check --json {arguments}")).json();
        let names: Vec<_> = list(&told["targets"][0], "providers")
            .iter()
            .map(|p| p["provider"].as_str().expect("a name").to_owned())
            .collect();
        // The guest's disk is a qcow2 then, as the guest wrote it there.
        assert!(!names.iter().any(|name| name.starts_with("vm-flat.")), "{arguments}: {names:?}");
    }
}

/// Evidence in segments is one disk where all of them are there, however it was acquired.
#[test]
fn segments_of_evidence_are_one_disk() {
    let script = "command -v ewfacquire >/dev/null || exit 77; ln raw disk.raw
        dd if=/dev/urandom of=raw bs=1M seek=3 count=5 conv=notrunc status=none
        for format in encase2 encase6 ftk linen7 smart; do
            for level in none fast; do
                mkdir $format-$level
                vm=$format-$level/vm
                ewfacquire -u -q -f $format -c $level -S 1MiB -t $vm disk.raw >/dev/null
            done
        done
        if command -v ewfacquire-v2; then
            for level in none best; do
                mkdir v2-$level
                acquire='ewfacquire-v2 -u -q -f encase7-v2 -S 1MiB'
                $acquire -c deflate:$level -t v2-$level/vm disk.raw >/dev/null
            done
        fi
        mkdir alone upper; cp encase6-none/vm.E01 alone; cp encase6-none/vm.E02 upper
        cp encase6-fast/vm.E01 upper";
    let Some(here) = made(script) else { return };
    for kind in ["encase2", "encase6", "ftk", "linen7", "smart", "v2"] {
        let ending = [("smart", "s01"), ("v2", "Ex01")].into_iter().find(|(of, _)| *of == kind);
        let file = format!("vm.{}", ending.map_or("E01", |(_, ending)| ending));
        for level in ["none", "fast", "best"] {
            let images = here.path().join(format!("{kind}-{level}"));
            if !images.exists() {
                continue;
            }
            let alone = run(&images, &format!("check --json {file}")).json();
            assert_eq!(alone["verdict"], "unknown", "{kind}: {alone}");
            let told = run(&images, &format!("check --json --follow {file}")).json();
            assert_eq!(told["verdict"], "aligned", "{kind} {level}: {told}");
            let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
                .args(["serve", "--follow", &file, "--run"])
                .arg("qemu-img compare -f raw -F raw ../raw \"$uri\"")
                .current_dir(&images)
                .output()
                .expect("trueline");
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(said.contains("Images are identical"), "{kind} {level}: {said}");
        }
    }
    // Named, each of them.
    let images = here.path().join("encase6-fast");
    let mut names: Vec<String> = fs::read_dir(&images)
        .expect("segments")
        .map(|entry| entry.expect("a name").file_name().into_string().expect("plain names"))
        .filter(|name| name.contains(".E"))
        .collect();
    names.sort();
    assert!(names.len() > 4, "{names:?}");
    let told = run(&images, &format!("check --json {}", names.join(","))).json();
    assert_eq!(told["verdict"], "aligned", "{told}");
    // One that is missing, one of another acquisition, and those that are not the first.
    let told = run(here.path(), "check --follow alone/vm.E01");
    assert!(told.stdout.contains("next segment '*.E02' is not followed"), "{}", told.stdout);
    for target in ["alone/vm.E01", "upper/vm.E01", "encase6-none/vm.E02", "smart-none/vm.s02"] {
        let told = run(here.path(), &format!("check --json --follow {target}")).json();
        assert_eq!(told["verdict"], "unknown", "{target}: {told}");
    }
}
