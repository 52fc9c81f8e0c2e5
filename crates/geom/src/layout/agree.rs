//! Agreement of a partition that exists with the layout: type, name, GUID and attributes change,
//! its place never does.

use super::lay::{percent, whole};
use super::{Part, Size};
use crate::base::topology::{Grain, round_up};
use crate::mapping::slices::{PartitionType, place};
use crate::table::{Refusal, Table, scheme, types};

/// The type called `name` in the scheme.
pub(super) fn kind(table: &Table, name: &str) -> Result<PartitionType, Refusal> {
    scheme::typed_kind(table, name).map(|(kind, _)| kind)
}

/// Changes the type, name, GUID and attributes of an existing partition to the layout's; refuses
/// another start or size. A partition that does not exist is left to the caller.
pub(super) fn agree(
    table: &mut Table,
    part: &Part,
    index: u32,
    grains: &[Grain],
    edits: &mut Vec<String>,
) -> Result<(), Refusal> {
    let Some(at) = table.entries.iter().position(|e| e.partition.index == index) else {
        return Ok(());
    };
    let (mut entry, sector) = (table.entries[at].clone(), table.sector);
    let advice = || {
        "a partition is not moved or resized here: correct the layout, or delete or resize it first"
            .to_string()
    };
    if let Some(start) = part.start.filter(|&start| start != entry.partition.start) {
        let found = format!(
            "partition {index} begins at {}, the layout says {}",
            place(entry.partition.start, sector),
            place(start, sector)
        );
        return Err(Refusal::new(found, advice()));
    }
    let sizes: Vec<u64> = match part.size {
        Size::Bytes(size) => round_up(size, sector).into_iter().collect(),
        Size::Percent(p) => {
            grains.iter().map(|&grain| percent(whole(&table.usable, grain), p, grain)).collect()
        }
        Size::Rest => vec![entry.partition.length],
    };
    // A share includes the bytes that the table needs before the partition.
    let is_size = |&size: &u64| {
        size == entry.partition.length
            || (table.lead > 0
                && matches!(part.size, Size::Percent(_))
                && size > entry.partition.length)
    };
    if !sizes.iter().any(is_size) {
        let wanted = sizes.first().copied().unwrap_or(u64::MAX);
        return Err(Refusal::new(
            format!(
                "partition {index} has {} bytes, the layout says {wanted}",
                entry.partition.length
            ),
            advice(),
        ));
    }
    let mut changed = Vec::new();
    let kind = kind(table, &part.kind)?;
    if entry.partition.kind != kind {
        changed.push(format!(
            "type {} to {}",
            types::name(entry.partition.kind),
            types::name(kind)
        ));
        entry.partition.kind = kind;
    }
    // No name at all and an empty one are the same.
    if let Some(label) =
        part.label.as_ref().filter(|&l| l != entry.partition.label.as_deref().unwrap_or_default())
    {
        changed.push(format!("label to {label}"));
        entry.partition.label = Some(label.clone());
    }
    if let Some(uuid) = part.uuid.filter(|&uuid| entry.partition.guid != Some(uuid)) {
        changed.push(format!("uuid to {uuid}"));
        entry.partition.guid = Some(uuid);
    }
    if let Some(attributes) = part.attributes.filter(|&a| a != entry.attributes) {
        changed.push("attributes".into());
        entry.attributes = attributes;
    }
    if !changed.is_empty() {
        table.scheme.accept(table, &entry)?;
        table.entries[at] = entry;
        edits.push(format!("modify {index}: {}", changed.join(", ")));
    }
    Ok(())
}
