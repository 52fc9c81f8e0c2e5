//! `--rows`: a line for each provider, flat, with the same keys of the same types in every line,
//! for programs that read tables.

use crate::report::{Provider, Report, Target, Verdict};
use crate::words;
use serde::Serialize;
use std::io;
use trueline_geom::base::finding::Severity;

/// State of a file that a target is, where it is one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Length of the file in bytes.
    pub(crate) size: u64,
    /// Word that changes whenever the file is written.
    pub(crate) etag: String,
}

/// A line. What is not there is empty, 0, or `unknown`: no key is ever `null`, so that every reader
/// finds the same types in any part of a file.
#[derive(Debug, Serialize)]
struct Row<'a> {
    uri: &'a str,
    etag: &'a str,
    /// Length of the file in bytes.
    size: u64,
    /// The profile it was judged by.
    #[serde(rename = "for")]
    judged: &'a str,
    /// Verdict on the whole target.
    target_verdict: Verdict,
    /// Format of the container that the target is, and the program that made it.
    container: &'a str,
    creator: &'a str,
    /// Size of the disk in the container in bytes.
    virtual_size: u64,
    /// Unit in bytes in which the container gets space.
    allocation: u64,
    /// Largest size in bytes modulo which all of its blocks are at one distance from their guest
    /// offset, and that distance.
    grain: u64,
    phase: u64,
    provider: &'a str,
    class: &'a str,
    kind: &'a str,
    start: u64,
    length: u64,
    /// True if a file system, or other I/O, begins at its first byte.
    data_bearing: bool,
    verdict: Verdict,
    /// Rules of the findings about it, each once, with blanks between.
    rules: String,
    /// The worst severity of them.
    severity: &'a str,
    /// Unit in bytes of the dearest, and how far past its boundary the provider begins.
    unit: u64,
    remainder: u64,
    /// Device operations for a write, relative to one on the grain.
    cost: f64,
    /// Class of an error, and what it says: of a target that could not be read.
    error_class: &'a str,
    error: &'a str,
}

/// Writes every target, then every error.
pub(crate) fn write_all(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    for target in &report.targets {
        write(target, &State::default(), out)?;
    }
    for error in &report.errors {
        write_error(&error.target, "unreadable", &error.why, out)?;
    }
    Ok(())
}

/// Writes the lines of a target.
pub(crate) fn write(target: &Target, state: &State, out: &mut dyn io::Write) -> io::Result<()> {
    for provider in &target.providers {
        serde_json::to_writer(&mut *out, &row(target, provider, state))?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the line of a target that could not be read.
pub(crate) fn write_error(
    name: &str,
    class: &str,
    error: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let row = Row {
        uri: name,
        etag: "",
        size: 0,
        judged: "",
        target_verdict: Verdict::Unknown,
        container: "",
        creator: "",
        virtual_size: 0,
        allocation: 0,
        grain: 0,
        phase: 0,
        provider: "",
        class: "",
        kind: "",
        start: 0,
        length: 0,
        data_bearing: false,
        verdict: Verdict::Unknown,
        rules: String::new(),
        severity: "",
        unit: 0,
        remainder: 0,
        cost: 1.0,
        error_class: class,
        error,
    };
    serde_json::to_writer(&mut *out, &row)?;
    writeln!(out)
}

fn row<'a>(target: &'a Target, p: &'a Provider, state: &'a State) -> Row<'a> {
    let contents = outer_container(target);
    let container = contents.and_then(|contents| contents.container.as_ref());
    let own = || target.findings.iter().filter(|found| found.provider == p.provider);
    let mut rules: Vec<&str> = own().map(|found| found.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let dearest = own().max_by(|a, b| a.rmw_factor.total_cmp(&b.rmw_factor));
    Row {
        uri: &target.target,
        etag: &state.etag,
        size: state.size,
        judged: target.judged.as_ref().map_or("", |judged| &judged.profile),
        target_verdict: target.verdict,
        container: words::container(target),
        creator: words::creator(target),
        virtual_size: contents.map_or(0, |contents| contents.length),
        allocation: container.map_or(0, |container| container.allocation),
        grain: container.map_or(0, |container| container.grain),
        phase: container.map_or(0, |container| container.phase),
        provider: &p.provider,
        class: p.class,
        kind: p.sign.as_deref().or(p.table.as_ref().map(|table| table.scheme)).unwrap_or_default(),
        start: p.start.unwrap_or(p.base),
        length: p.length,
        data_bearing: p.data_bearing,
        verdict: p.verdict,
        rules: rules.join(" "),
        severity: own().map(|found| found.severity).max().map_or("", severity),
        unit: dearest.map_or(0, |found| found.unit),
        remainder: dearest.map_or(0, |found| found.remainder),
        cost: dearest.map_or(1.0, |found| found.rmw_factor.max(1.0)),
        error_class: "",
        error: "",
    }
}

/// The contents of the container that a target is, the outermost.
pub(crate) fn outer_container(target: &Target) -> Option<&Provider> {
    target.providers.iter().find(|p| p.container.is_some())
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
