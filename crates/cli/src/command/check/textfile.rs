//! `--textfile FILE.prom`: metrics for node_exporter's textfile collector, in a file that is
//! replaced whole, with the time of the last run that read every target.
//!
//! # Sources
//! node_exporter, `collector/textfile.go`: it reads `*.prom`, and refuses a series that two files
//! have with the same labels.

use crate::failure::{Failure, Reason};
use crate::render::report::prometheus::{self, LAST_SUCCESS};
use crate::report::Report;
use crate::{replaced, words};
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Beginning of every file of metrics that is replaced.
const OURS: &[u8] = b"# HELP trueline_";
/// Beginning of the names of files that is no part of the name of the check.
const PREFIX: &str = "trueline-";
/// Bytes of the old file that are read for its stamp: node_exporter reads far smaller ones.
const LARGEST: u64 = 256 << 20;
/// Readable by node_exporter, whatever the umask is.
const MODE: u32 = 0o644;

/// A file of metrics that is to be replaced.
pub(super) struct Textfile<'a> {
    named: &'a Path,
    /// The path behind all links, so that a link stays.
    path: PathBuf,
    /// Name of the check, which tells the series of several files of one host apart.
    check: &'a str,
    /// Stamp of the file that is there; 0 if there is none.
    last_success: u64,
}

impl Textfile<'_> {
    /// Looks at what is to be replaced, before there are metrics.
    ///
    /// Errors: a name that node_exporter does not read, something else than a file, or a file that
    /// is not of these; a file beside it whose series have the same label; a link that leads
    /// nowhere; a directory that is not there.
    pub(super) fn open(named: &Path) -> Result<Textfile<'_>, Reason> {
        let check = named
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".prom"))
            .map(|stem| stem.strip_prefix(PREFIX).unwrap_or(stem))
            .filter(|check| !check.is_empty())
            .ok_or_else(|| reason(named, "node_exporter reads NAME.prom: call it so"))?;
        let path = replaced::behind_links(named).map_err(|e| reason(named, words::os(&e)))?;
        let other = match named.file_stem() == Some(check.as_ref()) {
            true => named.with_file_name(format!("{PREFIX}{check}.prom")),
            false => named.with_file_name(format!("{check}.prom")),
        };
        if has_our_metrics(&other) {
            let series = format!("{} has the series of check=\"{check}\" too", other.display());
            return Err(reason(named, format!("{series}: remove it, or name another file")));
        }
        let failed = |e| reason(named, words::os(&e));
        let last_success = match fs::metadata(&path) {
            Ok(found) if !found.is_file() => return Err(reason(named, "it is no file")),
            Ok(_) => stamp(File::open(&path).map_err(failed)?)
                .ok_or_else(|| reason(named, "it has other metrics: name a new file"))?,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                fs::metadata(replaced::directory(&path)).map_err(failed)?;
                0
            }
            Err(e) => return Err(failed(e)),
        };
        Ok(Textfile { named, path, check, last_success })
    }

    /// Replaces the file by the metrics of a report.
    pub(super) fn replace(&self, report: &Report) -> Result<(), Failure> {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let success = if report.errors.is_empty() { now() } else { self.last_success };
        replaced::replace(&self.path, Some(Permissions::from_mode(MODE)), |out| {
            prometheus::write_textfile(report, self.check, success, out)
        })
        .map_err(|e| reason(self.named, words::os(&e)).into())
    }
}

fn reason(path: &Path, why: impl fmt::Display) -> Reason {
    Reason(format!("write the metrics {}: {why}", path.display()))
}

/// True of a file with metrics of these. One that cannot be read is none: node_exporter reads it no
/// better.
fn has_our_metrics(path: &Path) -> bool {
    let mut start = Vec::new();
    fs::metadata(path).is_ok_and(|found| found.is_file())
        && File::open(path)
            .and_then(|file| file.take(OURS.len() as u64).read_to_end(&mut start))
            .is_ok_and(|_| start == OURS)
}

/// The stamp in a file of metrics, 0 if it has none; `None` of a file that is not of these, or
/// cannot be read.
fn stamp(file: File) -> Option<u64> {
    let mut lines = BufReader::new(file.take(LARGEST));
    let (mut line, mut stamp, mut is_ours) = (Vec::new(), 0, false);
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        is_ours |= line.starts_with(OURS);
        if !is_ours {
            return None;
        }
        if line.starts_with(LAST_SUCCESS.as_bytes()) {
            let text = String::from_utf8_lossy(&line);
            let value = text.trim_end().rsplit_once(' ').and_then(|(_, value)| value.parse().ok());
            stamp = value.unwrap_or(stamp);
        }
        line.clear();
    }
    Some(stamp)
}
