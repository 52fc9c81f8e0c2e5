//! Bytes as `hexdump -C` prints them, which is how the golden disks and saved bytes are kept.

use std::io::{self, Write};

/// Bytes in a line.
const LINE: usize = 16;

/// Writes `bytes`, which stand at `offset`, and where they end. Lines like the one before are folded into a `*`.
pub(crate) fn write(offset: u64, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let (mut previous, mut folded): (&[u8], bool) = (&[], false);
    for (at, line) in (offset..).step_by(LINE).zip(bytes.chunks(LINE)) {
        if line == previous {
            if !folded {
                writeln!(out, "*")?;
            }
            folded = true;
            continue;
        }
        (previous, folded) = (line, false);
        let half = |from: usize| line.iter().skip(from).take(LINE / 2).map(|b| format!("{b:02x} ")).collect::<String>();
        let text: String = line.iter().map(|&b| if (0x20..0x7f).contains(&b) { char::from(b) } else { '.' }).collect();
        writeln!(out, "{at:08x}  {:<24} {:<24} |{text}|", half(0), half(LINE / 2))?;
    }
    writeln!(out, "{:08x}", offset.saturating_add(bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::base::store::{Sparse, Store};

    #[test]
    fn as_hexdump_prints_it() {
        let mut bytes = vec![0; 64];
        bytes.extend(b"EFI PART and more");
        let mut text = Vec::new();
        write(512, &bytes, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let want = "00000200  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n\
                    *\n\
                    00000240  45 46 49 20 50 41 52 54  20 61 6e 64 20 6d 6f 72  |EFI PART and mor|\n\
                    00000250  65                                                |e|\n\
                    00000251\n";
        assert_eq!(text, want);
        let mut back = vec![9; bytes.len()];
        Sparse::from_hexdump(&text).unwrap().read_at(&mut back, 512).unwrap();
        assert_eq!(back, bytes);
    }
}
