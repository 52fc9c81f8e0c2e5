//! `--prometheus` and `--textfile`: the text exposition format, for a scrape and for node_exporter's
//! textfile collector.

use crate::report::{Finding, Provider, Report, Target, Verdict};
use crate::words;
use crate::words::metric::{Labels, Metric};
use std::io;
use trueline_geom::base::finding::Severity;

/// Name of the time of the last run that read every target.
pub(crate) const LAST_SUCCESS: &str = "trueline_check_last_success_timestamp_seconds";

/// Writes every metric of the report.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    write_all(report, &[], out)
}

/// Writes every metric of the report with the name of the check, and the time in seconds since 1970
/// of the last run that read every target.
pub(crate) fn write_textfile(
    report: &Report,
    check: &str,
    last_success: u64,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let shared = [("check", check)];
    write_all(report, &shared, out)?;
    Metric {
        name: LAST_SUCCESS,
        help: "Unix time of the last run that read every target; 0 if there was none.",
        kind: "gauge",
        series: vec![(Vec::new(), last_success.to_string())],
    }
    .write_with(&shared, out)
}

fn write_all(report: &Report, shared: &[(&str, &str)], out: &mut dyn io::Write) -> io::Result<()> {
    errors(report).write_with(shared, out)?;
    target_verdicts(report).write_with(shared, out)?;
    target_findings(report).write_with(shared, out)?;
    aligned(report).write_with(shared, out)?;
    for (name, help, value) in PROVIDER {
        let series = report.targets.iter().flat_map(|t| {
            t.providers.iter().filter_map(move |p| {
                Some((
                    vec![("target", t.target.as_str()), ("provider", p.provider.as_str())],
                    value(p)?.to_string(),
                ))
            })
        });
        Metric { name, help, kind: "gauge", series: series.collect() }.write_with(shared, out)?;
    }
    // Label values borrow the numbers as text until the metrics are written.
    let findings: Vec<(&Target, &Finding, [String; 2])> = report
        .targets
        .iter()
        .flat_map(|t| {
            t.findings.iter().map(move |f| (t, f, [f.offset, f.unit].map(|n| n.to_string())))
        })
        .collect();
    for (name, help, value) in FINDING {
        let series = findings.iter().map(|(t, f, [offset, unit])| {
            let labels: Labels<'_> = vec![
                ("target", &t.target),
                ("provider", &f.provider),
                ("rule", f.rule),
                ("severity", f.severity.name()),
                ("offset", offset),
                ("unit", unit),
            ];
            (labels, value(f))
        });
        Metric { name, help, kind: "gauge", series: series.collect() }.write_with(shared, out)?;
    }
    Ok(())
}

type OfProvider = (&'static str, &'static str, fn(&Provider) -> Option<u64>);

const PROVIDER: [OfProvider; 4] = [
    (
        "trueline_provider_start_bytes",
        "First byte of the provider on the medium; absent where it has no single place.",
        |p| p.start,
    ),
    ("trueline_provider_size_bytes", "Length of the provider.", |p| Some(p.length)),
    (
        "trueline_provider_stripe_size_bytes",
        "GEOM stripesize of the provider; 0 if unknown.",
        |p| Some(p.stripe_size),
    ),
    (
        "trueline_provider_stripe_offset_bytes",
        "GEOM stripeoffset of the provider: bytes from the last boundary to its start.",
        |p| Some(p.stripe_offset),
    ),
];

type OfFinding = (&'static str, &'static str, fn(&Finding) -> String);

const FINDING: [OfFinding; 3] = [
    (
        "trueline_finding_rmw_factor",
        "Device operations per write relative to the same write on the grain; 1 where nothing is measured.",
        |f| f.rmw_factor.to_string(),
    ),
    (
        "trueline_finding_straddle_ratio",
        "Share of naturally aligned I/Os that cross a boundary of the unit.",
        |f| f.straddle.to_string(),
    ),
    ("trueline_finding_remainder_bytes", "Bytes past the last boundary of the unit.", |f| {
        f.remainder.to_string()
    }),
];

fn errors(report: &Report) -> Metric<'_> {
    let series = vec![(Vec::new(), report.errors.len().to_string())];
    Metric {
        name: "trueline_errors",
        help: "Targets that could not be read.",
        kind: "gauge",
        series,
    }
}

fn target_verdicts(report: &Report) -> Metric<'_> {
    let all = [Verdict::Aligned, Verdict::Misaligned, Verdict::Unknown];
    let series = report.targets.iter().flat_map(|t| {
        all.map(|v| {
            (
                vec![("target", t.target.as_str()), ("verdict", words::verdict(v))],
                u8::from(t.verdict == v).to_string(),
            )
        })
    });
    let help = "Verdict on the target: 1 for the one it has, 0 for the others.";
    Metric { name: "trueline_target_verdict", help, kind: "gauge", series: series.collect() }
}

fn target_findings(report: &Report) -> Metric<'_> {
    let of = |t: &Target, s| t.findings.iter().filter(|f| f.severity == s).count().to_string();
    let series = report.targets.iter().flat_map(|t| {
        [Severity::Error, Severity::Warning, Severity::Note]
            .map(|s| (vec![("target", t.target.as_str()), ("severity", s.name())], of(t, s)))
    });
    Metric {
        name: "trueline_target_findings",
        help: "Findings on the target, by severity.",
        kind: "gauge",
        series: series.collect(),
    }
}

fn aligned(report: &Report) -> Metric<'_> {
    let judged = |p: &&Provider| p.data_bearing && p.verdict != Verdict::Unknown;
    let series = report.targets.iter().flat_map(|t| {
        t.providers.iter().filter(judged).map(move |p| {
            let labels = vec![
                ("target", t.target.as_str()),
                ("provider", p.provider.as_str()),
                ("sign", p.sign.as_deref().unwrap_or("")),
            ];
            (labels, u8::from(p.verdict == Verdict::Aligned).to_string())
        })
    });
    let help = "Whether a provider from which something does I/O is on every grain that counts; \
        absent if that is not known.";
    Metric { name: "trueline_provider_aligned", help, kind: "gauge", series: series.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;
    use std::collections::BTreeSet;

    #[test]
    fn series_are_unique_and_escaped() {
        let mut report =
            samples::report(vec![samples::openbsd(), samples::openbsd(), samples::stripe()]);
        report.targets[2].target = "a\"b\\c\nd".into();
        report.errors = vec!["open x: no".to_owned().into()];
        let text = samples::text(|out| write(&report, out));
        assert!(text.contains("\ntrueline_errors 1\n"), "{text}");
        let series: Vec<&str> = text
            .lines()
            .filter(|l| !l.starts_with('#'))
            .map(|l| l.rsplit_once(' ').unwrap().0)
            .collect();
        assert_eq!(series.len(), series.iter().collect::<BTreeSet<_>>().len());
        assert!(
            text.contains(r#"trueline_target_verdict{target="a\"b\\c\nd",verdict="misaligned"} 1"#),
            "{text}"
        );
        assert!(text.contains(
            "trueline_finding_rmw_factor{target=\"openbsd.img\",provider=\"s4b\",rule=\"TL0001\",severity=\"error\",offset=\"1073774080\",unit=\"4096\"} 4\n"
        ));
    }
}
