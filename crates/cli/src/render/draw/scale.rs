//! Bytes on a line of cells (columns, pixels): to scale, but every range stays visible.

/// Positions of the edges of a drawing.
pub(crate) struct Scale {
    edges: Vec<u64>,
    cells: Vec<usize>,
    /// Number of stretches between edges that are drawn wider than to scale.
    pub widened: usize,
}

/// A range of bytes, and the least width of each of its stretches in cells.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub start: u64,
    pub end: u64,
    pub least: usize,
}

impl Scale {
    /// A line of `width` cells for the bytes from 0 to `length`; longer if there are more stretches
    /// than cells.
    pub(crate) fn new(length: u64, ranges: &[Range], width: usize) -> Scale {
        let mut edges: Vec<u64> =
            ranges.iter().flat_map(|r| [r.start, r.end]).chain([0, length]).collect();
        edges.sort_unstable();
        edges.dedup();
        let stretches: Vec<u64> = edges.windows(2).map(|w| w[1] - w[0]).collect();
        let mut least = vec![1; stretches.len()];
        for r in ranges {
            let (from, to) =
                (edges.partition_point(|&e| e < r.start), edges.partition_point(|&e| e < r.end));
            least[from..to].iter_mut().for_each(|l| *l = r.least.max(*l));
        }
        if least.iter().sum::<usize>() > width {
            least.fill(1);
        }
        let (widths, widened) = widths(&stretches, &least, width.max(stretches.len()));
        let mut cells = vec![0];
        cells.extend(widths.iter().scan(0, |at, w| {
            *at += w;
            Some(*at)
        }));
        Scale { edges, cells, widened }
    }

    /// The cell of the first edge at or after `byte`.
    pub(crate) fn cell(&self, byte: u64) -> usize {
        let at = self.edges.partition_point(|&e| e < byte).min(self.cells.len() - 1);
        self.cells[at]
    }

    /// Width of the whole line in cells.
    pub(crate) fn width(&self) -> usize {
        self.cells[self.cells.len() - 1]
    }
}

/// Widths of the stretches in cells, and the number of widened ones. Those too small for their
/// least width get that; the rest of `width` is shared by size.
fn widths(stretches: &[u64], least: &[usize], width: usize) -> (Vec<usize>, usize) {
    let wide = |n: usize| u128::try_from(n).unwrap_or(0);
    let mut out = vec![0; stretches.len()];
    let (mut room, mut bytes) =
        (wide(width), stretches.iter().map(|&s| u128::from(s)).sum::<u128>());
    // Smallest for its least width first: once one is wide enough by itself, so are all after it.
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    order.sort_by(|&a, &b| {
        (u128::from(stretches[a]) * wide(least[b]))
            .cmp(&(u128::from(stretches[b]) * wide(least[a])))
    });
    let mut small = 0;
    for &i in &order {
        if u128::from(stretches[i]) * room >= wide(least[i]) * bytes {
            break;
        }
        out[i] = least[i];
        room -= wide(least[i]);
        bytes -= u128::from(stretches[i]);
        small += 1;
    }
    // The rest is given by running total, so that roundings do not add up.
    let (mut before, mut given) = (0u128, 0);
    for i in 0..stretches.len() {
        if out[i] == 0 {
            before += u128::from(stretches[i]);
            let upto = usize::try_from(before * room / bytes.max(1)).unwrap_or(0);
            out[i] = upto - given;
            given = upto;
        }
    }
    (out, small)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, least: usize) -> Range {
        Range { start, end, least }
    }

    #[test]
    fn to_scale_where_there_is_room() {
        let s = Scale::new(1000, &[range(0, 500, 1), range(500, 750, 1)], 100);
        assert_eq!([0, 500, 750, 1000].map(|b| s.cell(b)), [0, 50, 75, 100]);
        assert_eq!((s.widened, s.width()), (0, 100));
    }

    #[test]
    fn nothing_vanishes() {
        let s = Scale::new(1 << 60, &[range(512, 1024, 3), range(2048, 1 << 60, 3)], 80);
        assert_eq!([512, 1024, 2048, 1 << 60].map(|b| s.cell(b)), [1, 4, 5, 80]);
        assert_eq!(s.widened, 3);
    }

    #[test]
    fn more_pieces_than_cells() {
        let ranges: Vec<Range> = (0..500).map(|i| range(i * 7, i * 7 + 3, 4)).collect();
        let s = Scale::new(3500, &ranges, 80);
        assert!((0..500).all(|i| s.cell(i * 7) < s.cell(i * 7 + 3)));
        assert_eq!(s.width(), 1000);
    }
}
