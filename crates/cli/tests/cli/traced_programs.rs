//! `trace` of programs that write on a partition at sector 63 and on one at sector 2048: ext4, XFS,
//! `SQLite`, `PostgreSQL`, and fio at depth.
//!
//! Every number of every trace is held against the kernel's own (`/sys/block/X/stat`), and every
//! verdict against arithmetic on the recording. A drive with units of 4 KiB is what `--unit` makes
//! of a loop device; what mkfs would learn of such a drive, it is told.

use crate::loops::{Loop, PARTITIONS, can, sh};
use crate::recipe::Scratch;
use crate::trace_proof::{COUNTED, KernelCounts, Proof, arithmetic, transfers, verdicts_of};
use crate::tracing::{MOUNTED, layer, number, traceable, tracing};
use crate::{Ran, list, program, scratch, zeroes};
use serde_json::Value;
use std::fs;

const MIB: u64 = 1 << 20;
/// Where a partition begins in sectors, and true if that is a boundary of a unit.
const STARTS: [(u64, bool); 2] = [(63, false), (2048, true)];
/// A file system of 4096-byte blocks, which has nothing left to initialise.
const EXT4: &str = "mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 $p";
/// The sectors that mkfs.xfs chooses on a drive whose physical sectors these are. It refuses to
/// make one that is off: such a file system was copied there.
const XFS: &str = "mkfs.xfs -q -f -s size=4096 $p";
/// A disk whose only partition begins at a sector of choice.
struct Ground {
    // Taken away before the file that it is of: fields are dropped in order.
    device: Loop,
    scratch: Scratch,
}

impl Ground {
    /// A disk of `mib` MiB. The commands of `make` fill the partition `$p`.
    fn new(start: u64, mib: u64, make: &str) -> Ground {
        let scratch = scratch();
        let here = scratch.path();
        zeroes(here, "disk", mib * MIB);
        sh(here, &format!("printf '{start},,83\\n' | sfdisk -q --force --label dos disk"))
            .expect("a table");
        let device = Loop::new(here, "");
        let d = &device.0;
        let commands = format!(
            "d={d} p={d}p1\npartx --add $d\n\
             echo none >/sys/block/${{d#/dev/}}/queue/scheduler\nmkdir mnt\n{make}\n"
        );
        fs::write(here.join("make"), commands).expect("a file");
        // Another test that has its own mounts would keep a copy of these.
        sh(here, "exec unshare --mount --propagation private sh -eux ./make").expect("a partition");
        Ground { device, scratch }
    }

    /// A trace of `work`, shell commands for the disk `$d` and its partition `$p`, which is held
    /// against the kernel's counts, and against its own recording.
    fn traced(&self, work: &str) -> Proof {
        let here = self.scratch.path();
        fs::write(here.join("work"), work).expect("a file");
        fs::write(here.join("counted"), COUNTED).expect("a file");
        let (disk, run) = (&self.device.0, "sh ./counted >log 2>&1");
        let arguments = ["--unit", "4k", "--json", disk, "--run", run, "--record", "requests"];
        let ran = tracing(here, MOUNTED, &arguments)
            .env("d", disk)
            .env("p", format!("{disk}p1"))
            .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
            .output();
        let ran = Ran::of(&ran.expect("unshare can be run"));
        let read = |file: &str| fs::read_to_string(here.join(file)).unwrap_or_default();
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", read("log"));
        let empty = read("empty").trim().parse().expect("a number");
        let kernel = KernelCounts::between(&read("before"), &read("after"), empty);
        let proof = Proof { document: ran.json(), kernel, recording: read("requests") };
        proof.is_that_of_the_kernel();
        let again = self.replayed("4k");
        for (now, then) in list(&again, "layers").iter().zip(list(&proof.document, "layers")) {
            for key in ["provider", "reads", "writes", "blame", "blamed_requests", "histogram"] {
                assert_eq!(now[key], then[key], "{key}");
            }
        }
        assert_eq!(again["flushes"], proof.document["flushes"]);
        proof
    }

    /// The document of the last recording, judged by another unit.
    fn replayed(&self, unit: &str) -> Value {
        let again = program(self.scratch.path())
            .args(["trace", "--replay", "requests", "--unit", unit, "--json", "disk"])
            .output();
        Ran::of(&again.expect("it runs")).ended(0).json()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.scratch.path().join(file)).expect("a file")
    }
}

/// True where programs on partitions can be traced, with these ones.
fn able(programs: &str) -> bool {
    traceable()
        && can("partitions of loop devices", PARTITIONS)
        && programs.split(' ').all(|name| can("programs", &format!("command -v {name}")))
}

/// Small files and large ones, each written and flushed; written over, cut, and removed.
const FILES: &str = "mount $p mnt
for size in 1 512 1000 4096 5000 70000; do
    dd if=/dev/zero of=mnt/$size bs=$size count=1 conv=fsync status=none
    dd if=/dev/zero of=mnt/$size bs=$size count=1 conv=notrunc,fsync status=none
done
dd if=/dev/zero of=mnt/large bs=1M count=8 conv=fsync status=none
dd if=/dev/zero of=mnt/direct bs=64k count=16 oflag=direct status=none
truncate -s 3000 mnt/large
rm mnt/1000
umount mnt
";

#[test]
fn file_systems_write_whole_units_on_the_grain_and_none_off_it() {
    if !able("mkfs.ext4 mkfs.xfs flock") {
        return;
    }
    for (start, on_the_grain) in STARTS {
        for make in [EXT4, XFS] {
            let proof = Ground::new(start, 320, make).traced(FILES);
            proof.writes_are(on_the_grain);
            // The thread of the journal, and the program that asks for a file to be written.
            assert!(make != EXT4 || proof.written_by("jbd2") > 0, "{:#}", proof.document);
            assert!(proof.written_by("dd") > 0, "{:#}", proof.document);
            // One for every file at least.
            assert!(proof.kernel.flushes >= 13, "{:#}", proof.document);
        }
    }
}

/// A file system that takes the drive for one of 512-byte sectors writes less than a unit,
/// wherever its partition begins.
#[test]
fn blocks_less_than_a_unit_are_blamed_on_no_start() {
    if !able("mkfs.ext4 mkfs.xfs flock") {
        return;
    }
    for make in [EXT4.replace("4096", "1024"), XFS.replace("4096", "512")] {
        let proof = Ground::new(2048, 320, &make).traced(FILES);
        let s1 = layer(&proof.document, "s1");
        assert!(number(s1, "/writes/partial") > 0, "{:#}", proof.document);
        assert_eq!(number(s1, "/blamed_requests/writes"), 0);
        assert_eq!(s1["blame"], Value::Null);
    }
}

#[test]
fn commits_of_sqlite_are_judged_by_where_its_file_system_begins() {
    if !able("mkfs.ext4 flock sqlite3") {
        return;
    }
    const COMMITS: u64 = 20;
    let inserts: String = (0..COMMITS).map(|n| format!("INSERT INTO t VALUES ({n});\n")).collect();
    for (start, on_the_grain) in STARTS {
        let ground = Ground::new(start, 64, EXT4);
        for (mode, page) in [("wal", 4096), ("wal", 1024), ("delete", 4096), ("delete", 1024)] {
            let work = format!(
                "mount $p mnt
sqlite3 mnt/{mode}-{page} >said <<END
PRAGMA page_size = {page};
PRAGMA journal_mode = {mode};
PRAGMA synchronous = FULL;
CREATE TABLE t(x);
{inserts}SELECT count(*) FROM t;
PRAGMA page_size;
END
umount mnt
"
            );
            let proof = ground.traced(&work);
            assert_eq!(ground.read("said"), format!("{mode}\n{COMMITS}\n{page}\n"));
            // Pages go to the page cache, which writes blocks.
            proof.writes_are(on_the_grain);
            assert!(proof.kernel.flushes >= COMMITS, "{:#}", proof.document);
            assert!(proof.written_by("sqlite3") >= COMMITS, "{:#}", proof.document);
        }
    }
}

/// Shell functions to run a server of `PostgreSQL` in the directory `mnt/data`.
const SERVER: &str = "bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
postgres() { setpriv --reuid postgres --regid postgres --clear-groups env -C / \"$@\"; }
control() { postgres $bin/pg_ctl -D $PWD/mnt/data -w -l $PWD/mnt/log \"$@\" >/dev/null 2>&1; }
";

#[test]
fn commits_of_postgresql_are_judged_by_units_of_two_sizes() {
    let needs = "id postgres && ls /usr/lib/postgresql/*/bin/initdb && command -v pgbench setpriv";
    if !able("mkfs.ext4 flock") || !can("PostgreSQL", needs) {
        return;
    }
    let make = format!(
        "{EXT4} && {SERVER} mount $p mnt && mkdir mnt/data && chown postgres mnt mnt/data && \
            postgres $bin/initdb -D $PWD/mnt/data -A trust --no-locale -E UTF8 --wal-segsize=1 && \
            umount mnt"
    );
    let work = format!(
        "{SERVER}
mount $p mnt
trap 'control stop -m immediate' EXIT
control start -o \"-k $PWD/mnt -c listen_addresses= -c autovacuum=off\"
client() {{ postgres $bin/pgbench -h $PWD/mnt \"$@\" postgres; }}
client -i -q
client -c 1 -t 40 >said
control stop -m fast
trap - EXIT
until umount mnt; do sleep 0.01; done
"
    );
    for (start, on_the_grain) in STARTS {
        let ground = Ground::new(start, 200, &make);
        let proof = ground.traced(&work);
        assert!(ground.read("said").contains("actually processed: 40/40"));
        proof.writes_are(on_the_grain);
        assert!(proof.kernel.flushes >= 40, "{:#}", proof.document);
        assert!(proof.written_by("postgres") >= 40, "{:#}", proof.document);
        // A drive of larger units than its pages of 8 KiB has to read, wherever it begins; only
        // what a start on a boundary would help is blamed on it.
        let (larger, unit) = (ground.replayed("16k"), 16 << 10);
        let [_, [aligned, misaligned, partial]] = verdicts_of(&larger);
        assert_eq!(verdicts_of(&larger), arithmetic(&proof.recording, unit, 0));
        assert!(misaligned > 0 && partial > 0, "{larger:#}");
        let blamed = number(layer(&larger, "s1"), "/blamed_requests/writes");
        if on_the_grain {
            assert_eq!(blamed, 0);
            assert!(aligned > 0, "{larger:#}");
        } else {
            let [_, [helped, ..]] = arithmetic(&proof.recording, unit, start * 512);
            assert_eq!((aligned, blamed), (0, helped));
            assert!(helped > 0, "{larger:#}");
        }
    }
}

/// Requests that are merged before the driver gets them, and others that are cut.
#[test]
fn requests_at_depth_are_counted_as_the_kernel_merges_and_splits_them() {
    if !able("fio flock") {
        return;
    }
    const SIZE: u64 = 8 * MIB;
    for (start, on_the_grain) in STARTS {
        let ground = Ground::new(start, 64, ":");
        for (scheduler, most) in [("none", 64), ("none", 16), ("mq-deadline", 16)] {
            let work = format!(
                "q=/sys/block/${{d#/dev/}}/queue
before=$(cat $q/max_sectors_kb)
trap 'echo none >$q/scheduler; echo $before >$q/max_sectors_kb' EXIT
! grep -q {scheduler} $q/scheduler || echo {scheduler} >$q/scheduler
echo {most} >$q/max_sectors_kb
fio --filename=$p --direct=1 --ioengine=libaio --iodepth=32 --size={SIZE} --output=said \
                 --name=small --rw=write --bs=4k --iodepth_batch_submit=32 \
                 --iodepth_batch_complete_min=32 \
                 --name=large --stonewall --rw=randrw --bs=64k
"
            );
            let proof = ground.traced(&work);
            // All that fio sends.
            assert_eq!(proof.number("/bytes/reads") + proof.number("/bytes/writes"), 2 * SIZE);
            assert!(proof.kernel.merges > 0, "{:#}", proof.document);
            let requests: Vec<_> = transfers(&proof.recording).collect();
            let (most, longest) = (most << 10, requests.iter().map(|request| request.2).max());
            assert_eq!(longest, Some(most));
            let large = requests.iter().filter(|request| request.2 == most).count() as u64;
            assert!(large >= SIZE / most && (requests.len() as u64) < SIZE / 4096 + SIZE / most);
            let s1 = layer(&proof.document, "s1");
            assert_eq!(number(s1, "/reads/aligned") > 0, on_the_grain, "{s1:#}");
            proof.writes_are(on_the_grain);
        }
    }
}
