//! A command with all its processes: a shell, the programs that the shell starts, and their
//! children.
//!
//! With a terminal, the command stays in this program's process group: Ctrl-C and Ctrl-Z reach
//! both, and the command may read from the terminal, as a job in the foreground. Its processes are
//! then its descendants; one whose ancestors have ended is not found. Without a terminal it has its
//! own process group, which finds those too.
//!
//! # Sources
//! credentials(7) (process groups, controlling terminal), proc_pid_stat(5), kill(2).

use crate::clock::TICK;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io};

/// The time that processes have to end after a terminal's Ctrl-C, before they are sent SIGTERM.
const TOLD: Duration = Duration::from_millis(500);

/// Makes this program receive SIGTERM when the thread that started it ends: prctl(2),
/// `PR_SET_PDEATHSIG`.
pub fn end_with_parent() -> io::Result<()> {
    let parent = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // A parent that has already ended sends no signal.
    if rustix::process::getppid() == parent {
        Ok(())
    } else {
        Err(io::Error::other("the parent has ended"))
    }
}

/// A running command with its processes.
pub struct Running {
    first: Child,
    /// True if it has its own process group.
    apart: bool,
    /// File that can be read once the command has ended: pidfd_open(2); `None` before Linux 5.3.
    own: Option<OwnedFd>,
}

/// A process that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    /// Its start time in ticks since boot: a process number is reused, this is not.
    began: u64,
}

impl Running {
    /// Starts `command`, with its own process group if there is no terminal.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        // A process without a controlling terminal cannot open it (tty(4)).
        let apart = fs::File::open("/dev/tty").is_err();
        if apart {
            command.process_group(0);
        }
        let first = command.spawn()?;
        let id = i32::try_from(first.id()).ok().and_then(Pid::from_raw);
        let own = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        Ok(Running { first, apart, own })
    }

    /// The exit status of the command, if it has ended; its children may still run.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.first.try_wait()
    }

    /// Returns once the command has ended, or after `longest`.
    pub fn wait_at_most(&self, longest: Duration) {
        let Some(own) = &self.own else { return std::thread::sleep(longest) };
        let longest = Timespec::try_from(longest).ok();
        // A signal ends the wait too: the caller looks at both.
        let _ = poll(&mut [PollFd::new(own, PollFlags::IN)], longest.as_ref());
    }

    /// Ends all its processes: sends SIGTERM, and SIGKILL after `grace`.
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

    /// Waits until `end` for the end of all its processes. True if all have ended.
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

    /// Its remaining processes; `there` are those known to be its own.
    fn left(&self, there: &[Process]) -> Vec<Process> {
        let all = all();
        let mut left = self.members(&all);
        let known = all.iter().filter(|process| {
            there.iter().any(|was| (was.id, was.began) == (process.id, process.began))
        });
        let known = known.filter(|process| !self.apart || process.group == self.id());
        left.extend(known.filter(|process| !left.contains(process)).copied().collect::<Vec<_>>());
        left
    }

    /// The processes among `all` that are its own, a parent before its children.
    fn members(&self, all: &[Process]) -> Vec<Process> {
        let first = self.id();
        if self.apart {
            all.iter().filter(|process| process.group == first).copied().collect()
        } else {
            descendants(all, first)
        }
    }

    fn signal(&mut self, to: &[Process], signal: Signal) {
        // Its process number is not reused until it is waited for, even if `/proc` does not show
        // it.
        let runs = matches!(self.first.try_wait(), Ok(None)).then(|| self.id());
        // A process that has ended meanwhile needs no signal.
        if self.apart {
            if let Some(group) =
                Pid::from_raw(self.id()).filter(|_| runs.is_some() || !to.is_empty())
            {
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

/// The process `first` and its descendants.
fn descendants(all: &[Process], first: i32) -> Vec<Process> {
    let mut found: Vec<Process> =
        all.iter().filter(|process| process.id == first).copied().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.id) {
        let fresh: Vec<Process> = all
            .iter()
            .filter(|process| process.parent == parent && !found.contains(process))
            .copied()
            .collect();
        found.extend(fresh);
        next += 1;
    }
    found
}

/// All processes that have not ended; empty if `/proc` cannot be read.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // A process that ends while its file is read is left out.
    ids.filter_map(|id: i32| parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?))
        .collect()
}

/// Parses a line of proc_pid_stat(5); [`None`] for a process that has ended and is not waited for.
fn parse(id: i32, line: &str) -> Option<Process> {
    // The name is in parentheses and may contain anything.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |nth: usize| fields.get(nth)?.parse().ok();
    let process =
        Process { id, parent: number(1)?, group: number(2)?, began: fields.get(19)?.parse().ok()? };
    (!matches!(*fields.first()?, "Z" | "X")).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read() {
        let line = |state: &str| {
            format!(
                "42 (a) b (c) {state} 7 40 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3"
            )
        };
        assert_eq!(
            parse(42, &line("S")),
            Some(Process { id: 42, parent: 7, group: 40, began: 98765 })
        );
        assert_eq!(
            (parse(42, &line("Z")), parse(42, "42 (a"), parse(42, "42 (a) S 1")),
            (None, None, None)
        );
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all().iter().any(|process| process.id == own));
    }

    #[test]
    fn parents_come_before_what_they_started() {
        let of = |id, parent| Process { id, parent, group: 1, began: 0 };
        // Process numbers are reused; a process that is its own parent descends from no other.
        let all = [of(3, 9), of(5, 3), of(9, 1), of(10, 4), of(4, 9), of(11, 11), of(1, 0)];
        assert_eq!(
            descendants(&all, 9).iter().map(|process| process.id).collect::<Vec<_>>(),
            [9, 3, 4, 5, 10]
        );
        assert_eq!(descendants(&all, 77), []);
    }
}
