//! `explain`: the page of a rule, or the list of rules.

use crate::Failure;
use crate::options::Explain;
use std::io::Write;
use std::process::ExitCode;
use trueline_geom::finding::{RULES, rule};

pub(crate) fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let mut out = anstream::stdout().lock();
    match &args.rule {
        Some(id) => {
            let rule = rule(id).ok_or_else(|| format!("explain {id}: no such rule; trueline explain lists them"))?;
            writeln!(out, "{}", rule.page.trim_end())?;
        }
        None => {
            for rule in RULES {
                writeln!(out, "{}  {}", rule.id, rule.title)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
