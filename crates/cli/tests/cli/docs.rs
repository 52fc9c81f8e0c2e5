//! The transcripts in `README.md`, the manual, the tour and the pages for users: what stands there
//! is what the program prints.
//!
//! A fenced block of `console` or `sh` with a line `$ trueline ...` in it is run line by line, in a
//! directory of its own, and what each command prints (stdout, then stderr) has to be what stands
//! beneath it. The words after `console` lay golden disks into that directory:
//! `sdd.img=seed-001-sdd-63`, or `ada1.img,ada2.img=seed-003-default` for a set.
//!
//! - A command with nothing beneath it is run only if something further down in its block has
//!   output.
//! - `$ echo $?` beneath a command shows its exit status.
//! - A line `...` stands for any lines.
//! - The word `then` runs a block in the directory of the block before it.
//! - Where a tool is not installed, the block and those that go on from it are skipped, and that is
//!   said.
//! - The word `host` keeps a block from being run here: what it shows depends on the host. Blocks
//!   of `sh host` are run by `docs_host.rs`.
//!
//! `TRUELINE_BLESS=1` rewrites the output of blocks that differ.

use crate::skip::skip;
use crate::{lay_golden, program, recipe::Scratch, scratch};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_manuals_transcripts_are_true() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let (mut wrong, mut run) = (String::new(), 0);
    for path in manuals() {
        let text = fs::read_to_string(&path).expect("a manual can be read");
        let mut place = None;
        let blessed = rewrite(&text, |block| {
            let here = match place.take() {
                Some(here) if block.goes_on => here,
                _ => Place::lay(&block.disks),
            };
            let after = play(block, place.insert(here));
            run += 1;
            if !bless && after != block.commands {
                let show = |commands: &[Step]| commands.iter().map(Step::text).collect::<String>();
                let place = path.file_name().unwrap_or_default().to_string_lossy();
                let _ = write!(
                    wrong,
                    "{place}:{}\n--- stands there\n{}+++ is printed\n{}",
                    block.line,
                    show(&block.commands),
                    show(&after)
                );
            }
            after
        });
        if bless && blessed != text {
            fs::write(&path, blessed).expect("a manual can be written");
        }
    }
    assert!(wrong.is_empty(), "{wrong}TRUELINE_BLESS=1 writes what is printed");
    assert!(run > 0, "no transcript was found");
}

/// `README.md`, every page of the manual, the tour, the comparison and the pages for users.
pub(crate) fn manuals() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = ["docs", "docs/manual", "docs/for"].into_iter().flat_map(|folder| {
        let pages = fs::read_dir(root.join(folder)).expect("a folder of pages can be listed");
        pages.map(|e| e.expect("an entry").path())
    });
    let mut pages: Vec<PathBuf> = pages
        .chain([root.join("README.md")])
        .filter(|p| p.extension().is_some_and(|e| e == "md") && p.exists())
        .collect();
    pages.sort();
    pages
}

/// A command and what stands beneath it.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    command: String,
    output: Vec<String>,
}

impl Step {
    fn text(&self) -> String {
        [format!("$ {}", self.command)]
            .iter()
            .chain(&self.output)
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

/// A fenced block of commands.
#[derive(Debug)]
struct Block {
    /// Line of its fence, from 1.
    line: usize,
    /// Golden disks, each with its files' names.
    disks: Vec<(Vec<String>, String)>,
    /// True if it runs where the block before it ran.
    goes_on: bool,
    commands: Vec<Step>,
}

/// A directory in which blocks run.
struct Place {
    directory: Scratch,
    /// True if a block in it was skipped: those after it need what that block would have made.
    skipped: bool,
}

/// `text` with the commands of every block that is to be run replaced.
fn rewrite(text: &str, mut replace: impl FnMut(&Block) -> Vec<Step>) -> String {
    let mut out = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let _ = writeln!(out, "{line}");
        let Some(words) = line.strip_prefix("```") else { continue };
        let inside: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        match block(number + 1, words, &inside) {
            Some(block) => out.extend(replace(&block).iter().map(Step::text)),
            None => out.extend(inside.iter().flat_map(|line| [line, "\n"])),
        }
        out += "```\n";
    }
    out
}

/// The block behind a fence, if it is one to be run.
fn block(line: usize, words: &str, inside: &[&str]) -> Option<Block> {
    let mut words = words.split_whitespace();
    words.next().filter(|language| matches!(*language, "console" | "sh"))?;
    let words: Vec<&str> = words.collect();
    let mut commands: Vec<Step> = Vec::new();
    for line in inside {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => {
                commands.push(Step { command: command.into(), output: Vec::new() })
            }
            (None, Some(step)) => step.output.push((*line).into()),
            (None, None) => return None,
        }
    }
    let shown = commands.iter().any(|s| s.command.starts_with("trueline "))
        && commands.iter().any(|s| !s.output.is_empty());
    let disks = words.iter().filter_map(|word| {
        let (files, golden) = word.split_once('=')?;
        Some((files.split(',').map(str::to_owned).collect(), golden.to_owned()))
    });
    let disks = disks.collect();
    let goes_on = words.contains(&"then");
    (shown && !words.contains(&"host")).then_some(Block { line, disks, goes_on, commands })
}

/// Runs a block; its commands with what they print. Output that fits what stands there is left as
/// it is.
fn play(block: &Block, place: &mut Place) -> Vec<Step> {
    if place.skipped {
        return block.commands.clone();
    }
    let (mut status, mut missing) = (0, None);
    let step = |step: &Step| {
        let (printed, code) = shell(place.directory.path(), &step.command, status);
        status = code;
        missing = missing.take().or(printed.lines().find(|line| lacks(line)).map(str::to_owned));
        let output: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
        let fits = fits(&step.output, &output);
        Step {
            command: step.command.clone(),
            output: if fits { step.output.clone() } else { output },
        }
    };
    let played = block.commands.iter().map(step).collect();
    let Some(missing) = missing else { return played };
    skip(&format!("a transcript: {missing}"));
    place.skipped = true;
    block.commands.clone()
}

/// True if a line says that a tool is missing: `trueline` of one that it runs, or the shell.
fn lacks(line: &str) -> bool {
    line.contains(" is not on this system: install ")
        || line.starts_with("sh: ") && line.ends_with(" not found")
}

impl Place {
    /// A directory with golden disks under the names that a page gives them.
    fn lay(disks: &[(Vec<String>, String)]) -> Place {
        let directory = scratch();
        for (files, golden) in disks {
            let laid = scratch();
            let names = lay_golden(golden, laid.path());
            assert_eq!(names.len(), files.len(), "{golden} is {names:?}");
            for (name, file) in names.iter().zip(files) {
                fs::rename(laid.path().join(name), directory.path().join(file))
                    .expect("a disk can be renamed");
            }
        }
        Place { directory, skipped: false }
    }
}

/// Runs a line of shell, after a command that ended with `status`.
fn shell(directory: &Path, line: &str, status: i32) -> (String, i32) {
    let program = program(directory);
    let home = Path::new(program.get_program()).parent().expect("the program is in a directory");
    let path = std::env::join_paths(
        [home.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("sh")
        .args(["-c", &format!("(exit {status}); {line}")])
        .current_dir(directory)
        .env("PATH", path.expect("a path"))
        .env("TRUELINE_CONFIG", "/dev/null")
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell can be run");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (text.concat(), output.status.code().unwrap_or(-1))
}

/// True if `lines` match `pattern`, in which `...` stands for any lines.
fn fits(pattern: &[String], lines: &[String]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| line == first.trim_end() && fits(rest, lines)),
    }
}

/// A reader types every line of these pages: none may stand there untried.
#[test]
fn every_line_of_the_tour_and_of_the_pages_for_users_is_run() {
    for path in manuals().iter().filter(|path| {
        path.ends_with("docs/tour.md") || path.parent().is_some_and(|p| p.ends_with("docs/for"))
    }) {
        let text = fs::read_to_string(path).expect("a page can be read");
        let typed = text.lines().filter(|line| line.starts_with("$ ")).count();
        let mut run = 0;
        rewrite(&text, |block| {
            run += block.commands.len();
            block.commands.clone()
        });
        assert!(typed > 0, "{}: no line to type", path.display());
        assert_eq!(run, typed, "{}: lines that are not run", path.display());
    }
}

#[test]
fn blocks_are_found_and_rewritten() {
    let text = "text\n```console sdd.img=seed-001-sdd-63 a,b=seed-003-default\n$ cd .\n$ trueline \
        check sdd.img\nold\n$ echo $?\n0\n```\n```console host\n$ trueline check\n/dev/sda\n```\n\
        ```console\n$ trueline check\n```\n```json\n{}\n```\n```sh\nmake\n```\n";
    let mut seen = Vec::new();
    let after = rewrite(text, |block| {
        seen.push((block.line, block.disks.clone()));
        block
            .commands
            .iter()
            .map(|s| Step { output: s.output.iter().map(|_| "new".into()).collect(), ..s.clone() })
            .collect()
    });
    let disks = |files: &[&str], golden: &str| {
        (files.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>(), golden.to_owned())
    };
    assert_eq!(
        seen,
        [(2, vec![disks(&["sdd.img"], "seed-001-sdd-63"), disks(&["a", "b"], "seed-003-default")])]
    );
    assert_eq!(after, text.replace("\nold\n", "\nnew\n").replace("\n0\n", "\nnew\n"));
}

#[test]
fn dots_stand_for_any_lines() {
    let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (pattern, printed, want) in [
        ("a b", "a b", true),
        ("a ...", "a b c", true),
        ("... c", "a b c", true),
        ("a ... c", "a c", true),
        ("a ... b", "a b c", false),
        ("", "a", false),
    ] {
        assert_eq!(fits(&lines(pattern), &lines(printed)), want, "{pattern} {printed}");
    }
}

#[test]
fn a_block_goes_on_where_the_one_before_it_was() {
    let made = block(1, "console", &["$ trueline --version >version; touch made", "$ ls", "old"]);
    let then = block(4, "console then", &["$ trueline --version >version; ls", "old"]);
    let (made, then) = (made.expect("a block to run"), then.expect("a block to run"));
    assert!(then.goes_on && !made.goes_on);
    let mut place = Place::lay(&[]);
    play(&made, &mut place);
    assert_eq!(play(&then, &mut place)[0].output, ["made", "version"]);
    place.skipped = true;
    assert_eq!(play(&then, &mut place), then.commands, "what a skipped block makes is not there");
}

#[test]
fn a_missing_tool_is_told_from_other_output() {
    for (line, missing) in [
        ("sh: 1: parted: not found", true),
        ("sh: line 1: parted: command not found", true),
        ("trueline: mkfs.xfs is not on this system: install xfsprogs", true),
        ("trueline: s9 of disk: not found", false),
        ("parted: not found", false),
    ] {
        assert_eq!(lacks(line), missing, "{line}");
    }
}
