//! The labs that come with the program, with the texts they name, so that they run from any
//! directory.

use super::{Lab, LabError, Texts};
use crate::error::Error;
use std::borrow::Cow;

/// The built-in labs of `--all`, in the order in which they are listed.
pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn { file: "labs/2002-geom.toml", text: include_str!("../../labs/2002-geom.toml") },
    BuiltIn { file: "labs/2009-gstripe.toml", text: include_str!("../../labs/2009-gstripe.toml") },
    BuiltIn { file: "labs/2010-osnews.toml", text: include_str!("../../labs/2010-osnews.toml") },
    BuiltIn {
        file: "labs/2010-wd10ears.toml",
        text: include_str!("../../labs/2010-wd10ears.toml"),
    },
    BuiltIn { file: "labs/2013-gpart.toml", text: include_str!("../../labs/2013-gpart.toml") },
    BuiltIn { file: "labs/2026-layers.toml", text: include_str!("../../labs/2026-layers.toml") },
    BuiltIn { file: "labs/2026-qlc.toml", text: include_str!("../../labs/2026-qlc.toml") },
    BuiltIn { file: "labs/here.toml", text: include_str!("../../labs/here.toml") },
];

/// The built-in labs that only report, and are run where they are named: what they hold is the
/// world's, so no change of theirs is a mistake.
const REPORTS: &[BuiltIn] =
    &[BuiltIn { file: "labs/seen-after.toml", text: include_str!("../../labs/seen-after.toml") }];

/// Every lab that comes with the program, those that only report last.
pub fn every() -> impl Iterator<Item = &'static BuiltIn> {
    BUILT_IN.iter().chain(REPORTS)
}

/// A golden disk by name: (name in labs, text).
macro_rules! disk {
    ($name:literal) => {
        (
            concat!("../tests/disks/", $name, ".hex"),
            include_str!(concat!("../../disks/", $name, ".hex")),
        )
    };
}

const DISKS: &[(&str, &str)] = &[
    disk!("bsd-freebsd"),
    disk!("seed-000-openbsd"),
    disk!("seed-001-sdc-64"),
    disk!("seed-001-sdd-63"),
    disk!("seed-002-md"),
    disk!("seed-003-aligned"),
    disk!("seed-003-default"),
    disk!("seed-004-574"),
    disk!("seed-004-aligned"),
    disk!("seed-004-forced"),
];

/// A lab that comes with the program.
pub struct BuiltIn {
    /// The path of its file in the repository.
    pub file: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

impl BuiltIn {
    /// The parsed lab, which is trusted and so unbounded.
    pub fn lab(&self) -> Result<Lab, LabError> {
        Lab::parse(self.text, Box::new(Embedded)).map(Lab::unbounded)
    }
}

/// The text of a golden disk that comes with the program; `None` if there is none of this name.
pub(super) fn disk(name: &str) -> Option<&'static str> {
    DISKS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// The texts beside a built-in lab: none but the golden disks.
struct Embedded;

impl Texts for Embedded {
    fn read(&self, _name: &str) -> Result<Cow<'static, str>, Error> {
        Err(Error::new("it does not come with the program".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lab_is_one() {
        for built_in in every() {
            let lab = built_in.lab().map_err(|e| format!("{}: {e}", built_in.file)).unwrap();
            assert_eq!(built_in.file, format!("labs/{}.toml", lab.name()));
        }
    }
}
