//! Help, manual pages, completions, rules, colour.

use crate::skip::skip;
use crate::{golden, program, run, scratch};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use trueline_geom::base::finding::RULES;

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let scratch = scratch();
    let help = run(scratch.path(), "--help").ended(0).stdout.clone();
    let list = help
        .split("Commands:\n")
        .nth(1)
        .and_then(|l| l.split("\n\n").next())
        .expect("a list of commands");
    let names = list
        .lines()
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_an_example() {
    let scratch = scratch();
    assert!(commands().len() >= 7);
    for command in commands() {
        let help = run(scratch.path(), &format!("{command} --help")).ended(0).stdout.clone();
        let examples =
            help.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("no examples: {help}"));
        assert!(examples.starts_with(&format!("  trueline {command}")), "{help}");
        assert_eq!(run(scratch.path(), &format!("help {command}")).ended(0).stdout, help);
        assert!(help.contains("--color"), "{help}");
    }
    let help = run(scratch.path(), "--help").ended(0).stdout.clone();
    assert!(help.contains("Examples:\n  trueline check"), "{help}");
    // Asked for nothing, it says what can be asked for; but nothing was done.
    let nothing = run(scratch.path(), "");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""));
    assert!(nothing.stderr.contains("Commands:"));
    assert_eq!(
        run(scratch.path(), "--version").ended(0).stdout,
        format!("trueline {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn what_is_mistyped_leads_to_its_help() {
    let scratch = scratch();
    for (typed, help) in [
        ("part add disk.img", "see trueline part add --help"),
        ("part bootcode -i 1 disk.img", "see trueline part --help"),
        ("gpart show disk.img", "see trueline --help"),
        ("check --nope part", "see trueline check --help"),
        ("--color never mkfs ext3 disk.img", "see trueline mkfs --help"),
    ] {
        assert!(run(scratch.path(), typed).refused().trim_end().ends_with(help), "{typed}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = scratch();
    let directory = scratch.path().join("man");
    fs::create_dir(&directory).unwrap();
    assert_eq!(run(scratch.path(), "man man").ended(0).stdout, "");
    let pages: BTreeSet<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    let wanted: BTreeSet<String> =
        commands().iter().map(|c| format!("trueline-{c}.1")).chain(["trueline.1".into()]).collect();
    assert!(pages.is_superset(&wanted) && pages.contains("trueline-part-add.1"), "{pages:?}");
    for page in &pages {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        // Every page that is named can be opened.
        let plain = text.replace("\\-", "-");
        let named = plain.lines().filter_map(|line| {
            line.strip_suffix("(1)").filter(|name| name.starts_with("trueline"))
        });
        named.for_each(|name| assert!(pages.contains(&format!("{name}.1")), "{page} names {name}"));
        assert!(text.contains(".TH trueline") && text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    let text = fs::read_to_string(directory.join("trueline-check.1")).unwrap();
    assert!(
        text.contains(".SH \"WHAT IT COSTS\"") && text.contains(".SH \"EXIT STATUS\""),
        "{text}"
    );
}

#[test]
fn manual_pages_fit_80_columns() {
    let man = |directory: &Path, page: &str| {
        let mut command = std::process::Command::new("man");
        command
            .args(["-l", page])
            .current_dir(directory)
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8")
            .env("MANPAGER", "cat")
            .env("TERM", "dumb");
        command
            .output()
            .ok()
            .filter(|ran| ran.status.success())
            .map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    let scratch = scratch();
    run(scratch.path(), "man .").ended(0);
    let Some(text) = man(scratch.path(), "trueline-move.1") else {
        skip("no man here that sets a page");
        return;
    };
    // Values are named, and what is needed stands without brackets.
    assert!(text.contains("[OPTIONS] TARGET\n") && text.contains("--resume [JOURNAL]"), "{text}");
    let pages = fs::read_dir(scratch.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap());
    for page in pages.filter(|page| page.ends_with(".1")) {
        let text = man(scratch.path(), &page).expect("a page");
        // A drawing of the manual is as wide as it was drawn.
        let is_drawn = |line: &str| line.chars().any(|c| "├┤│└┌─░▓".contains(c));
        let wide: Vec<&str> =
            text.lines().filter(|line| line.chars().count() > 80 && !is_drawn(line)).collect();
        assert!(wide.is_empty(), "{page}: {wide:#?}");
    }
    let text = man(scratch.path(), "trueline-check.1").expect("a page");
    assert!(text.contains("[--for PROFILE]") || text.contains("[--for NAME]"), "{text}");
}

#[test]
fn every_shell_has_completions() {
    let scratch = scratch();
    // Those of the others ask the program, and are tried in the shells themselves.
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            run(scratch.path(), &format!("completions {shell}"))
                .ended(0)
                .stdout
                .contains(" complete -- "),
            "{shell}"
        );
    }
    for shell in ["elvish", "powershell"] {
        let script = run(scratch.path(), &format!("completions {shell}")).ended(0).stdout.clone();
        for word in commands().iter().map(String::as_str).chain(["fail-on", "prometheus"]) {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn every_rule_is_explained() {
    let scratch = scratch();
    let list = run(scratch.path(), "explain").ended(0).stdout.clone();
    for (line, rule) in list.lines().zip(RULES) {
        assert_eq!(line, format!("{}  {}", rule.id, rule.title));
        let page = run(scratch.path(), &format!("explain {}", rule.id)).ended(0).stdout.clone();
        assert!(page.starts_with(&format!("# {}: {}\n", rule.id, rule.title)), "{page}");
        assert!(page.lines().count() > 5, "{page}");
        assert_eq!(
            run(scratch.path(), &format!("explain {}", rule.id.to_lowercase())).ended(0).stdout,
            page
        );
    }
    for (typed, meant) in [("tl17", "TL0017"), ("sd-4n", "sd-4m"), ("TL00001", "TL0001")] {
        assert!(
            run(scratch.path(), &format!("explain {typed}"))
                .refused()
                .contains(&format!("did you mean {meant}?")),
            "{typed}"
        );
    }
    let refused = run(scratch.path(), "lab run 2009").refused().to_owned();
    assert!(refused.contains("labs whose names begin so: 2009-gstripe"), "{refused}");
    let refused = run(scratch.path(), "check .").refused().to_owned();
    assert!(
        refused.contains("it is a directory")
            && refused.contains("trueline check -r . checks every image in it"),
        "{refused}"
    );
    for unknown in ["TL9999", "TL1", "nonsense", "TL0001x"] {
        assert!(
            run(scratch.path(), &format!("explain {unknown}")).refused().contains("no such rule")
        );
    }
}

#[test]
fn colour_is_for_terminals_and_on_request() {
    let scratch = golden("seed-001-sdd-63");
    let colours = |arguments: &str, no_color: Option<&str>| {
        let mut command = program(scratch.path());
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let output = command.args(arguments.split(' ')).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    for command in ["check disk", "show disk", "show --picture disk"] {
        assert!(!colours(command, None), "{command}: a pipe is no terminal");
        assert!(colours(&format!("{command} --color always"), None), "{command}");
        assert!(
            colours(&format!("--color always {command}"), Some("1")),
            "{command}: asked for, whatever NO_COLOR says"
        );
        assert!(!colours(&format!("{command} --color never"), None), "{command}");
        assert!(!colours(&format!("{command} --color auto"), Some("1")), "{command}");
    }
    for form in ["--json", "--jsonl", "--sarif", "--prometheus"] {
        assert!(
            !colours(&format!("check --color always {form} disk"), None),
            "{form} is for programs"
        );
    }
    // The text is the same but for colour.
    let plain = run(scratch.path(), "check disk").stdout;
    let coloured = run(scratch.path(), "check --color always disk").stdout;
    let mut stripped = String::new();
    let mut escape = false;
    for c in coloured.chars() {
        match (escape, c) {
            (false, '\x1b') => escape = true,
            (false, c) => stripped.push(c),
            (true, c) => escape = c != 'm',
        }
    }
    assert_eq!(stripped, plain);
}

/// Messages that name the word that was meant: a command, a page, a use, a profile, a simulated
/// drive.
#[test]
fn what_is_mistyped_names_what_was_meant() {
    let scratch = scratch();
    let meant = [
        ("complet", "similar subcommands exist: 'convert', 'completions'; see"),
        ("help TL0001", "see trueline explain TL0001"),
        ("help physical", "see trueline explain physical"),
        ("plan --use raid5x4", "did you mean md5x4, Linux's RAID"),
        ("plan --use raid10", "did you mean md5x4, Linux's RAID"),
        ("plan --for ssd16k --use xfs", "no profile 'ssd16k': did you mean ssd-16k? there are "),
        ("check --for nothing disk", "no profile 'nothing': there are "),
        ("bench random-write wd10ears", "drive:wd10ears is the simulated drive of that name"),
        ("check wd10ears", "drive:wd10ears is the simulated drive of that name"),
    ];
    for (typed, named) in meant {
        let ran = run(scratch.path(), typed);
        let said = ran.refused();
        assert!(said.contains(named) && !said.contains("'complete'"), "{typed}: {said}");
    }
    for word in [
        "physical",
        "logical",
        "cluster",
        "erase",
        "optimal",
        "chunk",
        "stripe",
        "record",
        "grain",
        "phase",
        "untrusted",
        "partial",
    ] {
        let page = run(scratch.path(), &format!("explain {word}")).ended(0).stdout.clone();
        assert!(page.starts_with("# ") && page.lines().count() > 2, "{word}: {page}");
    }
}
