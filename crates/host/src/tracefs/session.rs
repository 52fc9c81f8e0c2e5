//! A trace under way: one device, its events, and the buffers they are read from.

use super::event::{BlockEvent, EventKind, SeenRequest};
use super::in_flight::InFlight;
use super::instance::Instance;
use super::layout::EventLayout;
use super::page::PageLayout;
use crate::clock;
use crate::device::{Device, DeviceKind, sysfs};
use crate::error::Error;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Memory for events of all processors in KiB, and the least and the most of one, which is room for
/// some 120,000 events.
const BUFFERS_KIB: u64 = 64 << 10;
const LEAST_KIB: u64 = 512;
const MOST_KIB: u64 = 8 << 10;
/// Numbers in a condition, at most: the kernel takes a page.
const MOST_NUMBERS: usize = 100;
/// Records that are kept for their order in time, at most.
const MOST_PENDING: usize = 1 << 17;

/// A block device whose requests are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedDevice {
    /// The kernel's name of the device: `sda1`.
    pub name: String,
    /// The kernel's name of the disk: its own, but for a partition.
    pub disk: String,
    /// The size of the device in bytes.
    pub size: u64,
    /// The first byte on the whole disk: not 0 for a partition.
    start: u64,
    /// True if the disk has queues, and so requests; else it passes on what is submitted.
    queued: bool,
    /// The major and the minor number of the device.
    own: (u32, u32),
    /// The numbers that its events may have: the disk's, and its partitions' where it has no
    /// queues.
    numbers: Vec<(u32, u32)>,
}

/// The end of a trace that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEnd {
    /// Events that the kernel could not keep.
    pub lost: u64,
    /// False if another program has switched its events off.
    pub is_whole: bool,
}

impl TracedDevice {
    /// The block device at `path`. Errors: it is none that sysfs lists.
    pub fn at(path: &Path) -> Result<TracedDevice, Error> {
        let (devices, own) = sysfs::named(path).ok_or_else(|| {
            let place = path.display().to_string();
            Error::not("trace", &place, "it is no block device of this host", "name one of lsblk")
        })?;
        TracedDevice::among(&devices, own, Path::new("/sys")).ok_or_else(|| {
            let place = path.display().to_string();
            Error::not("trace", &place, "its place on its disk is not reported", "name the disk")
        })
    }

    /// The device `own` of `devices`; sysfs is at `root`. `None` if it has no place on its disk.
    pub(super) fn among(devices: &[Device], own: usize, root: &Path) -> Option<TracedDevice> {
        let device = &devices[own];
        let (disk, start) = match &device.kind {
            DeviceKind::Partition { parent, start, .. } => {
                (devices.iter().find(|d| d.name == *parent)?, (*start)?)
            }
            _ => (device, 0),
        };
        let is_on = |d: &&Device| match &d.kind {
            DeviceKind::Partition { parent, .. } => *parent == disk.name,
            _ => d.name == disk.name,
        };
        let queued = root.join("block").join(&disk.name).join("mq").is_dir();
        let number = |d: &Device| (d.major, d.minor);
        let numbers = if queued {
            vec![number(disk)]
        } else {
            devices.iter().filter(is_on).map(number).collect()
        };
        let (name, size, own) = (device.name.clone(), device.size, number(device));
        let disk = disk.name.clone();
        Some(TracedDevice { name, disk, size, start, queued, own, numbers })
    }

    /// The first byte of the device on its disk: not 0 for a partition.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The events of the device and what each means.
    fn events(&self) -> &'static [(&'static str, EventKind)] {
        if self.queued {
            &[
                ("block_rq_issue", EventKind::Issue),
                ("block_rq_complete", EventKind::Complete),
                ("block_rq_requeue", EventKind::Requeue),
            ]
        } else {
            &[("block_bio_queue", EventKind::Issue), ("block_bio_complete", EventKind::Complete)]
        }
    }

    /// The condition that the kernel puts on events; `0`, none, where it would be too long.
    pub(super) fn filter(&self) -> String {
        if self.numbers.len() > MOST_NUMBERS {
            return "0".into();
        }
        let number = |&(major, minor): &(u32, u32)| {
            format!("dev == {}", u64::from(major) << 20 | u64::from(minor))
        };
        self.numbers.iter().map(number).collect::<Vec<_>>().join(" || ")
    }

    /// True if an event concerns the device: a part of it, or its drive as a whole (a flush).
    pub(super) fn concerns(&self, event: &BlockEvent) -> bool {
        let is_in = || {
            event.offset < self.start.saturating_add(self.size)
                && event.offset.saturating_add(event.length) > self.start
        };
        // A disk may have grown.
        let is_whole = self.numbers.contains(&self.own) && self.start == 0;
        self.numbers.contains(&event.device) && (event.length == 0 || is_whole || is_in())
    }

    /// True while the kernel has the device.
    fn is_here(&self) -> bool {
        let (major, minor) = self.own;
        Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists()
    }
}

/// A trace of one device, until it is dropped.
pub struct BlockTrace {
    device: TracedDevice,
    // Closed before the instance is removed: fields are dropped in order.
    pipes: Vec<File>,
    page: Vec<u8>,
    layout: PageLayout,
    events: Vec<(EventLayout, EventKind)>,
    pending: Vec<BlockEvent>,
    in_flight: InFlight,
    instance: Instance,
    cpus: Vec<PathBuf>,
}

impl BlockTrace {
    /// Begins to trace `device`. Errors: tracefs cannot be used, or the kernel lacks the events.
    pub fn start(device: TracedDevice) -> Result<BlockTrace, Error> {
        let instance = Instance::new()?;
        let lacks = |file: &str| {
            let place = instance.path(file).display().to_string();
            let remedy = "a kernel with CONFIG_EVENT_TRACING has it";
            Error::not("trace requests with", &place, "the kernel lacks this event", remedy)
        };
        let header = "events/header_page";
        let layout = PageLayout::parse(&instance.read(header)?).ok_or_else(|| lacks(header))?;
        // Of the same clock as ours; what does not fit is counted as lost.
        instance.write("trace_clock", "mono")?;
        instance.write("options/overwrite", "0")?;
        let cpus = processors(&instance)?;
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let online = Some(count_of(online.trim())).filter(|&count| count > 0);
        let each = BUFFERS_KIB / online.unwrap_or(cpus.len() as u64).max(1);
        instance.write("buffer_size_kb", &each.clamp(LEAST_KIB, MOST_KIB).to_string())?;
        let open = |path: &PathBuf| {
            let path = path.join("trace_pipe_raw");
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
            let pipe = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            pipe.map_err(|e| Error::os("trace requests with", &path, e))
        };
        let pipes = cpus.iter().map(open).collect::<Result<_, _>>()?;
        let mut events = Vec::new();
        for (name, kind) in device.events() {
            let folder = format!("events/block/{name}");
            let text = instance.read(&format!("{folder}/format")).map_err(|_| lacks(&folder))?;
            let event = EventLayout::parse(&text).ok_or_else(|| lacks(&folder))?;
            instance.write(&format!("{folder}/filter"), &device.filter())?;
            events.push((event, *kind));
        }
        // Ends first: a request whose end is not seen would never be done.
        for (name, _) in device.events().iter().rev() {
            instance.write(&format!("events/block/{name}/enable"), "1")?;
        }
        let page = vec![0; layout.size()];
        let (pending, in_flight) = (Vec::new(), InFlight::default());
        Ok(BlockTrace { device, pipes, page, layout, events, pending, in_flight, instance, cpus })
    }

    /// Calls `see` with what the buffers have up to now, in order. Errors: the device is gone.
    pub fn poll(&mut self, see: &mut dyn FnMut(SeenRequest)) -> Result<(), Error> {
        // What is recorded later on one processor may be read before what another had earlier.
        let until = clock::now();
        self.pass(until, see);
        if self.device.is_here() {
            return Ok(());
        }
        Err(Error::not("trace", &format!("/dev/{}", self.device.name), "the device is gone", ""))
    }

    /// Ends the trace: calls `see` with what is left. Errors: the trace cannot be switched off.
    pub fn finish(mut self, see: &mut dyn FnMut(SeenRequest)) -> Result<TraceEnd, Error> {
        let is_on = |file: &str| self.instance.read(file).is_ok_and(|text| text.starts_with('1'));
        let mut events = self.device.events().iter();
        let is_whole = is_on("tracing_on")
            && events.all(|(name, _)| is_on(&format!("events/block/{name}/enable")));
        self.instance.write("tracing_on", "0")?;
        self.pass(u64::MAX, see);
        Ok(TraceEnd { lost: self.lost(), is_whole })
    }

    /// Events that the kernel could not keep so far.
    pub fn lost(&self) -> u64 {
        let count = |path: &PathBuf| lost(&fs::read_to_string(path.join("stats")).ok()?);
        self.cpus.iter().filter_map(count).sum()
    }

    /// Calls `see` with all events in the buffers that are not younger than `until`.
    fn pass(&mut self, until: u64, see: &mut dyn FnMut(SeenRequest)) {
        loop {
            let (more, held) = (self.drain(), self.pending.len());
            self.settle(until, see);
            // Those that are left are all younger.
            if !more || self.pending.len() == held {
                return;
            }
        }
    }

    /// Reads the events in all buffers. True if there may be more than are kept at a time.
    fn drain(&mut self) -> bool {
        let BlockTrace { pipes, page, layout, events, pending, .. } = self;
        for pipe in pipes {
            while pending.len() < MOST_PENDING {
                // A processor that is taken away has no buffer any more.
                let Some(read) = read(pipe, page) else { break };
                layout.records(&page[..read], |record| {
                    let id = record.bytes.first_chunk().map(|id| u16::from_ne_bytes(*id));
                    let known = events.iter().find(|(event, _)| Some(event.id) == id);
                    pending.extend(known.and_then(|(event, kind)| {
                        BlockEvent::decode(record.at_ns, *kind, event, record.bytes)
                    }));
                });
            }
        }
        pending.len() >= MOST_PENDING
    }

    /// Calls `see` with events until a time, in order.
    fn settle(&mut self, until: u64, see: &mut dyn FnMut(SeenRequest)) {
        self.pending.sort_by_key(|event| event.at_ns);
        let due = self.pending.partition_point(|event| event.at_ns <= until);
        for event in self.pending.drain(..due) {
            if self.device.concerns(&event) {
                let empty = event.length == 0;
                let place = event.offset.checked_sub(self.device.start);
                let place = if empty { Some(0) } else { place };
                self.in_flight.follow(event, place).into_iter().for_each(&mut *see);
            }
        }
    }
}

/// One page of a buffer; `None` if there is none now.
fn read(pipe: &mut File, page: &mut [u8]) -> Option<usize> {
    loop {
        match pipe.read(page) {
            Ok(0) => return None,
            Ok(read) => return Some(read),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The directories of the processors' buffers.
fn processors(instance: &Instance) -> Result<Vec<PathBuf>, Error> {
    let path = instance.path("per_cpu");
    let entries = fs::read_dir(&path).map_err(|e| Error::os("list the buffers in", &path, e))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// The events that a buffer has lost, by the text of its `stats`.
pub(super) fn lost(stats: &str) -> Option<u64> {
    let count = |line: &str| line.rsplit_once(": ")?.1.trim().parse::<u64>().ok();
    let counted = |line: &&str| {
        ["overrun: ", "commit overrun: ", "dropped events: "]
            .iter()
            .any(|key| line.starts_with(key))
    };
    Some(stats.lines().filter(counted).filter_map(count).sum())
}

/// The number of processors in a list of the kernel's: `0-3,5`.
pub(super) fn count_of(list: &str) -> u64 {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').filter_map(count).fold(0, u64::saturating_add)
}
