//! One metric of the Prometheus text exposition format.
//!
//! A label set gives one series, even if a hostile disk has two providers of one name: the first
//! one counts.
//!
//! # Sources
//! Prometheus, "Exposition formats" (text format 0.0.4) and "Metric and label naming".

use super::escape;
use std::collections::BTreeSet;
use std::io;

/// A metric: name, help, kind, and the labels and value of every series.
pub(crate) struct Metric<'a> {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// Type of the metric: `gauge` or `counter`.
    pub(crate) kind: &'static str,
    pub(crate) series: Vec<(Labels<'a>, String)>,
}

pub(crate) type Labels<'a> = Vec<(&'static str, &'a str)>;

impl Metric<'_> {
    pub(crate) fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        self.write_with(&[], out)
    }

    /// Writes it with further labels, of all series, before their own.
    pub(crate) fn write_with(
        self,
        shared: &[(&str, &str)],
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let name = self.name;
        writeln!(out, "# HELP {name} {}\n# TYPE {name} {}", self.help, self.kind)?;
        let mut seen = BTreeSet::new();
        for (labels, value) in self.series {
            let all = shared.iter().copied().chain(labels);
            let labels: Vec<String> =
                all.map(|(k, v)| format!("{k}=\"{}\"", escape::label(v))).collect();
            let labels = labels.join(",");
            if !seen.contains(&labels) {
                let braced =
                    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                writeln!(out, "{name}{braced} {value}")?;
                seen.insert(labels);
            }
        }
        Ok(())
    }
}
