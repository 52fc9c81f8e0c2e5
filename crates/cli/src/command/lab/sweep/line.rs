//! The line of a point: its identity, then its values, so that a file of lines can be compared with
//! the points that are due.

use crate::appended::{failed, refused};
use crate::failure::{Reason, worded_lab};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::iter::Peekable;
use std::path::Path;
use trueline_lab::study::{PointFate, PointJob, PointValues};

/// Longest line that is read, in bytes: more than the parameters of any model take.
const LONGEST: u64 = 1 << 20;

/// The end of a point's run, as a line has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Ending {
    /// Both layouts have a value.
    #[default]
    #[serde(rename = "")]
    Ran,
    /// The model refuses the parameters.
    #[serde(rename = "impossible")]
    Impossible,
    /// The run failed at this point.
    #[serde(rename = "failed")]
    Failed,
}

/// The part of a line behind the identity; the values are absent where there are none.
#[derive(Serialize)]
struct Values<'a> {
    #[serde(flatten)]
    values: Option<PointValues>,
    error_class: Ending,
    error: &'a str,
}

/// The keys of a line that say how its point ended.
#[derive(Deserialize)]
struct Ended {
    error_class: Ending,
    error: String,
}

/// A line that is ready to be written.
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// The id of the row.
    pub(super) row: String,
    pub(super) ending: Ending,
    /// The reason for which there are no values; empty if there are.
    pub(super) why: String,
}

impl Line {
    /// Runs a point; `None` if a signal ended the run.
    pub(super) fn run(job: &PointJob<'_>) -> io::Result<Option<Line>> {
        let (values, ending, why) = match job.run() {
            PointFate::Interrupted => return Ok(None),
            PointFate::Ran(values) => (Some(values), Ending::Ran, String::new()),
            PointFate::Impossible(why) => (None, Ending::Impossible, why),
            PointFate::Failed(why) => (None, Ending::Failed, worded_lab(&why)),
        };
        let mut bytes = identity(job)?;
        let tail = serde_json::to_vec(&Values { values, error_class: ending, error: &why })?;
        // Both are objects, of which the line makes one.
        bytes.extend_from_slice(tail.get(1..).unwrap_or_default());
        bytes.push(b'\n');
        Ok(Some(Line { bytes, row: job.key().row.to_owned(), ending, why }))
    }
}

/// The beginning of a point's line, up to the values.
fn identity(job: &PointJob<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&job.key())?;
    bytes.pop();
    bytes.push(b',');
    Ok(bytes)
}

/// Takes the points whose lines a file begins with from `jobs`, tells `seen` of each, and cuts off
/// a last line that is not whole. Returns their number.
///
/// Errors: a file that cannot be read, or that has anything but the lines of these points in their
/// order, which is left alone.
pub(super) fn pass_over<'a>(
    path: &Path,
    file: &File,
    jobs: &mut Peekable<impl Iterator<Item = PointJob<'a>>>,
    mut seen: impl FnMut(Ending, &str),
) -> Result<u64, Reason> {
    let failed = |e: io::Error| failed(path, &e);
    let other = || refused(path, "it has something else in it than lines of this sweep");
    let (mut count, mut end, mut line, mut lines) = (0, 0, Vec::new(), BufReader::new(file));
    loop {
        line.clear();
        (&mut lines).take(LONGEST).read_until(b'\n', &mut line).map_err(failed)?;
        if line.is_empty() {
            break;
        }
        let due = identity(jobs.peek().ok_or_else(other)?).map_err(failed)?;
        if line.last() != Some(&b'\n') {
            let is_cut = line.starts_with(&due) || due.starts_with(&line);
            if !is_cut || line.len() as u64 >= LONGEST {
                return Err(other());
            }
            break;
        }
        if !line.starts_with(&due) {
            return Err(other());
        }
        let Ended { error_class, error } = serde_json::from_slice(&line).map_err(|_| other())?;
        seen(error_class, &error);
        jobs.next();
        count += 1;
        end += line.len() as u64;
    }
    file.set_len(end).map_err(failed)?;
    Ok(count)
}
