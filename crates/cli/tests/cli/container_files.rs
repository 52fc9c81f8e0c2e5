//! Disks of several files beside each other: snapshots with extents, compared with what QEMU has
//! of them.

use crate::containers::made;
use crate::list;
use crate::recipe::Scratch;
use crate::run;
use std::fs;
use std::process::Command;

/// Number of times that QEMU finds the disk in `image` of `here`, as it is served, the same as the
/// raw `disk`.
fn same(here: &Scratch, image: &str, disk: &str) -> usize {
    let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["serve", "--read-only", "--follow", image, "--run"])
        .arg(format!("qemu-img compare -f raw -F raw {disk} \"$uri\""))
        .current_dir(here.path())
        .output()
        .expect("trueline");
    let said = String::from_utf8_lossy(&done.stdout);
    said.matches("Images are identical").count()
}

/// Snapshots that QEMU makes, of which each extent has its part of two GiB.
#[test]
fn a_snapshot_in_several_extents_is_the_disk_that_qemu_has_of_it() {
    let script = "truncate -s 5G large
        printf 'label: gpt\\nstart=2048, size=4190208\\nsize=4194304\\n' | sfdisk -q large
        mke2fs -q -t ext4 -b 4096 -E offset=2146435072 large 2G
        qemu-img convert -O vmdk -o subformat=twoGbMaxExtentFlat large base.vmdk
        qemu-img create -q -f vmdk -b base.vmdk -F vmdk -o subformat=twoGbMaxExtentSparse top.vmdk
        qemu-io -f vmdk -c 'write -P 7 3G 64k' -c 'write -P 8 5365600256 4k' \\
            -c 'write -P 9 2147450880 64k' top.vmdk >/dev/null
        qemu-img convert -f vmdk -O raw top.vmdk whole; test -e top-s003.vmdk";
    let Some(here) = made(script) else { return };
    let alone = run(here.path(), "check --json top.vmdk").json();
    assert_eq!(alone["verdict"], "unknown", "{alone}");
    let told = run(here.path(), "check --json --follow top.vmdk").json();
    assert_eq!(told["verdict"], "aligned", "{told}");
    assert_eq!(same(&here, "top.vmdk", "whole"), 1);
    // What is behind the end of an extent is not there.
    let last = fs::File::options().write(true).open(here.path().join("base-f003.vmdk"));
    last.expect("an extent").set_len(4096).expect("a file that is cut");
    let told = run(here.path(), "check --json --follow top.vmdk").json();
    let rules: Vec<_> = list(&told["targets"][0], "findings").iter().map(|f| &f["rule"]).collect();
    assert!(rules.iter().any(|rule| **rule == "TL0020"), "{told}");
}

fn put(file: &mut [u8], at: usize, number: u64, width: usize) {
    file[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// A delta of `sectors` as ESX has it, with the grains of one sector that `written` are, by number
/// on the disk and byte of which they are full.
fn cowd(sectors: usize, written: &[(usize, u8)]) -> Vec<u8> {
    let tables = sectors.div_ceil(4096);
    let first = 5 + tables * 32;
    let mut file = vec![0; (first + written.len()) * 512];
    file[..4].copy_from_slice(b"COWD");
    let fields = [1, 3, sectors, 1, 4, tables, first + written.len()];
    for (nth, value) in fields.into_iter().enumerate() {
        put(&mut file, 4 + nth * 4, value as u64, 4);
    }
    for table in 0..tables {
        put(&mut file, 2048 + table * 4, (5 + table * 32) as u64, 4);
    }
    for (nth, &(sector, fill)) in written.iter().enumerate() {
        put(&mut file, 2560 + sector * 4, (first + nth) as u64, 4);
        file[(first + nth) * 512..(first + nth + 1) * 512].fill(fill);
    }
    file
}

/// Deltas of ESX that no tool here writes. QEMU 7.2 makes a disk of them that is twice as long.
#[test]
fn a_snapshot_of_esx_is_the_disk_that_qemu_has_of_it() {
    let script = "qemu-img convert -O vmdk -o subformat=monolithicFlat raw base.vmdk
        sed -n 's/^CID=//p' base.vmdk >cid";
    let Some(here) = made(script) else { return };
    let content = fs::read_to_string(here.path().join("cid")).expect("a content ID");
    let sectors = 24 << 11;
    let written: Vec<(usize, u8)> =
        (0..200).map(|nth| (usize::from(nth) * 197 + 3000, nth)).collect();
    fs::write(here.path().join("top-delta.vmdk"), cowd(sectors, &written)).expect("a file");
    let text = format!(
        "# Disk DescriptorFile\nversion=1\nCID=0badcafe\nparentCID={}\n\
         createType=\"vmfsSparse\"\nparentFileNameHint=\"base.vmdk\"\n\n\
         RW {sectors} VMFSSPARSE \"top-delta.vmdk\"\n",
        content.trim()
    );
    fs::write(here.path().join("top.vmdk"), text).expect("a file");
    let mut whole = fs::read(here.path().join("raw")).expect("the raw disk");
    for (sector, fill) in written {
        whole[sector * 512..(sector + 1) * 512].fill(fill);
    }
    fs::write(here.path().join("whole"), &whole).expect("a file");
    let made = Command::new("qemu-img")
        .args(["convert", "-f", "vmdk", "-O", "raw", "top.vmdk", "back"])
        .current_dir(here.path())
        .status();
    assert!(made.expect("qemu-img").success());
    assert!(fs::read(here.path().join("back")).expect("a disk").starts_with(&whole));
    assert_eq!(same(&here, "top.vmdk", "whole"), 1);
    let told = run(here.path(), "check --json --follow top.vmdk").json();
    // Sectors by themselves are off, as ESX has them; nothing fails to be read.
    assert_eq!(told["verdict"], "misaligned", "{told}");
    let rules: Vec<_> = list(&told["targets"][0], "findings").iter().map(|f| &f["rule"]).collect();
    assert!(!rules.iter().any(|rule| **rule == "TL0019" || **rule == "TL0020"), "{told}");
}

/// A directory of Parallels with two storages and a snapshot, of images that QEMU makes; the XML is
/// by its document.
#[test]
fn a_directory_of_parallels_is_one_disk() {
    let script = "mkdir vm.hdd; cd vm.hdd
        head -c 10M ../raw >part; qemu-img convert -f raw -O parallels part vm.0.root.hds
        tail -c 14M ../raw >vm.1.root.hds; rm part
        qemu-img create -q -f parallels vm.0.top.hds 10M
        qemu-img create -q -f parallels vm.1.top.hds 14M
        qemu-io -f parallels -c 'write -P 7 8M 1M' vm.0.top.hds >/dev/null
        qemu-io -f parallels -c 'write -P 9 13M 1M' vm.1.top.hds >/dev/null
        cp ../raw ../whole; chmod u+w ../whole";
    let Some(here) = made(script) else { return };
    let image = |guid: &str, kind: &str, file: &str| {
        format!("<Image><GUID>{guid}</GUID><Type>{kind}</Type><File>{file}</File></Image>")
    };
    let (root, top) =
        ("{5fbaabe3-6958-40ff-92a7-860e329aab42}", "{5fbaabe3-6958-40ff-92a7-860e329aab41}");
    let storage = |start: u32, end: u32, images: [String; 2]| {
        let images = images.concat();
        format!("<Storage><Start>{start}</Start><End>{end}</End>{images}</Storage>")
    };
    let first =
        [image(root, "Compressed", "vm.0.root.hds"), image(top, "Compressed", "vm.0.top.hds")];
    let second = [image(root, "Plain", "vm.1.root.hds"), image(top, "Compressed", "vm.1.top.hds")];
    let (first, second) = (storage(0, 20480, first), storage(20480, 49152, second));
    let none = "{00000000-0000-0000-0000-000000000000}";
    let shot = |own: &str, parent: &str| {
        format!("<Shot><GUID>{own}</GUID><ParentGUID>{parent}</ParentGUID></Shot>")
    };
    let (below, above) = (shot(root, none), shot(top, root));
    let xml = format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n<Parallels_disk_image Version=\"1.0\">\n\
         <Disk_Parameters><Disk_size>49152</Disk_size><Padding>0</Padding></Disk_Parameters>\n\
         <StorageData>{first}{second}</StorageData><Snapshots>{below}{above}</Snapshots>\n\
         </Parallels_disk_image>\n"
    );
    fs::write(here.path().join("vm.hdd/DiskDescriptor.xml"), xml).expect("a file");
    let mut whole = fs::read(here.path().join("raw")).expect("the raw disk");
    whole[8 << 20..9 << 20].fill(7);
    whole[23 << 20..24 << 20].fill(9);
    fs::write(here.path().join("whole"), whole).expect("a file");
    assert_eq!(same(&here, "vm.hdd/DiskDescriptor.xml", "whole"), 1);
    let alone = run(here.path(), "check --json vm.hdd/DiskDescriptor.xml").json();
    assert_eq!(alone["verdict"], "unknown", "{alone}");
    let told = run(here.path(), "check --json --follow vm.hdd/DiskDescriptor.xml").json();
    let partition = list(&told["targets"][0], "providers").iter().find(|p| p["sign"] == "ext4");
    assert_eq!(partition.expect("a file system")["verdict"], "aligned", "{told}");
    let told = run(here.path(), "check vm.hdd");
    assert!(told.stderr.contains("vm.hdd/DiskDescriptor.xml"), "{}", told.stderr);
}

/// A sparse bundle of macOS, which no tool here writes, by what others say of it: bands of 1 MiB,
/// of which those of zeros are not there, and others have the zeros at their ends cut off.
#[test]
fn a_sparse_bundle_is_one_disk() {
    let script = "mkdir -p vm.sparsebundle/bands; cp raw whole";
    let Some(here) = made(script) else { return };
    let bundle = here.path().join("vm.sparsebundle");
    let raw = fs::read(here.path().join("raw")).expect("the raw disk");
    let mut bands = 0;
    for (nth, band) in raw.chunks(1 << 20).enumerate() {
        let end = band.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if end > 0 {
            fs::write(bundle.join(format!("bands/{nth:x}")), &band[..end]).expect("a band");
            bands += 1;
        }
    }
    assert!((2..24).contains(&bands), "{bands}");
    let list = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n\
        <key>band-size</key>\n<integer>1048576</integer>\n<key>bundle-backingstore-version</key>\n\
        <integer>1</integer>\n<key>diskimage-bundle-type</key>\n\
        <string>com.apple.diskimage.sparsebundle</string>\n<key>size</key>\n\
        <integer>25165824</integer>\n</dict>\n</plist>\n";
    fs::write(bundle.join("Info.plist"), list).expect("a file");
    let alone = run(here.path(), "check --json vm.sparsebundle/Info.plist").json();
    assert_eq!(alone["verdict"], "unknown", "{alone}");
    let told = run(here.path(), "check --json --follow vm.sparsebundle/Info.plist").json();
    assert_eq!(told["verdict"], "aligned", "{told}");
    let partition = list_of(&told).into_iter().find(|sign| sign == "ext4");
    assert!(partition.is_some(), "{told}");
    assert_eq!(same(&here, "vm.sparsebundle/Info.plist", "whole"), 1);
    let told = run(here.path(), "check vm.sparsebundle");
    assert!(told.stderr.contains("vm.sparsebundle/Info.plist"), "{}", told.stderr);
}

/// The signs of the providers of the one target in a report.
fn list_of(told: &serde_json::Value) -> Vec<String> {
    let signs = list(&told["targets"][0], "providers").iter();
    signs.filter_map(|provider| provider["sign"].as_str().map(str::to_owned)).collect()
}
