//! Containers that are measured: pages of their tables are read too.

use crate::containers::made;
use crate::{list, run};

/// A simulated drive reads pages of tables before the bytes whose places stand there, anew in each
/// run; of files the same reads are made.
#[test]
fn the_tables_of_a_container_are_read_when_it_is_measured() {
    let script = "qemu-io -f raw -c 'write -q -P 7 0 24M' raw
        qemu-img convert -O qcow2 -o cluster_size=4k raw vm.qcow2";
    let Some(here) = made(script) else { return };
    let longest = |target: &str| -> Vec<u64> {
        let arguments = format!("bench random-read --json --runs 4 --count 200 {target}");
        let told = run(here.path(), &arguments).json();
        let runs = list(&told["variants"][0], "runs").iter();
        runs.map(|run| run["latency_ns"]["max"].as_u64().expect("a time")).collect()
    };
    assert_eq!(longest("drive:md=raw"), [18_100; 4]);
    // A page of L1, one of L2, and the bytes.
    assert_eq!(longest("drive:md=vm.qcow2"), [3 * 18_100; 4]);
    assert_eq!(longest("--buffered vm.qcow2").len(), 4);
    assert_eq!(longest("--buffered -n 16 --engine sync vm.qcow2").len(), 4);
}

/// A file that holds a disk is no disk: it may end anywhere, and so may what it holds of it.
#[test]
fn a_container_of_no_whole_sectors_lies_on_a_drive() {
    let script = "qemu-img convert -c -O qcow2 raw vm.qcow2; truncate -s +100 vm.qcow2
        qemu-img convert -O vmdk -o subformat=streamOptimized raw vm.vmdk
        truncate -s +100 vm.vmdk; gzip -k raw; truncate -s +100 raw";
    let Some(here) = made(script) else { return };
    for image in ["vm.qcow2", "vm.vmdk", "raw.gz"] {
        for drive in ["drive:md", "drive:wd10ears@1g"] {
            let target = format!("{drive}={image}");
            let told = run(here.path(), &format!("check --json {target}"));
            assert!(told.stdout.contains("ext4"), "{target}: {}{}", told.stdout, told.stderr);
            // Of a file that is compressed as a whole the begin is read.
            if image != "raw.gz" {
                let arguments = format!("bench random-read --json --runs 4 --count 200 {target}");
                let told = run(here.path(), &arguments).json();
                assert_eq!(list(&told["variants"][0], "runs").len(), 4, "{target}");
            }
        }
    }
    assert!(run(here.path(), "check drive:md=raw").refused().contains("not whole sectors"));
}

/// Files behind an image are measured where they are named; what cannot be written is refused
/// before anything is.
#[test]
fn what_cannot_be_measured_of_a_container_is_refused_at_once() {
    let script = "qemu-img convert -O qcow2 raw base.qcow2
        qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 top.qcow2";
    let Some(here) = made(script) else { return };
    let refused = |arguments: &str| run(here.path(), arguments).refused().to_owned();
    let followed = refused("bench random-read --follow --count 9 top.qcow2");
    assert!(followed.contains("name those behind it too"), "{followed}");
    let written = refused("bench random-write --destructive --count 9 base.qcow2");
    assert!(written.contains("read, not written"), "{written}");
    let arguments = "bench random-read --buffered --count 9 --json top.qcow2,base.qcow2#top.disk";
    assert_eq!(run(here.path(), arguments).code, Some(0));
}

/// A disk in a container beside a bare one is said to be one.
#[test]
fn a_container_is_not_compared_without_a_word() {
    let script = "qemu-img convert -O vpc raw vm.vpc; cp raw other";
    let Some(here) = made(script) else { return };
    let warned = |targets: &str| {
        let arguments = format!("bench random-read --json --buffered --runs 2 --count 9 {targets}");
        let told = run(here.path(), &arguments).json();
        let said = list(&told, "warnings").iter().filter_map(|warning| warning.as_str());
        said.filter(|said| said.contains("the disk in a")).map(str::to_owned).collect::<Vec<_>>()
    };
    let both = warned("raw vm.vpc");
    assert!(both.len() == 1 && both[0].starts_with("vm.vpc: the disk in a vhd is"), "{both:?}");
    for targets in ["raw other", "vm.vpc", "vm.vpc vm.vpc#.disk"] {
        assert_eq!(warned(targets), Vec::<String>::new(), "{targets}");
    }
}
