//! The standing of a row: its cost, our value against the published one, and whether it keeps its
//! bound.

use trueline_lab::result::{LabDocument, LabResult, Ours, Published, Row};

/// Our value over the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    /// The factor between ratios; between values if a document has one layout only.
    pub factor: f64,
    /// The ends of our interval, over the same.
    pub interval: Option<(f64, f64)>,
    /// True if the factor is between ratios.
    pub of_ratios: bool,
}

/// Compares ours with the published, as far as both exist and are positive numbers.
pub(super) fn compared(published: Option<&Published>, ours: Option<&Ours>) -> Option<Compared> {
    let (published, ours) = (published?, ours?);
    if let Some(factor) = over(ours.ratio, published.ratio) {
        let interval = over(ours.low, published.ratio).zip(over(ours.high, published.ratio));
        return Some(Compared { factor, interval, of_ratios: true });
    }
    let factor = over(ours.aligned, published.aligned)
        .or_else(|| over(ours.unaligned, published.unaligned))?;
    Some(Compared { factor, interval: None, of_ratios: false })
}

fn over(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let positive = |v: &f64| v.is_finite() && *v > 0.0;
    Some(a.filter(positive)? / b.filter(positive)?).filter(positive)
}

/// The factor by which unaligned work takes longer, from a ratio in the row's unit.
pub(super) fn cost(row: &Row, ratio: f64) -> f64 {
    if row.more_is_better { 1.0 / ratio } else { ratio }
}

/// The row of a lab with the highest cost of misalignment, and that cost: by ours, else by the
/// published values. True if it is ours.
pub(super) fn dearest(lab: &LabResult) -> Option<(&Row, f64, bool)> {
    let most = |of: &dyn Fn(&Row) -> Option<f64>| -> Option<(&Row, f64)> {
        let all = lab
            .rows
            .iter()
            .filter_map(|row| Some((row, cost(row, of(row)?))))
            .filter(|(_, c)| c.is_finite() && *c > 0.0);
        // The first of the dearest: `max_by` alone would give the last.
        all.rev().max_by(|(_, a), (_, b)| a.total_cmp(b))
    };
    // A row without a published value is no headline of a lab that has some.
    let ours = |published: bool| {
        let ratio =
            move |row: &Row| row.ours.filter(|_| row.published.is_some() || !published)?.ratio;
        most(&ratio).map(|(row, cost)| (row, cost, true))
    };
    ours(true)
        .or_else(|| most(&|row| row.published?.ratio).map(|(row, cost)| (row, cost, false)))
        .or_else(|| ours(false))
}

/// The error of a lab's worst prediction.
pub(super) fn farthest(lab: &LabResult) -> Option<f64> {
    lab.rows
        .iter()
        .filter(|row| row.predicted)
        .filter_map(|row| row.error)
        .filter(|d| d.is_finite())
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// Rows counted by their standing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// Number of all rows.
    pub rows: usize,
    /// Predictions that can be compared and have a bound, and those of them that keep it.
    pub bounded: usize,
    pub kept: usize,
    /// Rows that calibrated their drives' models.
    pub calibrated: usize,
    /// Rows without a prediction.
    pub without: usize,
}

/// Counts the rows of a lab.
pub(super) fn tally(lab: &LabResult) -> Tally {
    let mut tally = Tally::default();
    for row in &lab.rows {
        tally.rows += 1;
        tally.without += usize::from(row.ours.is_none());
        tally.calibrated += usize::from(row.is_calibrated());
        if let Some(kept) = row.keeps_bound().filter(|_| row.predicted) {
            tally.bounded += 1;
            tally.kept += usize::from(kept);
        }
    }
    tally
}

/// Counts the rows of all labs.
pub(super) fn tally_all(document: &LabDocument) -> Tally {
    document.labs.iter().map(tally).fold(Tally::default(), |a, b| Tally {
        rows: a.rows + b.rows,
        bounded: a.bounded + b.bounded,
        kept: a.kept + b.kept,
        calibrated: a.calibrated + b.calibrated,
        without: a.without + b.without,
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn ratios_are_compared_before_values() {
        let published =
            Published { aligned: Some(133.0), unaligned: Some(112.0), ratio: Some(0.84) };
        let ours = Ours {
            aligned: Some(140.0),
            unaligned: Some(120.0),
            ratio: Some(0.882),
            low: Some(0.84),
            high: None,
        };
        let found = compared(Some(&published), Some(&ours)).unwrap();
        assert!((found.factor - 1.05).abs() < 1e-9 && found.of_ratios && found.interval.is_none());
        let alone = compared(Some(&Published { ratio: None, ..published }), Some(&ours)).unwrap();
        assert!((alone.factor - 140.0 / 133.0).abs() < 1e-9 && !alone.of_ratios);
        let odd = Published { aligned: Some(0.0), unaligned: Some(f64::NAN), ratio: Some(-1.0) };
        assert_eq!(compared(Some(&odd), Some(&ours)), None);
    }

    #[test]
    fn the_dearest_row_and_the_tally() {
        let document = sample::document();
        let drive = document.labs.iter().find(|lab| lab.lab == "2010-osnews").unwrap();
        let (row, cost, ours) = dearest(drive).unwrap();
        assert_eq!((row.row.as_str(), ours), ("random-write", true));
        assert!((cost - 20.6 / 6.29).abs() < 1e-9, "{cost}");
        // The dearest row of all is in no document, so it is no headline.
        let mut unpublished = drive.clone();
        let direct = unpublished.rows.iter_mut().find(|row| row.published.is_none()).unwrap();
        direct.ours = direct.ours.map(|ours| Ours { ratio: Some(100.0), ..ours });
        assert_eq!(dearest(&unpublished).unwrap().0.row, "random-write");
        unpublished.rows.iter_mut().for_each(|row| row.published = None);
        assert!(
            dearest(&unpublished).is_some_and(|(row, ..)| row.row == "random-write-direct")
                && !unpublished.is_published()
        );
        let stripe = document.labs.iter().find(|lab| lab.lab == "2009-gstripe").unwrap();
        let (row, cost, _) = dearest(stripe).unwrap();
        // More is better: half as many requests cost twice the time.
        assert!(row.row == "raidtest-n64" && (cost - 660.0 / 357.0).abs() < 1e-9, "{cost}");
        assert_eq!(tally(drive), Tally { rows: 4, bounded: 2, kept: 2, calibrated: 0, without: 1 });
        let layers = document.labs.iter().find(|lab| lab.lab == "2002-geom").unwrap();
        assert_eq!(
            tally(layers),
            Tally { rows: 4, bounded: 0, kept: 0, calibrated: 4, without: 0 }
        );
        assert_eq!(farthest(layers), None);
        assert_eq!(
            tally_all(&document).rows,
            document.labs.iter().map(|lab| lab.rows.len()).sum::<usize>()
        );
    }
}
