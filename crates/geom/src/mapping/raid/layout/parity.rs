//! Chunks with parity: which member holds which chunk of a row, and its parity (RAID4, 5, 6).

use crate::base::topology::round_down;
use crate::mapping::raid::fault::Fault;

/// Parity before the data, and after them.
const PARITY_0: u32 = 4;
const PARITY_N: u32 = 5;
/// Rotations of RAID6 that DDF defines.
const ROTATING_ZERO_RESTART: u32 = 8;
const ROTATING_N_RESTART: u32 = 9;
const ROTATING_N_CONTINUE: u32 = 10;
/// RAID5's layouts with Q on the last member (RAID6): 16 to 20.
const WITH_LAST_Q: u32 = 16;
/// Chunks of data on all members but one or two, which hold their parity (RAID4, 5, 6).
#[derive(Clone, Debug)]
pub struct Parity {
    /// RAID5's or RAID6's number of the layout, as Linux has it.
    layout: u32,
    six: bool,
    disks: u64,
    pub(super) chunk: u64,
    pub(super) length: u64,
}

/// One row of a set with parity: which role holds what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Role of the sum.
    pub p: usize,
    /// Role of the weighted sum.
    pub q: Option<usize>,
}

impl Parity {
    /// A set of `disks` members of `size` bytes each, with the layout's number at its level.
    pub fn new(
        level: i32,
        layout: u32,
        disks: u64,
        chunk: u64,
        size: u64,
    ) -> Result<Parity, Fault> {
        let six = level == 6;
        // A RAID4's layout is not looked at: its parity is on the last member.
        let layout = if level == 4 { PARITY_N } else { layout };
        let known = match layout {
            0..=PARITY_N => true,
            ROTATING_ZERO_RESTART..=ROTATING_N_CONTINUE => six,
            n => six && (WITH_LAST_Q..=WITH_LAST_Q + PARITY_0).contains(&n),
        };
        if !known {
            return Err(Fault::Layout(layout));
        }
        let least = if six { 4 } else { 2 };
        if disks < least {
            return Err(Fault::Members { disks, least });
        }
        let length = round_down(size, chunk)
            .checked_mul(disks - if six { 2 } else { 1 })
            .ok_or(Fault::TooLarge)?;
        Ok(Parity { layout, six, disks, chunk, length })
    }

    /// Chunks of data in a row.
    pub fn data(&self) -> u64 {
        self.disks - if self.six { 2 } else { 1 }
    }

    /// Row, and number of the chunk in it, of byte `x`.
    pub fn row_of(&self, x: u64) -> (u64, u64) {
        let n = x / self.chunk;
        (n / self.data(), n % self.data())
    }

    /// The roles of parity in row number `row`.
    pub fn row(&self, row: u64) -> Row {
        let disks = self.disks;
        let (p, q) = if !self.six {
            (self.p_of_five(row, disks), None)
        } else if self.layout >= WITH_LAST_Q {
            let inner = Parity { layout: self.layout - WITH_LAST_Q, ..*self };
            (inner.p_of_five(row, disks - 1), Some(disks - 1))
        } else {
            let back = disks - 1 - row % disks;
            let (p, q) = match self.layout {
                PARITY_0 => (0, 1),
                PARITY_N => (disks - 2, disks - 1),
                ROTATING_N_RESTART => {
                    let p = disks - 1 - (row + 1) % disks;
                    (p, (p + 1) % disks)
                }
                ROTATING_N_CONTINUE => (back, (back + disks - 1) % disks),
                1 | 3 | ROTATING_ZERO_RESTART => (row % disks, (row % disks + 1) % disks),
                _ => (back, (back + 1) % disks),
            };
            (p, Some(q))
        };
        let role = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Row { p: role(p), q: q.map(role) }
    }

    /// The role of parity in a RAID5 of `disks` members.
    fn p_of_five(&self, row: u64, disks: u64) -> u64 {
        match self.layout {
            1 | 3 => row % disks,
            PARITY_0 => 0,
            PARITY_N => disks - 1,
            _ => disks - 1 - row % disks,
        }
    }

    /// The role of chunk number `index` of the data in `row`.
    pub fn data_role(&self, row: Row, index: u64) -> usize {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        // The members among which the data rotate.
        let around = usize::try_from(self.disks).unwrap_or(usize::MAX)
            - usize::from(self.six && self.layout >= WITH_LAST_Q);
        let follows = match self.layout {
            ROTATING_N_CONTINUE => Some(row.p),
            2 | 3 if self.six => row.q,
            2 | 3 | 18 | 19 => Some(row.p),
            _ => None,
        };
        if let Some(last) = follows {
            return (last + 1 + index) % around;
        }
        // In order, past the parity.
        let mut taken = [Some(row.p), row.q];
        taken.sort_unstable();
        taken.iter().flatten().fold(index, |role, &taken| role + usize::from(role >= taken))
    }

    /// The power of 2 by which Q counts what `role` holds in `row`.
    pub fn weight(&self, row: Row, role: usize) -> usize {
        let Some(q) = row.q else { return 0 };
        if (ROTATING_ZERO_RESTART..=ROTATING_N_CONTINUE).contains(&self.layout) {
            return role;
        }
        // Data are counted from the member after Q on, past P.
        let disks = usize::try_from(self.disks).unwrap_or(usize::MAX);
        let from_q = |role: usize| (role + disks - q - 1) % disks;
        from_q(role) - usize::from(from_q(row.p) < from_q(role))
    }

    pub(super) fn place(&self, x: u64) -> (usize, u64) {
        let (row, index) = self.row_of(x);
        (self.data_role(self.row(row), index), row * self.chunk + x % self.chunk)
    }

    /// Bytes of a chunk, at least a page.
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Number of members, parity included.
    pub fn disks(&self) -> usize {
        usize::try_from(self.disks).unwrap_or(usize::MAX)
    }
}
