//! Findings: faults of a disk, and facts worth knowing. A finding is a result, not an error.

use crate::base::escape;
use crate::base::topology::{Cost, Fact};
use std::fmt;

mod fix;

pub use fix::{Fix, Statement};

/// Weight of a finding; it follows the cost. Variants are in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; costs nothing now.
    Note,
    /// Costs something now, or will later.
    Warning,
    /// Costs half as much again or more, or data is at risk.
    Error,
}

impl Severity {
    /// Name used in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A rule of `check`: its id is stable, its page is what `trueline explain` prints.
pub struct Rule {
    /// Identifier such as `TL0001`, never reused for another rule.
    pub id: &'static str,
    /// Title of a few words, for lists of rules.
    pub title: &'static str,
    /// Manual page of the rule, in Markdown.
    pub page: &'static str,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.id == other.id
    }
}

/// One fault or fact found on a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Rule that the finding is an instance of.
    pub rule: &'static Rule,
    /// Weight of this finding; the same rule may weigh more in another place.
    pub severity: Severity,
    /// First byte that is concerned, counted from the start of the provider it was found on.
    pub offset: u64,
    /// Unit it is measured against, in bytes; 0 where there is none.
    pub unit: u64,
    /// Distance past the last boundary of the unit, in bytes.
    pub remainder: u64,
    /// Price in device operations; `None` where it cannot be computed.
    pub cost: Option<Cost>,
    /// One line for the user: what was found, bytes first, LBA in parentheses.
    pub message: String,
    /// Cures, the best first; empty where there is none.
    pub fix: Vec<Fix>,
}

impl Finding {
    /// A finding without a unit or cost, as the table classes make. Text in `message` that comes
    /// from a disk is made harmless here.
    pub fn new(rule: &'static Rule, severity: Severity, offset: u64, message: String) -> Finding {
        let message = escape::plain(&message);
        Finding {
            rule,
            severity,
            offset,
            unit: 0,
            remainder: 0,
            cost: None,
            message,
            fix: Vec::new(),
        }
    }

    /// This finding with one more cure, after those it has.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<Fix>) -> Finding {
        self.fix.push(fix.into());
        self
    }

    /// This finding, measured against a boundary: unit and distance past it in bytes, and the cost.
    #[must_use]
    pub fn against(mut self, unit: u64, remainder: u64, cost: Option<Cost>) -> Finding {
        (self.unit, self.remainder, self.cost) = (unit, remainder, cost);
        self
    }

    /// This finding, measured against `fact` as seen from address 0.
    #[must_use]
    pub fn against_fact(self, fact: &Fact, cost: Option<Cost>) -> Finding {
        self.against(fact.grain.size(), fact.grain.remainder(0), cost)
    }
}

macro_rules! rules {
    ($($name:ident = $id:literal, $title:literal;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $title, ".")]
            pub static $name: Rule = Rule { id: $id, title: $title, page: include_str!(concat!("../../rules/", $id, ".md")) };
        )*
        /// Every rule of `check`, in order of its id.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    START = "TL0001", "starts off its grain";
    END = "TL0002", "ends off its grain";
    DATA = "TL0003", "data area off the grain";
    SMALL = "TL0004", "block or fragment smaller than the physical unit";
    STRIPE = "TL0005", "stripe parameters do not match the set";
    CLASH = "TL0006", "members that clash";
    SECTOR = "TL0007", "written for another sector size";
    GPT = "TL0008", "damaged GPT";
    RANGE = "TL0009", "partition out of range";
    OVERLAP = "TL0010", "partitions overlap";
    EBR = "TL0011", "damaged chain of logical partitions";
    LIMITS = "TL0012", "reported topology cannot be true";
    AMBIVALENT = "TL0013", "several signatures in one place";
    STALE = "TL0014", "stale signature";
    SIZE = "TL0015", "larger than its provider";
    HINT = "TL0016", "starts off a boundary that is only a hint";
    CARRIER = "TL0017", "a slice that only carries a table starts off the grain";
    OPAQUE = "TL0018", "recognised, not understood inside";
    BLIND = "TL0019", "not everything could be looked at";
    INCOMPLETE = "TL0020", "set incomplete";
    HYBRID = "TL0021", "MBR and GPT disagree";
    LABEL = "TL0022", "damaged disklabel";
    MOVED_END = "TL0023", "backup GPT not at the end of the disk";
    KERNEL = "TL0024", "the kernel sees it otherwise";
    UNSAID = "TL0025", "a boundary that the protocol cannot say";
    MOVING = "TL0026", "a move that was interrupted";
    UNKNOWN = "TL0027", "contents that are not recognised";
    EMPTY = "TL0028", "nothing is on it";
    UNREAD = "TL0029", "contents that were not read";
    CONTAINER = "TL0030", "a container whose blocks are off the grain";
}

/// The rule called `id`, in upper or lower case; `None` for an unknown one.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|r| r.id.eq_ignore_ascii_case(id))
}
