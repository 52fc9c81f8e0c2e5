//! tar archives with a disk in them: an OVA, `disk.raw` of a cloud's import, a layer that is a
//! container disk of KubeVirt.
//!
//! # On disk
//! Members one after another, each a header of 512 bytes and its contents in whole blocks of 512.
//! The first member with an image's name is the disk. A sparse one has a map: of old GNU tar in its
//! header and the blocks behind it, of POSIX 1.0 as text before its contents.
//!
//! # Topology
//! An archive carries a disk to where it is unpacked: judged as if it began where the file does.
//!
//! # Limits
//! 256 headers are looked at, and images known by their names' endings: those of oVirt and packed
//! ones are not. Other disks of an archive are named, and not looked into; sparse members of other
//! forms are `unknown`.
//!
//! # Sources
//! POSIX.1-2017 `pax`, ustar and pax interchange formats; GNU tar manual, "Basic Tar Format" and
//! "Storing Sparse Files"; DSP0243 (OVF) 1.1, 5.3, for OVA.

use super::Taste;
use super::container::Container;
use crate::base::finding::{self, Finding, Severity};
use crate::format::{Format, FormatKind, Inside, Sign};
use crate::probe::Probe;
use archive::{Archive, Disk};
use std::sync::Arc;

pub(super) mod archive;
#[cfg(test)]
mod tests;

/// The class and format, for the registry.
pub struct Tar;

/// The kind that `file` calls a tar archive.
pub const KIND: FormatKind = FormatKind::new("tar", &Tar);

/// The archive on a provider, if it has a disk. A partition may hold one too; that one is no disk.
fn found(probe: &Probe<'_>) -> Option<(Disk, Vec<String>)> {
    let Archive { disk, others } = match probe.kind() {
        Some(_) => return None,
        None => Archive::read(probe)?,
    };
    Some((disk?, others))
}

impl Format for Tar {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn unpack(&self) -> Option<&'static str> {
        Some("unpack it with tar -xf")
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let (disk, _) = found(probe)?;
        let mut sign = Sign::new(KIND, 257);
        sign.inside = disk.pieces.map_or_else(|why| Inside::Unknown(why.0), |_| Inside::Container);
        sign.details.push(("member", disk.name));
        Some(sign)
    }
}

impl Container for Tar {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some((Disk { pieces: Ok(pieces), name }, others)) = found(probe) else {
            return Taste::No;
        };
        let mut findings = Vec::new();
        if !others.is_empty() {
            let message = format!("{name} is looked into, and not {}", others.join(", "));
            let note = Finding::new(&finding::BLIND, Severity::Note, 0, message);
            findings.push(note.fix("unpack it, and check each: tar -xf"));
        }
        Taste::Geom(Arc::new(pieces), findings)
    }
}
