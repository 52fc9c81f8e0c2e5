//! `trace` in a Debian kernel under QEMU, of devices that this host may not have: a drive of
//! 512-byte sectors on 4096-byte ones, and devices of md and dm that cut requests.
//!
//! Where something to boot it with is missing the test is skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use crate::loops::can;
use crate::skip::skip;
use crate::trace_proof::{COUNTED, KernelCounts, Proof, UNIT, arithmetic, transfers};
use crate::tracing::{layer, number};
use crate::{scratch, zeroes};
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;
/// Programs of this host that the guest needs.
const TOOLS: [&str; 7] = ["dd", "sync", "sfdisk", "mkfs.ext4", "mkfs.xfs", "dmsetup", "mdadm"];
const MODULES: [&str; 7] = [
    "scsi_debug physblk_exp=3 dev_size_mb=64",
    "ext4",
    "xfs",
    "dm_mod",
    "dm_crypt",
    "raid0",
    "xts",
];
/// Writes and reads of many lengths, some of which cross chunks, and a flush.
const TRANSFERS: &str = "for size in 4k 12k 60k 100k 300k; do
    $dd if=/dev/zero of=$d bs=$size count=7 seek=1 oflag=direct
    $dd if=$d of=/dev/null bs=$size count=5 skip=2 iflag=direct
done
$dd if=/dev/zero of=$d bs=4k count=3 oflag=direct,dsync
";
/// The requests of these.
const READS: u64 = 5 * 5;
const WRITES: u64 = 5 * 7 + 3;
/// Files on a partition.
const FILES: &str = "mount -t $kind $p /mnt
for size in 1 1000 4096 5000 70000; do
    $dd if=/dev/zero of=/mnt/$size bs=$size count=1 conv=fsync
done
$dd if=/dev/zero of=/mnt/large bs=1M count=4 conv=fsync
rm /mnt/1000
umount /mnt
";

/// Commands of the guest that trace `work` on a disk, and print all that is known of it.
fn traced(disk: &str, work: &str, options: &str) -> String {
    format!(
        "cat >/work <<'END'\n{work}END\n\
         d={disk} p={disk}1 trueline trace {disk} {options} --json --record /requests --run 'sh \
         /counted >/log 2>&1' >/document || {{ cat /log; false; }}\n\
         {{ tr -d '\\n' </document; echo; cat /before /after /empty /requests; echo; }} >&3"
    )
}

/// Sum of the counts of all verdicts under `/latency_ns/KIND`.
fn answered(proof: &Proof, kind: &str) -> u64 {
    let verdicts = proof.document["latency_ns"][kind].as_object().expect("verdicts");
    verdicts.values().filter_map(|verdict| verdict["count"].as_u64()).sum()
}

/// Pieces of the reads and of the writes of a recording, cut at every `chunk` sectors if at all.
fn pieces(recording: &str, chunk: Option<u64>) -> [u64; 2] {
    let mut counts = [0; 2];
    for (kind, offset, length) in transfers(recording) {
        let cuts =
            chunk.map_or(0, |chunk| (offset + length - 1) / (512 * chunk) - offset / (512 * chunk));
        counts[usize::from(kind == "W")] += 1 + cuts;
    }
    counts
}

/// Both ends of every write lie on a unit of the partition, which begins at byte `first`, or on
/// one of the drive, where the kernel cuts requests that are too long. Those of whole units of the
/// partition miss the drive's, and the partition is to blame.
fn ends_are_whole(proof: &Proof, first: u64) {
    let is_end = |byte: u64| [0, first % UNIT].contains(&(byte % UNIT));
    let writes = transfers(&proof.recording).filter(|transfer| transfer.0 == "W");
    for (_, offset, length) in writes {
        assert!(is_end(offset) && is_end(offset + length), "{offset} {length}");
    }
    let [_, [whole, ..]] = arithmetic(&proof.recording, UNIT, first);
    let s1 = layer(&proof.document, "s1");
    assert_eq!(number(s1, "/blamed_requests/writes"), whole, "{:#}", proof.document);
    assert!(whole > 10, "{:#}", proof.document);
    assert_eq!(number(s1, "/blame/remainder"), first % UNIT);
}

#[test]
fn a_drive_of_large_sectors_and_sets_are_traced_in_a_guest() {
    let scratch = scratch();
    let here = scratch.path();
    // Without what a debugger needs, it is a third as long.
    let own = format!("strip -o {}/trueline {}", here.display(), env!("CARGO_BIN_EXE_trueline"));
    if !can("a smaller program", "command -v strip") || crate::loops::sh(here, &own).is_none() {
        return;
    }
    for disk in ["a", "b"] {
        zeroes(here, disk, 64 * MIB);
    }
    let mut commands = vec![
        format!("PATH=$PATH:{}", here.display()),
        // The guest's shell has a dd of its own that knows less.
        "dd=/bin/dd; [ ! -e /usr/bin/dd ] || dd=/usr/bin/dd; export dd kind MDADM_NO_UDEV=1".into(),
        "mkdir -p /mnt /tmp; mount -t tracefs tracefs /sys/kernel/tracing".into(),
        format!("cat >/counted <<'END'\n{COUNTED}END"),
        // Below 300 MiB, mkfs.xfs works for its own tests alone.
        "export TEST_DIR=/ TEST_DEV=/ QA_CHECK_FS=true".into(),
        "create() { dmsetup create --noudevsync --noudevrules $1 --table \"$2\"; }".into(),
    ];
    // mkfs.xfs refuses a partition that is off, and takes sectors of 512 bytes if it must.
    let drives = [(63, "ext4"), (2048, "xfs")];
    for (start, kind) in &drives {
        commands.push(format!(
            "echo start={start} | sfdisk -q --wipe always --label dos /dev/sda; kind={kind}"
        ));
        let make = if *kind == "ext4" { "ext4 -q -F -b 4096" } else { "xfs -q -f" };
        commands.push(format!("mkfs.{make} /dev/sda1; sync"));
        commands.push(traced("/dev/sda", FILES, ""));
    }
    let key = "0123456789abcdef".repeat(4);
    let striped = "create two '0 131072 striped 2 128 /dev/vda 0 /dev/vdb 0'";
    let encrypted = format!("create three '0 65536 crypt aes-xts-plain64 {key} 0 /dev/vda 0'");
    let stripe = "mdadm --create /dev/md0 --run --level=0 --raid-devices=2 --chunk=64 /dev/vda \
        /dev/vdb";
    // Their names, where they cut requests, and how they are made.
    let sets =
        [("dm-0", Some(128), striped), ("dm-1", None, &encrypted), ("md0", Some(128), stripe)];
    for (name, _, make) in &sets {
        if *name == "md0" {
            commands.push("dmsetup remove_all".into());
        }
        commands.push((*make).into());
        commands.push(traced(&format!("/dev/{name}"), TRANSFERS, "--unit 4k"));
    }
    // It begins in the middle of a unit, and the drive says so.
    commands.push("mdadm --stop /dev/md0".into());
    commands.push("create off '0 65536 linear /dev/sda 4'".into());
    commands.push(traced("/dev/dm-0", TRANSFERS, ""));

    let mut boot =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernel/boot.sh"));
    boot.current_dir(here);
    boot.args(MODULES.iter().flat_map(|module| ["-m", module]));
    boot.args(TOOLS.iter().flat_map(|tool| ["-p", tool]));
    boot.args(["-p", &format!("{}/trueline", here.display())]);
    boot.args(commands.iter().flat_map(|command| ["-r", command]));
    let booted = boot.args(["a,pbs=4096", "b,pbs=4096"]).output().expect("a script can be run");
    let (said, errors) =
        (String::from_utf8_lossy(&booted.stdout), String::from_utf8_lossy(&booted.stderr));
    if booted.status.code() == Some(2) {
        return skip(errors.trim());
    }
    assert!(booted.status.success(), "{errors}");
    let mut traces = said.split("\n\n").map(|text| {
        let mut lines = text.lines();
        let mut next = || lines.next().unwrap_or_default();
        let document = serde_json::from_str(next()).unwrap_or_else(|e| panic!("{e}: {said}"));
        let (before, after) = (next(), next());
        let empty: u64 = next().parse().expect("a number");
        let recording = lines.collect::<Vec<_>>().join("\n");
        (Proof { document, kernel: KernelCounts::between(before, after, empty), recording }, empty)
    });
    for (start, _) in drives {
        let (proof, _) = traces.next().expect("a trace");
        proof.is_that_of_the_kernel();
        if start == 2048 {
            proof.writes_are(true);
        } else {
            ends_are_whole(&proof, start * 512);
        }
        assert_eq!(number(layer(&proof.document, "s1"), "/unit"), UNIT);
        assert_eq!(answered(&proof, "writes"), proof.number("/requests/writes"));
    }
    for (name, chunk, _) in &sets {
        let (proof, empty) = traces.next().expect("a trace");
        let kernel = &proof.kernel;
        // What dd asks for, of which the kernel counts pieces.
        let number = |path| proof.number(path);
        assert_eq!((number("/requests/reads"), number("/requests/writes")), (READS, WRITES));
        assert_eq!(kernel.read_bytes, number("/bytes/reads"));
        assert_eq!(kernel.write_bytes, number("/bytes/writes"));
        if *name == "md0" {
            // Which pieces md makes is not the same in every kernel. It counts no flush.
            assert!(kernel.reads > READS && kernel.writes + empty > WRITES);
        } else {
            assert_eq!([kernel.reads, kernel.writes], pieces(&proof.recording, *chunk), "{name}");
        }
        // One that is cut has an end, too.
        let ends = (answered(&proof, "reads"), answered(&proof, "writes"));
        assert_eq!(ends, (READS, WRITES), "{name}");
        assert_eq!((number("/flushes"), number("/lost"), number("/outside")), (empty, 0, 0));
    }
    let (proof, _) = traces.next().expect("a trace");
    let own = layer(&proof.document, "");
    assert_eq!(number(own, "/blamed_requests/writes"), WRITES, "{own:#}");
    assert_eq!(number(own, "/blamed_requests/reads"), READS, "{own:#}");
    assert_eq!(number(own, "/blame/remainder"), 4 * 512);
    assert_eq!(proof.kernel.writes, WRITES);
}
