//! `explain`: the page of a rule, a profile or a word, or the list of them.

use crate::Failure;
use crate::options::Explain;
use crate::out::{Style, columns, terminal};
use crate::topics;
use std::io::Write;
use std::process::ExitCode;
use trueline_geom::finding::{RULES, rule};
use trueline_geom::profile::PROFILES;

pub(crate) fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let (mut out, style) = (anstream::stdout().lock(), Style::of_stdout());
    if let Some(name) = &args.rule {
        let page = page(name).or_else(|| topics::page(name));
        let page = page.ok_or_else(|| format!("explain {name}: no such rule, profile or word; trueline explain lists them"))?;
        terminal::write(&page, &mut out, style)?;
        return Ok(ExitCode::SUCCESS);
    }
    for rule in RULES {
        columns::wrap(&format!("{}  ", rule.id), rule.id.len() + 2, rule.title, rule.id.len() + 2, style.width, &mut out)?;
    }
    let profiles: Vec<&str> = PROFILES.iter().map(|profile| profile.name).chain(["raidCHUNKxDISKS"]).collect();
    writeln!(out)?;
    columns::wrap("Profiles: ", 10, &profiles.join(", "), 10, style.width, &mut out)?;
    columns::wrap("Words: ", 7, &topics::words().collect::<Vec<_>>().join(", "), 7, style.width, &mut out)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a rule, a profile or a word; `None` for what is none.
pub(super) fn page(name: &str) -> Option<String> {
    rule(name).map(|rule| rule.page.to_owned()).or_else(|| topics::profile(name)).or_else(|| topics::word(name))
}
