//! Sets with missing members, and their findings.

use super::Id;
use crate::base::finding::{self, Finding, Fix, Severity};
use std::fmt;

/// Missing members that a message names one by one; the rest become "and more".
const NAMED: usize = 8;

/// A set with missing members. A mirror with one member present has its provider all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Class of the set, such as `stripe`.
    pub class: &'static str,
    /// Identity of the set, its own among those of the class.
    pub set: String,
    /// Name of the provider that the set makes, such as `stripe/data`.
    pub provider: String,
    /// Members that are present, and their numbers from 0, if members of the class have any.
    pub here: Vec<(Id, Option<usize>)>,
    /// Numbers of members that are present and not in use, because they are stale or damaged.
    pub left_out: Vec<usize>,
    /// Number of members in the whole set.
    pub count: usize,
}

impl Incomplete {
    /// Number of members that are missing.
    pub fn missing(&self) -> usize {
        self.count.saturating_sub(self.here.len()).saturating_sub(self.left_out.len())
    }

    /// True if `name` is the name of its provider, or of one that would stand on it.
    pub fn would_have(&self, name: &str) -> bool {
        name.strip_prefix(&self.provider).is_some_and(|rest| !rest.starts_with(['-', '_']))
    }

    pub(super) fn finding(&self) -> Finding {
        let Incomplete { class, .. } = self;
        let found = Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, self.to_string());
        // Members of other sets are named by their own systems' tools.
        let is_printed = self.is_numbered() && ["stripe", "concat"].contains(class);
        let numbered_by = is_printed.then_some(*class);
        let found = match self.missing() {
            0 => found,
            missing => found.fix(Fix::NameMembers { missing, numbered_by }),
        };
        let by_linux = *class == "md" && self.is_numbered();
        let found = match self.missing() {
            1.. if by_linux => found.fix("mdadm --examine DISK says what role a member has"),
            _ => found,
        };
        match self.left_out.as_slice() {
            [_, ..] if by_linux => found.fix(
                "mdadm ARRAY --re-add DISK, or else --add, rebuilds a member that is left out",
            ),
            _ => found,
        }
    }

    fn is_numbered(&self) -> bool {
        self.here.iter().all(|(_, number)| number.is_some())
    }
}

/// `stripe set stripe/data has 2 of its 3 members here: member 2 is missing (numbers begin at 0)`.
impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Incomplete { class, provider, here, left_out, count, .. } = self;
        write!(f, "{class} set {provider} has {} of its {count} members here", here.len())?;
        if !self.is_numbered() {
            return Ok(());
        }
        // A label may claim any count: the walk stops at the last number that is named.
        let is_missing = |number: &usize| {
            !left_out.contains(number) && !here.iter().any(|(_, own)| own == &Some(*number))
        };
        let missing: Vec<usize> = match self.missing() {
            0 => Vec::new(),
            _ => (0..*count).filter(is_missing).take(NAMED).collect(),
        };
        let mut before = ":";
        for (numbers, all, state) in [
            (left_out.iter().take(NAMED).copied().collect(), left_out.len(), "left out"),
            (missing, self.missing(), "missing"),
        ] {
            let named: Vec<String> = numbers.iter().map(usize::to_string).collect();
            if named.is_empty() {
                continue;
            }
            let more = if all > named.len() { " and more" } else { "" };
            let (noun, verb) = if all == 1 { ("member", "is") } else { ("members", "are") };
            write!(f, "{before} {noun} {}{more} {verb} {state}", named.join(", "))?;
            before = ",";
        }
        if before == "," { f.write_str(" (numbers begin at 0)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(here: &[Option<usize>], count: usize) -> Incomplete {
        Incomplete {
            class: "stripe",
            set: "data".into(),
            provider: "stripe/data".into(),
            here: here.iter().copied().enumerate().collect(),
            left_out: Vec::new(),
            count,
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let said = |here: &[Option<usize>], count| set(here, count).to_string();
        assert_eq!(
            said(&[Some(0)], 2),
            "stripe set stripe/data has 1 of its 2 members here: member 1 is missing (numbers begin at 0)"
        );
        assert_eq!(
            said(&[Some(2), Some(0)], 4),
            "stripe set stripe/data has 2 of its 4 members here: members 1, 3 are missing (numbers begin at 0)"
        );
        assert_eq!(said(&[None], 2), "stripe set stripe/data has 1 of its 2 members here");
        let stale = |left_out: &[usize]| {
            let left_out = left_out.to_vec();
            Incomplete { left_out, ..set(&[Some(0), Some(2)], 4) }.to_string()
        };
        assert_eq!(
            stale(&[1, 3]),
            "stripe set stripe/data has 2 of its 4 members here: members 1, 3 are left out (numbers begin at 0)"
        );
        assert_eq!(
            stale(&[3]),
            "stripe set stripe/data has 2 of its 4 members here: member 3 is left out, member 1 is missing (numbers begin at 0)"
        );
        let many = said(&[Some(1)], usize::MAX);
        assert!(many.contains(": members 0, 2, 3, 4, 5, 6, 7, 8 and more are missing"), "{many}");
    }

    #[test]
    fn what_would_stand_on_it_is_known_by_its_name() {
        let set = set(&[Some(0)], 2);
        for name in ["stripe/data", "stripe/datap1", "stripe/datas1a"] {
            assert!(set.would_have(name), "{name}");
        }
        for name in ["stripe/dat", "stripe/data-2", "ada1"] {
            assert!(!set.would_have(name), "{name}");
        }
    }
}
