use super::*;
use std::fs::OpenOptions;
use std::io::BufReader;
use std::sync::atomic::{AtomicUsize, Ordering};
use trueline_host::disk::memory::Memory;
use trueline_lab::trace;

fn file() -> File {
    // No other program finds it, and it goes away with the test.
    let path = std::env::temp_dir().join(format!(
        "trueline-recorded-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn recorded(file: File, place: u64) -> Recorded {
    let failed = Box::new(|error: &io::Error| panic!("{error}"));
    let recorder = Arc::new(Recorder::new(file, "of disk.img\n80 bytes", failed));
    Recorded::new(Arc::new(Memory::new(1 << 20).unwrap()), place, recorder)
}

fn read_back(mut file: File) -> Vec<TracedRequest> {
    file.rewind().unwrap();
    trace::Trace::new(Box::new(BufReader::new(file))).unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_is_asked_is_in_the_trace_in_order() {
    let file = file();
    let store = recorded(file.try_clone().unwrap(), 1 << 30);
    let mut buffer = [0; 512];
    store.write_at(&[1; 4096], 8192).unwrap();
    assert_eq!(store.try_read(&mut buffer, 512), Ok(true));
    store.read_at(&mut buffer, 1024).unwrap();
    store.write_through(&[1; 512], 0).unwrap();
    store.discard(0, 4096).unwrap();
    store.read_at(&mut [], 0).unwrap();
    assert_eq!(store.read_at(&mut buffer, 1 << 20), Err(Errno::Range));
    store.flush().unwrap();
    assert_eq!(store.recorder.requests(), 6);
    assert!(store.recorder.finish());
    let entries = read_back(file);
    let base = 1 << 30;
    let asked: Vec<_> = entries.iter().map(|e| (e.op, e.offset, e.length, e.fua)).collect();
    let want = [
        (Op::Write, base + 8192, 4096, false),
        (Op::Read, base + 512, 512, false),
        (Op::Read, base + 1024, 512, false),
        (Op::Write, base, 512, true),
        (Op::Read, base + (1 << 20), 512, false),
        (Op::Flush, 0, 0, false),
    ];
    assert_eq!(asked, want);
    assert!(entries.is_sorted_by_key(|entry| entry.at_ns));
}

/// More bytes than are written at once, from several threads: every line is whole, and times never
/// decrease.
#[test]
fn many_threads_write_one_trace() {
    let file = file();
    let store = recorded(file.try_clone().unwrap(), 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..5000).for_each(|n| store.write_at(&[1; 512], n % 2048 * 512).unwrap())
            });
        }
    });
    assert!(store.recorder.finish());
    let text = {
        let mut file = file.try_clone().unwrap();
        file.rewind().unwrap();
        io::read_to_string(file).unwrap()
    };
    let times: Vec<u64> =
        text.lines().skip(3).map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(times.len(), 20_000);
    assert!(times.is_sorted());
    assert_eq!(read_back(file).len(), 20_000);
}

/// The device `/dev/full` accepts no writes.
#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert!(Recorder::new(full(), "", Box::new(|_| {})).begin().is_err());
    let failed = Box::new(|error: &io::Error| {
        assert_eq!(error.raw_os_error(), Some(28), "ENOSPC");
        TOLD.fetch_add(1, Ordering::Relaxed);
    });
    let recorder = Recorder::new(file(), "", failed);
    recorder.begin().unwrap();
    recorder.trace().file = Some(full());
    let store = Recorded::new(Arc::new(Memory::new(1 << 20).unwrap()), 0, Arc::new(recorder));
    (0..10_000).for_each(|_| store.write_at(&[1; 512], 0).unwrap());
    assert_eq!(
        (store.recorder.finish(), TOLD.load(Ordering::Relaxed), store.recorder.requests()),
        (false, 1, 0)
    );
}
