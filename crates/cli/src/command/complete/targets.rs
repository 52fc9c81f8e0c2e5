//! Providers of the disks that are named at the cursor.
//!
//! Only files and block devices are read, and not for long: a completion never waits for a network,
//! for the other end of a pipe, or for a disk that does not answer.

use super::Candidate;
use crate::disk_options::DiskOptions;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use clap::{Args, Command, FromArgMatches};
use std::fs::{self, DirEntry};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use trueline_geom::graph::Provider;

/// Prefix of a simulated drive.
pub(super) const DRIVE: &str = "drive:";

/// Options that change what is found on a disk, by their ids. The others only change verdicts, or
/// open further files.
pub(super) const SAID: [&str; 3] = ["profile", "logical", "format"];

/// Longest time that a disk is read for. Later the words are of no use to a user at the keyboard.
const LONGEST: Duration = Duration::from_secs(2);

/// Most files of a directory that are looked at.
const MOST: usize = 10_000;

/// Words that `current` may become: providers of the disks before a `#`, or of a whole file; files
/// that may be the next disk. `said`: what the line says of the disks.
pub(super) fn disks(current: &str, said: &[String]) -> Vec<Candidate> {
    let (tell, told) = mpsc::channel();
    let (current, said) = (current.to_owned(), said.to_vec());
    // The thread of a disk that never answers ends with the program.
    thread::spawn(move || tell.send(found(&current, &said)));
    told.recv_timeout(LONGEST).unwrap_or_default()
}

fn found(current: &str, said: &[String]) -> Vec<Candidate> {
    let is_file = Path::new(current).is_file();
    let (disks, whole) = match current.split_once('#').filter(|_| !is_file) {
        Some((disks, _)) => (disks, None),
        // An existing file, as typed: its providers come next.
        None if is_file => (current, Some((current.to_owned(), "the whole disk".to_owned()))),
        None => return next_disks(current),
    };
    let named = providers(&Target::parse(disks), said).into_iter();
    let named = named.map(|(name, content)| (format!("{disks}#{name}"), content));
    whole.into_iter().chain(named).collect()
}

/// Files that may be the disk behind a comma. The shell itself offers those of a first disk.
fn next_disks(current: &str) -> Vec<Candidate> {
    let Some((before, last)) = current.rsplit_once(',') else { return Vec::new() };
    let is_there = before.split(',').all(|disk| Path::new(disk).exists());
    let (directory, name) = last
        .rsplit_once('/')
        .map_or(("", last), |(_, name)| last.split_at(last.len() - name.len()));
    let place = if directory.is_empty() { "." } else { directory };
    let entries = fs::read_dir(place).into_iter().filter(|_| is_there).flatten().take(MOST);
    let named = |entry: DirEntry| {
        let found = entry.file_name().into_string().ok()?;
        let is_hidden = found.starts_with('.') && !name.starts_with('.');
        let mark = if entry.path().is_dir() { "/" } else { "" };
        (!is_hidden && found.starts_with(name))
            .then(|| (format!("{before},{directory}{found}{mark}"), String::new()))
    };
    let mut all: Vec<Candidate> = entries.flatten().filter_map(named).collect();
    all.sort_unstable();
    all
}

/// True for a file or a block device: reading of another kind of file may wait for ever.
fn is_medium(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() || found.file_type().is_block_device())
}

/// The named providers of a target, each with what is in it; none of one that cannot be read.
fn providers(target: &Target, said: &[String]) -> Vec<Candidate> {
    let mut disks = target.sources().iter();
    if !disks.all(|disk| disk.path().is_some_and(is_medium)) {
        return Vec::new();
    }
    let options = DiskOptions::augment_args(Command::new(DRIVE).no_binary_name(true))
        .try_get_matches_from(said)
        .and_then(|matches| DiskOptions::from_arg_matches(&matches))
        .unwrap_or_default();
    // Settings and profiles that cannot be read are the command's to complain of.
    let overrides = DiskOverrides::for_target(&options, target)
        .or_else(|_| DiskOverrides::new(&options))
        .or_else(|_| DiskOverrides::new(&DiskOptions::default()));
    let Ok(graph) = overrides.and_then(|overrides| open(target, &overrides)) else {
        return Vec::new();
    };
    let content =
        |p: &Provider| p.in_use().map(|sign| sign.kind.name).collect::<Vec<_>>().join("+");
    let named = graph.providers.iter().filter(|p| !p.name.is_empty());
    named.map(|p| (p.name.clone(), content(p))).collect()
}
