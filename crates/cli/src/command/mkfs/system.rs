//! `mkfs ext4` and the like: the system's own mkfs, with options that follow from the grains.
//!
//! If the kernel has the provider as a device, the tool runs on that. Otherwise (a partition of an
//! image) it runs on a sparse file of the provider's length, and the file's contents are copied
//! into the provider: no root, no loop device, and nothing is written at all if the tool fails.

use super::arguments::{fat_bits, merged, ourselves, quoted};
use super::{width, wipe};
use crate::command::mkfs::args::{FileSystemKind, Mkfs};
use crate::failure::{Failure, complain};
use crate::progress::of_bytes;
use crate::style::Style;
use crate::words::{columns, hexdump};
use crate::write_target::WriteTarget;
use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueline_geom::audit;
use trueline_geom::base::error::Errno;
use trueline_geom::base::finding::Severity;
use trueline_geom::format::maker::Maker;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::mapping::slices::place;
use trueline_geom::newfs::Put;
use trueline_geom::probe::Limits;
use trueline_host::Error;
use trueline_host::device::sysfs;
use trueline_host::process::command::{self, Ran};
use trueline_host::process::tmpfile::TemporaryFile;

/// Bytes from the start that hold every magic number of these file systems: they are written last.
const HEAD: u64 = 128 << 10;
/// Bytes of one read, and bytes that are zeroed at once where a bar shows progress.
const PIECE: u64 = 1 << 20;
const SPAN: u64 = 1 << 30;
/// Pieces of this size that are all zero are not written.
const BLOCK: usize = 4096;

pub(super) fn run(args: &Mkfs, target: WriteTarget) -> Result<ExitCode, Failure> {
    let Some(tool) = args.kind.maker() else {
        return Err(Failure::Message(format!("make {}: it is built in", args.kind.name())));
    };
    let (ours, own) = merged(args.kind, tool, &target.graph.providers[target.id], &args.own);
    let bits = fat_bits(&ours, &own).filter(|_| args.kind == FileSystemKind::Vfat);
    if let Some(warning) = bits.and_then(|bits| width::warning(&target, bits, &args.disk.words())) {
        complain(&format!("warning: {warning}"));
    }
    let node = node(&target);
    if args.print {
        writeln!(
            anstream::stdout(),
            "{}",
            typed(args, &target, tool, node.as_deref(), (&ours, &own))
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let device =
        node.as_deref().map_or_else(|| args.target.to_string(), |path| path.display().to_string());
    let words = [tool.program.to_owned()]
        .into_iter()
        .chain(ours.clone())
        .chain([device])
        .chain(own.clone());
    let shown = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    let call = Call { args, tool, ours, own };
    match node.filter(|_| !args.dry_run) {
        Some(node) => {
            // The tool opens the device exclusively, as was done here to see that it is not in use.
            drop(target);
            call.run(call.tool.device, &node, None)?;
        }
        None => through_file(&call, &target)?,
    }
    if !args.dry_run {
        // The options are the point of the command.
        writeln!(anstream::stdout(), "{shown}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command that does the same in a shell: the tool itself if it can have the provider as a
/// device or a file, else this program with all options.
fn typed(
    args: &Mkfs,
    target: &WriteTarget,
    tool: &Maker,
    node: Option<&Path>,
    (ours, own): (&[String], &[String]),
) -> String {
    let p = &target.graph.providers[target.id];
    let whole = p.parents.is_empty();
    let is_file = |path: &Path| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == p.topology.length)
    };
    let file = target
        .typed
        .paths()
        .first()
        .copied()
        .filter(|path| whole && node.is_none() && is_file(path));
    let Some(path) = node.or(file) else {
        return ourselves(args, p.topology.sector, [ours, own].concat());
    };
    let force = if file.is_some() { tool.file } else { tool.device };
    let force = force
        .iter()
        .filter(|_| file.is_some() || whole || args.overwrite)
        .map(|&word| word.to_owned());
    let words = [tool.program.to_owned()].into_iter().chain(force).chain(ours.iter().cloned());
    words
        .chain([path.display().to_string()])
        .chain(own.iter().cloned())
        .map(|word| quoted(&word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs the tool on a file, and copies or shows what it made.
fn through_file(call: &Call<'_>, target: &WriteTarget) -> Result<(), Failure> {
    let topology = &target.graph.providers[target.id].topology;
    let (sector, length) = (topology.sector, topology.length);
    let unwritten = |what: String| call.failed(&format!("{what}: nothing was written"));
    if call.tool.sector_is_the_devices && sector != 512 {
        let why = format!(
            "{} takes the sector from the device, and there is none here with sectors of {sector} bytes",
            call.tool.program
        );
        return Err(unwritten(format!(
            "{why}: attach the image with losetup --sector-size {sector}"
        )));
    }
    let beside = target
        .typed
        .paths()
        .first()
        .and_then(|path| path.parent())
        .filter(|dir| !dir.starts_with("/dev"));
    let file = TemporaryFile::new(beside.unwrap_or(&std::env::temp_dir()), length)
        .map_err(|e| unwritten(e.to_string()))?;
    call.run(call.tool.file, &file.path(), Some(&file))?;
    let made = file.length().map_err(unread)?;
    if made != length {
        return Err(unwritten(format!(
            "what {} made takes {made} bytes, and there are {length}",
            call.tool.program
        )));
    }
    if call.tool.clusters_follow {
        off_unit(&file, target)?;
    }
    if call.args.dry_run { show(&file, target) } else { copy(&file, target) }
}

/// A tool with its options.
struct Call<'a> {
    args: &'a Mkfs,
    tool: &'static Maker,
    ours: Vec<String>,
    own: Vec<String>,
}

impl Call<'_> {
    fn failed(&self, what: &str) -> Failure {
        Failure::Message(format!("make {} on {}: {what}", self.args.kind.name(), self.args.target))
    }

    /// Runs the tool on `device`, which is the path of `file` if there is one.
    fn run(
        &self,
        force: &[&str],
        device: &Path,
        file: Option<&TemporaryFile>,
    ) -> Result<(), Failure> {
        let end = if file.is_some() { ": nothing was written" } else { "" };
        let program =
            command::find(self.tool.program).ok_or_else(|| self.failed(&missing(self.tool)))?;
        let options =
            force.iter().copied().chain(self.ours.iter().map(String::as_str)).map(OsString::from);
        let arguments: Vec<OsString> =
            options.chain([device.into()]).chain(self.own.iter().map(OsString::from)).collect();
        let ran = command::run(&program, &arguments, file)
            .map_err(|e| self.failed(&format!("{e}{end}")))?;
        let device = device.display().to_string();
        if !ran.status.success() {
            return Err(self.failed(&format!(
                "{}{end}",
                ended(self.tool, &ran, &device, self.args.target.typed())
            )));
        }
        // The format is made, and the user judges what the tool doubts.
        for line in
            messages(&ran.errors).filter(|line| !OF_FILES.iter().any(|known| line.contains(known)))
        {
            let line = line
                .strip_prefix(self.tool.program)
                .and_then(|rest| rest.strip_prefix(": "))
                .unwrap_or(line);
            complain(&format!(
                "{}: {}",
                self.tool.program,
                line.replace(&device, self.args.target.typed())
            ));
        }
        Ok(())
    }
}

/// Warns if the clusters came out off a boundary.
fn off_unit(file: &TemporaryFile, target: &WriteTarget) -> Result<(), Failure> {
    let topology = target.graph.providers[target.id].topology.clone();
    let made = Graph::taste(
        vec![Disk::new("", Box::new(file.store().map_err(unread)?), topology)],
        Limits::default(),
    );
    let found = audit::audit(&made).findings;
    let off = found
        .iter()
        .find(|(id, f)| made.providers[*id].is_data_area() && f.severity >= Severity::Warning);
    if let Some((_, finding)) = off {
        complain(&format!("warning: {}: {}", target.typed, finding.message));
    }
    Ok(())
}

/// The device node of the provider, if the kernel has one.
fn node(target: &WriteTarget) -> Option<PathBuf> {
    let p = &target.graph.providers[target.id];
    let paths = target.typed.paths();
    let [path] = paths.as_slice() else { return None };
    p.route().medium().and_then(|_| sysfs::node(path, p.route().base(), p.topology.length))
}

fn missing(tool: &Maker) -> String {
    let freebsd =
        tool.freebsd.map_or_else(String::new, |package| format!(" (on FreeBSD {package})"));
    format!(
        "{} is not on this system: install {}{freebsd}: nothing was written",
        tool.program, tool.package
    )
}

/// First words of the lines in which the tools name themselves.
const BANNERS: [&str; 5] =
    ["mke2fs 1", "mkfs.fat 4", "exfatprogs version", "btrfs-progs v", "See http"];

/// Words of the messages of mkntfs and mkswap about a file in the place of a device, which they get
/// on purpose.
const OF_FILES: [&str; 6] = [
    "is not a block device",
    "forced anyway",
    "Failed to determine whether",
    "contains holes",
    "This swap file can be rejected",
    "Use --verbose for more details",
];

/// Most lines of a tool that are passed on. Tools print their errors first.
const MESSAGES: usize = 3;

/// Lines of `text` without the tool's name and its progress.
fn messages(text: &str) -> impl Iterator<Item = &str> {
    let is_message = |line: &&str| {
        !line.is_empty()
            && !line.contains('\u{8}')
            && !BANNERS.iter().any(|banner| line.starts_with(banner))
    };
    text.lines().map(str::trim).filter(is_message)
}

/// The end of the tool in words: its status, and its messages without its name, its progress and
/// its list of options. The path `device` becomes `target`, as the user typed it.
fn ended(tool: &Maker, ran: &Ran, device: &str, target: &str) -> String {
    let usage = |line: &&str| !line.to_lowercase().starts_with("usage:");
    let lines: Vec<&str> = messages(&ran.said).take_while(usage).take(MESSAGES).collect();
    let how = format!("{} failed ({})", tool.program, ran.status);
    if lines.is_empty() {
        how
    } else {
        format!("{how}: {}", lines.join("; ").replace(device, target))
    }
}

/// Copies the contents of `file` into the provider. The magic numbers come last: an interrupted
/// copy is no file system.
fn copy(file: &TemporaryFile, target: &WriteTarget) -> Result<(), Failure> {
    let (graph, id) = (&target.graph, target.id);
    let (sector, length) =
        (graph.providers[id].topology.sector, graph.providers[id].topology.length);
    let head = HEAD.min(length);
    let failed = |attempt: &str, errno: Errno| {
        Failure::Message(format!("{attempt} {}: {errno}", target.typed))
    };
    let flush = || graph.flush().map_err(|e| failed("flush", e));
    for patch in wipe(target) {
        graph
            .write_at(id, &patch.bytes, patch.offset)
            .map_err(|e| failed("wipe the old magic of", e))?;
    }
    graph.zero(id, 0, head).map_err(|e| failed("wipe the beginning of", e))?;
    flush()?;
    let zeros = of_bytes("zero", length - head);
    for at in (head..length).step_by(usize::try_from(SPAN).unwrap_or(BLOCK)) {
        let span = SPAN.min(length - at);
        graph
            .zero(id, at, span)
            .map_err(|e| failed(&format!("make zero, from {} of", place(at, sector)), e))?;
        zeros.inc(span);
    }
    zeros.finish_and_clear();
    let copied = of_bytes("copy", allocated(file, length)?);
    let mut put = |offset: u64, bytes: &[u8]| {
        copied.inc(bytes.len() as u64);
        graph
            .write_at(id, bytes, offset)
            .map_err(|e| failed(&format!("write {} of", place(offset, sector)), e))
    };
    runs(file, head..length, &mut put)?;
    flush()?;
    runs(file, 0..head, &mut put)?;
    copied.finish_and_clear();
    flush()
}

/// Bytes of the file that may have to be copied.
fn allocated(file: &TemporaryFile, length: u64) -> Result<u64, Failure> {
    let (mut sum, mut at) = (0, 0);
    while let Some(data) = file.data(at).map_err(unread)?.filter(|_| at < length) {
        sum += data.end - data.start;
        at = data.end;
    }
    Ok(sum)
}

/// Prints the writes of [`copy`], in its order.
fn show(file: &TemporaryFile, target: &WriteTarget) -> Result<(), Failure> {
    let topology = &target.graph.providers[target.id].topology;
    let (sector, length) = (topology.sector, topology.length);
    let head = HEAD.min(length);
    let (mut out, width) = (BufWriter::new(anstream::stdout().lock()), Style::of_stdout().width);
    columns::comment(&format!("zero: {length} bytes at {}", place(0, sector)), width, &mut out)?;
    let mut put = |offset: u64, bytes: &[u8]| {
        columns::comment(
            &format!("{} bytes at {}", bytes.len(), place(offset, sector)),
            width,
            &mut out,
        )?;
        Ok(hexdump::write_fitting(offset, bytes, width, &mut out)?)
    };
    runs(file, head..length, &mut put)?;
    runs(file, 0..head, &mut put)?;
    Ok(out.flush()?)
}

fn unread(error: Error) -> Failure {
    Failure::Message(error.to_string())
}

/// Passes the runs in `range` of `file` that are not zero to `put`.
fn runs(
    file: &TemporaryFile,
    range: Range<u64>,
    put: &mut Put<'_, Failure>,
) -> Result<(), Failure> {
    let (mut buffer, mut at) = (Vec::new(), range.start);
    while let Some(data) = file.data(at).map_err(unread)?.filter(|data| data.start < range.end) {
        at = data.start.max(range.start);
        let end = data.end.min(range.end);
        while at < end {
            buffer.resize(usize::try_from((end - at).min(PIECE)).unwrap_or(BLOCK), 0);
            file.read_at(&mut buffer, at).map_err(unread)?;
            let blocks: Vec<&[u8]> = buffer.chunks(BLOCK).collect();
            let mut rest = buffer.as_slice();
            for alike in blocks.chunk_by(|a, b| is_zero(a) == is_zero(b)) {
                let (run, after) = rest.split_at(alike.iter().map(|block| block.len()).sum());
                if !is_zero(run) {
                    put(at, run)?;
                }
                (at, rest) = (at + run.len() as u64, after);
            }
        }
    }
    Ok(())
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0)
}
