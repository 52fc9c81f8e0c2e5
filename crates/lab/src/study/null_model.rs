//! The null model: the ratio that a constant for each class of drive gives, without a simulation.
//!
//! A prediction is worth its name where it is nearer to what was published than this.
//!
//! | drives | factor of the time of writes | origin |
//! |---|---|---|
//! | hard disks with physical blocks larger than logical ones | 2.8 | fitted to the labs of 2010 |
//! | SSDs and cards | 2 | assumed: a write touches two indirection units in place of one |
//! | any other | 1 | |
//!
//! Reads have the factor 1 on all of them. The constants were fixed before any row of
//! `seen-after` was run.

use super::file::RowForm;
use super::ready::Ready;
use crate::result::{Nearer, NullModel, Ours, Published};
use trueline_sim::model::Model;

/// The factor of misaligned writes to hard disks that emulate smaller blocks. It is fitted, in the
/// null model's favour: five rows of the labs of 2010 keep their bounds with it.
const EMULATING: f64 = 2.8;

/// The factor of misaligned writes to flash.
const FLASH: f64 = 2.0;

/// Two ratios that differ by less than this part are the same: published values have two to four
/// digits.
const SAME: f64 = 0.01;

impl Ready<'_> {
    /// The null model of the row beside `ours`; `None` if the row has no ratio of ours.
    pub(super) fn null_model(&self, published: Option<Published>, ours: Ours) -> Option<NullModel> {
        let ours = ours.ratio.filter(|ratio| *ratio > 0.0)?;
        let (_, scene) = self.scenes.first()?;
        let factor = factor(writes(self.form), &scene.first_model()?);
        let ratio = if self.form.unit.more_is_better() { 1.0 / factor } else { factor };
        Some(compared(ratio, ours, published.and_then(|published| published.ratio)))
    }
}

/// The null model's ratio with its error and its distance from the published one.
fn compared(ratio: f64, ours: f64, published: Option<f64>) -> NullModel {
    let distance = |ratio: f64| published.map(|published| (ratio / published).ln().abs());
    let nearer = distance(ours).zip(distance(ratio)).map(|(own, null)| {
        if (ours / ratio - 1.0).abs() < SAME {
            Nearer::Same
        } else if own < null {
            Nearer::Ours
        } else {
            Nearer::Null
        }
    });
    NullModel { ratio, error: published.map(|published| ratio / published - 1.0), nearer }
}

/// The factor by which work off the grain takes longer.
fn factor(writes: bool, model: &Model) -> f64 {
    if !writes {
        1.0
    } else if model.ssd.is_some() {
        FLASH
    } else if model.disk.is_some() && model.physical_block_size > model.logical_block_size {
        EMULATING
    } else {
        1.0
    }
}

/// True if the row's workload writes.
fn writes(form: &RowForm) -> bool {
    form.workload.as_ref().is_some_and(super::workload::Workload::writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_of_the_two_is_by_factors_not_by_differences() {
        // 2 is twice 1, and 0.5 half of it: as far.
        let nearer = |null, ours| compared(null, ours, Some(1.0)).nearer;
        assert_eq!(nearer(2.0, 0.51), Some(Nearer::Ours));
        assert_eq!(nearer(2.0, 0.49), Some(Nearer::Null));
        assert_eq!(nearer(1.005, 1.0), Some(Nearer::Same));
        assert_eq!(compared(2.0, 1.0, None).nearer, None);
        assert_eq!(compared(2.0, 1.0, Some(4.0)).error, Some(-0.5));
    }

    #[test]
    fn the_class_of_a_drive_decides() {
        let factor = |writes, name: &str| {
            factor(writes, &Model::parse(Model::named(name).expect("a model")).expect("valid"))
        };
        assert_eq!(factor(true, "wd10ears").to_bits(), EMULATING.to_bits());
        assert_eq!(factor(true, "qlc-16k").to_bits(), FLASH.to_bits());
        for (writes, name) in [(false, "wd10ears"), (true, "wd10eads"), (true, "4kn"), (true, "md")]
        {
            assert_eq!(factor(writes, name).to_bits(), 1f64.to_bits(), "{name}");
        }
    }
}
