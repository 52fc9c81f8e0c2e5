//! The stack as `check` sees it, kept while its device is traced: findings with their fixes, and
//! the sizes in which each layer's contents are written.

use crate::report::{self, Finding};
use crate::survey::survey_audited;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use trueline_geom::audit::audit;
use trueline_geom::base::finding;
use trueline_geom::format::{Piece, Sign, luks};
use trueline_geom::graph::{Graph, Id};

/// The stack of a target, without its disks.
pub(crate) struct Tasted {
    report: report::Target,
    /// Contents of each provider, by its id.
    contents: Vec<Contents>,
    /// The finding on where the traced partition begins on its disk.
    own_start: Option<Finding>,
}

/// Contents of one provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// Name of the format: `ext4`; `None` where it is not one alone.
    pub(super) format: Option<String>,
    /// Name of the provider that the format begins on: of a data area, the one around it.
    pub(super) holder: String,
    /// Sizes in which it writes, the largest first.
    pub(super) pieces: Vec<Piece>,
    /// The encryption around it.
    pub(super) encryption: Option<Encryption>,
}

/// Encryption that the requests of a layer come through.
#[derive(Clone, Debug)]
pub(super) struct Encryption {
    /// Name of the provider that is encrypted.
    pub(super) holder: String,
    /// Its sector in bytes.
    pub(super) sector: u64,
    /// True of version 1, whose sectors are always of 512 bytes.
    pub(super) is_first_version: bool,
    /// The advice of `check` for sectors of a page.
    pub(super) enlarge: String,
}

impl Tasted {
    /// The stack of `target`, as `overrides` describe its disks.
    pub(super) fn new(target: &Target, overrides: &DiskOverrides, graph: &Graph) -> Tasted {
        let report = survey_audited(target, Some(overrides), graph, &audit(graph));
        let contents = (0..graph.providers.len()).map(|id| contents(graph, id)).collect();
        Tasted { report, contents, own_start: None }
    }

    /// This stack of a partition, with what `check` says of its start on `disk`, byte `start`.
    /// Without it where the disk cannot be read.
    #[must_use]
    pub(super) fn on_disk(self, disk: &Target, overrides: &DiskOverrides, start: u64) -> Tasted {
        let Ok(graph) = open(disk, overrides) else { return self };
        let whole = survey_audited(disk, Some(overrides), &graph, &audit(&graph));
        let is_it = |p: &&report::Provider| p.start == Some(start) && p.kind.is_some();
        let own = whole.providers.iter().find(is_it);
        let is_its = |found: &Finding| own.is_some_and(|own| found.provider == own.provider);
        let own_start = whole
            .findings
            .into_iter()
            .find(|found| is_its(found) && found.rule == finding::START.id);
        Tasted { own_start, ..self }
    }

    /// The contents of the provider with that number and name; `None` if it was not tasted.
    pub(super) fn contents(&self, number: usize, name: &str) -> Option<&Contents> {
        let is_it = |p: &&report::Provider| p.provider == name;
        self.report.providers.get(number).filter(is_it)?;
        self.contents.get(number)
    }

    /// The findings of a rule on the provider of that name, those against `unit` bytes first.
    pub(super) fn findings(&self, provider: &str, rule: &str, unit: u64) -> Vec<&Finding> {
        let own = self.own_start.as_ref().filter(|_| provider.is_empty());
        if let Some(own) = own.filter(|own| own.rule == rule) {
            return vec![own];
        }
        let is_it = |found: &&Finding| found.provider == provider && found.rule == rule;
        let mut found: Vec<&Finding> = self.report.findings.iter().filter(is_it).collect();
        found.sort_by_key(|found| found.unit != unit);
        found
    }
}

fn contents(graph: &Graph, id: Id) -> Contents {
    let p = &graph.providers[id];
    let encryption = std::iter::successors(Some(id), |&id| under(graph, id))
        .find_map(|id| graph.providers[id].in_use().find_map(|sign| encryption(graph, id, sign)));
    let signs: Vec<&Sign> = p.in_use().collect();
    let (sign, holder) = match (signs.as_slice(), graph.outer_sign(id)) {
        ([one], _) => (Some(*one), id),
        ([], Some(outer)) => (Some(outer), under(graph, id).unwrap_or(id)),
        _ => (None, id),
    };
    let Some(sign) = sign else { return Contents { encryption, ..Contents::default() } };
    let mut pieces: Vec<Piece> = sign.pieces().collect();
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.size));
    Contents {
        format: Some(sign.kind.name.into()),
        holder: graph.providers[holder].name.clone(),
        pieces,
        encryption,
    }
}

fn under(graph: &Graph, id: Id) -> Option<Id> {
    graph.providers[id].parents.first().copied()
}

/// The encryption that `sign` on provider `id` is; `None` of anything else.
fn encryption(graph: &Graph, id: Id, sign: &Sign) -> Option<Encryption> {
    if sign.kind != luks::KIND {
        return None;
    }
    let (_, sector) = sign.details.iter().find(|(name, _)| *name == luks::SECTOR)?;
    let sector = sector.parse().ok()?;
    let piece = Piece { size: sector, name: "sector" };
    Some(Encryption {
        holder: graph.providers[id].name.clone(),
        sector,
        is_first_version: sign.version.as_deref() == Some("1"),
        enlarge: sign.kind.format.enlarge(sign, piece, luks::LARGEST_SECTOR)?,
    })
}
