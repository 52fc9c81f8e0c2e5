//! `freeze [NAME...]`: makes the disks of golden files afresh and rewrites their dumps;
//! `freeze --thaw NAME [FILE...]`: makes disks of the dumps of one, in this directory.
//!
//! A dump holds what tasting reads and nothing else: the disk is tasted through a store that notes
//! every sector that was asked for, and those that are not zero are written, in the format of
//! `hexdump -C`. That the dump tastes like the disk is checked before the file is rewritten. Run it
//! through `tests/freeze.sh` and `tests/thaw.sh`.

#[path = "../tests/disks/lay.rs"]
mod lay;
#[path = "../tests/disks/recipe.rs"]
mod recipe;

use recipe::{Recipe, Scratch};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

const SECTOR: u64 = 512;
const LINE: usize = 16;

/// A file that notes which sectors were read.
struct Watched {
    file: File,
    length: u64,
    touched: Arc<Mutex<BTreeSet<u64>>>,
}

impl Store for Watched {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = offset
            .checked_add(buffer.len() as u64)
            .filter(|&end| end <= self.length)
            .ok_or(Errno::Range)?;
        self.touched.lock().map_err(|_| Errno::Io)?.extend(offset / SECTOR..end.div_ceil(SECTOR));
        self.file.read_exact_at(buffer, offset).map_err(|_| Errno::Io)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [option, name, files @ ..] = &wanted[..]
        && option == "--thaw"
    {
        return match thaw(name, files) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("thaw: {name}: {why}");
                ExitCode::FAILURE
            }
        };
    }
    let recipes: Vec<Recipe> = recipe::all()
        .into_iter()
        .filter(|r| wanted.is_empty() || wanted.contains(&r.name))
        .collect();
    let mut failed = recipes.is_empty();
    for recipe in &recipes {
        match freeze(recipe) {
            Ok(done) => println!("{}: {done}", recipe.name),
            Err(why) => {
                failed = true;
                eprintln!(
                    "freeze: {} ({}): {why}",
                    recipe.name,
                    recipe.field("needs").collect::<Vec<_>>().join(" ")
                );
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

/// Lays the disks of a golden file out in this directory, under the names of `files` if there are
/// any. A file that is there stays.
fn thaw(name: &str, files: &[String]) -> Result<(), String> {
    let recipe = recipe::all().into_iter().find(|recipe| recipe.name == name);
    let mut recipe = recipe.ok_or("no golden file is called so: tests/disks has them")?;
    if !files.is_empty() && files.len() != recipe.dumps.len() {
        let names: Vec<&str> = recipe.dumps.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("it has {}: name as many files", names.join(", ")));
    }
    for ((name, _), file) in recipe.dumps.iter_mut().zip(files) {
        name.clone_from(file);
    }
    let is_there = recipe.dumps.iter().find(|(name, _)| Path::new(name).exists());
    if let Some((name, _)) = is_there {
        return Err(format!("{name} is there already"));
    }
    lay::lay(&recipe, Path::new(".")).map(|names| println!("{}", names.join(" ")))
}

/// Makes, tastes and rewrites; what was done, in a few words.
fn freeze(recipe: &Recipe) -> Result<String, String> {
    let made = Scratch::new("freeze");
    let names = recipe.make(made.path())?;
    let touched: Vec<Arc<Mutex<BTreeSet<u64>>>> = names.iter().map(|_| Arc::default()).collect();
    let real = taste(&names, |number, name| watched(made.path(), name, &touched[number]))?;
    let (mut text, mut kept, mut dumps, mut texts) =
        (recipe.head.clone(), 0, Vec::new(), Vec::new());
    for (name, sectors) in names.iter().zip(&touched) {
        let file = File::open(made.path().join(name)).map_err(|e| e.to_string())?;
        let length = file.metadata().map_err(|e| e.to_string())?.len();
        let sectors = sectors.lock().map_err(|_| "a reader panicked")?;
        let dump = dump(&file, length, &sectors).map_err(|e| e.to_string())?;
        let disk = Sparse::from_hexdump(&dump).map_err(|e| e.to_string())?;
        kept += disk.runs().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        if !dumps.is_empty() {
            let _ = writeln!(text, "# disk: {name}");
        }
        text += &dump;
        dumps.push(disk);
        texts.push((name.clone(), dump));
    }
    let frozen = taste(&names, |number, _| Ok(Box::new(dumps[number].clone())))?;
    if frozen != real {
        return Err(format!(
            "the dump tastes otherwise than the disk\ndisk: {real:#?}\ndump: {frozen:#?}"
        ));
    }
    fs::write(&recipe.path, text).map_err(|e| e.to_string())?;
    Ok(format!("{kept} bytes{}", if recipe.dumps == texts { ", as before" } else { "" }))
}

fn watched(
    directory: &Path,
    name: &str,
    touched: &Arc<Mutex<BTreeSet<u64>>>,
) -> Result<Box<dyn Store>, String> {
    let file = File::open(directory.join(name)).map_err(|e| format!("{name}: {e}"))?;
    let length = file.metadata().map_err(|e| format!("{name}: {e}"))?.len();
    Ok(Box::new(Watched { file, length, touched: touched.clone() }))
}

/// What is found on the disks, in words, at each logical sector that a `check:` may ask for; both,
/// so that a table for the other size is on record too.
fn taste(
    names: &[String],
    open: impl Fn(usize, &str) -> Result<Box<dyn Store>, String>,
) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for sector in [512, 4096] {
        let mut disks = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let store = open(number, name)?;
            let topology = Topology::new(sector, store.length());
            // As the command line names them: alone a disk has no name, in a set it has.
            let name = if names.len() == 1 { String::new() } else { name.clone() };
            disks.push(Disk::new(name, store, topology));
        }
        let graph = Graph::taste(disks, Limits::default());
        found.extend(graph.providers.iter().map(|p| {
            format!("{sector} {} {:?} {:?} {:?}", p.name, p.topology, p.signs, p.findings)
        }));
    }
    Ok(found)
}

/// `hexdump -C` of those sectors that are not zero, zeros elsewhere.
fn dump(file: &File, length: u64, sectors: &BTreeSet<u64>) -> std::io::Result<String> {
    let mut out = Dump::default();
    for &sector in sectors {
        let start = sector * SECTOR;
        let count = usize::try_from(SECTOR.min(length - start)).unwrap_or(0);
        let mut bytes = vec![0; count];
        file.read_exact_at(&mut bytes, start)?;
        if bytes.iter().any(|&b| b != 0) {
            out.zeros(start);
            bytes.chunks(LINE).for_each(|line| out.line(line));
        }
    }
    out.zeros(length);
    let _ = writeln!(out.text, "{length:08x}");
    Ok(out.text)
}

#[derive(Default)]
struct Dump {
    text: String,
    at: u64,
    previous: Vec<u8>,
    starred: bool,
}

impl Dump {
    fn line(&mut self, bytes: &[u8]) {
        if bytes == self.previous {
            if !self.starred {
                self.text += "*\n";
            }
            self.starred = true;
        } else {
            let _ = write!(self.text, "{:08x} ", self.at);
            for (column, byte) in bytes.iter().enumerate() {
                let _ =
                    write!(self.text, "{}{byte:02x}", if column == LINE / 2 { "  " } else { " " });
            }
            let shown: String = bytes
                .iter()
                .map(|&b| if (32..127).contains(&b) { char::from(b) } else { '.' })
                .collect();
            let _ = writeln!(
                self.text,
                "{:width$}  |{shown}|",
                "",
                width = (LINE - bytes.len()) * 3 + usize::from(bytes.len() <= LINE / 2)
            );
            self.previous = bytes.to_vec();
            self.starred = false;
        }
        self.at += bytes.len() as u64;
    }

    /// Zeros up to `end`: of a long run only the first two lines matter.
    fn zeros(&mut self, end: u64) {
        let line = LINE as u64;
        for _ in 0..2 {
            if self.at + line <= end {
                self.line(&[0; LINE]);
            }
        }
        if self.at < end {
            self.at += (end - self.at) / line * line;
            let rest = usize::try_from(end - self.at).unwrap_or(0);
            if rest > 0 {
                self.line(&[0; LINE][..rest]);
            }
        }
    }
}
