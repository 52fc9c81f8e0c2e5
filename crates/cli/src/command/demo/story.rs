//! One disk of the documents from its findings to its cost: checked, run on a simulated drive, laid
//! out again, and run again.

use super::{Seed, check};
use crate::command::part::layout;
use crate::disk_options::DiskOptions;
use crate::failure::Reason;
use crate::progress::Progress;
use crate::report::Target;
use crate::survey;
use crate::target::open::taste_stores;
use crate::target::{self, DiskOverrides};
use crate::words::{hexdump, refusal};
use std::borrow::Cow;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::layout::{May, in_order, plan};
use trueline_geom::table::scheme::TableSite;
use trueline_lab::error::Error as LabFailure;
use trueline_lab::result::LabDocument;
use trueline_lab::study::{Lab, Selection, Texts, run};

/// Layout file of the second time.
pub(crate) const LAYOUT: &str = include_str!("layout.toml");
const LAB: &str = include_str!("lab.toml");

/// The disk before and after, and the cost of the difference.
pub(crate) struct Story {
    /// The disk as the document has it.
    pub found: Target,
    /// The disk laid out again.
    pub again: Target,
    /// Results of the same work on both.
    pub cost: LabDocument,
}

/// The story of a seed: checked, laid out again, and measured before and after.
pub(super) fn tell(seed: &Seed, progress: &Progress) -> Result<Story, Reason> {
    let failed = |why: Reason| why.behind(format_args!("demo: {}", seed.name));
    let overrides =
        DiskOverrides::new(&DiskOptions { physical: seed.physical, ..DiskOptions::default() })?;
    let length = Sparse::from_hexdump(seed.hex).map_err(|e| failed(e.into()))?.length();
    let disk = lay_out(length, &overrides).map_err(failed)?;
    let text = dump(&disk, length).map_err(|e| failed(e.into()))?;
    let graph = taste_stores(vec![(String::new(), Box::new(disk))], &overrides);
    let again =
        survey::survey(&target::Target::title("the same disk, laid out again"), &graph, None)?;
    let lab = Lab::parse(LAB, Box::new(Disks { found: seed.hex, again: text }))
        .map_err(|e| failed(e.into()))?;
    let asked = Selection { rows: Vec::new(), sweep: 0, threads: 2 };
    let (cost, failures) = run(&[lab], &asked, &|step| progress.step(step))
        .map_err(|failure| failed(format!("lab {failure}").into()))?;
    match failures.first() {
        Some(failure) => Err(failed(format!("lab {failure}").into())),
        None => Ok(Story { found: check(seed)?, again, cost }),
    }
}

/// An empty disk of `length` bytes with [`LAYOUT`] on it, as `part apply` makes it.
fn lay_out(length: u64, overrides: &DiskOverrides) -> Result<Sparse, Reason> {
    let mut disk = Sparse::new(length);
    let graph = taste_stores(vec![(String::new(), Box::new(disk.clone()))], overrides);
    let provider = &graph.providers[0];
    let site =
        TableSite { topology: &provider.topology, base: provider.base(), kind: provider.kind };
    // Fixed bytes, so that every run makes the same disk.
    let mut random = || [0x54; 16];
    let planned = plan(
        &layout::parse(LAYOUT)?.layout,
        &graph.probe(0),
        &site,
        length,
        May::default(),
        &mut random,
    )
    .map_err(|refused| refusal::text(&refused.why))?;
    for patch in in_order(&planned.stages) {
        disk.put(patch.offset, &patch.bytes);
    }
    Ok(disk)
}

/// A disk as the hexdump that a lab names.
fn dump(disk: &Sparse, length: u64) -> Result<String, std::io::Error> {
    let mut text = Vec::new();
    for (offset, bytes) in disk.runs() {
        hexdump::write(offset, bytes, &mut text)?;
    }
    Ok(format!("{}{length:08x}\n", String::from_utf8_lossy(&text)))
}

/// The two disks, by their names in the lab.
struct Disks {
    found: &'static str,
    again: String,
}

impl Texts for Disks {
    fn read(&self, name: &str) -> Result<Cow<'static, str>, LabFailure> {
        match name {
            "found" => Ok(Cow::Borrowed(self.found)),
            "again" => Ok(Cow::Owned(self.again.clone())),
            _ => Err(LabFailure::new("it does not come with the demo".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn the_disk_is_off_and_dear_and_laid_out_again_it_is_neither() {
        let story = tell(&super::super::SEEDS[0], &Progress::new(None)).unwrap();
        assert_eq!(
            (story.found.verdict, story.again.verdict),
            (Verdict::Misaligned, Verdict::Aligned)
        );
        let named = |t: &Target| t.providers.iter().filter(|p| p.data_bearing).count();
        assert_eq!(named(&story.found), named(&story.again));
        let ratio = |id: &str| {
            let row = story.cost.labs[0].rows.iter().find(|row| row.row == id).unwrap();
            row.ours.unwrap().ratio.unwrap()
        };
        assert!(
            ratio("random-write") > 2.0 && (ratio("random-read") - 1.0).abs() < 0.02,
            "{}",
            ratio("random-write")
        );
    }

    #[test]
    fn a_dump_is_read_back() {
        let mut disk = Sparse::new(1 << 40);
        disk.put(512, b"one");
        disk.put(1 << 39, &[7; 40]);
        let back = Sparse::from_hexdump(&dump(&disk, 1 << 40).unwrap()).unwrap();
        assert_eq!(back.length(), 1 << 40);
        assert!(disk.runs().eq(back.runs()));
    }
}
