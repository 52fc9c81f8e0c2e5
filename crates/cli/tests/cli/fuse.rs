//! `serve --fuse`: what is mounted is the provider, to programs and to the loop driver of the
//! kernel.

use crate::skip::skip;
use crate::{Ran, golden, program, run_with, scratch, wait_while_runs, zeroes};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// True if this is a root that may mount, which in a container it often is not, and there is
/// `/dev/fuse`.
pub(crate) fn mounts() -> bool {
    let probe =
        "[ $(id -u) = 0 ]; : </dev/fuse; mkdir probe; mount -t tmpfs none probe; umount probe";
    shell(scratch().path(), probe).status.success()
}

/// True if files can be mounted here, and `tools` are installed; prints the reason if not.
fn can(tools: &[&str]) -> bool {
    if !mounts() {
        skip("mounting needs root, leave to mount, and /dev/fuse");
        return false;
    }
    let missing = ["mount", "umount"]
        .iter()
        .chain(tools)
        .find(|tool| !shell(Path::new("/"), &format!("command -v {tool}")).status.success());
    if let Some(tool) = missing {
        skip(&format!("{tool} is not here"));
    }
    missing.is_none()
}

/// True if loop devices work here as well.
fn can_loop(tools: &[&str]) -> bool {
    let loops = can(&[&["losetup"], tools].concat());
    let probe = "truncate -s 1M disk; losetup --detach $(losetup --find --show disk)";
    if loops && !shell(scratch().path(), probe).status.success() {
        skip("no loop devices here");
        return false;
    }
    loops
}

fn shell(directory: &Path, script: &str) -> std::process::Output {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    Command::new("sh")
        .args(["-euc", script])
        .current_dir(directory)
        .env("PATH", path)
        .output()
        .expect("a shell can be run")
}

/// Serves `target` with `options` while `script` runs, which has to succeed; what it printed.
#[track_caller]
fn serve(directory: &Path, target: &str, options: &[&str], script: &str) -> String {
    let script = format!("set -eu; PATH=$PATH:/usr/sbin:/sbin\n{script}");
    let ran = run_with(directory, &[&["serve", target], options, &["--run", &script]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        shell(directory, "grep -c \"$PWD/\" /proc/self/mounts || :").stdout,
        b"0\n",
        "something is still mounted"
    );
    ran.stdout
}

/// An image of bytes that differ from sector to sector.
fn numbered(directory: &Path, name: &str, length: u64) {
    let sectors = (0..length / 512).map(|sector| sector.to_le_bytes().repeat(64));
    fs::write(directory.join(name), sectors.flatten().collect::<Vec<u8>>())
        .expect("an image can be written");
}

#[test]
fn on_a_file_it_is_the_provider() {
    if !can(&[]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", 4 * MIB);
    fs::write(here.join("point"), "beneath").expect("a file can be written");
    let script = "cmp \"$file\" disk.img; [ \"$uri\" = \"$file\" ]; [ \"$file\" = \"$PWD/point\" \
        ]; stat -c '%F %s' point
        dd if=point iflag=direct bs=512 skip=77 count=3 status=none | cmp - disk.img -i 0:39424 -n \
        1536
        printf new | dd of=point oflag=direct bs=512 seek=9 conv=notrunc,sync status=none
        printf odd | dd of=point bs=1 seek=5001 conv=notrunc,fsync status=none
        cp disk.img copy";
    let printed = serve(here, "disk.img", &["--fuse", "point"], script);
    assert_eq!(printed, format!("regular file {}\n", 4 * MIB));
    let image = fs::read(here.join("disk.img")).expect("an image can be read");
    assert_eq!(
        (&image[9 * 512..9 * 512 + 4], &image[5000..5005]),
        (b"new\0".as_slice(), b"\x00odd\x00".as_slice())
    );
    assert_eq!(image.len() as u64, 4 * MIB);
    assert!(fs::read(here.join("copy")).expect("a copy can be read") == image);
    assert_eq!(fs::read_to_string(here.join("point")).expect("a file can be read"), "beneath");
}

#[test]
fn in_a_directory_every_provider_is_a_file() {
    if !can(&["sfdisk"]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", 8 * MIB);
    let table = "printf 'label: gpt\\nstart=2048,size=4096\\nstart=6144,size=8192\\n' | sfdisk -q \
        disk.img; mkdir mnt";
    assert!(shell(here, table).status.success());
    // Each sees what is written through another, at once: nothing is cached.
    let script = "ls mnt; stat -c %s mnt/*; cmp mnt/disk disk.img; cmp -n 2097152 -i 0:1048576 \
        mnt/p1 disk.img
        dd if=mnt/disk of=before bs=512 skip=6144 count=1 status=none
        printf through | dd of=mnt/p2 conv=notrunc status=none
        dd if=mnt/disk bs=1 skip=3145728 count=7 status=none; echo
        ! dd if=/dev/zero of=mnt/p1 bs=512 seek=4096 count=1 conv=notrunc 2>&1; ! touch mnt/p3; ! \
        rm mnt/p1";
    let printed = serve(here, "disk.img", &["--fuse", "mnt"], script);
    let want = format!("disk\np1\np2\n{}\n{}\n{}\nthrough\n", 8 * MIB, 2 * MIB, 4 * MIB);
    assert!(printed.starts_with(&want) && printed.contains("No space left on device"), "{printed}");
    // Of a provider alone there are what stands on it, and it; it is called `disk` as well.
    assert_eq!(
        serve(
            here,
            "disk.img#p2",
            &["--fuse", "mnt"],
            "ls mnt; head -c 7 mnt/disk; cmp mnt/disk mnt/p2"
        ),
        "disk\np2\nthrough"
    );
}

/// A name with a slash in it is a directory with a file.
#[test]
fn a_set_is_where_it_is_under_dev() {
    if !can(&[]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    zeroes(here, "a.img", MIB);
    zeroes(here, "b.img", MIB);
    assert_eq!(
        run_with(here, &["stripe", "label", "-s", "4096", "data", "a.img", "b.img"]).code,
        Some(0)
    );
    fs::create_dir(here.join("mnt")).expect("a directory can be made");
    let script = "find mnt -type f | sort; head -c 8192 /dev/zero | tr '\\0' x >mnt/stripe/data";
    assert_eq!(
        serve(here, "a.img,b.img#stripe/data", &["--fuse", "mnt"], script),
        "mnt/disk\nmnt/stripe/data\n"
    );
    for disk in ["a.img", "b.img"] {
        let image = fs::read(here.join(disk)).expect("an image can be read");
        assert!(image[..4096].iter().all(|&byte| byte == b'x') && image[4096] == 0, "{disk}");
    }
}

#[test]
fn other_files_are_refused_and_names_that_are_not_there_are_not_found() {
    if !can(&[]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", MIB);
    fs::create_dir(here.join("mnt")).expect("a directory can be made");
    let script = "export LC_ALL=C
        for it in 'touch mnt/new' 'mkdir mnt/new' 'rm -f mnt/disk' 'mv mnt/disk mnt/new' 'cp \
        disk.img mnt/new' 'mkfifo mnt/new' \\
            'ln -s disk mnt/new' 'ln mnt/disk mnt/new' 'rm mnt/none' 'rmdir mnt/none' 'mv mnt/none \
        mnt/new'; do
            if $it 2>said; then echo \"$it: done\"; fi; cat said; done";
    let printed = serve(here, "disk.img", &["--fuse", "mnt"], script);
    let lines: Vec<&str> = printed.lines().collect();
    let says = |line: &&&str, what: &str| line.ends_with(what);
    assert_eq!(lines.iter().filter(|line| says(line, "Permission denied")).count(), 8, "{printed}");
    assert_eq!(
        lines.iter().filter(|line| says(line, "No such file or directory")).count(),
        3,
        "{printed}"
    );
    assert_eq!(lines.len(), 11, "{printed}");
}

#[test]
fn what_is_read_only_cannot_be_written() {
    if !can(&[]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", MIB);
    fs::create_dir(here.join("mnt")).expect("a directory can be made");
    let before = fs::read(here.join("disk.img")).expect("an image can be read");
    let script = "stat -c %a mnt/disk; cmp mnt/disk disk.img; ! dd if=/dev/zero of=mnt/disk \
        count=1 conv=notrunc 2>&1";
    let printed = serve(here, "disk.img", &["--fuse", "mnt", "--read-only"], script);
    assert!(printed.starts_with("400\n") && printed.contains("Read-only file system"), "{printed}");
    assert!(fs::read(here.join("disk.img")).expect("an image can be read") == before);
}

/// ext4 by the kernel on a loop device on the mounted file; then the image alone has everything.
fn file_system(options: &str) {
    let scratch = scratch();
    let here = scratch.path();
    zeroes(here, "disk.img", 32 * MIB);
    fs::write(here.join("point"), "").expect("a file can be written");
    fs::create_dir(here.join("mnt")).expect("a directory can be made");
    let script = format!(
        "loop=$(losetup --find --show {options} \"$file\"); trap 'losetup -d $loop' EXIT
        blockdev --getss $loop; mkfs.ext4 -q -F $loop; mount $loop mnt
        head -c 5000000 /dev/urandom | tee outside >mnt/inside; sync; cmp outside mnt/inside; \
            umount mnt
        e2fsck -fn $loop >/dev/null 2>&1; mount -o ro $loop mnt; cmp outside mnt/inside; umount mnt"
    );
    let sector = if options.contains("4096") { "4096\n" } else { "512\n" };
    assert_eq!(serve(here, "disk.img", &["--fuse", "point"], &script), sector);
    let after = shell(
        here,
        "e2fsck -fn disk.img; debugfs -R 'dump /inside after' disk.img; cmp outside after",
    );
    assert!(
        after.status.success(),
        "{}{}",
        String::from_utf8_lossy(&after.stdout),
        String::from_utf8_lossy(&after.stderr)
    );
}

#[test]
fn a_file_system_on_a_loop_device() {
    if can_loop(&["mkfs.ext4", "debugfs", "blockdev"]) {
        file_system("");
    }
}

#[test]
fn a_file_system_on_a_loop_device_of_4096_bytes_a_sector() {
    if can_loop(&["mkfs.ext4", "debugfs", "blockdev"]) {
        file_system("--sector-size 4096 --direct-io=on");
    }
}

#[test]
fn what_is_discarded_gives_its_room_back() {
    if !can_loop(&["blkdiscard"]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", 4 * MIB);
    fs::write(here.join("point"), "").expect("a file can be written");
    let room = || fs::metadata(here.join("disk.img")).expect("an image is there").blocks() * 512;
    let before = room();
    let script = "loop=$(losetup --find --show \"$file\"); trap 'losetup -d $loop' EXIT
        blkdiscard -o 1048576 -l 2097152 $loop; cmp -n 2097152 -i 1048576:0 $loop /dev/zero
        blkdiscard -z -o 3145728 -l 4096 $loop";
    serve(here, "disk.img", &["--fuse", "point"], script);
    let image = fs::read(here.join("disk.img")).expect("an image can be read");
    let is_zero = |from: usize, to: usize| image[from..to].iter().all(|&byte| byte == 0);
    assert!(is_zero(1 << 20, 3 << 20) && is_zero(3 << 20, (3 << 20) + 4096));
    assert!(
        image[(1 << 20) - 512] != 0 && image[(3 << 20) + 4096] != 0,
        "more than that was discarded"
    );
    if before >= 4 * MIB {
        assert!(room() <= before - 2 * MIB, "{before} {}", room());
    }
}

/// A server that runs until it is told to end, or is killed with its test.
struct Server(Child);

impl Server {
    /// Waits until it serves.
    fn start(directory: &Path, arguments: &[&str]) -> Server {
        let child = program(directory)
            .arg("serve")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Server(child.expect("the program can be run"));
        // Another test's directory may have a name that begins as this one's does.
        let point = arguments.last().expect("the mount point is the last");
        let mounted = format!("grep -q \"$PWD/{point} \" /proc/self/mounts");
        wait_while_runs(&mut server.0, || shell(directory, &mounted).status.success());
        server
    }

    /// Its exit status; [`None`] if it does not end.
    fn ended(&mut self) -> Option<std::process::ExitStatus> {
        let end = Instant::now() + Duration::from_secs(600);
        while Instant::now() < end {
            if let Some(status) = self.0.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended, or its test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_ends_when_it_is_told_and_when_the_mount_is_taken_away() {
    if !can(&[]) {
        return;
    }
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", MIB);
    fs::create_dir(here.join("mnt")).expect("a directory can be made");
    for how in [
        "umount mnt",
        "kill -TERM PID",
        "kill -INT PID",
        "exec 3<mnt/disk; umount -l mnt; kill -TERM PID; sleep 0.2",
    ] {
        let mut server = Server::start(here, &["disk.img", "--fuse", "mnt"]);
        let how = how.replace("PID", &server.0.id().to_string());
        assert!(shell(here, &format!("cmp mnt/disk disk.img; {how}")).status.success(), "{how}");
        assert_eq!(server.ended().map(ExitStatusExt::into_raw), Some(0), "{how}");
        assert!(shell(here, "[ -z \"$(ls mnt)\" ]").status.success(), "{how}");
    }
    // A client with an open file does not keep it from ending, and gets an error.
    let mut server = Server::start(here, &["disk.img", "--fuse", "mnt"]);
    let script = format!(
        "exec 3<mnt/disk; kill -TERM {}; while kill -0 {0} && [ ! -e ended ]; do sleep 0.1; done; ! cat <&3",
        server.0.id()
    );
    let holder =
        Command::new("sh").args(["-euc", &script]).current_dir(here).stderr(Stdio::null()).spawn();
    assert_eq!(server.ended().map(ExitStatusExt::into_raw), Some(0));
    fs::write(here.join("ended"), "").expect("a file can be written");
    assert!(
        holder.expect("a shell can be run").wait().expect("a child can be waited for").success()
    );
}

/// The last file is closed while threads wait for requests: one of them is told that the connection
/// was aborted, in about one of twenty rounds of a busy machine.
#[test]
fn mounts_that_are_detached_and_closed_end_in_order() {
    if !can(&[]) {
        return;
    }
    const SERVERS: usize = 12;
    let scratch = scratch();
    let here = scratch.path();
    numbered(here, "disk.img", MIB);
    for _ in 0..3 {
        let started = (0..SERVERS).map(|i| {
            let point = format!("mnt{i}");
            fs::create_dir_all(here.join(&point)).expect("a directory can be made");
            Server::start(here, &["disk.img", "--read-only", "--fuse", &point])
        });
        let mut servers: Vec<Server> = started.collect();
        let script: String = servers
            .iter()
            .enumerate()
            .map(|(i, server)| {
                let id = server.0.id();
                format!("(exec 3<mnt{i}/disk; umount -l mnt{i}; kill -TERM {id}; sleep 0.05) &\n")
            })
            .collect();
        assert!(shell(here, &format!("{script}wait")).status.success());
        for server in &mut servers {
            assert_eq!(server.ended().map(ExitStatusExt::into_raw), Some(0));
        }
    }
}

#[test]
fn where_nothing_can_be_mounted_it_says_so() {
    if !can(&[]) {
        return;
    }
    let scratch = golden("seed-001-sdd-63");
    let here = scratch.path();
    fs::create_dir(here.join("mnt")).expect("a directory can be made");
    let refused = |point: &str| -> String {
        let ran: Ran = run_with(here, &["serve", "disk", "--read-only", "--fuse", point]);
        ran.refused().to_owned()
    };
    assert_eq!(
        refused("nowhere"),
        "trueline: mount on nowhere: no such file or device: check the name"
    );
    let used = "trueline: mount on /proc: something is mounted there: unmount it, or name another \
        directory or file";
    assert_eq!(refused("/proc"), used);
    let _socket = std::os::unix::net::UnixListener::bind(here.join("s")).expect("a socket");
    assert_eq!(
        refused("s"),
        "trueline: mount on s: it is neither a directory nor a file: name a directory or a file"
    );
    let mut server = Server::start(here, &["disk", "--read-only", "--fuse", "mnt"]);
    assert!(refused("mnt").contains(": something is mounted there: "));
    server.0.kill().expect("a child can be killed");
    server.ended();
    assert_eq!(
        refused("mnt"),
        "trueline: mount on mnt: a dead mount is there: end it with umount or fusermount3 -u"
    );
    assert!(shell(here, "umount mnt").status.success());
}
