//! The model of dm-crypt against recordings of Linux's.

use crate::recorded::{devices, refused, sorted};

/// Linux 6.1 does not cut reads, 6.12 does.
const RECORDINGS: [&str; 2] = [
    include_str!("../../../../tests/kernel/layers/crypt-6.1.txt"),
    include_str!("../../../../tests/kernel/layers/crypt-6.12.txt"),
];

#[test]
fn an_encrypted_device_makes_the_requests_that_linux_makes() {
    let mut compared = 0;
    for mut device in RECORDINGS.iter().flat_map(|recording| devices("crypt", recording)) {
        let (length, sector) = device.beneath;
        assert_eq!(
            (device.layer.length(length), device.layer.sector(sector)),
            device.shown,
            "{}",
            device.title
        );
        for line in std::mem::take(&mut device.lines) {
            let made = device.plan(&line.asked);
            compared += line.came();
            assert_eq!(sorted(made), sorted(line.made), "{}: {}", device.title, line.text);
        }
    }
    assert_eq!(compared, 724, "what the manual says was compared");
}

#[test]
fn a_device_that_cannot_be_is_refused() {
    for (keys, length, sector, why) in [
        ("sector = 1024\noffset = 100", 1 << 30, 512, "offset = 100: a multiple of 512"),
        ("sector = 8192", 1 << 30, 512, "sector = 8192: a power of two from 512 to 4096"),
        ("offset = 512", 1 << 30, 4096, "offset = 512: a multiple of the 4096 bytes"),
        ("offset = 1073741824", 1 << 30, 512, "offset = 1073741824: 1073741824 bytes are beneath"),
        ("sector = 4096", (1 << 30) + 512, 512, "the 1073742336 bytes beneath"),
    ] {
        let said = refused("crypt", keys, length, sector);
        assert!(said.contains(why), "{keys}: {said}");
    }
}
