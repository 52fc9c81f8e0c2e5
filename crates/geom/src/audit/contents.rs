//! Rules about the formats on a provider: their blocks, their stripes, their size, their rivals.

use super::{PAGE, Role, Verdict, boots, hides, name_of, name_sign, severity, unwritten};
use crate::base::finding::{self, Finding, Fix, Severity, Statement};
use crate::base::topology::{Fact, Grain, Source, Trust, Why, in_place_cost, is_whole};
use crate::format::{FormatKind, Inside, Piece, Sign, StrayData};
use crate::graph::{Graph, Id, Provider};
use crate::mapping::slices::place;
use crate::table::types;

/// The verdict about the formats on a provider, apart from its start; adds the findings.
pub(super) fn judge(graph: &Graph, id: Id, role: Role, found: &mut Vec<Finding>) -> Verdict {
    let p = &graph.providers[id];
    let unwritten = boots(p) || unwritten(graph, id, Why::Physical).is_some();
    let mut verdict = Verdict::Aligned;
    for sign in p.in_use() {
        if let Some(outer) = outgrown(graph, p, sign) {
            verdict = verdict.max(Verdict::Unknown);
            found.push(one_is_stale(outer, p, sign));
        } else {
            found.extend(sizes(p, sign));
        }
        let small = if unwritten { Vec::new() } else { small(p, sign) };
        if small.iter().any(|f| f.severity == Severity::Error) {
            verdict = verdict.max(Verdict::Misaligned);
        }
        found.extend(small);
        found.extend(stripes(p, sign));
        found.extend(extents(p, sign));
        found.extend(recorded_chunk(p, sign));
        if sign.inside == Inside::Moving {
            verdict = verdict.max(Verdict::Unknown);
            let message = if is_of_disk(sign) {
                "its conversion to other sectors was interrupted: write nothing to it until that \
                    is resumed, or taken back"
            } else {
                "a move of it was interrupted, so its contents are in two places: write nothing to \
                    it until the move is resumed"
            };
            let finding = Finding::new(&finding::MOVING, Severity::Error, 0, message.into());
            found.push(finding.fix(Fix::Resume));
        }
        if let Inside::Unknown(why) = sign.inside {
            verdict = verdict.max(Verdict::Unknown);
            found.push(Finding::new(
                &finding::OPAQUE,
                Severity::Note,
                0,
                format!("{}: {why}", name_sign(p, sign)),
            ));
        }
    }
    if p.table.is_none() && rivals(p).len() > 1 {
        verdict = verdict.max(Verdict::Unknown);
    }
    if let Some(finding) = elsewhere(p).or_else(|| nameless(p, role)) {
        verdict = verdict.max(Verdict::Unknown);
        // A table that could not be read was recognised, and has its finding.
        found.extend(Some(finding).filter(|_| role == Role::Data || !p.findings.iter().any(hides)));
    }
    verdict
}

/// True for the mark of a disk that is converted: nothing of it moves.
fn is_of_disk(sign: &Sign) -> bool {
    let detail = |name: &str| sign.details.iter().find(|(key, _)| *key == name);
    detail("from").zip(detail("to")).is_some_and(|((_, from), (_, to))| from == to)
}

/// The note about a partition whose volumes are described by a database elsewhere on the disk, not
/// by its own first bytes.
fn elsewhere(p: &Provider) -> Option<Finding> {
    let name = types::name(p.kind.filter(|&kind| types::is_described_elsewhere(kind))?);
    let message = format!(
        "its type is {name}: a database of Windows, not this table, says where its volumes begin"
    );
    Some(Finding::new(&finding::OPAQUE, Severity::Note, 0, message))
}

/// The note about a provider on which nothing was recognised: it was not read, it is empty, or its
/// contents are unknown here. `None` for an empty partition, which is judged by its start.
fn nameless(p: &Provider, role: Role) -> Option<Finding> {
    let note = |rule, message: String| Some(Finding::new(rule, Severity::Note, 0, message));
    let blank = role == Role::Blank && p.member.is_none();
    let bare = role == Role::Data && p.signs.is_empty() && p.member.is_none();
    match (p.seen, p.unknown) {
        (false, _) if blank => {
            note(&finding::UNREAD, "it was not read, and no other source says what is on it".into())
        }
        // The format on a data area belongs to its set or volume, and is judged there.
        (false, _) if bare && !p.is_data_area() => note(
            &finding::UNREAD,
            "its contents were not read, and no other source says what they are".into(),
        ),
        (true, Some(at)) if blank || bare && !p.kind.is_some_and(types::is_bare_swap) => {
            let at = place(p.base().saturating_add(at), p.topology.sector);
            note(
                &finding::UNKNOWN,
                format!("its contents are neither empty nor recognised: {at} is not zero"),
            )
        }
        (true, None) if blank && p.topology.length == 0 => {
            note(&finding::EMPTY, "it is empty: 0 bytes".into())
        }
        (true, None) if blank => {
            note(&finding::EMPTY, "nothing is on it: all that was read of it is zero".into())
        }
        _ => None,
    }
}

/// Adds findings about several signatures on one provider: all are named, none is chosen.
pub(super) fn signatures(p: &Provider, found: &mut Vec<Finding>) {
    let signs = rivals(p);
    let at = |s: &Sign| format!("{} (magic at byte {})", s.kind, s.magic);
    let names: Vec<String> = signs.iter().map(|s| at(s)).collect();
    if let Some((scheme, _)) = &p.table {
        // An ISO image that boots from USB sticks has a table by design.
        let stale: Vec<&Sign> = p.signs.iter().filter(|s| s.inside != Inside::ReadOnly).collect();
        for sign in stale {
            let message = format!(
                "{} stands under the {scheme} table: the table is in use, so this signature is stale",
                at(sign)
            );
            found.push(
                Finding::new(&finding::STALE, Severity::Warning, sign.magic, message)
                    .fix(wipe(sign)),
            );
        }
    } else if signs.len() > 1 {
        let message =
            format!("{} signatures stand here: {}; none is chosen", names.len(), names.join(", "));
        let mut finding = Finding::new(&finding::AMBIVALENT, Severity::Warning, 0, message);
        finding.fix = signs.iter().map(|s| wipe(s).into()).collect();
        found.push(finding);
    }
}

/// The signatures that contradict each other: all of them, but those that another of them includes.
fn rivals(p: &Provider) -> Vec<&Sign> {
    let included = |sign: &Sign| p.signs.iter().any(|other| other.kind.format.includes(sign.kind));
    p.signs.iter().filter(|sign| !included(sign)).collect()
}

/// The provider beneath the data area or set `p`, if the format in it fills all of that, as if the
/// format around it were not there.
fn outgrown<'a>(graph: &'a Graph, p: &Provider, sign: &Sign) -> Option<&'a Provider> {
    let outer = &graph.providers[*p.parents.first().filter(|_| p.is_data_area() || p.is_set)?];
    let fills =
        sign.size.is_some_and(|size| p.topology.length < size && size <= outer.topology.length);
    let copied = |sign: &Sign| sign.data.is_some_and(|data| data.plain && data.offset == 0);
    let at_its_start =
        if p.is_set { outer.signs.iter().any(copied) } else { outer.base() == p.base() };
    (fills && at_its_start).then_some(outer)
}

fn one_is_stale(outer: &Provider, p: &Provider, sign: &Sign) -> Finding {
    let message = format!(
        "{} covers {} bytes, but {} leaves it only the first {}: one of the two is stale",
        name_sign(p, sign),
        sign.size.unwrap_or_default(),
        p.class,
        p.topology.length
    );
    let mut finding = Finding::new(&finding::AMBIVALENT, Severity::Warning, 0, message);
    let around = |s: &&Sign| p.is_set || p.area_of == Some(s.kind);
    let both = outer.signs.iter().filter(around).chain([sign]);
    finding.fix = both.map(|s| wipe(s).into()).collect();
    finding
}

fn wipe(sign: &Sign) -> String {
    format!("if {} is the stale one: wipefs --backup --offset {} DEVICE", sign.kind, sign.magic)
}

/// Findings about a format larger than its provider, or written for a sector that the device cannot
/// address.
fn sizes(p: &Provider, sign: &Sign) -> Vec<Finding> {
    let mut found = Vec::new();
    let length = p.topology.length;
    if let Some(size) = sign.size.filter(|&size| size > length) {
        let message = format!(
            "{} covers {size} bytes, its provider has {length}: the end is missing",
            name_sign(p, sign)
        );
        let finding = Finding::new(&finding::SIZE, Severity::Error, 0, message);
        found.push(finding.fix(
            "the disk or image was cut, or the partition made too small: \
            restore its size before anything writes",
        ));
    }
    if let Some(sector) = sign.sector.filter(|&s| s < p.topology.sector) {
        let message = format!(
            "{} was written for {sector}-byte sectors, the device has {}-byte ones",
            name_sign(p, sign),
            p.topology.sector
        );
        let finding = Finding::new(&finding::SECTOR, Severity::Error, 0, message);
        found.push(
            finding.against(p.topology.sector, 0, None).fix(
                "it cannot be used on this device: make it anew with the device's sector size",
            ),
        );
    }
    found
}

/// Units that a drive reads before it writes part of one: physical ones first, then preferred ones.
fn units(p: &Provider) -> impl Iterator<Item = &Fact> {
    let of = |why| p.topology.counting().filter(move |f| f.why == why);
    of(Why::Physical).chain(of(Why::Preferred))
}

/// Findings about sizes that the format writes and that are no whole number of a drive's unit, each
/// with the first such unit.
fn small(p: &Provider, sign: &Sign) -> Vec<Finding> {
    let understood = sign.pieces().filter(|_| sign.inside == Inside::Understood);
    understood
        .filter_map(|piece| units(p).find_map(|fact| small_piece(p, sign, piece, fact)))
        .collect()
}

/// A piece that is no whole number of a unit.
///
/// An error, as bad as a start off the grain, where data are written in less than a page, or in
/// blocks that are no whole number of pages: then hardly a page is on the grain. A warning where
/// the unit is one that only `minimum_io_size` claims, which may be a controller's chunk; a
/// note where whole pages are written (few systems can write larger blocks, so it is the price of
/// the drive). For a log or metadata sector, written only now and then, a warning, or a note if the
/// unit is only assumed.
fn small_piece(p: &Provider, sign: &Sign, piece: Piece, fact: &Fact) -> Option<Finding> {
    let Piece { size, name } = piece;
    let cost = in_place_cost(size, fact.grain.size())?;
    let hearsay = fact.why == Why::Preferred && fact.source == Source::Sysfs;
    let parts_pages = size < PAGE || !is_whole(size, PAGE);
    let severity = match (piece.is_data(), fact.trust) {
        (true, _) if parts_pages && (sign.kind.format.keeps_pages_whole() || hearsay) => {
            Severity::Warning
        }
        (true, _) if parts_pages => severity(Some(cost)),
        (true, _) | (false, Trust::Assumed) => Severity::Note,
        (false, _) => Severity::Warning,
    };
    let unit = fact.grain.size();
    let message = format!(
        "{} writes a {name} of {size} bytes on a {}: the device reads before it writes, even in place",
        name_sign(p, sign),
        name_of(fact)
    );
    let finding = Finding::new(&finding::SMALL, severity, 0, message).against(unit, 0, Some(cost));
    let recreate = recreate(sign.kind, unit, p.topology.length);
    let enlarge = sign
        .kind
        .format
        .enlarge(sign, piece, unit)
        .unwrap_or_else(|| format!("make it anew with units of at least {unit} bytes"));
    Some(recreate.into_iter().chain([enlarge.into()]).fold(finding, Finding::fix))
}

/// The fix that makes the format anew, if Trueline makes it so that nothing in it is smaller than
/// `unit`, or its data begin on it.
fn recreate(kind: FormatKind, unit: u64, length: u64) -> Option<Fix> {
    (unit <= PAGE && kind.format.is_made_here(kind, length)).then_some(Fix::Recreate(kind.name))
}

/// Chunk and row in bytes of the set beneath; `None` where they are not known.
fn set_shape(p: &Provider) -> (Option<u64>, Option<u64>) {
    let of =
        |why| p.topology.facts.iter().find(move |f| f.why == why && f.trust > Trust::Untrusted);
    let row = of(Why::FullStripe).or_else(|| of(Why::Row));
    // A label that names chunks and no row is of chunks that lie anywhere: there is nothing to
    // spread over.
    let chunk = of(Why::Chunk).filter(|f| row.is_some() || f.source != Source::Label);
    (chunk.map(|f| f.grain.size()), row.map(|f| f.grain.size()))
}

/// Stripe parameters that are not those of the set beneath.
fn stripes(p: &Provider, sign: &Sign) -> Vec<Finding> {
    let (chunk, row) = set_shape(p);
    let Some(fix) =
        sign.kind.format.fit_set(sign, chunk.unwrap_or_default(), row.unwrap_or_default())
    else {
        return Vec::new();
    };
    let pairs = [(chunk, "chunk", sign.chunk), (row, "full stripe", sign.stripe)];
    let mut found = Vec::new();
    for (set, name, said) in pairs {
        let Some(set) = set else { continue };
        match said {
            Some(said) if said != set => {
                let message = format!(
                    "{} is laid out for a {name} of {said} bytes, the set beneath has {set}",
                    name_sign(p, sign)
                );
                found.push(
                    Finding::new(&finding::STRIPE, Severity::Warning, 0, message)
                        .against(set, 0, None)
                        .fix(fix.clone()),
                );
            }
            None if name == "chunk" => {
                let message = format!(
                    "{} does not know the {set}-byte {name} of the set beneath: its allocations are not spread by it",
                    name_sign(p, sign)
                );
                found.push(
                    Finding::new(&finding::STRIPE, Severity::Note, 0, message)
                        .against(set, 0, None)
                        .fix(fix.clone()),
                );
            }
            _ => {}
        }
    }
    found
}

/// A note on extents of volumes of which no full stripe of the parity set beneath is a part: where
/// the volumes of today begin on one, those of tomorrow need not.
fn extents(p: &Provider, sign: &Sign) -> Option<Finding> {
    let extent = sign.extent.filter(|&extent| extent > 0)?;
    let row = p.topology.facts.iter().find(|f| f.why == Why::FullStripe)?;
    let row = Some(row.grain.size()).filter(|_| row.trust > Trust::Untrusted)?;
    let past = Grain::new(row, 0)?.remainder(extent);
    let message = format!(
        "{} hands out extents of {extent} bytes, which are no whole number of full stripes of {row} bytes: a volume may begin inside of one",
        name_sign(p, sign)
    );
    (past > 0).then(|| {
        Finding::new(&finding::STRIPE, Severity::Note, 0, message).against(row, past, None).fix(
            format!("make the group anew with extents (vgcreate -s) of a multiple of {row} bytes"),
        )
    })
}

/// A note on a chunk that a file system records and its start cannot hold, where nothing else tells
/// of a set beneath.
///
/// It counts chunks from its own byte 0: off a chunk's boundary, what it places on one member lies
/// across two.
fn recorded_chunk(p: &Provider, sign: &Sign) -> Option<Finding> {
    let chunk = sign.chunk.filter(|&chunk| {
        set_shape(p).0.is_none() && sign.kind.format.fit_set(sign, chunk, chunk).is_some()
    })?;
    let (grain, start) = (Grain::new(chunk, 0)?, p.base());
    let past = grain.remainder(start);
    let at = |x: u64| place(x, p.topology.sector);
    let message = format!(
        "{} records a chunk of {chunk} bytes and starts at {}, {past} bytes past a multiple of it: on the set it was made for, what it lays out for one member lies across two",
        name_sign(p, sign),
        at(start)
    );
    let near = [grain.previous(start), grain.next(start)].into_iter().flatten().collect();
    let fix = Fix::State(Statement::Chunk { size: chunk, starts: near });
    (past > 0).then(|| {
        Finding::new(&finding::STRIPE, Severity::Note, 0, message)
            .against(chunk, past, None)
            .fix(fix)
    })
}

/// Fixes that put the data area `id` of a format on `parent` on every boundary, those that keep its
/// contents first.
pub(super) fn data_fixes(graph: &Graph, id: Id, parent: &Provider) -> Vec<Fix> {
    let p = &graph.providers[id];
    let (Some(kind), Some(all), Some(lacking)) =
        (p.area_of, p.topology.common(), p.topology.nearest(0).1)
    else {
        return vec!["no place near it satisfies every boundary beneath it".into()];
    };
    let unit = all.size();
    // Where the format begins off the boundary itself, no offset inside it that tools can be given
    // puts that right.
    let inside = parent.topology.common().is_some_and(|g| g.contains(0));
    let sign = graph.outer_sign(id);
    // Blocks that are no whole number of units, nor parts of one, are off them wherever they begin.
    let fits = |block| is_whole(block, unit) || is_whole(unit, block);
    let mut fixes = Vec::new();
    if parent.kind.is_some() && sign.and_then(|sign| sign.block).is_none_or(fits) {
        fixes.push(Fix::StartLater(lacking));
    }
    if inside || kind.format.reaches_any_boundary() {
        fixes.extend(recreate(kind, unit, parent.topology.length));
        let area = StrayData { kind, sign, sector: parent.topology.sector, unit, lacking };
        fixes.push(kind.format.shift_data(&area).into());
    }
    if parent.kind.is_none() && !inside {
        fixes.push("put it on a partition that begins on the boundary".into());
    }
    fixes
}
