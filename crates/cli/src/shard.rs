//! `--shard I/N`: the share of the work that one of several machines does.

use crate::failure::Reason;
use std::str::FromStr;
use trueline_lab::sweep::Share;

/// Share `index` of `count`, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    index: u64,
    count: u64,
}

impl FromStr for Shard {
    type Err = Reason;

    /// Parses `I/N`. Errors: no such two numbers, or `I` that is not below `N`.
    fn from_str(text: &str) -> Result<Shard, Reason> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            Some(Shard { index: index.parse().ok()?, count: count.parse().ok()? })
        });
        numbers
            .filter(|shard| shard.index < shard.count)
            .ok_or_else(|| "I/N, from 0: the shares of three machines are 0/3, 1/3, 2/3".into())
    }
}

impl Shard {
    /// True if the target called `name` is in this share. A name is in one share of `count`,
    /// whatever else is in the list.
    pub(crate) fn has(self, name: &str) -> bool {
        fnv1a(name.as_bytes()) % self.count == self.index
    }
}

impl From<Shard> for Share {
    /// Makes the share of numbered things, by number modulo `N`.
    fn from(shard: Shard) -> Share {
        Share::new(shard.index, shard.count).unwrap_or(Share::WHOLE)
    }
}

/// FNV-1a of 64 bits, which scripts can compute too (Fowler, Noll, Vo; IETF
/// draft-eastlake-fnv).
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_one_share() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        let shards: Vec<Shard> = (0..7).map(|n| format!("{n}/7").parse().unwrap()).collect();
        let mut sizes = [0; 7];
        for nth in 0..7000 {
            let name = format!("images/{nth}.qcow2");
            let has: Vec<usize> = (0..7).filter(|&n| shards[n].has(&name)).collect();
            assert_eq!(has.len(), 1, "{name}");
            sizes[has[0]] += 1;
        }
        assert!(sizes.iter().all(|size| (800..1200).contains(size)), "{sizes:?}");
        for wrong in ["", "1", "1/1", "3/2", "0/0", "-1/2", "a/b", "1/2/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
