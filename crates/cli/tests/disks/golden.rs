//! Every golden disk, laid into a sparse file and checked by the program itself, against the
//! `.want` beside it.
//!
//! A `.want` is a transcript: the commands that the head's `check:` lines stand for, what they
//! print, how they end. `TRUELINE_BLESS=1` rewrites it; the difference is then for the reader of
//! the commit.

use crate::lay::lay;
use crate::recipe::{self, Recipe, Scratch};
use std::fs;
use std::process::Command;

#[test]
fn golden_disks_are_checked_as_before() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let mut wrong = Vec::new();
    for recipe in recipe::all() {
        let want = recipe.path.with_extension("want");
        let got = match transcript(&recipe) {
            Ok(got) => got,
            Err(why) => {
                wrong.push(format!("{}: {why}", recipe.name));
                continue;
            }
        };
        let wanted = fs::read_to_string(&want).unwrap_or_default();
        if bless {
            fs::write(&want, got).unwrap();
        } else if got != wanted {
            wrong.push(format!("{}: {}", recipe.name, difference(&wanted, &got)));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} golden disks differ", wrong.join("\n"), wrong.len());
}

fn transcript(recipe: &Recipe) -> Result<String, String> {
    if recipe.dumps.is_empty() {
        return Err("no dump in it yet: tests/freeze.sh writes one".into());
    }
    let scratch = Scratch::new(&format!("golden-{}", recipe.name));
    let names = lay(recipe, scratch.path())?;
    let mut checks: Vec<&str> = recipe.field("check").collect();
    if checks.is_empty() {
        checks.push("");
    }
    let mut text = String::new();
    for options in checks {
        let target = names.join(",");
        let arguments: Vec<&str> = ["check"]
            .into_iter()
            .chain(options.split_whitespace())
            .chain([target.as_str()])
            .collect();
        let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(&arguments)
            .current_dir(scratch.path())
            .env("NO_COLOR", "1")
            .output()
            .map_err(|e| e.to_string())?;
        text += &format!("$ trueline {}\n", arguments.join(" "));
        text += &String::from_utf8_lossy(&ran.stdout);
        text += &String::from_utf8_lossy(&ran.stderr);
        text += &ran
            .status
            .code()
            .map_or("killed\n".to_string(), |code| format!("exit status {code}\n"));
    }
    Ok(text)
}

/// The first line that differs, and both texts.
fn difference(wanted: &str, got: &str) -> String {
    let line = wanted.lines().zip(got.lines()).take_while(|(a, b)| a == b).count() + 1;
    format!("differs from line {line} on\n--- wanted\n{wanted}+++ got\n{got}")
}
