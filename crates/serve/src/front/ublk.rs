//! A provider as a block device of this kernel, by its ublk driver: no file system and no socket in
//! between.
//!
//! # Limits
//! The default export alone: the kernel reads its tables itself and makes the partitions. The
//! protocol has no field for the start of the first physical block (`alignment_offset`): a unit
//! that does not begin with the provider is reported as the unit of discards
//! (`discard_granularity`, `discard_alignment`), which has one. Commands are encoded as Linux 6.4
//! and later expect. Up to four queues; the requests of each, 64 times 1 MiB, take that much
//! memory.
//!
//! # Sources
//! Linux `Documentation/block/ublk.rst`, `include/uapi/linux/ublk_cmd.h`,
//! `drivers/block/ublk_drv.c`.

use crate::export::Exports;
use rustix::io;
use service::Service;
use shape::shape_of;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use trueline_host::clock::TICK;
use trueline_host::device::users;
use trueline_host::error::Error;
use trueline_host::lock::lock;
use trueline_host::ublk::control::{CONTROL, Control};
use trueline_host::ublk::queue::{DEPTH, LARGEST};
use trueline_host::ublk::wire::command;

mod request;
mod service;
mod shape;

/// The most queues, each with a thread: the kernel assigns every processor one of them.
const QUEUES: usize = 4;
/// A block device of the ublk driver.
pub struct Disk {
    control: Control,
    number: u32,
    served: Mutex<Option<Served>>,
    /// True once the device is removed: another program may have its number now.
    ended: AtomicBool,
}

/// The service of a device, with its thread.
struct Served {
    service: Arc<Service>,
    thread: JoinHandle<Result<(), Error>>,
}

/// Makes a block device of the default export.
pub fn attach(exports: &Arc<Exports>) -> Result<Disk, Error> {
    let export = exports
        .0
        .first()
        .ok_or_else(|| Error::not("serve", CONTROL, "there is nothing to serve", ""))?;
    let control = Control::open()?;
    let shape = shape_of(export);
    if shape.sectors == 0 {
        return Err(Error::not("serve", CONTROL, "the provider has no whole sector", ""));
    }
    control.sweep();
    let own = std::process::id();
    let queues =
        thread::available_parallelism().map_or(1, |processors| processors.get().min(QUEUES));
    let mut info =
        trueline_host::ublk::wire::info(u16::try_from(queues).unwrap_or(1), DEPTH, LARGEST, own);
    control
        .carry(command::ADD_DEV, u32::MAX, &mut info, 0)
        .map_err(|e| failed("make a device by", e))?;
    let (number, queues) =
        (trueline_host::ublk::wire::number(&info), trueline_host::ublk::wire::queues(&info));
    // From here on any failure removes the device.
    let disk = Disk { control, number, served: Mutex::new(None), ended: AtomicBool::new(false) };
    disk.control
        .carry(command::SET_PARAMS, number, &mut shape.parameters(), 0)
        .map_err(|e| failed("describe a device to", e))?;
    let service =
        Arc::new(Service::open(format!("/dev/ublkc{number}").into(), queues, exports.clone())?);
    let (begun, begins) = mpsc::channel();
    let serves = service.clone();
    let thread = thread::Builder::new().name("ublk".into()).spawn(move || serves.run(&begun));
    let thread = thread.map_err(|e| Error::os("serve", Path::new(CONTROL), e))?;
    *disk.served() = Some(Served { service, thread });
    // The start of a device waits for all of its queues, so none may be missing.
    if !(0..queues).all(|_| begins.recv() == Ok(true)) {
        return Err(disk.end().err().unwrap_or_else(|| {
            Error::not("serve", &disk.path(), "a queue ended before it began", "")
        }));
    }
    // It returns when the kernel has scanned the device for partitions.
    disk.control
        .carry(command::START_DEV, number, &mut [], own.into())
        .map_err(|e| failed("start a device by", e))?;
    Ok(disk)
}

fn failed(attempt: &'static str, e: io::Errno) -> Error {
    let mut error = Error::os(attempt, Path::new(CONTROL), e);
    if matches!(e, io::Errno::OPNOTSUPP | io::Errno::INVAL) {
        error.remedy = "Linux 6.4 or later takes these commands".into();
    }
    error
}

impl Disk {
    /// The path of the block device.
    pub fn path(&self) -> String {
        format!("/dev/ublkb{}", self.number)
    }

    fn served(&self) -> std::sync::MutexGuard<'_, Option<Served>> {
        lock(&self.served)
    }

    /// Returns when `stop` is set, or the device is gone. Requests made by then have been answered.
    /// It is an error if the device is still in use.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed)
            && self.served().as_ref().is_some_and(|served| !served.service.is_over())
        {
            thread::sleep(TICK);
        }
        let users = users::users(Path::new(&self.path()));
        self.end()?;
        if users.is_empty() {
            return Ok(());
        }
        let found = format!(
            "{}: what was written stays, and programs that use it get errors from now on",
            users.join(", ")
        );
        Err(Error::not(
            "take away",
            &self.path(),
            found,
            "unmount it, and next time before the server ends",
        ))
    }

    /// Stops the device, for which the kernel writes its dirty pages, and removes it.
    fn end(&self) -> Result<(), Error> {
        if self.ended.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let stopped = self.control.carry(command::STOP_DEV, self.number, &mut [], 0);
        let served = self.served().take().map_or(Ok(Ok(())), |served| served.thread.join());
        let deleted = self.control.delete(self.number);
        match served {
            Ok(served) => {
                served.and(stopped.and(deleted).map_err(|e| failed("take a device from", e)))
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // An earlier error is the one to report.
        let _ = self.end();
    }
}
