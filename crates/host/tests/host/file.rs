use crate::Scratch;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use trueline_geom::error::Errno;
use trueline_geom::store::Store;
use trueline_host::file;

#[test]
fn an_image_is_read_to_the_byte() {
    let dir = Scratch::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let path = dir.put("image", &bytes);
    symlink(&path, dir.0.join("link")).unwrap();
    let opened = file::open(&dir.0.join("link")).unwrap();
    assert_eq!((opened.store.length(), opened.block, opened.sector, opened.device), (10_000, false, None, None));
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
    let error = |path: &Path| file::open(path).err().unwrap().to_string().replace(dir.0.to_str().unwrap(), "");
    let advice = "name an image file or a block device";
    assert_eq!(error(&dir.0), format!("open : it is a directory: {advice}"));
    assert_eq!(error(Path::new("/dev/null")), format!("open /dev/null: it is a character device: {advice}"));
    let socket = UnixListener::bind(dir.0.join("socket")).unwrap();
    assert_eq!(error(&dir.0.join("socket")), format!("open /socket: it is a socket: {advice}"));
    drop(socket);
    // Nobody writes to it: opening it would wait for ever.
    if Command::new("mkfifo").arg(dir.0.join("pipe")).status().is_ok_and(|s| s.success()) {
        assert_eq!(error(&dir.0.join("pipe")), format!("open /pipe: it is a pipe: {advice}"));
    }
    assert_eq!(error(&dir.0.join("none")), "open /none: no such file or device: check the name");
    assert_eq!(error(&dir.0.join("a\nb")), "open /a\u{fffd}b: no such file or device: check the name");
}

/// A disk that may be read here, if there is one.
#[test]
fn a_block_device_knows_itself() {
    let devices = trueline_host::sysfs::host().unwrap_or_default();
    for device in devices {
        let Ok(opened) = file::open(Path::new(&device.path)) else { continue };
        let found = opened.device.unwrap();
        assert_eq!((found.name, opened.store.length()), (device.name.clone(), device.size));
        assert_eq!((opened.block, opened.sector), (true, Some(device.sector())));
        assert_eq!(opened.physical, Some(device.limits.physical_block_size));
        let mut sector = [0; 512];
        assert_eq!(opened.store.read_at(&mut sector, device.size - 512), Ok(()));
    }
}
