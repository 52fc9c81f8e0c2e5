//! `explain`: the page of a rule, a profile or a word, or the list of them.

pub(crate) mod args;
pub(crate) mod topics;
use crate::command::explain::args::Explain;
use crate::failure::Failure;
use crate::style::Style;
use crate::words::{columns, terminal};
use std::io::Write;
use std::process::ExitCode;
use trueline_geom::audit::profile::PROFILES;
use trueline_geom::base::finding::{RULES, rule};
use trueline_geom::plan::edits;

pub(crate) fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let (mut out, style) = (anstream::stdout().lock(), Style::of_stdout());
    if let Some(name) = &args.rule {
        let page = page(name).or_else(|| topics::page(name));
        let page = page.ok_or_else(|| {
            let meant =
                near(name).map_or_else(String::new, |near| format!(": did you mean {near}?"));
            format!(
                "explain {name}: no such rule, profile or word{meant}; trueline explain lists them"
            )
        })?;
        terminal::write(&page, &mut out, style)?;
        return Ok(ExitCode::SUCCESS);
    }
    for rule in RULES {
        columns::wrap(
            &format!("{}  ", rule.id),
            rule.id.len() + 2,
            rule.title,
            rule.id.len() + 2,
            style.width,
            &mut out,
        )?;
    }
    let profiles: Vec<&str> =
        PROFILES.iter().map(|profile| profile.name).chain(["raidCHUNKxDISKS"]).collect();
    writeln!(out)?;
    columns::wrap("Profiles: ", 10, &profiles.join(", "), 10, style.width, &mut out)?;
    columns::wrap(
        "Words: ",
        7,
        &topics::words().collect::<Vec<_>>().join(", "),
        7,
        style.width,
        &mut out,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The rule, profile or word that `name` may have been meant for.
fn near(name: &str) -> Option<String> {
    let wanted = name.to_lowercase();
    // Zeros in front of a rule's number are easily left out.
    let number = wanted.strip_prefix("tl").and_then(|digits| digits.parse::<u32>().ok());
    if let Some(rule) = number.and_then(|number| rule(&format!("TL{number:04}"))) {
        return Some(rule.id.to_owned());
    }
    let names = RULES
        .iter()
        .map(|rule| rule.id)
        .chain(PROFILES.iter().map(|profile| profile.name))
        .chain(topics::words());
    let far = names.map(|known| (edits(&wanted, &known.to_lowercase()), known));
    far.min().filter(|&(far, known)| far <= 1 + known.len() / 4).map(|(_, known)| known.to_owned())
}

/// The page of a rule, a profile or a word; `None` for any other name.
pub(super) fn page(name: &str) -> Option<String> {
    rule(name)
        .map(|rule| rule.page.to_owned())
        .or_else(|| topics::profile(name))
        .or_else(|| topics::word(name))
}
