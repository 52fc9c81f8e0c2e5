//! Pages that no single command owns: targets, grain, profiles, and the words that all commands
//! use.

use std::fmt::Write as _;
use trueline_geom::audit::profile::{self, PROFILES, Profile};
use trueline_geom::base::topology::Fact;

/// A page of `trueline help`.
pub(crate) struct Topic {
    /// The word after `help`.
    pub(crate) name: &'static str,
    /// Title of the page in a few words.
    pub(crate) about: &'static str,
}

/// The pages, in the order of the list.
pub(crate) const TOPICS: [Topic; 3] = [
    Topic { name: "targets", about: "how a disk, an image, a partition or a set is named" },
    Topic { name: "grain", about: "what a boundary is, and how to say that a disk has one" },
    Topic { name: "profiles", about: "the drives that --for knows" },
];

const TARGETS: &str = include_str!("../../../docs/topics/targets.md");
const GRAIN: &str = include_str!("../../../docs/topics/grain.md");
const PROFILES_HEAD: &str = include_str!("../../../docs/topics/profiles.md");
const WORDS: &str = include_str!("../../../docs/topics/words.md");

/// The page of a topic as Markdown; `None` for any other name.
pub(crate) fn page(name: &str) -> Option<String> {
    match name {
        "targets" => Some(TARGETS.into()),
        "grain" => Some(GRAIN.into()),
        "profiles" => Some(profiles()),
        _ => None,
    }
}

/// A table of every profile, with its sector and its boundaries, as Markdown.
fn profiles() -> String {
    let mut page = format!(
        "{PROFILES_HEAD}| profile | is | logical sector | boundaries |\n|---|---|---|---|\n"
    );
    for Profile { name, about, .. } in PROFILES {
        let (sector, facts) = profile::named(name).unwrap_or_default();
        page +=
            &format!("| `{name}` | {about} | {} | {} |\n", sector_of(sector), boundaries(&facts));
    }
    page + "| `raidCHUNKxDISKS` | a set with parity: `raid64kx4` has chunks of 64 KiB on 4 data \
        disks | as found | physical 4096, chunk, full-stripe |\n\n\"As found\" is 512, or what the \
        image's GPT was written for.\n"
}

/// The page of one profile as Markdown; `None` for any other name.
pub(crate) fn profile(name: &str) -> Option<String> {
    let (sector, facts) = profile::named(name)?;
    let about = PROFILES
        .iter()
        .find(|p| p.name.eq_ignore_ascii_case(name))
        .map_or("a set with parity", |p| p.about);
    let mut page = format!(
        "# {name}: {about}\n\nLogical sector: {}.\n\n| boundary | bytes |\n|---|---|\n",
        sector_of(sector)
    );
    for fact in &facts {
        let _ = writeln!(page, "| {} | {} |", fact.why.name(), fact.grain.size());
    }
    Some(
        page + &format!(
            "\n    trueline check --for {name} disk.img\n\nSee also `trueline help profiles`.\n"
        ),
    )
}

fn sector_of(sector: Option<u64>) -> String {
    sector.map_or("as found".into(), |size| size.to_string())
}

fn boundaries(facts: &[Fact]) -> String {
    facts
        .iter()
        .map(|fact| format!("{} {}", fact.why.name(), fact.grain.size()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The words that [`word`] explains, in order.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.lines().filter_map(|line| line.strip_prefix("## "))
}

/// The meaning of a word as Markdown; `None` for an unknown word. `full-stripe` and `full stripe`
/// are the same, and `physical` is the physical unit.
pub(crate) fn word(word: &str) -> Option<String> {
    let (lower, wanted) =
        (|text: &str| text.replace('-', " ").to_lowercase(), word.replace('-', " ").to_lowercase());
    let begins = |title: &&str| {
        lower(title).strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with(' '))
    };
    let title = words().find(|title| lower(title) == wanted).or_else(|| words().find(begins))?;
    let (_, after) = WORDS.split_once(&format!("## {title}\n"))?;
    let body = after.split("\n## ").next().unwrap_or(after).trim_end();
    Some(format!("# {title}\n\n{body}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::base::topology::Why;

    #[test]
    fn every_topic_profile_and_word_has_a_page() {
        for topic in &TOPICS {
            let page = page(topic.name).unwrap();
            assert!(page.starts_with("# ") && page.lines().count() > 8, "{page}");
        }
        for name in PROFILES.iter().map(|p| p.name).chain(["raid64kx4"]) {
            assert!(profile(name).unwrap().contains("| physical |"), "{name}");
        }
        let all: Vec<&str> = words().collect();
        assert!(
            all.len() > 15 && all.iter().map(|word| word.to_lowercase()).is_sorted(),
            "{all:?}"
        );
        assert!(all.iter().all(|name| word(name).unwrap().lines().count() > 2));
        assert!(word("Full-Stripe").unwrap().starts_with("# full stripe\n"));
        // Every purpose, trust and verdict that is printed.
        let trusts = ["assumed", "claimed", "trusted", "untrusted"];
        let others = [
            "aligned",
            "misaligned",
            "partial",
            "unknown",
            "record",
            "unit",
            "grain",
            "phase",
            "stripe",
        ];
        for printed in Why::ALL.iter().map(|why| why.name()).chain(trusts).chain(others) {
            assert!(word(printed).is_some(), "explain {printed}");
        }
        assert!(word("erase").unwrap().starts_with("# erase unit\n") && word("").is_none());
        assert_eq!((word("nonsense"), profile("nonsense"), page("nonsense")), (None, None, None));
    }
}
