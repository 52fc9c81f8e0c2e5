//! A command, and the processes that it becomes: a shell, what the shell starts, and what that starts.
//!
//! Where there is a terminal the command stays in this program's process group: Ctrl-C and Ctrl-Z are for both, and the command may read
//! what is typed, as a job in the foreground. Then its processes are those that descend from it; one that left its parents behind is
//! not found. Without a terminal it has a process group of its own, which finds those too.
//!
//! # Sources
//! credentials(7) (process groups, controlling terminal), proc_pid_stat(5), kill(2).

use rustix::process::{Pid, Signal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io};

/// How often it is looked who is left.
const TICK: Duration = Duration::from_millis(20);
/// How long those may take of whom a terminal's Ctrl-C has asked it before they are asked to end.
const TOLD: Duration = Duration::from_millis(500);

/// Lets this program be told to end (SIGTERM) when the thread that started it ends: prctl(2), `PR_SET_PDEATHSIG`.
pub fn end_with_parent() -> io::Result<()> {
    let parent = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // A parent that has ended meanwhile sends nothing any more.
    if rustix::process::getppid() == parent { Ok(()) } else { Err(io::Error::other("the parent has ended")) }
}

/// A running command.
pub struct Running {
    first: Child,
    /// Whether it has a process group of its own.
    apart: bool,
}

/// A process that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    /// When it began, in ticks since the machine did: a number is used again, this is not.
    began: u64,
}

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        // There is no such file for who has no controlling terminal (tty(4)).
        let apart = fs::File::open("/dev/tty").is_err();
        if apart {
            command.process_group(0);
        }
        Ok(Running { first: command.spawn()?, apart })
    }

    /// How it ended, if it has; what it started may go on.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.first.try_wait()
    }

    /// Ends it and what it started: they are asked to (SIGTERM), and killed when `grace` is over.
    pub fn end(mut self, grace: Duration) -> io::Result<ExitStatus> {
        let end = Instant::now() + grace;
        let there = self.members(&all());
        if !self.apart && self.is_over(&there, end.min(Instant::now() + TOLD))? {
            return self.first.wait();
        }
        self.signal(&there, Signal::TERM);
        if !self.is_over(&there, end)? {
            let left = self.left(&there);
            self.signal(&left, Signal::KILL);
        }
        self.first.wait()
    }

    /// Waits for the command and all of its processes, until `end`.
    fn is_over(&mut self, there: &[Process], end: Instant) -> io::Result<bool> {
        loop {
            if self.status()?.is_some() && self.left(there).is_empty() {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(TICK);
        }
    }

    /// Its processes that have not ended, `there` being those that were known to be its own.
    fn left(&self, there: &[Process]) -> Vec<Process> {
        let all = all();
        let mut left = self.members(&all);
        let known = all.iter().filter(|process| there.iter().any(|was| (was.id, was.began) == (process.id, process.began)));
        let known = known.filter(|process| !self.apart || process.group == self.id());
        left.extend(known.filter(|process| !left.contains(process)).copied().collect::<Vec<_>>());
        left
    }

    /// Those of `all` that are its own, a parent before what it started.
    fn members(&self, all: &[Process]) -> Vec<Process> {
        let first = self.id();
        if self.apart { all.iter().filter(|process| process.group == first).copied().collect() } else { descendants(all, first) }
    }

    fn signal(&mut self, to: &[Process], signal: Signal) {
        // Its number is its own until it is waited for, whether `/proc` shows it or not.
        let runs = matches!(self.first.try_wait(), Ok(None)).then(|| self.id());
        // Whoever has ended meanwhile needs no signal.
        if self.apart {
            if let Some(group) = Pid::from_raw(self.id()).filter(|_| runs.is_some() || !to.is_empty()) {
                let _ = rustix::process::kill_process_group(group, signal);
            }
        } else {
            let others = to.iter().map(|process| process.id).filter(|id| runs != Some(*id));
            for id in runs.into_iter().chain(others).filter_map(Pid::from_raw) {
                let _ = rustix::process::kill_process(id, signal);
            }
        }
    }

    fn id(&self) -> i32 {
        i32::try_from(self.first.id()).unwrap_or(0)
    }
}

/// Process `first` and those that it, or what it started, has started.
fn descendants(all: &[Process], first: i32) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|process| process.id == first).copied().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.id) {
        let fresh: Vec<Process> = all.iter().filter(|process| process.parent == parent && !found.contains(process)).copied().collect();
        found.extend(fresh);
        next += 1;
    }
    found
}

/// All that have not ended. Where `/proc` cannot be read there is nobody to be found.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Who ends while he is read about is gone.
    ids.filter_map(|id: i32| parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)).collect()
}

/// A line of proc_pid_stat(5); [`None`] for one that has ended and is not waited for.
fn parse(id: i32, line: &str) -> Option<Process> {
    // The name stands in brackets and may have anything in it.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |nth: usize| fields.get(nth)?.parse().ok();
    let process = Process { id, parent: number(1)?, group: number(2)?, began: fields.get(19)?.parse().ok()? };
    (!matches!(*fields.first()?, "Z" | "X")).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read() {
        let line = |state: &str| format!("42 (a) b (c) {state} 7 40 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3");
        assert_eq!(parse(42, &line("S")), Some(Process { id: 42, parent: 7, group: 40, began: 98765 }));
        assert_eq!((parse(42, &line("Z")), parse(42, "42 (a"), parse(42, "42 (a) S 1")), (None, None, None));
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all().iter().any(|process| process.id == own));
    }

    #[test]
    fn parents_come_before_what_they_started() {
        let of = |id, parent| Process { id, parent, group: 1, began: 0 };
        // Numbers begin anew; one that is its own parent is nobody's.
        let all = [of(3, 9), of(5, 3), of(9, 1), of(10, 4), of(4, 9), of(11, 11), of(1, 0)];
        assert_eq!(descendants(&all, 9).iter().map(|process| process.id).collect::<Vec<_>>(), [9, 3, 4, 5, 10]);
        assert_eq!(descendants(&all, 77), []);
    }
}
