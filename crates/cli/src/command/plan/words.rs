//! Commands and notes of a plan in words: with the name of this program, and its options.

use trueline_geom::plan::{Command, Note, Operand};

/// The line to be typed.
pub(crate) fn command(command: &Command) -> String {
    match command {
        Command::Shell(line) => line.clone(),
        Command::CreateTable { scheme, disk } => {
            format!("trueline part create -s {scheme} {}", operand(disk))
        }
        Command::AddPartition { kind, start, sectors, disk } => {
            format!("trueline part add -t {kind} -b {start} -s {sectors} {}", operand(disk))
        }
        Command::MakeFileSystem { system, provider, options } => {
            format!("trueline mkfs {system} {} -- {}", operand(provider), options.join(" "))
        }
    }
}

/// The operand, behind the option that its sector takes.
fn operand(operand: &Operand) -> String {
    match operand.sector {
        Some(sector) => format!("--logical {sector} {}", operand.name),
        None => operand.name.clone(),
    }
}

/// The note, with the option that changes what it tells of.
pub(crate) fn note(note: &Note) -> String {
    match note {
        Note::Text(text) => text.clone(),
        Note::OnlyClaimed(size) => format!("{note}: --grain optimal={size} makes it count"),
        Note::Presumed { .. } => format!("{note}; --grain says it better"),
        Note::UfsMadeHere(options) => {
            format!("ufs: made by trueline here; on FreeBSD the same comes of newfs {options}")
        }
    }
}
