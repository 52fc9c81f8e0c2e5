//! Mounted files as system calls see them: what they return, and which error.

use crate::Scratch;
use crate::skip::skip;
use rustix::fs::{
    FallocateFlags, Mode, OFlags, SeekFrom, fallocate, fstat, ftruncate, open, seek, statvfs,
};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trueline_geom::base::error;
use trueline_geom::base::store::filter::{self, Action, Filter};
use trueline_geom::base::store::{Content, Run, Store};
use trueline_host::disk::file::{self, Access};
use trueline_host::disk::memory::Memory;
use trueline_serve::export::{BlockSizes, Export, Exports};
use trueline_serve::front::fuse;

/// Bytes of the stores here.
const LENGTH: u64 = 1 << 20;

/// Mounts `store` on a file and hands it over, opened; afterwards it is unmounted.
fn with(store: Arc<dyn Store>, read_only: bool, test: impl FnOnce(&Path, &OwnedFd)) {
    let scratch = Scratch::new();
    // Root need not be allowed to mount: in a container it seldom is.
    let probe = "[ $(id -u) = 0 ]; mkdir probe; mount -t tmpfs none probe; umount probe";
    let mounts = Command::new("sh")
        .args(["-ec", probe])
        .current_dir(&scratch.0)
        .output()
        .is_ok_and(|ran| ran.status.success());
    if !mounts || open("/dev/fuse", OFlags::RDWR, Mode::empty()).is_err() {
        return skip("mounting needs root, leave to mount, and /dev/fuse");
    }
    let point = scratch.put("point", "");
    let sizes = BlockSizes { least: 1, preferred: 16384, most: 1 << 25 };
    let export = Export {
        name: String::new(),
        description: String::new(),
        store,
        read_only,
        rotational: false,
        sizes,
        boundaries: Vec::new(),
        errors: Arc::default(),
        overlay: None,
        refusals: Vec::new(),
    };
    let mounted = fuse::mount(&point, &Arc::new(Exports(vec![export]))).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| mounted.run(&stop));
        let flags = if read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let fd = open(&point, flags | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&point, &fd)));
        drop(fd);
        stop.store(true, Ordering::Relaxed);
        let ended = running.join().unwrap();
        if let Err(panic) = tested {
            std::panic::resume_unwind(panic);
        }
        ended.unwrap();
    });
    assert_eq!(std::fs::metadata(&point).unwrap().len(), 0, "it is still mounted");
}

#[test]
fn a_file_ends_where_its_provider_does() {
    with(Arc::new(Memory::new(LENGTH).unwrap()), false, |point, fd| {
        let stat = fstat(fd).unwrap();
        assert_eq!((stat.st_size, stat.st_blksize), (1 << 20, 16384));
        assert_eq!(statvfs(point).unwrap().f_bavail, 0);
        assert_eq!(pwrite(fd, &[7; 1000], LENGTH - 10), Ok(10));
        assert_eq!(pwrite(fd, &[7; 1000], LENGTH), Err(Errno::NOSPC));
        let mut buffer = [0; 100];
        assert_eq!(pread(fd, &mut buffer, LENGTH - 11), Ok(11));
        assert_eq!((buffer[0], buffer[1]), (0, 7));
        assert_eq!(pread(fd, &mut buffer, LENGTH), Ok(0));
        // As a device it is never cut, and a program that opens it to write it anew finds it as it
        // was.
        assert_eq!(ftruncate(fd, 10), Err(Errno::INVAL));
        assert_eq!(ftruncate(fd, 2 * LENGTH), Err(Errno::INVAL));
        drop(open(point, OFlags::WRONLY | OFlags::TRUNC, Mode::empty()).unwrap());
        assert_eq!(fstat(fd).unwrap().st_size, 1 << 20);
        assert_eq!(pread(fd, &mut buffer, LENGTH - 11), Ok(11));
        // Larger than a request may be: it comes in pieces.
        let large: Vec<u8> = (0..LENGTH).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        assert_eq!(pwrite(fd, &large, 0), Ok(large.len()));
        let mut back = vec![0; large.len()];
        assert_eq!(pread(fd, &mut back, 0), Ok(large.len()));
        assert!(large == back);
        assert_eq!(fallocate(fd, FallocateFlags::empty(), 0, 2 * LENGTH), Err(Errno::NOSPC));
        assert_eq!(fallocate(fd, FallocateFlags::COLLAPSE_RANGE, 0, 4096), Err(Errno::OPNOTSUPP));
    });
}

#[test]
fn holes_of_an_image_are_holes_of_the_file() {
    let scratch = Scratch::new();
    let image = scratch.put("image", vec![1; 1 << 20]);
    let store = Arc::new(file::open_for(&image, Access::Write).unwrap().store);
    let mut punched = false;
    with(store, false, |_, fd| {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(fd, punch, 65536, 131_072) {
            Err(Errno::OPNOTSUPP) => return skip("no holes on the file system of temporary files"),
            done => done.unwrap(),
        }
        let mut buffer = [9; 2];
        assert_eq!((pread(fd, &mut buffer, 65535), buffer), (Ok(2), [1, 0]));
        assert_eq!(seek(fd, SeekFrom::Hole(0)), Ok(65536));
        assert_eq!(seek(fd, SeekFrom::Data(65536)), Ok(196_608));
        assert_eq!(seek(fd, SeekFrom::Hole(196_608)), Ok(LENGTH));
        assert_eq!(seek(fd, SeekFrom::Data(LENGTH)), Err(Errno::NXIO));
        rustix::fs::fsync(fd).unwrap();
        punched = true;
    });
    assert_eq!(
        std::fs::read(&image).unwrap()[65534..65538],
        if punched { [1, 1, 0, 0] } else { [1; 4] }
    );
}

/// Every request of it fails in its own way.
struct Broken(error::Errno);

impl Store for Broken {
    fn length(&self) -> u64 {
        LENGTH
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), error::Errno> {
        Err(self.0)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), error::Errno> {
        Err(self.0)
    }

    fn flush(&self) -> Result<(), error::Errno> {
        Err(self.0)
    }

    fn try_zero(&self, _: u64, _: u64, _: bool) -> Result<(), error::Errno> {
        Err(self.0)
    }

    fn extent(&self, _: u64, length: u64) -> Result<Run, error::Errno> {
        Ok(Run { content: Content::Data, length })
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), error::Errno> {
        Ok(())
    }
}

#[test]
fn errors_are_told_as_they_are() {
    for (own, told) in [
        (error::Errno::Io, Errno::IO),
        (error::Errno::NoDevice, Errno::IO),
        (error::Errno::NoSpace, Errno::NOSPC),
        (error::Errno::ReadOnly, Errno::ROFS),
        (error::Errno::Unaligned, Errno::INVAL),
        (error::Errno::Unsupported, Errno::OPNOTSUPP),
    ] {
        with(Arc::new(Broken(own)), false, |_, fd| {
            assert_eq!(pread(fd, &mut [0; 512], 0), Err(told), "{own:?}");
            assert_eq!(pwrite(fd, &[0; 512], 0), Err(told), "{own:?}");
            assert_eq!(rustix::fs::fsync(fd), Err(told), "{own:?}");
            assert_eq!(
                fallocate(fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 512),
                Err(told),
                "{own:?}"
            );
        });
    }
}

#[test]
fn what_is_read_only_is_not_opened_to_be_written() {
    with(Arc::new(Broken(error::Errno::Io)), true, |point, fd| {
        assert_eq!(open(point, OFlags::RDWR, Mode::empty()).err(), Some(Errno::ROFS));
        assert_eq!(rustix::fs::fsync(fd), Ok(()));
    });
}

/// Of eight readers each waits for all others: requests of one file are answered side by side.
#[test]
fn requests_are_answered_side_by_side() {
    struct Together(std::sync::Barrier);
    impl Store for Together {
        fn length(&self) -> u64 {
            LENGTH
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), error::Errno> {
            self.0.wait();
            Ok(())
        }

        fn write_at(&self, _: &[u8], _: u64) -> Result<(), error::Errno> {
            Err(error::Errno::ReadOnly)
        }

        fn flush(&self) -> Result<(), error::Errno> {
            Ok(())
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), error::Errno> {
            Ok(())
        }
    }
    with(Arc::new(Together(std::sync::Barrier::new(8))), true, |_, fd| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(pread(fd, &mut [0; 512], 0), Ok(512)));
            }
        });
    });
}

/// Counts the writes that are to be on the medium before they return.
struct Durable(Memory, AtomicU64);

impl Filter for Durable {
    fn inner(&self) -> &dyn Store {
        &self.0
    }

    fn pass(
        &self,
        request: &filter::Request,
        run: impl FnOnce() -> Result<(), error::Errno>,
    ) -> Result<(), error::Errno> {
        self.1.fetch_add(u64::from(request.durable), Ordering::Relaxed);
        run()
    }
}

/// The kernel leaves `O_SYNC` and `O_DSYNC` to the server of a write that goes around its cache.
#[test]
fn a_write_that_is_wanted_on_the_medium_is_there() {
    let store = Arc::new(Durable(Memory::new(LENGTH).unwrap(), AtomicU64::new(0)));
    with(store.clone(), false, |point, fd| {
        assert_eq!(pwrite(fd, &[1; 512], 0), Ok(512));
        assert_eq!(store.1.load(Ordering::Relaxed), 0);
        for (flag, count) in [(OFlags::DSYNC, 1), (OFlags::SYNC, 2)] {
            let fd = open(point, OFlags::RDWR | OFlags::CLOEXEC | flag, Mode::empty()).unwrap();
            assert_eq!(pwrite(&fd, &[2; 512], 512), Ok(512));
            assert_eq!(store.1.load(Ordering::Relaxed), count);
        }
    });
}

/// Memory of which one flush says that what was written is lost.
struct Lossy(Memory, AtomicBool);

impl Filter for Lossy {
    fn inner(&self) -> &dyn Store {
        &self.0
    }

    fn pass(
        &self,
        request: &filter::Request,
        run: impl FnOnce() -> Result<(), error::Errno>,
    ) -> Result<(), error::Errno> {
        let flushes = request.durable || request.action == Action::Flush;
        if flushes && self.1.swap(false, Ordering::SeqCst) { Err(error::Errno::Io) } else { run() }
    }
}

#[test]
fn every_open_file_is_told_of_what_is_lost_once() {
    let store = Arc::new(Lossy(Memory::new(LENGTH).unwrap(), AtomicBool::new(false)));
    with(store.clone(), false, |point, fd| {
        let open = |flags| open(point, OFlags::RDWR | flags, Mode::empty()).unwrap();
        let (other, through) = (open(OFlags::empty()), open(OFlags::DSYNC));
        store.1.store(true, Ordering::SeqCst);
        assert_eq!((rustix::fs::fsync(fd), rustix::fs::fsync(fd)), (Err(Errno::IO), Ok(())));
        assert_eq!(rustix::fs::fsync(open(OFlags::empty())), Ok(()));
        assert_eq!(
            (rustix::fs::fdatasync(&other), rustix::fs::fdatasync(&other)),
            (Err(Errno::IO), Ok(()))
        );
        assert_eq!((pwrite(&through, &[1], 0), pwrite(&through, &[1], 0)), (Err(Errno::IO), Ok(1)));
    });
}
