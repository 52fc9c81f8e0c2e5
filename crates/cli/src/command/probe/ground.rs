//! The ground of a probe: simulated drives, a device or file, a scratch file in a directory.

use super::args::Probe;
use super::document::Claimed;
use crate::failure::{Failure, Reason};
use crate::media::{Media, MediaUse};
use crate::progress;
use crate::target::{DiskOverrides, Target, open};
use crate::words::size;
use crate::write_target;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use trueline_geom::base::topology::round_up;
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::Slices;
use trueline_host::device::{Device, DeviceKind, sysfs};
use trueline_host::disk::extents;
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::Cache;
use trueline_host::process::signal;
use trueline_lab::files::scratch::Scratch;
use trueline_lab::probe::COARSE;
use trueline_lab::rig::simulated::Simulated;
use trueline_lab::rig::{Op, Rig};
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// The place that phases count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// The first byte of the target.
    Target,
    /// The first byte of the device that the scratch file's file system is on.
    Device,
    /// The first byte of a scratch file: its place on the device is not known.
    File,
}

/// Ground that a probe measures.
pub(super) struct Ground {
    rig: Box<dyn Rig>,
    pub(super) op: Op,
    /// True for a set, whose chunks are searched.
    pub(super) is_set: bool,
    pub(super) origin: Origin,
    /// Units that the target claims.
    pub(super) claimed: Claimed,
    /// A note on how it was opened, in words.
    pub(super) note: Option<String>,
    pub(super) is_virtual: bool,
    /// The block device, whose units are remembered.
    pub(super) device: Option<Device>,
    scratch: Option<Scratch>,
}

/// The refusal of writes to sets: a set answers with several drives at once, whose units and chunks
/// would show as one.
const SEVERAL: &str = "writes show the units of the disks of a set on each of them alone: probe \
    its disks, or read the set for its chunk";
/// Requests in flight of streams.
pub(super) const DEPTH: usize = 32;
/// Bytes of the longest transfer: so much memory is taken for each request in flight.
const LARGEST: u64 = 1 << 20;
/// Bytes of a scratch file, and least bytes: windows of positions must fit several times.
const SCRATCH: u64 = 1 << 30;
const LEAST: u64 = 16 << 20;

impl Ground {
    /// Opens a target. Errors: what is on it would be lost; no place for a scratch file.
    pub(super) fn open(args: &Probe) -> Result<Ground, Failure> {
        let typed = &args.target;
        let path = Path::new(typed.typed());
        if path.is_dir() {
            return Ground::scratch(args, path);
        }
        if args.size.is_some() {
            return Err(
                format!("probe {typed}: --size is for a scratch file in a directory").into()
            );
        }
        let overrides = if args.json {
            DiskOverrides::for_target(&args.disk, typed)?
        } else {
            DiskOverrides::announced(&args.disk, typed)?
        };
        if let Some(drives) = open::simulated(typed, &overrides)? {
            return Ground::simulated(args, drives);
        }
        if typed.is_remote() || typed.sources().iter().any(|source| source.is_made_up()) {
            let mend = "name a device, a file, a directory or drive:MODEL";
            return Err(format!("probe {typed}: there is no medium to measure: {mend}").into());
        }
        let op = if args.destructive { Op::Write } else { Op::Read };
        let (mut media, note) = opened(typed, &overrides, op)?;
        let is_whole = typed.provider().is_none();
        let device = media.device.take();
        let route = media.provider().route().clone();
        let is_set = is_over_several(device.as_ref()) || is_striped(&media, &route);
        if is_set && op == Op::Write {
            return Err(format!("probe {typed}: {SEVERAL}").into());
        }
        let device = device.filter(|_| is_whole);
        let rig = Box::new(media.rig(route, DEPTH, LARGEST).map_err(Reason::from)?);
        let claimed = match &device {
            Some(device) => Claimed::of(&device.topology().0),
            None => Claimed::of(&media.provider().topology),
        };
        let origin = Origin::Target;
        Ok(Ground {
            rig,
            op,
            is_set,
            origin,
            claimed,
            note,
            is_virtual: false,
            device,
            scratch: None,
        })
    }

    fn simulated(args: &Probe, drives: open::Simulated) -> Result<Ground, Failure> {
        let typed = &args.target;
        let open::Simulated { graph, models } = drives;
        let id = match typed.provider() {
            Some(name) => {
                graph.find(name).ok_or_else(|| write_target::no_provider(typed, name, &graph))?
            }
            None if models.len() > 1 => {
                let mend = "several disks: name the provider after a #: #stripe/data";
                return Err(format!("probe {typed}: {mend}").into());
            }
            None => graph.disk(0),
        };
        let provider = &graph.providers[id];
        let is_set = models.len() > 1 && provider.route().medium().is_none();
        let mut claimed = Claimed::of(&provider.topology);
        // A whole drive says what the real one would; a partition of it says nothing.
        if provider.depth > 0 {
            (claimed.physical, claimed.phase) = (None, None);
        } else if let Some(lie) = models.first().and_then(|of| of.reported_physical_block_size) {
            (claimed.physical, claimed.phase) = (Some(lie), Some(0));
        }
        let mut seeds = Random::new(args.seed);
        let drives =
            models.iter().map(|model| (model.drive(seeds.bits()), model.logical_block_size));
        let world = World::new(drives.collect(), Schedule::Fifo);
        let sector = provider.topology.sector;
        let rig = Simulated::new(world, provider.route().clone(), sector, 0);
        Ok(Ground {
            rig: Box::new(rig),
            op: if is_set { Op::Read } else { Op::Write },
            is_set,
            origin: Origin::Target,
            claimed,
            note: None,
            is_virtual: true,
            device: None,
            scratch: None,
        })
    }

    /// Fills a scratch file in `directory`, and takes the longest run of it that lies in one piece
    /// on its device.
    fn scratch(args: &Probe, directory: &Path) -> Result<Ground, Failure> {
        let free = free(directory)?;
        let bytes = args.size.unwrap_or(SCRATCH.min(free / 4));
        let bytes = round_up(bytes, 1 << 20).unwrap_or(bytes);
        let refused = |what: String| Err(format!("probe {}: {what}", args.target).into());
        if bytes < LEAST {
            let (has, least) = (size::human(bytes), size::human(LEAST));
            let what = format!("a scratch file of {has} is too small: it needs {least}");
            return refused(if args.size.is_none() { format!("{what}: see --size") } else { what });
        }
        if bytes >= free {
            let (file, free) = (size::human(bytes), size::human(free));
            return refused(format!("a scratch file of {file}: {free} are free: see --size"));
        }
        let device = beneath(directory);
        if is_over_several(device.as_ref()) {
            return refused(SEVERAL.into());
        }
        let scratch = Scratch::new(directory).map_err(Reason::from)?;
        let path = scratch.path().join("probe");
        fill(&path, bytes)?;
        let target = Target::parse(&path.to_string_lossy());
        let overrides = DiskOverrides::for_target(&args.disk, &target)?;
        let (media, note) = opened(&target, &overrides, Op::Write)?;
        let run = media.media.first().and_then(extents::longest);
        let whole = media.provider().route().clone();
        // Positions of the file are those of its device, modulo any unit that is looked for.
        let place = run.and_then(|run| {
            let modulus = (COARSE * 2).min(run.length.checked_div(8)?.checked_next_power_of_two()?);
            let begin = round_up(run.on_device, modulus)?;
            let skipped = begin - run.on_device;
            Some((run.start.checked_add(skipped)?, run.length.checked_sub(skipped)?))
        });
        let (route, origin) = match place {
            Some((start, length)) => {
                let moved: Arc<dyn Geom> = Arc::new(Slices::data_area(start, length));
                (Route::new(&moved, 0, length, &[whole]), Origin::Device)
            }
            None => (whole, Origin::File),
        };
        let rig = Box::new(media.rig(route, DEPTH, LARGEST).map_err(Reason::from)?);
        let device = device.filter(|_| origin == Origin::Device);
        let claimed = match &device {
            Some(device) => Claimed::of(&device.topology().0),
            None => Claimed::of(&media.provider().topology),
        };
        Ok(Ground {
            rig,
            op: Op::Write,
            is_set: false,
            origin,
            claimed,
            note,
            is_virtual: false,
            device,
            scratch: Some(scratch),
        })
    }

    /// The rig to measure.
    pub(super) fn rig(&mut self) -> &mut dyn Rig {
        &mut *self.rig
    }

    /// Removes the scratch file.
    pub(super) fn close(self) -> Result<(), Failure> {
        drop(self.rig);
        match self.scratch {
            Some(scratch) => Ok(scratch.remove().map_err(Reason::from)?),
            None => Ok(()),
        }
    }
}

/// The device that the file system of a directory is on; `None` of one that is on none, or on
/// several.
fn beneath(directory: &Path) -> Option<Device> {
    let number = std::fs::metadata(directory).ok()?.dev();
    sysfs::numbered(number)
}

/// True if a device keeps its bytes on several, itself or beneath.
fn is_over_several(device: Option<&Device>) -> bool {
    let Some(device) = device else { return false };
    let all = sysfs::host().unwrap_or_default();
    // A loop of devices would have no end.
    let mut below = vec![device];
    for nth in 0..all.len() + 1 {
        let Some(&device) = below.get(nth) else { return false };
        if device.slaves.len() > 1 {
            return true;
        }
        let parent = match &device.kind {
            DeviceKind::Partition { parent, .. } => Some(parent),
            _ => device.slaves.first(),
        };
        below.extend(all.iter().filter(|device| Some(&device.name) == parent));
    }
    false
}

/// True if a provider lies on several of the opened media.
fn is_striped(media: &Media, route: &Route) -> bool {
    media.media.len() > 1 && route.medium().is_none()
}

/// A target opened past the page cache or, where its file system has no way past it, through it,
/// with a note.
fn opened(
    target: &Target,
    overrides: &DiskOverrides,
    op: Op,
) -> Result<(Media, Option<String>), Failure> {
    let asked = MediaUse {
        attempt: "probe",
        writes: op == Op::Write,
        destructive: true,
        allow_busy: false,
        cache: Cache::Around,
        engine: Choice::Best,
    };
    let around = Media::open(target, overrides, asked)?;
    let route = around.provider().route().clone();
    if around.rig(route, 1, LARGEST).is_ok() {
        let holes = around.holes().map(str::to_owned);
        return Ok((around, holes));
    }
    drop(around);
    let through = Media::open(target, overrides, MediaUse { cache: Cache::Through, ..asked })?;
    let note = "its file system has no way past the page cache: what is measured is the cache, too";
    Ok((through, Some(note.into())))
}

/// Free bytes of the file system that a directory is on.
fn free(directory: &Path) -> Result<u64, Failure> {
    extents::free_bytes(directory).map_err(|error| Reason::from(error).into())
}

/// Bytes that are written at once.
const PART: usize = 1 << 20;

/// Makes a file of `bytes` bytes, all written: a first write of an extent takes longer.
fn fill(path: &Path, bytes: u64) -> Result<(), Failure> {
    let failed = |e: std::io::Error| {
        Failure::from(format!("write {}: {}", path.display(), crate::words::os(&e)))
    };
    let mut file: File =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let bar = progress::of_bytes("scratch file", bytes);
    let part: Vec<u8> = (0..PART).map(|nth| u8::try_from(nth % 251).unwrap_or(0)).collect();
    let mut left = bytes;
    while left > 0 {
        if signal::happened() {
            bar.finish_and_clear();
            return Err(Failure::from(String::from("probe: interrupted: nothing was measured")));
        }
        let now = left.min(PART as u64);
        file.write_all(&part[..usize::try_from(now).unwrap_or(PART)]).map_err(failed)?;
        left -= now;
        bar.inc(now);
    }
    file.sync_all().map_err(failed)?;
    bar.finish_and_clear();
    Ok(())
}
