//! A range of an export's bytes.

use std::fmt;

/// A part of a target that is served instead of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The offset of the first byte.
    pub start: u64,
    /// The number of bytes; [`None`]: to the end.
    pub length: Option<u64>,
}

/// A range that is not inside its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The range that was asked for.
    pub range: Range,
    /// Bytes of the target.
    pub length: u64,
}

impl Range {
    /// The number of its bytes in a target of `length` bytes, of which it has at least one.
    pub fn within(self, length: u64) -> Result<u64, Outside> {
        let outside = Outside { range: self, length };
        let room = length.checked_sub(self.start).filter(|&room| room > 0).ok_or(outside)?;
        match self.length {
            None => Ok(room),
            Some(length) if (1..=room).contains(&length) => Ok(length),
            Some(_) => Err(outside),
        }
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, length } = self.range;
        match (self.length.checked_sub(start).filter(|&room| room > 0), length) {
            (Some(room), Some(length)) => {
                write!(f, "--offset {start}+{length}: {room} bytes are there from byte {start} on")
            }
            _ => write!(f, "--offset {start}: the target has {} bytes", self.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_what_is_inside_of_a_target() {
        let within = |start, length, of: u64| Range { start, length }.within(of).ok();
        assert_eq!(
            [within(0, None, 10), within(4, None, 10), within(4, Some(6), 10)],
            [Some(10), Some(6), Some(6)]
        );
        assert_eq!(
            [within(10, None, 10), within(4, Some(7), 10), within(4, Some(0), 10)],
            [None; 3]
        );
        assert_eq!(within(u64::MAX, Some(u64::MAX), 10), None);
        let refused = |start, length| Range { start, length }.within(10).unwrap_err().to_string();
        assert_eq!(refused(10, Some(1)), "--offset 10: the target has 10 bytes");
        assert_eq!(refused(4, Some(7)), "--offset 4+7: 6 bytes are there from byte 4 on");
    }
}
