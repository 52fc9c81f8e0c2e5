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
    /// Name of the provider that the set makes, such as `stripe/data`.
    pub provider: String,
    /// Members that are present, and their numbers from 0, if members of the class have any.
    pub here: Vec<(Id, Option<usize>)>,
    /// Number of members in the whole set.
    pub count: usize,
}

impl Incomplete {
    /// Number of members that are missing.
    pub fn missing(&self) -> usize {
        self.count.saturating_sub(self.here.len())
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
        let found = found.fix(Fix::NameMembers { missing: self.missing(), numbered_by });
        let by_linux = *class == "md" && self.is_numbered();
        if by_linux { found.fix("mdadm --examine DISK says what role a member has") } else { found }
    }

    fn is_numbered(&self) -> bool {
        self.here.iter().all(|(_, number)| number.is_some())
    }
}

/// `stripe set stripe/data has 2 of its 3 members here: number 2 of 0 to 2 is missing`.
impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Incomplete { class, provider, here, count } = self;
        write!(f, "{class} set {provider} has {} of its {count} members here", here.len())?;
        if !self.is_numbered() {
            return Ok(());
        }
        // A label may claim any count: the walk stops at the last number that is named.
        let numbers =
            (0..*count).filter(|number| !here.iter().any(|(_, own)| own == &Some(*number)));
        let named: Vec<String> = numbers.take(NAMED).map(|number| number.to_string()).collect();
        let more = if self.missing() > named.len() { " and more" } else { "" };
        let (noun, verb) = if self.missing() == 1 { ("number", "is") } else { ("numbers", "are") };
        write!(
            f,
            ": {noun} {}{more} of 0 to {} {verb} missing",
            named.join(", "),
            count.saturating_sub(1)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(here: &[Option<usize>], count: usize) -> Incomplete {
        Incomplete {
            class: "stripe",
            provider: "stripe/data".into(),
            here: here.iter().copied().enumerate().collect(),
            count,
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let said = |here: &[Option<usize>], count| set(here, count).to_string();
        assert_eq!(
            said(&[Some(0)], 2),
            "stripe set stripe/data has 1 of its 2 members here: number 1 of 0 to 1 is missing"
        );
        assert_eq!(
            said(&[Some(2), Some(0)], 4),
            "stripe set stripe/data has 2 of its 4 members here: numbers 1, 3 of 0 to 3 are missing"
        );
        assert_eq!(said(&[None], 2), "stripe set stripe/data has 1 of its 2 members here");
        let many = said(&[Some(1)], usize::MAX);
        assert!(many.contains(": numbers 0, 2, 3, 4, 5, 6, 7, 8 and more of 0 to "), "{many}");
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
