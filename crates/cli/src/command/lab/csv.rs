//! `lab --csv`: a line for each row, and one for each of its other personalities. RFC 4180, except
//! that lines end in LF.

use crate::words::csv::quoted;
use std::io;
use trueline_lab::result::{LabDocument, Ours, Row};

const HEADING: &str = "lab,seed,row,unit,published_aligned,published_unaligned,published_ratio,\
    aligned,unaligned,ratio,low,high,error,bound,predicted,personality,note";

/// Writes the whole document.
pub(crate) fn write(document: &LabDocument, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    for lab in &document.labs {
        for row in &lab.rows {
            line(&lab.lab, row, row.ours, row.error, row.personality.as_deref(), &row.note, out)?;
            for other in &row.alternatives {
                line(
                    &lab.lab,
                    row,
                    Some(other.ours),
                    other.error,
                    Some(&other.personality),
                    "",
                    out,
                )?;
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
    ];
    writeln!(out, "{}", fields.join(","))
}
