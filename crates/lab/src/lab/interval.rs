//! The interval of a row's ratio: a sweep over the ranges of what is not known of its drives.

use super::Lab;
use super::file::RowForm;
use super::scene::Scene;
use crate::error::Error;
use crate::result::Ours;
use crate::sweep::{self, Plan, Set};

impl Lab {
    /// `ours` with the least and the greatest ratio of `points` points. Nothing is swept where there is no ratio, or the drives are of
    /// different models.
    pub(super) fn with_interval(
        &self,
        form: &RowForm,
        scenes: &[(&str, Scene)],
        set: &[(String, toml::Value)],
        points: usize,
        ours: Ours,
    ) -> Result<Ours, String> {
        let text = match scenes {
            [(_, first), ..] if points > 0 && form.sweep && ours.ratio.is_some() => first.only_model(),
            _ => None,
        };
        let Some(text) = text else { return Ok(ours) };
        // Every scene sets its own keys again, so here they only keep the sweep from varying them.
        let fixed: Set = scenes.iter().flat_map(|(_, scene)| scene.own_keys()).chain(set).cloned().collect();
        let own = fixed.len();
        let plan = Plan { text, fixed, points, seed: self.form.random, threads: 1 };
        let ratio = |point: &Set| {
            let further: Set = point.iter().skip(own).chain(set).cloned().collect();
            let runs = self.measure(form, scenes, &further).map_err(Error)?;
            super::rows::ours(&runs).ratio.ok_or_else(|| Error("a run took no time".into()))
        };
        let sweep = sweep::run(&plan, &ratio).map_err(|e| e.0)?;
        Ok(Ours { low: Some(sweep.low), high: Some(sweep.high), ..ours })
    }
}
