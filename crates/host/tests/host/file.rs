use crate::skip::skip;
use crate::{Loop, Scratch};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_host::Device;
use trueline_host::disk::file::{self, Access};

#[test]
fn an_image_is_read_to_the_byte() {
    let dir = Scratch::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let path = dir.put("image", &bytes);
    symlink(&path, dir.0.join("link")).unwrap();
    let opened = file::open(&dir.0.join("link")).unwrap();
    assert_eq!(
        (opened.store.length(), opened.block, opened.sector, opened.device),
        (10_000, false, None, None)
    );
    assert!(opened.io.block > 0);
    let mut some = [0; 300];
    assert_eq!(opened.store.read_at(&mut some, 9_700), Ok(()));
    assert_eq!(some, bytes[9_700..]);
    assert_eq!(opened.store.read_at(&mut some, 9_701), Err(Errno::Range));
    assert_eq!(opened.store.read_at(&mut some, u64::MAX), Err(Errno::Range));
    assert_eq!(opened.store.read_at(&mut [], 10_000), Ok(()));
    // Cut short behind our back.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(9_800).unwrap();
    assert_eq!(opened.store.read_at(&mut some, 9_700), Err(Errno::Range));
}

#[test]
fn an_empty_image_opens() {
    let dir = Scratch::new();
    assert_eq!(file::open(&dir.put("empty", "")).unwrap().store.length(), 0);
}

#[test]
fn what_is_no_image_is_refused_in_one_line() {
    let dir = Scratch::new();
    let error = |path: &Path| {
        file::open(path).err().unwrap().to_string().replace(dir.0.to_str().unwrap(), "")
    };
    let advice = "name an image file or a block device";
    assert_eq!(error(&dir.0), format!("open : it is a directory: {advice}"));
    assert_eq!(
        error(Path::new("/dev/null")),
        format!("open /dev/null: it is a character device: {advice}")
    );
    let socket = UnixListener::bind(dir.0.join("socket")).unwrap();
    assert_eq!(error(&dir.0.join("socket")), format!("open /socket: it is a socket: {advice}"));
    drop(socket);
    // It has no writer: opening it would wait for ever.
    if Command::new("mkfifo").arg(dir.0.join("pipe")).status().is_ok_and(|s| s.success()) {
        assert_eq!(error(&dir.0.join("pipe")), format!("open /pipe: it is a pipe: {advice}"));
    }
    assert_eq!(error(&dir.0.join("none")), "open /none: no such file or device: check the name");
    assert_eq!(
        error(&dir.0.join("a\nb")),
        "open /a\u{fffd}b: no such file or device: check the name"
    );
}

/// A disk of its own, where there are loop devices, and those of this machine that may be read. Its
/// loop devices are other tests': they come, go and shrink.
#[test]
fn a_block_device_knows_itself() {
    let dir = Scratch::new();
    let own = Loop::new(&dir.put("image", vec![7; 1 << 20]), &[]);
    let is_own =
        |device: &Device| own.as_ref().is_some_and(|own| own.path() == Path::new(&device.path));
    let Ok(devices) = trueline_host::device::sysfs::host() else { return skip("no sysfs here") };
    assert_eq!(devices.iter().filter(|device| is_own(device)).count(), usize::from(own.is_some()));
    let is_loop = |device: &Device| device.name.starts_with("loop");
    for device in devices.iter().filter(|device| is_own(device) || !is_loop(device)) {
        let Ok(opened) = file::open(Path::new(&device.path)) else { continue };
        let found = opened.device.unwrap();
        assert_eq!((&found.name, opened.store.length()), (&device.name, device.size));
        assert_eq!((opened.block, opened.sector), (true, Some(device.sector())));
        assert_eq!(opened.physical, Some(device.limits.physical_block_size));
        let mut sector = [0; 512];
        assert_eq!(opened.store.read_at(&mut sector, device.size - 512), Ok(()));
        assert!(!is_own(device) || sector == [7; 512]);
    }
}

/// What is in the page cache is read at once, and on tmpfs, which cannot say so, everything is.
#[test]
fn what_is_in_memory_is_read_at_once() {
    let bytes: Vec<u8> =
        (0..8192_u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
    let scratch = Scratch::new();
    let mut places = vec![scratch.put("image", &bytes)];
    let memory = Path::new("/dev/shm").join(format!("trueline-{}", std::process::id()));
    if std::fs::write(&memory, &bytes).is_ok() {
        places.push(memory.clone());
    }
    for place in &places {
        let store = file::open(place).unwrap().store;
        let mut read = [0; 100];
        store.read_at(&mut read, 5000).unwrap();
        let now = store.try_read(&mut read, 5000).unwrap();
        // A file system may be one that cannot tell.
        assert!(now || !store.properties().non_blocking, "{}", place.display());
        assert!(!now || read == bytes[5000..5100]);
        assert_eq!(store.try_read(&mut read, 8100), Err(Errno::Range));
    }
    let tmpfs = Command::new("stat").args(["-f", "-c", "%T"]).arg(&memory).output();
    let tmpfs = tmpfs.is_ok_and(|ran| ran.stdout.starts_with(b"tmpfs"));
    assert!(!tmpfs || file::open(&memory).unwrap().store.properties().non_blocking);
    let _ = std::fs::remove_file(&memory);
}

/// Of a loop device a hole is one of its file, which tells.
#[test]
fn what_is_of_no_interest_to_a_device_is_punched_out() {
    let scratch = Scratch::new();
    let image = scratch.put("image", vec![7; 4 << 20]);
    let room = || std::fs::metadata(&image).unwrap().blocks() * 512;
    let full = room();
    let Some(device) = Loop::new(&image, &[]) else { return };
    let store = file::open_for(device.path(), Access::Write).unwrap().store;
    assert_eq!(store.discard(1 << 20, 1 << 20), Ok(()));
    let mut bytes = vec![1; 4 << 20];
    let zeros = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == 0).count();
    store.read_at(&mut bytes, 0).unwrap();
    assert_eq!((zeros(&bytes), zeros(&bytes[1 << 20..2 << 20])), (1 << 20, 1 << 20));
    let given_back = || full.checked_sub(room());
    if given_back() != Some(1 << 20) {
        return println!("skipped: no holes in files here: {} of {full} bytes", room());
    }
    // Zeros whose room is kept take what they took.
    assert!(matches!(store.try_zero(2 << 20, 1 << 20, true), Ok(()) | Err(Errno::Unsupported)));
    assert_eq!(given_back(), Some(1 << 20));
    // Over a file that cannot keep its room (on tmpfs), Linux offers no zeros of either kind from
    // then on.
    let given = store.try_zero(3 << 20, 1 << 20, false);
    assert!(matches!(given, Ok(()) | Err(Errno::Unsupported)), "{given:?}");
    assert_eq!(given_back(), Some(if given.is_ok() { 2 << 20 } else { 1 << 20 }));
    assert_eq!(store.discard(4 << 20, 1), Err(Errno::Range));
}

/// What was preallocated is not written by being read; what was written is, on the medium or not
/// yet.
#[test]
fn what_was_never_written_is_told_whatever_the_page_cache_has() {
    const MIB: u64 = 1 << 20;
    let dir = Scratch::new();
    let path = dir.0.join("made");
    let made = Command::new("fallocate").args(["-l", "16M"]).arg(&path).status();
    let Some(all) = made
        .ok()
        .filter(|status| status.success())
        .and_then(|_| file::open(&path).unwrap().store.never_written())
    else {
        return skip("no fallocate(1), or a file system that tells of no extents");
    };
    assert_eq!(all, 16 * MIB);
    assert!(std::fs::read(&path).unwrap().iter().all(|&byte| byte == 0));
    let medium = file::open(&path).unwrap().store;
    assert_eq!(medium.never_written(), Some(16 * MIB));
    let opened = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&opened, &[7; 1 << 16], MIB).unwrap();
    let left = medium.never_written().unwrap();
    // A file system may write zeros around what it converts.
    assert!((15 * MIB..=16 * MIB - (1 << 16)).contains(&left), "{left}");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    assert_eq!(file::open(&path).unwrap().store.never_written(), Some(0));
    let sparse = dir.put("sparse", "");
    std::fs::OpenOptions::new().write(true).open(&sparse).unwrap().set_len(MIB).unwrap();
    assert_eq!(file::open(&sparse).unwrap().store.never_written(), Some(MIB));
}
