//! The interval of a row's ratio: a sweep over the ranges of its drives' uncertain parameters.

use super::Lab;
use super::file::RowForm;
use super::scene::Scene;
use crate::error::Error;
use crate::sweep::{Drawn, Set, SweepPlan};

impl Lab {
    /// The points at which a row is run besides the default: model keys to set after `set`. Empty
    /// if the row has no ratio, or its drives are of different models.
    pub(super) fn points(
        &self,
        form: &RowForm,
        scenes: &[(&str, Scene)],
        set: &Set,
        points: usize,
    ) -> Result<Vec<Set>, Error> {
        let text = match scenes {
            [(_, first), _, ..] if points > 0 && form.sweep => first.only_model(),
            _ => None,
        };
        let Some(text) = text else { return Ok(Vec::new()) };
        // Every scene sets its own keys again, so here they only keep the sweep from varying them.
        let fixed: Set =
            scenes.iter().flat_map(|(_, scene)| scene.own_keys()).chain(set).cloned().collect();
        let own = fixed.len();
        let plan = SweepPlan { text, fixed, points, seed: self.form.random, threads: 1 };
        let drawn = Drawn::from_plan(&plan)?;
        Ok(drawn
            .sets
            .into_iter()
            .skip(1)
            .map(|point| point.into_iter().skip(own).chain(set.iter().cloned()).collect())
            .collect())
    }
}
