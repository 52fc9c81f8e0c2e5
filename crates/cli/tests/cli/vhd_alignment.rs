//! The alignment of VHDs as Hyper-V has it.

use crate::containers::made;
use crate::run;
use std::fs;

/// `Get-VHD` is not here: what it says of the two lengths of Microsoft's tuning guide is known, and
/// what it depends on.
#[test]
fn a_vhd_has_the_alignment_of_hyper_v() {
    let Some(here) = made(
        "qemu-img convert -O vpc raw off.vhd
        qemu-img convert -O vpc -o subformat=fixed raw fixed.vhd
        qemu-img convert -O vhdx raw new.vhdx
        qemu-img create -q -f vpc empty.vhd 1G",
    ) else {
        return;
    };
    let told = run(here.path(), "check --alignment off.vhd fixed.vhd new.vhdx empty.vhd raw");
    let lines: Vec<Vec<&str>> =
        told.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let wanted = ["ALIGNMENT TARGET", "0 off.vhd", "1 fixed.vhd", "1 new.vhdx", "0 empty.vhd"];
    assert_eq!(lines.iter().map(|words| words.join(" ")).collect::<Vec<_>>(), wanted);
    let both = run(here.path(), "check -n --alignment off.vhd,fixed.vhd raw");
    let lines: Vec<&str> = both.stdout.lines().collect();
    assert_eq!(lines, ["0  off.vhd,fixed.vhd#off", "1  off.vhd,fixed.vhd#fixed"]);
    let none = run(here.path(), "check --alignment raw");
    assert!(none.stderr.contains("no VHD or VHDX is among"), "{}", none.stderr);
    // The same blocks with the bitmap before each ended on 4096 bytes, as makers pad them.
    let mut image = fs::read(here.path().join("off.vhd")).expect("an image");
    let footer = image.split_off(image.len() - 512);
    let number = |bytes: &[u8]| u64::from(u32::from_be_bytes(bytes.try_into().expect("four")));
    let table = 1536;
    let (first, count) = (number(&image[table..table + 4]) * 512, number(&image[512 + 28..][..4]));
    let moved = (first + 512).next_multiple_of(4096) - 512 - first;
    let at = usize::try_from(first).expect("small");
    let room = usize::try_from(moved).expect("small");
    image.splice(at..at, std::iter::repeat_n(0, room));
    let block = (2 << 20) + 512;
    let mut padded = image[..at + room].to_vec();
    for (nth, bytes) in image[at + room..].chunks(block).enumerate() {
        let place = padded.len();
        padded.extend(bytes);
        padded.resize((padded.len() + 512).next_multiple_of(4096) - 512, 0);
        let entry = (0..usize::try_from(count).expect("small"))
            .map(|entry| table + 4 * entry)
            .find(|&entry| number(&image[entry..entry + 4]) * 512 == first + (nth * block) as u64);
        let entry = entry.expect("an entry for every block");
        padded[entry..entry + 4]
            .copy_from_slice(&u32::try_from(place / 512).expect("small").to_be_bytes());
    }
    padded.extend(footer);
    assert!(padded.len().is_multiple_of(4096));
    fs::write(here.path().join("on.vhd"), &padded).expect("a file");
    let told = run(here.path(), "check -n --alignment on.vhd");
    assert_eq!(told.stdout, "1  on.vhd\n", "{}", run(here.path(), "check on.vhd").stdout);
    let wrong = run(here.path(), "check --alignment --rows on.vhd");
    assert!(wrong.refused().contains("cannot be used with"));
}
