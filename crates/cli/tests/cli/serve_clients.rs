//! `serve` to foreign NBD clients: libnbd's, QEMU's and fio's. Their writes are looked for in the
//! image.
//!
//! Where one is not installed its test is skipped, and that is said; with `TRUELINE_ORACLE=all` it
//! is a failure. `TRUELINE_NBDSH` names an nbdsh of a newer libnbd for what the installed one does
//! not speak.

use crate::counters::{at_63, here, path, serve};
use crate::skip::skip;
use crate::{golden, program, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;

const MEG: usize = 1 << 20;
/// Range of the disk's partition, in bytes.
const S1: std::ops::Range<usize> = 63 * 512..63 * 512 + 16 * MEG;

/// Serves while `script` runs, which has to succeed; what it printed.
#[track_caller]
fn served(directory: &Path, target: &str, script: &str) -> String {
    let ran = serve(directory, &format!("{target} --no-counters"), &format!("set -eu\n{script}"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// A file of bytes that differ from sector to sector, of three kinds of MiB: with bytes, zeros and
/// neither.
fn numbered(directory: &Path, name: &str) -> Vec<u8> {
    let sector = |nth: usize| if nth / 2048 % 3 == 1 { 0 } else { nth as u64 + 1 };
    let bytes: Vec<u8> =
        (0..16 * MEG / 512).flat_map(|nth| sector(nth).to_le_bytes().repeat(64)).collect();
    fs::write(directory.join(name), &bytes).expect("a file can be written");
    bytes
}

#[track_caller]
fn same(what: &str, one: &[u8], other: &[u8]) {
    let differ = one.iter().zip(other).position(|(a, b)| a != b);
    assert!(
        one.len() == other.len() && differ.is_none(),
        "{what}: {} and {} bytes, from {differ:?}",
        one.len(),
        other.len()
    );
}

#[test]
fn nbdinfo_lists_and_maps() {
    if !here(&["nbdinfo"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let list = served(scratch.path(), "disk", r#"nbdinfo --list "$uri""#);
    let exports: Vec<&str> = list.lines().filter(|line| line.starts_with("export=")).collect();
    assert_eq!(exports, ["export=\"\":", "export=\"s1\":"], "{list}");
    assert!(
        list.contains("export-size: 16777216 (16M)")
            && list.contains("base:allocation")
            && list.contains("trueline:grain"),
        "{list}"
    );
    let rows = |text: String| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    // The table's sector is written in a block of the file system beneath; the rest is a hole,
    // where it can tell.
    let map = rows(served(scratch.path(), "disk", r#"nbdinfo --map "$uri""#));
    let lengths: usize = map.iter().map(|row| row[1].parse::<usize>().expect("a length")).sum();
    assert_eq!((lengths, map[0][3].as_str()), (32 * MEG, "data"), "{map:?}");
    let grain = rows(served(scratch.path(), "disk#s1", r#"nbdinfo --map=trueline:grain "$uri""#));
    assert_eq!(grain, [["0", "512", "0"], ["512", "16773120", "4096"], ["16773632", "3584", "0"]]);
}

#[test]
fn nbdcopy_copies_both_ways() {
    if !here(&["nbdcopy"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let bytes = numbered(scratch.path(), "source");
    let script = r#"nbdcopy -C 4 -R 32 source "$uri"; nbdcopy --flush "$uri" copy; nbdcopy --synchronous "$uri" - >stream
        nbdcopy --request-size=8192 --allocated "$uri" whole"#;
    served(scratch.path(), "disk#s1", script);
    for copy in ["copy", "stream", "whole"] {
        same(copy, &fs::read(scratch.path().join(copy)).expect("a copy"), &bytes);
    }
    same("the image", &fs::read(scratch.path().join("disk")).expect("the image")[S1], &bytes);
}

#[test]
fn nbdsh_asks_for_everything_on_several_connections() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let mut bytes = numbered(scratch.path(), "source");
    fs::write(
        scratch.path().join("script"),
        r"
import os
hs = []
for i in range(4):
    h = nbd.NBD()
    h.add_meta_context('base:allocation')
    h.connect_uri(os.environ['uri'])
    h.set_strict_mode(0)
    hs.append(h)
a, b, c, d = hs
assert a.can_multi_conn() and a.can_trim() and a.can_zero() and a.can_fua() and a.can_flush() and a.can_cache() and a.can_df()
size = a.get_size()
source = open('source', 'rb').read()
# Pieces of odd lengths at odd places, many in flight on every connection.
at, flying = 0, []
def land():
    for h, cookie in flying:
        while not h.aio_command_completed(cookie): h.poll(-1)
    flying.clear()
while at < size:
    piece = bytearray(source[at:at + 7777])
    h = hs[at // 7777 % 4]
    flying.append((h, h.aio_pwrite(nbd.Buffer.from_bytearray(piece), at)))
    at += len(piece)
    if len(flying) == 64: land()
land()
a.flush()
assert b.pread(size, 0) == source
# What one connection has flushed, or written with FUA, all others see.
b.pwrite(b'\x11' * 70001, 1000001, nbd.CMD_FLAG_FUA)
c.zero(4097, 1008193, nbd.CMD_FLAG_NO_HOLE)
d.zero(8192, 5 << 20, nbd.CMD_FLAG_FUA)
a.trim(1 << 20, 6 << 20)
a.cache(1 << 20, 0)
assert c.pread(70001, 1000001) == b'\x11' * 8192 + bytes(4097) + b'\x11' * (70001 - 8192 - 4097)
assert d.pread_structured(8192, 5 << 20, lambda *_: 0, nbd.CMD_FLAG_DF) == bytes(8192)
seen = []
def extent(context, offset, entries, error):
    assert context == 'base:allocation' and error.value == 0
    seen.extend(entries[0::2])
offset = 0
while offset < size:
    before = sum(seen)
    a.block_status(size - offset, offset, extent)
    offset = sum(seen)
    assert offset > before
assert offset == size
# Outside is an error, and the connection goes on.
for ask, errno in [(lambda: a.pread(512, size), 'EINVAL'), (lambda: a.pwrite(bytes(512), size - 511), 'ENOSPC'), (lambda: a.trim(1, size), 'EINVAL')]:
    try:
        ask()
        raise SystemExit('it was done')
    except nbd.Error as e:
        assert e.errno == errno, e
assert a.pread(512, 0) == source[:512]
for h in hs: h.shutdown()
",
    )
    .expect("a script can be written");
    served(scratch.path(), "disk#s1", "export uri; nbdsh -n -c 'exec(open(\"script\").read())'");
    bytes[1_000_001..][..70001].fill(0x11);
    bytes[1_008_193..][..4097].fill(0);
    bytes[5 * MEG..][..8192].fill(0);
    let image = fs::read(scratch.path().join("disk")).expect("the image");
    // What was trimmed may be anything.
    let (before, after) = (&image[S1][..6 * MEG], &image[S1][7 * MEG..]);
    same("before what was trimmed", before, &bytes[..6 * MEG]);
    same("behind it", after, &bytes[7 * MEG..]);
    assert!(image[S1.end..].iter().all(|&byte| byte == 0), "behind the partition");
}

/// Extended headers, which libnbd speaks since 1.18.
#[test]
fn nbdsh_asks_for_more_than_32_bits_at_once() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    let disk = fs::File::create(scratch.path().join("disk")).expect("a disk");
    disk.set_len(6 << 30).expect("holes");
    fs::write(
        scratch.path().join("script"),
        r"
import os, sys
h = nbd.NBD()
if not hasattr(h, 'get_extended_headers_negotiated'):
    print('none')
    sys.exit()
h.add_meta_context('base:allocation')
h.add_meta_context('trueline:grain')
h.connect_uri(os.environ['uri'])
h.set_strict_mode(nbd.STRICT_AUTO_FLAG)
assert h.get_extended_headers_negotiated() and h.can_block_status_payload() and h.can_df()
size = h.get_size()
assert size == 6 << 30
data = os.urandom(70001)
h.pwrite(data, (5 << 30) + 3)
h.flush()
assert h.pread(70003, (5 << 30) + 2) == b'\0' + data + b'\0'
def status(length, offset, contexts=None, flags=0):
    seen = {}
    def extents(context, at, entries, error):
        assert at == offset and error.value == 0
        seen[context] = entries
    if contexts is None: h.block_status_64(length, offset, extents, flags)
    else: h.block_status_filter(length, offset, contexts, extents, flags)
    return seen
seen = status(size, 0)
assert [flags for _, flags in seen['base:allocation']] == [3, 0, 3], seen
assert sum(length for length, _ in seen['base:allocation']) == size
assert sum(length for length, _ in seen['trueline:grain']) == size
assert list(status(size, 0, ['trueline:grain'])) == ['trueline:grain']
assert status(5 << 30, 0, ['base:allocation'], nbd.CMD_FLAG_REQ_ONE) == {'base:allocation': [(5 << 30, 3)]}
def refused(ask, errno):
    try:
        ask()
        sys.exit('it was done')
    except nbd.Error as e:
        assert e.errno == errno, e
refused(lambda: status(size, 0, ['base:allocation'] * 2), 'EINVAL')
refused(lambda: status(size + 1, 0), 'EINVAL')
refused(lambda: h.zero(size + 1, 0), 'ENOSPC')
refused(lambda: h.trim(1 << 62, 1 << 62), 'EINVAL')
refused(lambda: h.pread(512, 0, 1 << 15), 'EINVAL')
refused(lambda: h.pwrite(data, 0, 1 << 15), 'EINVAL')
h.cache(size, 0)
h.trim(size, 0)
h.zero(size, 0)
assert h.pread(70003, (5 << 30) + 2) == bytes(70003)
h.shutdown()
# Without them, as before.
h = nbd.NBD()
h.set_request_extended_headers(False)
h.connect_uri(os.environ['uri'])
assert not h.get_extended_headers_negotiated() and h.get_structured_replies_negotiated()
assert h.pread(512, 0) == bytes(512)
h.shutdown()
# An option that comes too late is refused, and the rest is as it was.
h = nbd.NBD()
h.set_opt_mode(True)
h.connect_uri(os.environ['uri'])
assert h.get_extended_headers_negotiated() and not h.opt_structured_reply()
h.opt_go()
assert h.pread(512, 0) == bytes(512)
h.shutdown()
print('all')
",
    )
    .expect("a script can be written");
    let said = served(
        scratch.path(),
        "disk",
        r#"export uri; "${TRUELINE_NBDSH:-nbdsh}" -n -c 'exec(open("script").read())'"#,
    );
    match said.trim() {
        "all" => {}
        "none" => skip("the installed libnbd does not speak extended headers"),
        said => panic!("{said}"),
    }
}

#[test]
fn qemu_img_converts_compares_and_checks() {
    if !here(&["qemu-img"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let bytes = numbered(scratch.path(), "source");
    let script = r#"qemu-img convert -n -f raw -O raw -W -m 16 source "$uri"
        qemu-img compare -f raw -F raw source "$uri"
        qemu-img convert -f raw -O qcow2 "$uri" copy.qcow2; qemu-img check -q copy.qcow2
        qemu-img compare -f raw -F qcow2 "$uri" copy.qcow2; qemu-img convert -O raw copy.qcow2 copy"#;
    served(scratch.path(), "disk#s1", script);
    same("the copy", &fs::read(scratch.path().join("copy")).expect("a copy"), &bytes);
    same("the image", &fs::read(scratch.path().join("disk")).expect("the image")[S1], &bytes);
    // A qcow2 in the partition.
    let script = r#"truncate -s 8M source; qemu-img create -q -f qcow2 "$uri" 8M; qemu-img convert -n -f raw -O qcow2 source "$uri"
        qemu-img check -f qcow2 "$uri"; qemu-img compare -f raw -F qcow2 source "$uri""#;
    let said = served(scratch.path(), "disk#s1", script);
    assert!(
        said.contains("No errors were found") && said.contains("Images are identical"),
        "{said}"
    );
}

#[test]
fn qemu_io_writes_patterns() {
    if !here(&["qemu-io"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let mut want = numbered(scratch.path(), "source");
    let before = fs::read(scratch.path().join("disk")).expect("the image");
    want.fill(0);
    let mut commands = String::new();
    for (nth, (offset, length)) in
        [(0, 512), (512, 4096), (1_048_064, 70_144), (3_000_320, 1_000_448), (16 * MEG - 512, 512)]
            .into_iter()
            .enumerate()
    {
        let pattern = u8::try_from(nth + 1).expect("few");
        commands += &format!(" -c 'aio_write -P {pattern} {offset} {length}'");
        want[offset..][..length].fill(pattern);
    }
    commands += " -c aio_flush -c 'write -f -P 9 2M 64k' -c 'write -z 3M 4k' -c 'write -z -u \
        3214336 512' -c 'discard 8M 1M' -c flush";
    want[2 * MEG..][..64 << 10].fill(9);
    want[3 * MEG..][..4096].fill(0);
    want[3_214_336..][..512].fill(0);
    commands += " -c 'read -P 3 1048064 70144' -c 'read -P 9 2M 64k' -c 'read -P 0 3M 4k' -c 'read \
        -P 4 3150336 512'";
    let said = served(
        scratch.path(),
        "disk#s1",
        &format!("qemu-io -f raw -t writeback {commands} \"$uri\""),
    );
    assert!(!said.contains("failed"), "{said}");
    let image = fs::read(scratch.path().join("disk")).expect("the image");
    same("the partition", &image[S1], &want);
    same("before it", &image[..S1.start], &before[..S1.start]);
    assert!(image[S1.end..].iter().all(|&byte| byte == 0), "behind the partition");
}

/// As the issue of a user of nbdkit would have it: a BSD label in a partition at sector 63, a
/// socket of one's own, and fio.
#[test]
fn fio_verifies_what_it_wrote_to_a_label() {
    if !here(&["fio"]) {
        return;
    }
    let scratch = golden("bsd-freebsd");
    fs::rename(scratch.path().join("disk"), scratch.path().join("disk.img")).expect("a disk");
    let before = fs::read(scratch.path().join("disk.img")).expect("the disk");
    // fio does not wait for a trim before it writes to the same place, so one at a time: else
    // nbdkit's memory fails as well.
    let script = r#"test "$unixsocket" = "$PWD/s" -a -S s
        for job in "--rw=randwrite --bs=4k" "--rw=randrw --bs=512-64k --bs_unaligned=1" "--rw=randtrimwrite --bs=4k --iodepth=1" "--rw=write --bs=1m --fsync=1"; do
            fio --name=j --ioengine=nbd --uri="$uri" --size=4m --iodepth=32 --verify=crc32c --verify_fatal=1 --thread $job --output=said
        done"#;
    served(scratch.path(), "disk.img#s1a --nbd unix:s", script);
    let after = fs::read(scratch.path().join("disk.img")).expect("the disk");
    let s1a = 32256..32256 + 16 * MEG;
    same("before s1a", &after[..s1a.start], &before[..s1a.start]);
    same("behind s1a", &after[s1a.end..], &before[s1a.end..]);
    assert_ne!(after[s1a.clone()], before[s1a], "nothing was written");
    assert!(!scratch.path().join("s").exists(), "the socket is left behind");
    // The status of the command is the server's.
    assert_eq!(
        serve(scratch.path(), "disk.img#s1 --no-counters --nbd unix:s", "exit 7").code,
        Some(7)
    );
}

/// That bytes survive a loss of power is not seen by killing a server; that the kernel is asked for
/// it is.
#[test]
fn the_kernel_is_asked_to_bring_it_to_the_medium() {
    if !here(&["nbdsh", "strace"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let program = program(scratch.path()).get_program().to_string_lossy().into_owned();
    let syncs = |asked: &str| {
        let traced = format!(
            "strace -f -qq -o trace -e trace=fdatasync,fsync '{program}' serve 'disk#s1' --no-counters --run 'nbdsh -u \"$uri\" -c \"{asked}\"'"
        );
        let ran = Command::new("sh")
            .args(["-c", &traced])
            .current_dir(scratch.path())
            .env("PATH", path())
            .output()
            .expect("a shell");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let trace = fs::read_to_string(scratch.path().join("trace")).expect("a trace");
        trace.lines().filter(|line| line.contains("sync(")).count()
    };
    // The server does so when it ends.
    let least = syncs("h.pwrite(bytes(4096), 512)");
    assert_eq!(
        syncs("h.pwrite(bytes(4096), 512); h.flush(); h.pwrite(bytes(512), 0); h.flush()"),
        least + 2
    );
    assert_eq!(
        syncs("h.pwrite(bytes(4096), 512, nbd.CMD_FLAG_FUA); h.zero(512, 0, nbd.CMD_FLAG_FUA)"),
        least + 2
    );
}

/// A client that waits for the socket and then ends the server ends it in order.
#[test]
fn a_signal_is_heeded_before_there_is_a_way_in() {
    if !here(&["strace"]) {
        return;
    }
    let scratch = scratch();
    let program = program(scratch.path()).get_program().to_string_lossy().into_owned();
    let traced = format!(
        "strace -f -qq -o trace -e trace=bind,rt_sigaction '{program}' serve md:1m --nbd unix:s --run true"
    );
    let ran = Command::new("sh")
        .args(["-c", &traced])
        .current_dir(scratch.path())
        .env("PATH", path())
        .output()
        .expect("a shell");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let trace = fs::read_to_string(scratch.path().join("trace")).expect("a trace");
    let line = |what: &str| {
        trace
            .lines()
            .position(|line| line.contains(what))
            .unwrap_or_else(|| panic!("no {what}: {trace}"))
    };
    assert!(line("rt_sigaction(SIGTERM, {sa_handler=0x") < line("bind("), "{trace}");
}
