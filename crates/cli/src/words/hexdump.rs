//! Bytes in the format of `hexdump -C`, which golden disks and saved bytes use.

use std::io::{self, Write};

/// Bytes of a line in a file or a pipe.
const LINE: usize = 16;

/// Writes `bytes`, which begin at `offset`, and their end. A line equal to the one before is folded
/// into a `*`.
pub(crate) fn write(offset: u64, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    write_fitting(offset, bytes, None, out)
}

/// As [`fn@write`], with 16, 8 or 4 bytes in a line, so that it fits `width` columns. The least
/// width that fits is 30.
pub(crate) fn write_fitting(
    offset: u64,
    bytes: &[u8],
    width: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Ten for the address, three a byte and a space a half, one a byte and two bars.
    let columns = |bytes: usize| 10 + 3 * bytes + bytes.div_ceil(LINE / 2) + bytes + 2;
    let length = [LINE, LINE / 2]
        .into_iter()
        .find(|&bytes| width.is_none_or(|width| columns(bytes) <= width))
        .unwrap_or(LINE / 4);
    let (mut previous, mut folded): (&[u8], bool) = (&[], false);
    for (at, line) in (offset..).step_by(length).zip(bytes.chunks(length)) {
        if line == previous {
            if !folded {
                writeln!(out, "*")?;
            }
            folded = true;
            continue;
        }
        (previous, folded) = (line, false);
        let half = |from: usize| {
            let bytes: String =
                line.iter().skip(from).take(LINE / 2).map(|b| format!("{b:02x} ")).collect();
            let wide = 3 * length.saturating_sub(from).min(LINE / 2);
            if wide == 0 { bytes } else { format!("{bytes:wide$} ") }
        };
        let text: String = line
            .iter()
            .map(|&b| if (0x20..0x7f).contains(&b) { char::from(b) } else { '.' })
            .collect();
        writeln!(out, "{at:08x}  {}{}|{text}|", half(0), half(LINE / 2))?;
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
        let want = "00000200  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\
            \n*\n00000240  45 46 49 20 50 41 52 54  20 61 6e 64 20 6d 6f 72  |EFI PART and mor|\n\
            00000250  65                                                |e|\n00000251\n";
        assert_eq!(text, want);
        let mut back = vec![9; bytes.len()];
        Sparse::from_hexdump(&text).unwrap().read_at(&mut back, 512).unwrap();
        assert_eq!(back, bytes);
    }

    #[test]
    fn narrow_lines_hold_fewer_bytes_and_are_read_as_the_same() {
        let bytes: Vec<u8> = (0..70).collect();
        for (width, longest) in [(None, 78), (Some(78), 78), (Some(77), 45), (Some(40), 29)] {
            let mut text = Vec::new();
            write_fitting(512, &bytes, width, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(
                text.lines().map(|line| line.chars().count()).max(),
                Some(longest),
                "{text}"
            );
            let mut back = vec![0; bytes.len()];
            Sparse::from_hexdump(&text).unwrap().read_at(&mut back, 512).unwrap();
            assert_eq!(back, bytes, "{width:?}");
        }
    }
}
