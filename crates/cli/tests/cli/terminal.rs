//! Pseudo-terminals: the program run in one of a given width, and the lines that are seen there.
//!
//! # Sources
//! pty(7), ptmx(4), ECMA-48 5.4 (control sequences).

use crate::program;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

/// Lines of a terminal; no output depends on it.
const ROWS: u16 = 50;

/// A run in a terminal.
pub(crate) struct Shown {
    /// The exit status of the program.
    pub(crate) code: Option<i32>,
    /// The lines of stdout and stderr in their order, without colours; what a carriage return
    /// overwrites is a line too.
    pub(crate) lines: Vec<String>,
}

impl Shown {
    /// The lines wider than `width` columns, without blanks at their end: a bar overwrites the
    /// whole line.
    pub(crate) fn wider(&self, width: u16) -> Vec<&str> {
        self.lines
            .iter()
            .map(|line| line.trim_end())
            .filter(|line| line.chars().count() > width.into())
            .collect()
    }

    /// All lines as one text.
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Runs `trueline` in `directory` with stdout and stderr on a terminal of `width` columns that
/// shows colours and UTF-8.
pub(crate) fn show(directory: &Path, width: u16, arguments: &[&str]) -> Shown {
    show_in(directory, (width, ROWS), arguments)
}

/// Output in a terminal of that many columns and rows; 0 of them is a number that it does not know.
fn show_in(directory: &Path, (width, rows): (u16, u16), arguments: &[&str]) -> Shown {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("the terminal can be opened");
    let slave = ioctl_tiocgptpeer(&master, flags).expect("the terminal opens");
    tcsetwinsize(&slave, Winsize { ws_row: rows, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 })
        .expect("a terminal has a size");
    let mut command = program(directory);
    command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").args(arguments);
    command
        .stdout(Stdio::from(slave.try_clone().expect("a descriptor")))
        .stderr(Stdio::from(slave));
    let mut child = command.spawn().expect("the program can be run");
    // It holds the terminal open, which ends when the last that does so has gone.
    drop(command);
    let mut bytes = Vec::new();
    // Linux answers EIO then, rather than an end.
    let _ = File::from(master).read_to_end(&mut bytes);
    let code = child.wait().expect("a child can be waited for").code();
    let lines = plain(&String::from_utf8(bytes).expect("the output is UTF-8"));
    Shown { code, lines }
}

/// Text without control sequences, in lines.
fn plain(text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                let _ = rest.by_ref().find(|c| ('\u{40}'..='\u{7e}').contains(c));
            }
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\r' => lines.push(std::mem::take(&mut line)),
            c => line.push(c),
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[test]
fn colours_have_no_width_and_what_is_overwritten_is_a_line() {
    assert_eq!(
        plain("\u{1b}[1mab\u{1b}[0m\r\n50 %\r\u{1b}[2K100 %\r\nend"),
        ["ab", "50 %", "100 %", "end"]
    );
}

#[test]
fn the_program_sees_the_width_of_its_terminal() {
    let scratch = crate::scratch();
    let long = |width| {
        show(scratch.path(), width, &["check", "--help"])
            .lines
            .iter()
            .map(|line| line.chars().count())
            .max()
    };
    assert!(long(60) <= Some(60) && long(60) < long(100), "{:?} {:?}", long(60), long(100));
}

/// A terminal may know its columns alone, as after `stty cols 60`: lines keep to them.
#[test]
fn columns_count_without_rows() {
    let here = crate::golden("fat-fat16-data-off");
    let arguments = ["check", "disk"];
    let known = show_in(here.path(), (60, ROWS), &arguments);
    assert_eq!(show_in(here.path(), (60, 0), &arguments).lines, known.lines);
    assert_ne!(show_in(here.path(), (0, ROWS), &arguments).lines, known.lines);
    // A command behind a sentence is whole, for copying.
    let command = "trueline mkfs --overwrite vfat 'disk#s1'";
    assert!(known.lines.iter().any(|line| line.trim() == command), "{:?}", known.lines);
}
