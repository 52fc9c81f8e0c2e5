//! Images that are written through a server: QEMU checks and reads them afterwards, when the server
//! has ended and when it was killed.

use crate::counters::{here, path};
use crate::fuse::mounts;
use crate::recipe::Scratch;
use crate::skip::skip;
use crate::{kill, program, scratch, wait_while_runs};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs a script that has to succeed; what it printed.
fn shell(directory: &Path, script: &str) -> String {
    let done = Command::new("sh")
        .args(["-euc", script])
        .env("TRUELINE", env!("CARGO_BIN_EXE_trueline"))
        .env("PATH", path())
        .current_dir(directory)
        .output()
        .expect("a shell");
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(done.status.success(), "{script}: {said}");
    said
}

#[test]
fn qemu_finds_what_was_written() {
    if !here(&["qemu-img", "qemu-io"]) {
        return;
    }
    let here = scratch();
    shell(
        here.path(),
        "truncate -s 20M zeros; head -c 20M /dev/urandom >noise; truncate -s 1M dent",
    );
    let requests = "printf '%s\\n' 'write -P 1 0 1M' 'write -P 2 13M 300k' 'write -z 13M 64k' \
        'write -P 3 19M 1M' flush 'write -P 4 5000512 70k' 'write -z 1M 5M' 'discard 0 512k' \
        'write -P 5 0 512k' >requests";
    for (made, base) in [
        ("qemu-img create -q -f qcow2 vm.qcow2 20M", "zeros"),
        ("qemu-img create -q -f qcow2 -o compat=0.10 vm.qcow2 20M", "zeros"),
        ("qemu-img create -q -f qcow2 -o cluster_size=4k,lazy_refcounts=on vm.qcow2 20M", "zeros"),
        ("qemu-img create -q -f qcow2 -o cluster_size=2M vm.qcow2 20M", "zeros"),
        ("qemu-img convert -O qcow2 noise vm.qcow2", "noise"),
        ("qemu-img convert -c -O qcow2 noise vm.qcow2", "noise"),
        ("qemu-img convert -c -o compression_type=zstd -O qcow2 noise vm.qcow2", "noise"),
        ("qemu-img create -q -f qcow2 -b noise -F raw vm.qcow2", "noise"),
        (
            "qemu-img convert -c -O qcow2 noise mid.qcow2
        qemu-img create -q -f qcow2 -o compat=0.10 -b mid.qcow2 -F qcow2 vm.qcow2",
            "noise",
        ),
    ] {
        let script = format!(
            "{requests}; rm -f vm.qcow2; cp {base} model; {made}
            cp noise before; test ! -e mid.qcow2 || cp mid.qcow2 mid-before
            $TRUELINE serve --follow vm.qcow2 --run '
                if qemu-io -f qcow2 -c \"write 0 512\" vm.qcow2 >locked 2>&1; then exit 9; fi
                qemu-io -f raw \"$uri\" <requests >/dev/null'
            grep -q 'Failed to get' locked
            qemu-io -f raw model <requests >/dev/null
            qemu-img check vm.qcow2
            qemu-img compare -f raw -F qcow2 model vm.qcow2
            cmp noise before; test ! -e mid.qcow2 || cmp mid.qcow2 mid-before"
        );
        let said = shell(here.path(), &script);
        assert!(said.contains("No errors were found"), "{made}: {said}");
        assert!(said.contains(".disk is written in its file"), "{made}: {said}");
        assert!(said.contains("Images are identical"), "{made}: {said}");
    }
}

#[test]
fn what_is_not_written_says_why() {
    if !here(&["qemu-img", "qemu-io"]) {
        return;
    }
    let here = scratch();
    for (made, why) in [
        ("qemu-img create -q -f qcow2 vm 8M; qemu-img snapshot -c a vm", "it has snapshots inside"),
        ("qemu-img create -q -f qcow2 -o extended_l2=on vm 8M", "its entries are extended"),
        ("qemu-img create -q -f qcow2 vm 8M; qemu-img bitmap --add vm b", "it has bitmaps"),
        (
            "qemu-img create -q -f qcow2 -o data_file=data vm 8M; rm -f data; truncate -s 8M data",
            "its data are in another file",
        ),
        ("qemu-img create -q -f vdi vm 8M", "of containers, a qcow2 alone is written"),
    ] {
        let script = format!(
            "rm -f vm data; {made}; cp vm before
            $TRUELINE serve --follow vm --run 'if qemu-io -f raw -c \"write 0 512\" \"$uri\"; \
            then exit 9; fi'
            cmp vm before"
        );
        let said = shell(here.path(), &script);
        assert!(said.contains(&format!(".disk is served read-only: {why}")), "{made}: {said}");
    }
    // What another image stands on is not written through the same server.
    let said = shell(
        here.path(),
        "rm -f vm data; qemu-img create -q -f qcow2 base.qcow2 8M
        qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 top.qcow2
        $TRUELINE serve 'top.qcow2,base.qcow2#base.disk' --run true",
    );
    assert!(said.contains("served read-only: another image stands on it"), "{said}");
}

/// A client that writes and flushes, and prints each request before it is sent and each flush when
/// it is done.
const CLIENT: &str = r#"
import random
random.seed(SEED)
size = h.get_size()
nth = 0
try:
    while True:
        nth += 1
        at = random.randrange(size // 512) * 512
        length = min(random.choice([512, 4096, 65536, 200704]), size - at)
        if random.randrange(8) == 0:
            print("w", at, length, 0, flush=True)
            h.zero(length, at)
        else:
            print("w", at, length, nth % 255 + 1, flush=True)
            h.pwrite(bytes([nth % 255 + 1]) * length, at)
        if random.randrange(12) == 0:
            h.flush()
            print("f", flush=True)
except nbd.Error:
    pass
"#;

/// Kills a server while a client writes, and checks the image: that QEMU finds no error, and each
/// sector has what was flushed last or what was written since.
fn killed(here: &Scratch, model: &mut Vec<u8>, seed: u64) -> (usize, bool) {
    let directory = here.path();
    let mut server = program(directory)
        .args(["serve", "--follow", "vm.qcow2", "--nbd", "unix:s"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a server");
    wait_while_runs(&mut server, || directory.join("s").exists());
    let log = fs::File::create(directory.join("log")).expect("a log");
    let mut client = Command::new("nbdsh")
        .args(["-u", "nbd+unix:///?socket=s", "-c", &CLIENT.replace("SEED", &seed.to_string())])
        .env("PATH", path())
        .current_dir(directory)
        .stdout(log)
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a client");
    // A client starts late where much else runs.
    let log_path = directory.join("log");
    wait_while_runs(&mut client, || fs::metadata(&log_path).is_ok_and(|log| log.len() > 0));
    std::thread::sleep(Duration::from_millis(seed * 37 % 400));
    assert!(kill("-KILL", server.id()));
    server.wait().expect("its end");
    client.wait().expect("its end");
    fs::remove_file(directory.join("s")).expect("the socket");
    let said = shell(
        directory,
        "qemu-img check vm.qcow2 || test $? = 3; qemu-img convert -O raw vm.qcow2 raw",
    );
    let log = fs::read_to_string(directory.join("log")).expect("the log");
    let last = log.rfind("f\n").map_or(0, |at| at + 2);
    let requests = |part: &str| -> Vec<(usize, usize, u8)> {
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        let line = |line: &str| {
            let mut words = line.strip_prefix("w ")?.split(' ');
            let at = number(words.next())?;
            Some((at, number(words.next())?, words.next()?.parse().ok()?))
        };
        part.lines().filter_map(line).collect()
    };
    for (at, length, byte) in requests(&log[..last]) {
        model[at..at + length].fill(byte);
    }
    let since = requests(&log[last..]);
    let found = fs::read(directory.join("raw")).expect("the disk");
    for (nth, sector) in found.chunks(512).enumerate() {
        let at = nth * 512;
        let here = since.iter().filter(|(from, length, _)| (*from..from + length).contains(&at));
        let mut may_be = here.map(|(.., byte)| *byte);
        let is_right = sector == &model[at..at + sector.len()]
            || may_be.any(|byte| sector.iter().all(|&own| own == byte));
        assert!(is_right, "sector at {at}, seed {seed}");
    }
    *model = found;
    (requests(&log).len(), said.contains("leaked"))
}

#[test]
fn a_server_that_is_killed_loses_nothing_that_was_flushed() {
    if !here(&["qemu-img", "nbdsh"]) {
        return;
    }
    let times = std::env::var("TRUELINE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let (mut requests, mut leaks) = (0, 0);
    for made in [
        "qemu-img create -q -f qcow2 vm.qcow2 64M",
        "qemu-img create -q -f qcow2 -o cluster_size=4k,compat=0.10 vm.qcow2 64M",
        "head -c 40M /dev/urandom >base
        qemu-img create -q -f qcow2 -b base -F raw vm.qcow2 64M",
        "head -c 40M /dev/urandom | tr '\\0-\\377' 'a-p' >base
        qemu-img convert -c -O qcow2 base vm.qcow2",
    ] {
        let here = scratch();
        shell(here.path(), made);
        shell(here.path(), "qemu-img convert -O raw vm.qcow2 raw");
        let mut model = fs::read(here.path().join("raw")).expect("the disk");
        for seed in 0..times {
            let (done, leaked) = killed(&here, &mut model, seed + 1);
            requests += done;
            leaks += usize::from(leaked);
        }
    }
    // Seen with --nocapture.
    println!("{requests} requests, {leaks} of {} kills left leaks", times * 4);
    assert!(requests > 0);
}

/// A client that goes on writing after errors, and keeps what was done in a file beside.
const STUBBORN: &str = r#"
import random
random.seed(5)
model = open("model", "r+b")
failed = []
for nth in range(600):
    at = random.randrange(64 * 16) * 65536
    bytes_ = bytes([nth % 255 + 1]) * random.choice([4096, 65536])
    try:
        h.pwrite(bytes_, at)
        model.seek(at)
        model.write(bytes_)
    except nbd.Error:
        failed.append((at, len(bytes_)))
h.flush()
# A write that failed may have been done in part.
for at, length in failed:
    model.seek(at)
    model.write(h.pread(length, at))
model.close()
print("failed:", len(failed) > 50)
"#;

#[test]
fn on_a_full_file_system_what_was_done_can_be_flushed() {
    if !here(&["qemu-img", "nbdsh", "mount"]) {
        return;
    }
    if !mounts() {
        return skip("mounting needs root and leave to mount");
    }
    let here = scratch();
    fs::write(here.path().join("client.py"), STUBBORN).expect("a file");
    let said = shell(
        here.path(),
        "mkdir small; mount -t tmpfs -o size=12M none small
        trap 'umount small' EXIT
        for option in compat=v3 cluster_size=4k; do
            rm -f model; truncate -s 64M model
            qemu-img create -q -f qcow2 -o $option small/vm.qcow2 64M
            $TRUELINE serve small/vm.qcow2 --run 'nbdsh -u \"$uri\" -c \
                \"exec(open(\\\"client.py\\\").read())\"'
            qemu-img check small/vm.qcow2
            qemu-img compare -f raw -F qcow2 model small/vm.qcow2
            rm small/vm.qcow2
        done",
    );
    assert_eq!(said.matches("failed: True").count(), 2, "{said}");
    assert_eq!(said.matches("No errors were found").count(), 2, "{said}");
    assert_eq!(said.matches("Images are identical").count(), 2, "{said}");
}

#[test]
fn a_file_system_is_made_in_it() {
    if !here(&["qemu-img", "mkfs.ext4", "e2fsck", "mount"]) {
        return;
    }
    if !mounts() {
        return skip("mounting needs root, leave to mount, and /dev/fuse");
    }
    let here = scratch();
    let said = shell(
        here.path(),
        "qemu-img create -q -f qcow2 vm.qcow2 256M; mkdir mnt
        $TRUELINE serve vm.qcow2 --fuse mnt --run 'mkfs.ext4 -q -d /usr/include \"$file\"'
        qemu-img check vm.qcow2
        qemu-img convert -O raw vm.qcow2 raw
        e2fsck -fn raw",
    );
    assert!(said.contains("No errors were found"), "{said}");
}
