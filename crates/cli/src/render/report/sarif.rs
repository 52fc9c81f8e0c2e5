//! `--sarif`: SARIF 2.1.0, for code-scanning services and editors.
//!
//! A target is the artifact, a finding the result. Its region counts bytes of the medium. Above a
//! set there is no such place, and the logical location alone gives it. SARIF's own fixes replace
//! bytes of a file; ours do not, so they are in the message and in the properties.
//!
//! # Sources
//! OASIS SARIF 2.1.0: 3.14 run, 3.20 invocation, 3.27 result, 3.28 location, 3.30.11 byteOffset,
//! 3.49 reportingDescriptor.

use crate::report::{Finding, Provider, Report, Target};
use crate::words::{self, escape};
use serde_json::{Map, Value, json};
use std::io;
use trueline_geom::base::finding::{RULES, Rule};

/// Writes the SARIF log.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let rules: Vec<Value> = RULES.iter().map(|r| descriptor(r)).collect();
    let results: Vec<Value> =
        report.targets.iter().flat_map(|t| t.findings.iter().map(move |f| result(t, f))).collect();
    let unread: Vec<Value> = report
        .errors
        .iter()
        .map(|e| json!({"level": "error", "message": {"text": e.why}}))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "trueline", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "invocations": [{"executionSuccessful": unread.is_empty(), "toolExecutionNotifications": unread}],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn descriptor(rule: &Rule) -> Value {
    let title = format!("{}.", rule.title);
    json!({
        "id": rule.id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": lead(rule)},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": "warning"},
    })
}

/// The first paragraph of a rule's page, or its title if the page has none.
fn lead(rule: &Rule) -> String {
    let paragraphs = rule.page.split("\n\n").map(str::trim);
    let text = paragraphs
        .filter(|p| !p.is_empty() && !p.starts_with('#'))
        .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "))
        .next();
    text.unwrap_or_else(|| rule.title.to_owned())
}

fn result(target: &Target, f: &Finding) -> Value {
    let provider = target.providers.iter().find(|p| p.provider == f.provider);
    let finding = [format!("{}: {}", words::name(&f.provider), f.message)];
    let cost = words::cost(f).map(|cost| format!("Costs: {cost}"));
    let fixes = f.fix.iter().map(|fix| format!("Fix: {fix}"));
    let sentences = finding
        .into_iter()
        .chain(cost)
        .chain(fixes)
        .map(|s| s.trim_end_matches('.').to_owned() + ".");
    let message = sentences.collect::<Vec<_>>().join(" ");
    let mut result = json!({
        "ruleId": f.rule,
        "level": f.severity.name(),
        "message": {"text": message},
        "locations": [location(target, f, provider)],
        "partialFingerprints": {"trueline/v1": f.key().to_string()},
        "properties": {
            "unit": f.unit,
            "remainder": f.remainder,
            "straddle": f.straddle,
            "rmwFactor": f.rmw_factor,
            "fix": f.fix,
        },
    });
    if let Some(index) = RULES.iter().position(|r| r.id == f.rule) {
        result["ruleIndex"] = index.into();
    }
    result
}

fn location(target: &Target, f: &Finding, provider: Option<&Provider>) -> Value {
    let mut physical = Map::new();
    physical
        .insert("artifactLocation".into(), json!({"uri": escape::uri(artifact(target, provider))}));
    // Only a place on the medium is a place in the artifact. Most readers take a byte offset as a
    // signed number.
    let offset = provider.and_then(|p| p.start).and(i64::try_from(f.offset).ok());
    if let Some(offset) = offset {
        let end = provider.and_then(|p| p.start?.checked_add(p.length)).unwrap_or(0);
        let length = end.saturating_sub(f.offset);
        let mut region = json!({"byteOffset": offset});
        if let Some(length) = i64::try_from(length).ok().filter(|&l| l > 0) {
            region["byteLength"] = length.into();
        }
        physical.insert("region".into(), region);
    }
    let name = words::name(&f.provider);
    let full = format!("{}#{}", target.target, f.provider);
    json!({
        "physicalLocation": physical,
        "logicalLocations": [{"name": name, "fullyQualifiedName": full, "kind": "provider"}],
    })
}

/// The disk that holds the provider, of a target with several disks or a `#PROVIDER`.
pub(super) fn artifact<'a>(target: &'a Target, provider: Option<&Provider>) -> &'a str {
    let whole = target.disks();
    let disks: Vec<&Provider> = target.providers.iter().filter(|p| p.class == "disk").collect();
    // A comma may be part of a name: it separates disks only if their number fits.
    let names: Vec<&str> = whole.split(',').collect();
    if disks.len() < 2 || names.len() != disks.len() {
        return whole;
    }
    let on = provider
        .and_then(|p| disks.iter().position(|d| d.provider == p.provider || d.provider == p.root));
    // A finding on a set is reported at its first disk.
    names[on.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn places() {
        let report = samples::report(vec![samples::stripe(), samples::fat()]);
        let log: Value = serde_json::from_str(&samples::text(|out| write(&report, out))).unwrap();
        let results = &log["runs"][0]["results"];
        let place = |i: usize| results[i]["locations"][0]["physicalLocation"].clone();
        // A set has no byte of its first disk.
        assert_eq!(place(0), json!({"artifactLocation": {"uri": "ada0.img"}}));
        assert_eq!(place(2)["artifactLocation"]["uri"], "fat%20&%20co%231.img");
        assert_eq!(place(2)["region"]["byteOffset"], 5_243_392);
        let index = usize::try_from(results[2]["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], results[2]["ruleId"]);
    }

    #[test]
    fn what_could_not_be_read_is_a_notification() {
        let mut report = samples::report(vec![samples::fat()]);
        let of = |report: &Report| {
            serde_json::from_str::<Value>(&samples::text(|out| write(report, out))).unwrap()["runs"]
                [0]
            .clone()
        };
        assert_eq!(
            of(&report)["invocations"][0],
            json!({"executionSuccessful": true, "toolExecutionNotifications": []})
        );
        report.errors = vec!["open x: no".to_owned().into()];
        let run = of(&report);
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        assert_eq!(
            run["invocations"][0]["toolExecutionNotifications"][0],
            json!({"level": "error", "message": {"text": "open x: no"}})
        );
        let message = run["results"][0]["message"]["text"].as_str().unwrap();
        assert!(
            message.contains("physical unit. Costs: every")
                && message.contains("operations. Fix: start"),
            "{message}"
        );
    }
}
