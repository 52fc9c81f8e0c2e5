//! Commands to the ublk driver through `/dev/ublk-control`.

#![allow(
    unsafe_code,
    reason = "commands to the driver carry addresses of memory that it reads and writes"
)]

use super::wire::{self, INFO, command};
use crate::error::{Cause, Error, Remedy};
use crate::lock::lock;
use io_uring::types::{self, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The device of the driver's commands.
pub const CONTROL: &str = "/dev/ublk-control";
/// The time in seconds for the removal of a device. Before Linux 6.9 it waits for the last user to
/// close the device.
const PATIENCE: u64 = 1;

/// An open connection to the driver.
pub struct Control {
    file: OwnedFd,
    ring: Mutex<IoUring<squeue::Entry128, cqueue::Entry>>,
    /// The number of commands sent; each answer carries its command's number.
    sent: AtomicU64,
}

impl Control {
    /// Opens `/dev/ublk-control`. It is an error if there is no driver, or no permission.
    pub fn open() -> Result<Control, Error> {
        let path = Path::new(CONTROL);
        let file =
            rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|e| {
                match e {
                    io::Errno::NOENT | io::Errno::NODEV | io::Errno::NXIO => Error {
                        attempt: "open",
                        place: CONTROL.into(),
                        source: Cause::Not("this kernel has no ublk driver".into()),
                        remedy: Remedy::LoadUblk,
                    },
                    e => Error::os("open", path, e),
                }
            })?;
        let ring = IoUring::builder()
            .dontfork()
            .build(2)
            .map_err(|e| Error::os("make an io_uring for", path, e))?;
        Ok(Control { file, ring: Mutex::new(ring), sent: AtomicU64::new(0) })
    }

    /// Executes a command, with a buffer that it reads or writes.
    pub fn carry(&self, command: u32, device: u32, buffer: &mut [u8], data: u64) -> io::Result<()> {
        let argument = (buffer.as_mut_ptr().expose_provenance(), buffer.len());
        // SAFETY: the buffer is borrowed until the answer, which is waited for.
        unsafe { self.send(command, device, argument, data, &SubmitArgs::new()) }
    }

    /// Removes a device. An open device does not block the caller: it is removed when its last user
    /// closes it.
    pub fn delete(&self, device: u32) -> io::Result<()> {
        let patience = Timespec::new().sec(PATIENCE);
        let limit = SubmitArgs::new().timespec(&patience);
        // SAFETY: there is no buffer.
        let delete = |command| unsafe { self.send(command, device, (0, 0), 0, &limit) };
        match delete(command::DEL_DEV_ASYNC)
            .or_else(|e| if e == io::Errno::TIME { Err(e) } else { delete(command::DEL_DEV) })
        {
            // The device is removed when its last user closes it.
            Err(io::Errno::TIME) => Ok(()),
            done => done,
        }
    }

    /// Removes devices whose servers, of this program, were killed: their disks are gone, but their
    /// numbers are still taken.
    pub fn sweep(&self) {
        let names = fs::read_dir("/dev")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        for device in names.filter_map(|name| name.strip_prefix("ublkc")?.parse().ok()) {
            let mut info = [0; INFO];
            let told = self.carry(command::GET_DEV_INFO, device, &mut info, 0);
            let process = told.ok().and_then(|()| wire::process(&info)).and_then(Pid::from_raw);
            if process.is_some_and(|process| test_kill_process(process) == Err(io::Errno::SRCH)) {
                // Another server may have removed it just now.
                let _ = self.delete(device);
            }
        }
    }

    /// Sends a command and waits for its answer, at most as long as `limit`. `buffer`: its address
    /// and length.
    ///
    /// # Safety
    /// The buffer must be memory that the kernel may read and write until the answer; with a limit
    /// there must be no buffer.
    unsafe fn send(
        &self,
        command: u32,
        device: u32,
        buffer: (usize, usize),
        data: u64,
        limit: &SubmitArgs<'_, '_>,
    ) -> io::Result<()> {
        let arguments = wire::control(device, buffer.0, buffer.1, data);
        let mut ring = lock(&self.ring);
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), command)
            .cmd(arguments)
            .build()
            .user_data(number);
        // SAFETY: the file is open as long as the ring; the caller guarantees the buffer.
        unsafe { ring.submission().push(&entry) }.map_err(|_| io::Errno::BUSY)?;
        loop {
            // A signal ends the wait, not the command.
            let waited = ring.submitter().submit_with_args(1, limit);
            // Answers to abandoned commands may arrive too.
            if let Some(answer) = ring.completion().find(|answer| answer.user_data() == number) {
                let result = answer.result();
                return if result < 0 {
                    Err(io::Errno::from_raw_os_error(result.wrapping_neg()))
                } else {
                    Ok(())
                };
            }
            match waited.map_err(|e| io::Errno::from_io_error(&e).unwrap_or(io::Errno::IO)) {
                Err(io::Errno::TIME) => return Err(io::Errno::TIME),
                // Not sent, so no answer will come.
                Err(e) if e != io::Errno::INTR && !ring.submission().is_empty() => return Err(e),
                _ => {}
            }
        }
    }
}
