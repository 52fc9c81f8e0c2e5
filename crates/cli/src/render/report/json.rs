//! `--json`: the report as one document, and `--jsonl`: each target as a document on a line of its
//! own.

use super::rows::State;
use crate::report::{Report, Target};
use crate::words;
use serde::Serialize;
use std::io;

/// A line of `--jsonl`: a target with the name of its format.
#[derive(Serialize)]
struct Line<'a> {
    format: &'static str,
    image: Image<'a>,
    #[serde(flatten)]
    target: &'a Target,
}

/// The file that a target is, where it is one.
#[derive(Serialize)]
struct Image<'a> {
    size: u64,
    etag: &'a str,
    container: &'a str,
    creator: &'a str,
}

/// A line of `--jsonl` for an error: a target that could not be read.
#[derive(Serialize)]
struct Unread<'a> {
    format: &'static str,
    target: &'a str,
    error_class: &'a str,
    error: &'a str,
}

/// Writes the report as one document.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// Writes a target as one line.
pub(crate) fn write_line(
    format: &'static str,
    target: &Target,
    state: &State,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let image = Image {
        size: state.size,
        etag: &state.etag,
        container: words::container(target),
        creator: words::creator(target),
    };
    serde_json::to_writer(&mut *out, &Line { format, image, target })?;
    writeln!(out)
}

/// Writes a target that could not be read as one line.
pub(crate) fn write_error(
    format: &'static str,
    target: &str,
    error_class: &str,
    error: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Unread { format, target, error_class, error })?;
    writeln!(out)
}

/// Writes every target as one line, then every error as one.
pub(crate) fn write_lines(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    for target in &report.targets {
        write_line(report.format, target, &State::default(), out)?;
    }
    for error in &report.errors {
        write_error(report.format, &error.target, "unreadable", &error.why, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_line_is_a_target_with_its_format() {
        let mut report = samples::report(vec![samples::gpt(), samples::openbsd()]);
        report.errors = vec!["open x: no".to_owned().into()];
        let text = samples::text(|out| write_lines(&report, out));
        let lines: Vec<serde_json::Value> =
            text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let whole: serde_json::Value =
            serde_json::from_str(&samples::text(|out| write(&report, out))).unwrap();
        for (i, line) in lines.iter().take(2).enumerate() {
            assert_eq!(line["format"], "trueline/check/1");
            assert_eq!(line["providers"], whole["targets"][i]["providers"]);
        }
        assert_eq!(
            lines[2..],
            [serde_json::json!({
                "format": "trueline/check/1",
                "target": "",
                "error_class": "unreadable",
                "error": "open x: no"
            })]
        );
    }
}
