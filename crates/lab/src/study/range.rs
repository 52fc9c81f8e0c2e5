//! The range of a row's ratio: a sweep over the ranges of its drives' uncertain parameters.

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
        let varied = if points > 0 { varied(form, scenes, set) } else { None };
        let Some((text, fixed)) = varied else { return Ok(Vec::new()) };
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

/// The text of the model that a sweep of a row varies, and the keys that it does not; `None` if the
/// row has no ratio, or its drives are of different models.
pub(super) fn varied<'s>(
    form: &RowForm,
    scenes: &'s [(&str, Scene)],
    set: &Set,
) -> Option<(&'s str, Set)> {
    let text = match scenes {
        [(_, first), _, ..] if form.sweep => first.only_model()?,
        _ => return None,
    };
    // Every scene sets its own keys again, so here they only keep the sweep from varying them.
    let own = scenes.iter().flat_map(|(_, scene)| scene.own_keys());
    Some((text, own.chain(set).cloned().collect()))
}
