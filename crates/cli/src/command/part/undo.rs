//! `part undo`: puts back the bytes that `--save` kept.

use crate::command::part::args::Undo;
use crate::command::part::json::Document;
use crate::failure::{Failure, Reason};
use crate::input_text;
use crate::placed::table_on;
use crate::render::gpart::{Called, Shown};
use crate::target::open::open_for;
use crate::target::{DiskOverrides, Target};
use crate::words::say;
use crate::write_target::{geom_name, site, tell_kernel};
use crate::writing::{Job, MOST_SAVED, UNCHANGED, carry_out};
use std::fs::File;
use std::process::ExitCode;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_host::disk::file::Access;

pub(super) fn run(args: &Undo) -> Result<ExitCode, Failure> {
    let has_document = args.on.common.json;
    if has_document && args.on.write.dry_run {
        let both = "--dry-run leaves no table for --json to print: leave one of them out";
        return Err(Failure::Message(format!("put back on {}: {both}", args.on.target)));
    }
    let failed = |why: Reason| {
        Failure::from(why.behind(format_args!("read the saved bytes in {}", args.file.display())))
    };
    let text = File::open(&args.file)
        .map_err(Reason::from)
        .and_then(|file| input_text::read(file, MOST_SAVED))
        .map_err(failed)?;
    let saved = parse(&text).map_err(failed)?;
    // Every saved write names its provider, so of several disks none needs to be named.
    let overrides = DiskOverrides::announced(&args.on.common.disk, &args.on.target)?;
    let graph = open_for(&args.on.target, &overrides, args.on.write.access())?;
    let mut jobs: Vec<Job> = Vec::new();
    for (provider, patch) in saved {
        let id = graph.find(&provider).ok_or_else(|| {
            failed(Reason(format!("{} has no provider '{provider}'", args.on.target)))
        })?;
        if patch.end() > graph.providers[id].topology.length {
            return Err(failed(Reason(format!(
                "{} bytes at byte {} do not lie on {}",
                patch.bytes.len(),
                patch.offset,
                args.on.target
            ))));
        }
        match jobs.last_mut().filter(|job| job.id == id) {
            Some(job) => job.patches.push(patch),
            None => jobs.push(Job { id, patches: vec![patch] }),
        }
    }
    let mut written: Vec<String> =
        jobs.iter().map(|job| graph.providers[job.id].name.clone()).collect();
    let count = carry_out(&args.on.target, &graph, jobs, &args.on.write, false)?;
    drop(graph);
    if !args.on.write.dry_run {
        tell_kernel(&args.on.target);
    }
    if has_document {
        written.sort();
        written.dedup();
        print_tables(&args.on.target, &overrides, &written)?;
    } else if !args.on.write.dry_run {
        say(&format!("{}: {count} writes put back", args.on.target))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the document of the tables on the providers of these names, as they are now. One whose
/// table was put away with the writes, or that is gone itself, has none in it.
fn print_tables(
    target: &Target,
    overrides: &DiskOverrides,
    names: &[String],
) -> Result<(), Failure> {
    let graph = open_for(target, overrides, Access::Read)
        .map_err(|why| why.behind("the bytes were put back, and their tables cannot be shown"))?;
    let mut document = Document::new(&[]);
    for id in names.iter().filter_map(|name| graph.find(name)) {
        let Some(table) = table_on(&graph, id) else { continue };
        let name = Called::geom(geom_name(target, &graph, id));
        let shown = Shown { name: &name, table: &table, scheme: table.scheme };
        document.append(Document::new(&[(shown, site(&graph, id), overrides.judged())]));
    }
    Ok(document.print()?)
}

/// The writes in a saved file, each with its provider, in the format of `writing::list`.
fn parse(text: &str) -> Result<Vec<(String, Patch)>, Reason> {
    let (mut saved, mut flush): (Vec<(String, Patch)>, bool) = (Vec::new(), false);
    // A `*` stands for any number of bytes: all writes together are limited to the longest file.
    let mut left = MOST_SAVED;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == UNCHANGED {
            continue;
        }
        if line == "# flush" {
            flush = true;
            continue;
        }
        // Split from the end: the name before the numbers may hold anything.
        let named = line
            .strip_prefix("# ")
            .and_then(|l| l.rsplit_once(" bytes at "))
            .and_then(|(before, _)| before.rsplit_once(": "));
        let provider =
            named.and_then(|(name, _)| name.rsplit_once('#')).map(|(_, p)| p.to_string());
        let provider = provider.ok_or_else(|| {
            format!("'{line}' does not begin a saved write: name a file of --save")
        })?;
        let mut dump = String::new();
        while let Some(line) = lines.next_if(|l| !l.starts_with('#')) {
            dump.push_str(line);
            dump.push('\n');
        }
        let first = dump.split_whitespace().next().and_then(|at| u64::from_str_radix(at, 16).ok());
        let disk = Sparse::from_hexdump(&dump)?;
        let offset = first.ok_or("a saved write without bytes")?;
        let length = disk
            .length()
            .checked_sub(offset)
            .and_then(|n| Some((left.checked_sub(n)?, usize::try_from(n).ok()?)));
        let (rest, length) = length.ok_or("a saved write of impossible length")?;
        left = rest;
        let mut bytes = vec![0; length];
        disk.read_at(&mut bytes, offset)?;
        saved.push((
            provider,
            Patch { offset, bytes, what: "saved bytes", after_flush: std::mem::take(&mut flush) },
        ));
    }
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_writes_are_read_and_nothing_else_is() {
        let text = "# a to x.img#s1: 4 bytes at byte 16 (LBA 0)\n00000010  01 02 03 04\n00000014\n\
            # flush\n# b to x#y.img#: 2 bytes at byte 0 (LBA 0)\n00000000  05 06\n00000002\n";
        let saved = parse(text).unwrap();
        let want = |offset, bytes: &[u8], after_flush| Patch {
            offset,
            bytes: bytes.into(),
            what: "saved bytes",
            after_flush,
        };
        assert_eq!(
            saved,
            [
                ("s1".into(), want(16, &[1, 2, 3, 4], false)),
                (String::new(), want(0, &[5, 6], true))
            ]
        );
        let large = "# a to x#: 9 bytes at byte 0\n00000000  00\n*\n03000000\n";
        assert!(parse(large).is_ok() && parse(&large.repeat(2)).is_err());
        assert!(
            [
                "no",
                "# a to x#: 1 bytes at byte 0\n",
                "# a to x#: 1 bytes at 0\nffffffffffff 01\n0\n"
            ]
            .iter()
            .all(|t| parse(t).is_err())
        );
    }
}
