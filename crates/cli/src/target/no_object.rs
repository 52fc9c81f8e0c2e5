//! Objects of stores in a build without the feature `cloud`: their URIs are known, and refused.

use super::{DiskOverrides, Target};
use crate::failure::Reason;
use std::convert::Infallible;
use std::ops::AddAssign;
use trueline_geom::graph::Disk;
use trueline_host::disk::file::Access;

/// Object, of which there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spelling(Infallible);

/// True if `text` is a URI of an object, or the begin of many.
pub(crate) fn is_meant(text: &str) -> bool {
    ["s3://", "gs://", "az://", "http://", "https://"].iter().any(|scheme| text.starts_with(scheme))
}

/// The reason for which an object is not read.
pub(super) fn refusal(uri: &str) -> Reason {
    Reason(format!(
        "open {uri}: this build reads no objects: build it with cargo install --features cloud"
    ))
}

impl Spelling {
    pub(super) fn parse(_: &str) -> Option<Spelling> {
        None
    }

    pub(super) fn uri(&self) -> &str {
        match self.0 {}
    }

    pub(super) fn beside(&self, _: &str) -> Result<Spelling, Reason> {
        match self.0 {}
    }

    pub(crate) fn leads_elsewhere(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn open(&self, _: String, _: &DiskOverrides, _: Access) -> Result<Disk, Reason> {
        match self.0 {}
    }

    pub(crate) fn state(&self) -> (u64, String) {
        match self.0 {}
    }

    pub(crate) fn current_state(&self) -> String {
        match self.0 {}
    }

    pub(crate) fn error_class(&self) -> Option<&'static str> {
        match self.0 {}
    }
}

pub(super) fn bound(_: &Target, _: bool) {}

pub(super) fn fetch_missing(_: &Target) -> Result<bool, Reason> {
    Ok(false)
}

pub(super) fn read_as_asked(_: &Target) -> Result<(), Reason> {
    Ok(())
}

/// The refusal of a listing.
pub(crate) fn list(
    prefix: &str,
) -> impl Iterator<Item = Result<(Target, u64), Reason>> + Send + use<> {
    std::iter::once(Err(refusal(prefix)))
}

/// Requests of objects, of which there are none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {}

impl Requests {
    pub(crate) fn of(_: &Target) -> Requests {
        Requests {}
    }

    pub(crate) fn sentence(&self) -> Option<String> {
        None
    }
}

impl AddAssign for Requests {
    fn add_assign(&mut self, _: Requests) {}
}
