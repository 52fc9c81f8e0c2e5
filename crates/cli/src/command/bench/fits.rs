//! Refusal of options that the workload would ignore.

use crate::command::bench::args::{Bench, Host};
use crate::failure::Failure;
use trueline_lab::workload::{Needs, WorkloadKind, mkfs};

pub(super) fn fits(args: &Bench, kind: &WorkloadKind) -> Result<(), Failure> {
    // With --read the disk must not be written: the other workloads read or write whatever the
    // option says.
    let either: &[&str] = &["dd", "raidtest", "latency", "copy"];
    let own: [(&str, &[&str], bool); 12] = [
        ("--read", either, args.read),
        ("--write", either, args.write),
        ("--requests", &["raidtest"], args.requests.is_some()),
        ("--genfile", &["raidtest"], args.genfile.is_some()),
        ("--trace", &["replay"], args.trace.is_some()),
        ("--timed", &["replay"], args.timed),
        ("--wrap", &["replay"], args.wrap),
        ("--files", &["tree", "bonnie"], args.files.is_some()),
        ("--size", &["copy", "bonnie", "mkfs"], args.size.is_some()),
        ("--phase", &["tree"], args.phase.is_some()),
        ("--tar", &["tree"], args.tar.is_some()),
        ("--sync", &["copy"], args.sync),
    ];
    if args.bs.is_some() && ["replay", "mkfs"].contains(&kind.name) {
        return Err(format!(
            "bench {}: --bs is for workloads that choose the size of their requests",
            kind.name
        )
        .into());
    }
    let in_a_file = args.host == Some(Host::FreebsdUfs);
    let other = own.iter().find(|(option, of, given)| {
        *given && !of.contains(&kind.name) && !(in_a_file && *option == "--size")
    });
    if let Some((option, of, _)) = other {
        return Err(format!("bench {}: {option} is for {}", kind.name, of.join(", ")).into());
    }
    match kind.needs {
        Needs::Blocks(_) if in_a_file && kind.name == mkfs::KIND.name => {
            Err("bench mkfs: --host freebsd-ufs is a file system already, and mkfs needs a disk: \
                leave out --host"
                .to_owned()
                .into())
        }
        Needs::Blocks(_) if in_a_file && args.buffered => Err(format!(
            "bench {}: --buffered is Linux's page cache, --host freebsd-ufs another \
                system: leave one of them out",
            kind.name
        )
        .into()),
        Needs::Blocks(_) if args.host.is_some() && !in_a_file => {
            let instead = "one large file to run on is --host freebsd-ufs";
            Err(format!(
                "bench {}: that --host is for tree, copy, bonnie: it runs on blocks: \
                {instead}",
                kind.name
            )
            .into())
        }
        Needs::Files(_) if in_a_file => {
            let instead = "--host linux-writeback, openbsd-ffs have files";
            Err(format!(
                "bench {}: --host freebsd-ufs is one large file for workloads of blocks: \
                {instead}",
                kind.name
            )
            .into())
        }
        Needs::Blocks(_) => Ok(()),
        Needs::Files(_) => of_files(args, kind),
    }
}

/// Refuses options of block workloads for a workload on files.
fn of_files(args: &Bench, kind: &WorkloadKind) -> Result<(), Failure> {
    let is_copy = kind.name == "copy";
    let own = [
        ("--qd", args.qd.is_some()),
        ("--count", args.count.is_some()),
        ("--seconds", args.seconds.is_some()),
        ("--buffered", args.buffered),
        ("--engine", args.engine.is_some()),
        ("--bs", args.bs.is_some() && !is_copy),
    ];
    match own.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(format!(
            "bench {}: {option} is for workloads of blocks: it runs on files",
            kind.name
        )
        .into()),
        None => Ok(()),
    }
}
