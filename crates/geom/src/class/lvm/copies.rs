//! Copies of a group's text on one physical volume.

use super::fault::Fault;
use super::group::Head;
use crate::base::finding::{self, Finding, Severity};
use crate::format::lvm2::label::{self, Label};
use crate::mapping::slices::place;
use crate::probe::Probe;

/// Text of a group as one metadata area has it.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// First byte of its metadata area.
    pub(super) at: u64,
    /// Checksum, by which texts are told apart.
    pub(super) checksum: u32,
    /// The text, which ends with a NUL.
    pub(super) text: String,
    /// The group that it is of.
    pub(super) head: Head,
}

/// The newest text on a physical volume, if there is one, and findings about the others. An area
/// that LVM ignores counts only where there is no other.
pub(super) fn newest(probe: &Probe<'_>, label: &Label) -> (Option<Copy>, Vec<Finding>) {
    let (mut used, mut ignored, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for area in &label.metadata {
        match copy(probe, area.offset) {
            Ok(Some((copy, true))) => ignored.push(copy),
            Ok(Some((copy, false))) => used.push(copy),
            Ok(None) => {}
            Err(why) => findings.push((area.offset, why)),
        }
    }
    let copies = if used.is_empty() { ignored } else { used };
    // Of equals the first: LVM reads them in this order.
    let best = copies.iter().rev().max_by_key(|copy| copy.head.seqno).cloned();
    let mut findings: Vec<Finding> =
        findings.into_iter().map(|(at, why)| damaged(probe, at, &why, best.is_some())).collect();
    if let Some(best) = &best {
        let others = copies
            .iter()
            .filter(|copy| copy.head.id != best.head.id || copy.checksum != best.checksum);
        findings.extend(others.map(|other| older(probe, other, best)));
    }
    (best, findings)
}

/// The text of the area at `at`, and whether LVM ignores it; `None` if it is empty.
fn copy(probe: &Probe<'_>, at: u64) -> Result<Option<(Copy, bool)>, Fault> {
    let header = label::header(probe, at).ok_or(Fault::NoHeader)?;
    if !header.is_sound {
        return Err(Fault::HeaderSum);
    }
    if header.offset == 0 || header.length == 0 {
        return Ok(None);
    }
    let text = header.text(probe).ok_or(Fault::NoText)?;
    let sum = label::crc(&text);
    if sum != header.checksum {
        return Err(Fault::TextSum(sum, header.checksum));
    }
    // Names are ASCII; what is not belongs to strings that only LVM reads.
    let text = String::from_utf8_lossy(&text).into_owned();
    let head = Head::parse(&text)?;
    Ok(Some((Copy { at, checksum: header.checksum, text, head }, header.is_ignored)))
}

/// The finding about a metadata area that cannot be used; `another` can.
fn damaged(probe: &Probe<'_>, at: u64, why: &Fault, another: bool) -> Finding {
    let severity = if another { Severity::Warning } else { Severity::Error };
    let rest = if another { "; another copy is used" } else { "" };
    let message =
        format!("the LVM metadata area at {} is damaged: {why}{rest}", place(at, probe.sector()));
    Finding::new(&finding::LABEL, severity, at, message).fix(
        "write it anew from the copies that are whole: vgck --updatemetadata; without any: \
            vgcfgrestore",
    )
}

fn older(probe: &Probe<'_>, other: &Copy, best: &Copy) -> Finding {
    let message = format!(
        "the LVM metadata area at {} has generation {} of volume group {}, another one generation {} of {}: that is used",
        place(other.at, probe.sector()),
        other.head.seqno,
        other.head.name,
        best.head.seqno,
        best.head.name
    );
    Finding::new(&finding::LABEL, Severity::Warning, other.at, message)
        .fix("bring it up to date: vgck --updatemetadata")
}
