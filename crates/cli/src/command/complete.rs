//! `complete`: the words that fit at the cursor, one a line, each with a tab and its meaning. The
//! scripts of the shells run it.
//!
//! Its answers come from the definitions of the command line and the lists of the program, so
//! neither goes out of date. Without an answer it prints nothing, and the shell offers files. It
//! never complains: an error in the middle of a line that is being typed helps no user.

use crate::args::Options;
use crate::command::explain::topics::{self, TOPICS};
use crate::failure::Failure;
use crate::log;
use crate::render::report::list::column::COLUMNS;
use clap::{Arg, Command, CommandFactory};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use trueline_geom::audit::profile::PROFILES;
use trueline_geom::base::finding::RULES;
use trueline_geom::base::topology::Why;
use trueline_geom::class::mirror::BALANCES;
use trueline_geom::plan::USES;
use trueline_geom::registry::SCHEMES;
use trueline_geom::table::types;
use trueline_lab::layer::LAYERS;
use trueline_lab::study::every;
use trueline_lab::workload::WORKLOADS;
use trueline_sim::model::{MODELS, Model};

mod targets;

/// A word that fits, and its meaning.
type Candidate = (String, String);

/// Prints the words that fit in the place of the last of `words`, which follow the name of the
/// program.
pub(crate) fn run(words: &[OsString]) -> Result<ExitCode, Failure> {
    log::LogForm::Silent.choose();
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut program = Options::command();
    program.build();
    let mut text = String::new();
    for (value, about) in candidates(&program, &words) {
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        if value.chars().any(char::is_control) {
            continue;
        }
        let tab = if about.is_empty() { "" } else { "\t" };
        text.extend([&value, tab, &about, "\n"]);
    }
    // A shell that has gone, or asked with its output closed, needs no answer.
    let _ = anstream::stdout().lock().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// The place of a word on the command line.
struct WordPosition<'a> {
    /// The command and verb so far.
    command: &'a Command,
    /// Names of that command and verb.
    path: Vec<&'a str>,
    /// The option that the word is a value of.
    option: Option<&'a Arg>,
    /// Options before it that say what a disk is, with their values.
    said: Vec<String>,
    /// Number of words before it that are no options.
    position: usize,
    /// True if `--` was typed: no option follows.
    literal: bool,
}

impl WordPosition<'_> {
    /// Keeps an option and its value if it says how a disk is read.
    fn say(&mut self, option: &Arg, value: &str) {
        if targets::SAID.contains(&option.get_id().as_str()) {
            let name = option.get_long().unwrap_or_default();
            self.said.push(format!("--{name}={value}"));
        }
    }
}

fn candidates(program: &Command, words: &[String]) -> Vec<Candidate> {
    let (current, before) =
        words.split_last().map_or(("", &words[..0]), |(last, before)| (last.as_str(), before));
    let place = place(program, before);
    let mut found = if let Some(option) = place.option {
        values(&place, option, current)
    } else if let Some((option, value)) =
        current.split_once('=').filter(|_| current.starts_with("--") && !place.literal)
    {
        let arg = long(place.command, option);
        let with = |(found, about)| (format!("{option}={found}"), about);
        arg.map_or_else(Vec::new, |arg| values(&place, arg, value)).into_iter().map(with).collect()
    } else if current.starts_with('-') && !place.literal {
        options(place.command)
    } else {
        let positional: Vec<&Arg> = place.command.get_positionals().collect();
        let arg =
            positional.get(place.position).or_else(|| positional.last().filter(|arg| is_list(arg)));
        let verbs =
            place.command.get_subcommands().filter(|_| place.position == 0 && !place.literal);
        let verbs = verbs
            .filter(|verb| !verb.is_hide_set())
            .map(|verb| (verb.get_name().to_owned(), about(verb.get_about())));
        verbs.chain(arg.into_iter().flat_map(|arg| values(&place, arg, current))).collect()
    };
    found.retain(|(value, _)| value.starts_with(current));
    found
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// True if an argument takes more than one word.
fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), clap::ArgAction::Append)
}

/// True if the next word is an option's value.
fn takes_next(option: &Arg) -> bool {
    option.get_action().takes_values() && !option.is_require_equals_set()
}

fn long<'a>(command: &'a Command, typed: &str) -> Option<&'a Arg> {
    let name = typed.strip_prefix("--")?;
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
    })
}

fn place<'a>(program: &'a Command, before: &[String]) -> WordPosition<'a> {
    let mut place = WordPosition {
        command: program,
        path: Vec::new(),
        option: None,
        said: Vec::new(),
        position: 0,
        literal: false,
    };
    for word in before {
        if let Some(option) = place.option.take() {
            place.say(option, word);
            continue;
        }
        let short = || word.chars().next_back().filter(|_| word.starts_with('-') && word.len() > 1);
        if place.literal || !word.starts_with('-') || word == "-" {
            match place
                .command
                .find_subcommand(word)
                .filter(|_| place.position == 0 && !place.literal)
            {
                Some(command) => {
                    place.command = command;
                    place.path.push(command.get_name());
                }
                None => place.position += 1,
            }
        } else if word == "--" {
            place.literal = true;
        } else if let Some((option, value)) =
            word.split_once('=').filter(|_| word.starts_with("--"))
        {
            long(place.command, option).into_iter().for_each(|option| place.say(option, value));
        } else if word.starts_with("--") {
            place.option = long(place.command, word).filter(|arg| takes_next(arg));
        } else if let Some(letter) = short() {
            let arg = place.command.get_arguments().find(|arg| arg.get_short() == Some(letter));
            place.option = arg.filter(|arg| takes_next(arg));
        }
    }
    place
}

/// The options of a command, each in its long form if it has one.
fn options(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional());
    let spelt = |arg: &Arg| {
        arg.get_long()
            .map(|name| format!("--{name}"))
            .or_else(|| arg.get_short().map(|letter| format!("-{letter}")))
    };
    shown.filter_map(|arg| Some((spelt(arg)?, about(arg.get_help())))).collect()
}

/// The values of an argument, as far as they are known; `current` is the part typed so far.
fn values(place: &WordPosition<'_>, arg: &Arg, current: &str) -> Vec<Candidate> {
    let named = |names: Vec<(&str, &str)>| -> Vec<Candidate> {
        names.into_iter().map(|(name, about)| (name.to_owned(), about.to_owned())).collect()
    };
    match (place.path.as_slice(), arg.get_id().as_str()) {
        (_, "profile") => {
            let profiles = PROFILES
                .iter()
                .map(|p| (p.name, p.about))
                .chain([("raid64kx4", "chunks of 64 KiB on 4 data disks")]);
            named(profiles.collect())
        }
        (_, "grain") if !current.contains('=') => {
            Why::ALL.iter().map(|why| (format!("{}=", why.name()), String::new())).collect()
        }
        (["check" | "show"], "columns") => {
            behind(current, &[',', '+'], COLUMNS.iter().map(|of| (of.name, of.help.to_owned())))
        }
        (["plan"], "wanted") => {
            behind(current, &['+'], USES.iter().map(|of| (of.name, of.about.to_owned())))
        }
        (["part", "create"], "scheme") => {
            SCHEMES.iter().map(|scheme| (scheme.name().to_lowercase(), String::new())).collect()
        }
        (["part", ..], "kind") => kinds(),
        (["part", ..], "attribute") => {
            let all = SCHEMES.iter().flat_map(|scheme| {
                scheme.attributes().iter().map(move |of| (of.name, scheme.name()))
            });
            let mut schemes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            all.for_each(|(name, scheme)| schemes.entry(name).or_default().push(scheme));
            schemes.into_iter().map(|(name, of)| (name.to_owned(), of.join(", "))).collect()
        }
        (["mirror", ..], "balance") => named(BALANCES.iter().map(|name| (*name, "")).collect()),
        (["explain"], _) => {
            let rules = RULES.iter().map(|rule| (rule.id.to_owned(), rule.title.to_owned()));
            let profiles = PROFILES.iter().map(|p| (p.name.to_owned(), p.about.to_owned()));
            rules
                .chain(profiles)
                .chain(topics::words().map(|word| (word.replace(' ', "-"), String::new())))
                .collect()
        }
        (["help"], _) => {
            let mut program = Options::command();
            program.build();
            let commands = program.get_subcommands().filter(|c| !c.is_hide_set());
            let commands = commands.map(|c| (c.get_name().to_owned(), about(c.get_about())));
            let topics = TOPICS
                .iter()
                .filter(|_| place.position == 0)
                .map(|t| (t.name.to_owned(), t.about.to_owned()));
            commands.filter(|_| place.position == 0).chain(topics).collect()
        }
        (["bench"], "workload") => {
            named(WORKLOADS.iter().map(|workload| (workload.name, workload.title)).collect())
        }
        (["lab", "run" | "sweep"], "files") => every()
            .filter_map(|lab| lab.lab().ok())
            .map(|lab| (lab.name().to_owned(), lab.title().to_owned()))
            .collect(),
        (["lab", "run" | "sweep"], "row") => {
            let labs: Vec<_> = every().filter_map(|lab| lab.lab().ok()).collect();
            let rows = labs.iter().flat_map(|lab| lab.rows().map(move |row| (row, lab.name())));
            behind(current, &[','], rows.map(|(row, lab)| (row, lab.to_owned())))
        }
        (["bench"], "through") => layers(current),
        (_, "set") if !current.contains('=') => keys_of_drives(current),
        (["trace"], "drive") => behind(current, &[','], models()),
        (_, "drive" | "model" | "template") => behind(current, &[], models()),
        (_, "target" | "targets" | "disks") if current.starts_with(targets::DRIVE) => {
            behind(current, &[':'], models())
        }
        (_, "target" | "targets" | "disks") => targets::disks(current, &place.said),
        _ => possible(arg),
    }
}

/// Words behind the part of a list that is typed: what stands up to the last of `marks` stays.
fn behind<W: Display>(
    current: &str,
    marks: &[char],
    words: impl Iterator<Item = (W, String)>,
) -> Vec<Candidate> {
    let typed = current.rfind(marks).map_or("", |at| &current[..=at]);
    words.map(|(word, about)| (format!("{typed}{word}"), about)).collect()
}

/// Layers with their titles; behind a layer's name its keys.
fn layers(current: &str) -> Vec<Candidate> {
    let Some((name, keys)) = current.split_once(':') else {
        return LAYERS.iter().map(|of| (of.name.to_owned(), of.title.to_owned())).collect();
    };
    let is_value = keys.rsplit(',').next().is_some_and(|last| last.contains('='));
    let layer = LAYERS.iter().find(|layer| layer.name == name && !is_value);
    let is_typed = |key: &str| keys.split(',').any(|typed| typed.split('=').next() == Some(key));
    let left = layer.into_iter().flat_map(|layer| (layer.keys)()).filter(|key| !is_typed(key));
    behind(current, &[':', ','], left.map(|key| (format!("{key}="), String::new())))
}

/// Keys of simulated drives, each with its tables; as a part of its name only one typed so.
fn keys_of_drives(current: &str) -> Vec<Candidate> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for key in Model::keys() {
        match key.split_once('.') {
            Some((table, leaf)) if !current.contains('.') => {
                all.entry(leaf.to_owned()).or_default().push(table.to_owned());
            }
            _ => drop(all.entry(key).or_default()),
        }
    }
    all.into_iter().map(|(key, tables)| (format!("{key}="), tables.join(", "))).collect()
}

/// The simulated drives, each with its title.
fn models() -> impl Iterator<Item = (&'static str, String)> {
    let title = |text: &str| Model::parse(text).map_or_else(|_| String::new(), |model| model.title);
    MODELS.iter().map(move |&(name, text)| (name, title(text)))
}

/// Types of partitions, and file systems with the type that each takes. One letter is no word to
/// complete.
fn kinds() -> Vec<Candidate> {
    let names = types::typed_names().filter(|(name, _)| name.len() > 1);
    let meant = |(name, means): (&str, Vec<&str>)| {
        let about = if means == [name] { String::new() } else { means.join(" or ") };
        (name.to_owned(), about)
    };
    names.map(meant).collect()
}

/// The values that the definition of an argument lists.
fn possible(arg: &Arg) -> Vec<Candidate> {
    let values = arg.get_possible_values();
    values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| (value.get_name().to_owned(), about(value.get_help())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str) -> Vec<String> {
        let mut program = Options::command();
        program.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        candidates(&program, &words).into_iter().map(|(value, _)| value).collect()
    }

    #[track_caller]
    fn offers(line: &str, wanted: &[&str]) {
        let found = offered(line);
        assert!(wanted.iter().all(|word| found.iter().any(|f| f == word)), "{line}: {found:?}");
    }

    #[test]
    fn every_list_of_the_program_is_offered_where_it_belongs() {
        offers("ch", &["check"]);
        offers("part cr", &["create"]);
        offers("explain TL000", &["TL0001", "TL0009"]);
        offers("explain full", &["full-stripe"]);
        offers("check --for ssd", &["ssd-16k"]);
        offers("check --for=ssd", &["--for=ssd-16k"]);
        offers("plan --use luks+x", &["luks+xfs"]);
        offers("part create -s ", &["gpt", "mbr", "ebr", "bsd"]);
        offers("part add -t linux-", &["linux-data", "linux-swap"]);
        offers("lab run 2009", &["2009-gstripe"]);
        offers("lab run --row raid", &["raidtest-n1"]);
        offers("lab sweep --row raid", &["raidtest-n1"]);
        offers("bench rand", &["random-write", "random-read"]);
        offers("bench dd drive:wd", &["drive:wd10ears"]);
        offers("bench --through qcow2 --through post", &["postgresql"]);
        offers("bench --through qcow2:clus", &["qcow2:cluster="]);
        offers("bench --through qcow2:cluster=4k,back", &["qcow2:cluster=4k,backing="]);
        offers("check --set jum", &["jumper="]);
        offers("bench --set disk.rp", &["disk.rpm="]);
        offers("trace --drive qlc-16k,wd", &["qlc-16k,wd10ears"]);
        offers("serve --emulate --drive=wd", &["--drive=wd10ears"]);
        offers("part add -t ext", &["ext4", "extended-lba"]);
        offers("part modify -i 1 -t lv", &["lvm"]);
        offers("part set -a boot", &["bootme", "bootonce"]);
        offers("mirror label -b ro", &["round-robin"]);
        offers("drives --template ql", &["qlc-16k"]);
        offers("check --fail-on ", &["error", "warning", "note"]);
        offers("check -o NAME,GR", &["NAME,GRAIN"]);
        offers("show --output=+PHY", &["--output=+PHY-SEC"]);
        offers("check --compat ", &["virt-alignment-scan"]);
        offers("check disk.img --js", &["--json", "--jsonl"]);
        offers("help ", &["targets", "grain", "profiles", "check"]);
        offers("mkfs ex", &["ext4", "exfat"]);
        assert_eq!(offered("check -- --js"), Vec::<String>::new());
        assert_eq!(offered("bench --through qcow2:cluster="), Vec::<String>::new());
        let again = offered("bench --through qcow2:cluster=4k,");
        assert!(!again.is_empty() && again.iter().all(|key| !key.ends_with(",cluster=")));
        let mut keys = offered("check --set ");
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all, "a key of two tables is one word");
        for layer in LAYERS {
            assert!(!(layer.keys)().is_empty(), "{} has keys", layer.name);
        }
        assert_eq!(offered("bench --through no:"), Vec::<String>::new());
        assert_eq!(offered("nonsense --js"), Vec::<String>::new());
        assert!(offered("").iter().all(|word| word != "complete"));
    }
}
