//! Files and devices whose time is measured: opened for requests, unless these would destroy
//! contents.

use crate::failure::{Failure, Reason, without_direct};
use crate::target::{DiskOverrides, Source, Target};
use crate::words::size;
use crate::write_target::{WriteTarget, contents, shared};
use std::path::PathBuf;
use trueline_geom::base::store::{Content, Store};
use trueline_geom::base::topology::{lcm, round_down};
use trueline_geom::graph::Provider;
use trueline_geom::mapping::route::Route;
use trueline_host::device::Device;
use trueline_host::disk::file::{self, Access, Medium, Opened};
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_lab::error::Error;
use trueline_lab::rig::real::{Real, RigSetup};

/// The advice where a file system has no direct I/O.
const BUFFERED: &str = "say --buffered, which measures the page cache as well";

/// Use that media are opened for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MediaUse<'a> {
    /// The command that uses them, for messages: `bench dd`.
    pub(crate) attempt: &'a str,
    pub(crate) writes: bool,
    /// True if writes may destroy contents.
    pub(crate) destructive: bool,
    /// True if another program may have them open.
    pub(crate) allow_busy: bool,
    pub(crate) cache: Cache,
    pub(crate) engine: Choice,
}

/// A provider on files and devices.
pub(crate) struct Media {
    target: WriteTarget,
    pub(crate) paths: Vec<PathBuf>,
    /// Files and devices in the order of the graph's stores; open for writing they are exclusive.
    pub(crate) media: Vec<Medium>,
    pub(crate) cache: Cache,
    engine: Choice,
    /// Unit in bytes that requests must be multiples of.
    grain: u64,
    /// A warning about holes in its files, in words.
    holes: Option<String>,
    /// The block device, if it is a single one.
    pub(crate) device: Option<Device>,
}

impl Media {
    /// Opens a target. Errors: a write without `--destructive` that would destroy contents.
    pub(crate) fn open(
        typed: &Target,
        overrides: &DiskOverrides,
        asked: MediaUse<'_>,
    ) -> Result<Media, Failure> {
        let MediaUse { attempt, writes, cache, engine, .. } = asked;
        let target = WriteTarget::open_with(typed, overrides, Access::Read)?;
        if target.graph.stores().len() > typed.sources().len() {
            let message = format!(
                "{attempt} on {typed}: it opens the files that are named alone: name those behind it too, with commas"
            );
            return Err(Failure::Message(message));
        }
        let route = target.graph.providers[target.id].route();
        if let Some(why) = route.read_only_in_part().filter(|_| writes) {
            return Err(Failure::Message(format!("{attempt} on {typed}: {why}")));
        }
        if writes {
            require_free(&target, attempt, asked.destructive)?;
        }
        let access = match (writes, asked.allow_busy) {
            (false, _) => Access::Read,
            (true, false) => Access::Write,
            (true, true) => Access::WriteInUse,
        };
        let paths: Vec<PathBuf> =
            typed.sources().iter().map(Source::typed).map(PathBuf::from).collect();
        let opened: Result<Vec<Opened>, _> =
            paths.iter().map(|path| file::open_for(path, access)).collect();
        let mut opened = opened.map_err(Reason::from)?;
        let device = opened.first_mut().and_then(|opened| opened.device.take());
        let device = device.filter(|_| paths.len() == 1);
        let media: Vec<Medium> = opened.into_iter().map(|opened| opened.store).collect();
        // A file or device that cannot be opened this way fails when it is used.
        let files = media
            .iter()
            .zip(&paths)
            .filter_map(|(medium, path)| OpenFile::new(medium, cache, path).ok());
        let sector = target.graph.providers[target.id].topology.sector;
        let grain = files.map(|file| file.grain()).try_fold(sector, lcm).unwrap_or(sector);
        let holes = paths.iter().zip(&media).find_map(|(path, medium)| {
            let missing = medium.never_written().or_else(|| sought(medium, RUNS))?;
            holes(&path.display().to_string(), missing, medium.length())
        });
        Ok(Media { target, paths, media, cache, engine, grain, holes, device })
    }

    /// The provider that requests go to.
    pub(crate) fn provider(&self) -> &Provider {
        &self.target.graph.providers[self.target.id]
    }

    /// The unit in bytes that requests must be multiples of.
    pub(crate) fn grain(&self) -> u64 {
        self.grain
    }

    /// A warning about unwritten bytes, in words.
    pub(crate) fn holes(&self) -> Option<&str> {
        self.holes.as_deref()
    }

    /// A rig for `depth` requests in flight, of up to `largest` bytes, on the way of `route`.
    /// Errors: no direct I/O here; no memory.
    pub(crate) fn rig(&self, route: Route, depth: usize, largest: u64) -> Result<Real, Error> {
        let files = self
            .media
            .iter()
            .zip(&self.paths)
            .map(|(medium, path)| OpenFile::new(medium, self.cache, path));
        let files = files
            .collect::<Result<Vec<OpenFile>, _>>()
            .map_err(|e| Error::new(without_direct(e, BUFFERED).0))?;
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let shape = RigSetup { depth, largest, engine: self.engine };
        Real::new(route, self.provider().topology.sector, files, shape)
    }
}

/// Refuses a write that would destroy contents, unless that is said: a table, a file system, a
/// member of a set, anything but zeros.
pub(crate) fn require_free(
    target: &WriteTarget,
    attempt: &str,
    destructive: bool,
) -> Result<(), Failure> {
    target.require_settled(&format!("{attempt} on"))?;
    let lost = || contents(target).or_else(|| shared(target)).or_else(|| written(target));
    match (!destructive).then(lost).flatten() {
        None => Ok(()),
        Some(found) => Err(Failure::Message(format!(
            "{attempt} on {}: {found}: say --destructive to lose it: nothing was written",
            target.typed
        ))),
    }
}

/// Most extents of a file that are asked for; of a file in more pieces the first ones count.
const RUNS: usize = 1 << 16;

/// The warning about `missing` bytes of `name` that were never written: a read of them asks no
/// medium, and a first write must find or convert its room.
pub(crate) fn holes(name: &str, missing: u64, length: u64) -> Option<String> {
    (missing > 0).then(|| {
        let (missing, of) = (size::human(missing), size::human(length));
        format!(
            "{name}: {missing} of its {of} are holes or were never written: no medium is read \
            there, and a first write takes longer: fill it first"
        )
    })
}

/// Bytes in holes, as lseek(2) or a server finds them, in the first `runs` extents. A preallocated
/// extent is a hole until the page cache holds some of it.
pub(crate) fn sought(medium: &dyn Store, runs: usize) -> Option<u64> {
    let (mut at, mut missing) = (0, 0);
    for _ in 0..runs {
        let Some(left) = medium.length().checked_sub(at).filter(|&left| left > 0) else { break };
        let run = medium.extent(at, left).ok().filter(|run| run.length > 0)?;
        missing += if run.content == Content::Hole { run.length } else { 0 };
        at += run.length;
    }
    Some(missing)
}

/// Places that are inspected, and bytes of each.
const PLACES: u64 = 256;
const PLACE: u64 = 4096;

/// Unrecognised contents may be of value: the first byte that is not zero, at the ends of the
/// provider and at places between, in words.
fn written(target: &WriteTarget) -> Option<String> {
    let length = target.graph.providers[target.id].topology.length;
    let last = round_down(length.saturating_sub(PLACE), PLACE);
    let places = (0..=PLACES).map(|n| {
        round_down(
            u64::try_from(u128::from(last) * u128::from(n) / u128::from(PLACES)).unwrap_or(last),
            PLACE,
        )
    });
    for at in places {
        let Ok(size) = usize::try_from(PLACE.min(length.saturating_sub(at))) else { continue };
        let mut bytes = vec![0; size];
        if target.graph.read_at(target.id, &mut bytes, at).is_err()
            || bytes.iter().any(|&byte| byte != 0)
        {
            return Some(format!("there is something at byte {at} that is not zero"));
        }
    }
    None
}
