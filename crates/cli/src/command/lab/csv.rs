//! `lab --csv`: a line for each row, and one for each of its other personalities. RFC 4180, except
//! that lines end in LF.

use crate::words::csv::quoted;
use std::io;
use trueline_lab::result::{LabDocument, Ours, Row};

const HEADING: &str = "lab,seed,row,unit,published_aligned,published_unaligned,published_ratio,\
    aligned,unaligned,ratio,low,high,error,bound,predicted,personality,note,error_aligned,\
    error_unaligned,null_ratio,null_error";

/// Writes the whole document.
pub(crate) fn write(document: &LabDocument, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    for lab in &document.labs {
        for row in &lab.rows {
            let own = row.personality.as_deref();
            line(&lab.lab, row, row.ours, row.error, own, &row.note, out)?;
            for other in &row.alternatives {
                let (ours, name) = (Some(other.ours), Some(other.personality.as_str()));
                line(&lab.lab, row, ours, other.error, name, "", out)?;
            }
        }
    }
    Ok(())
}

fn line(
    lab: &str,
    row: &Row,
    ours: Option<Ours>,
    error: Option<f64>,
    personality: Option<&str>,
    note: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let levels = row.published.zip(ours).map(|(published, ours)| published.level_errors(ours));
    let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    let fields = [
        quoted(lab),
        quoted(row.seed.as_deref().unwrap_or_default()),
        quoted(&row.row),
        quoted(&row.unit),
        number(row.published.and_then(|p| p.aligned)),
        number(row.published.and_then(|p| p.unaligned)),
        number(row.published.and_then(|p| p.ratio)),
        number(ours.and_then(|o| o.aligned)),
        number(ours.and_then(|o| o.unaligned)),
        number(ours.and_then(|o| o.ratio)),
        number(ours.and_then(|o| o.low)),
        number(ours.and_then(|o| o.high)),
        number(error),
        number(row.bound),
        row.predicted.to_string(),
        quoted(personality.unwrap_or_default()),
        quoted(note),
        number(levels.and_then(|levels| levels.aligned)),
        number(levels.and_then(|levels| levels.unaligned)),
        number(row.null_model.map(|null| null.ratio)),
        number(row.null_model.and_then(|null| null.error)),
    ];
    writeln!(out, "{}", fields.join(","))
}
