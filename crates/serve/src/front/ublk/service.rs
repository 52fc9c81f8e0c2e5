//! The service of a disk's requests: a thread for each queue, and threads that wait for devices in
//! their place.

use super::request::Request;
use crate::error_sequence::Since;
use crate::export::{Export, Exports};
use crate::front::as_io_flusher;
use crate::workers::{Most, Workers};
use rustix::fs::{Mode, OFlags};
use rustix::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, Builder};
use trueline_host::error::Error;
use trueline_host::ublk::queue::Queue;

/// The tries to open `/dev/ublkcN`, which udev may still have to make.
const TRIES: u32 = 250;

/// The queues and workers of a disk.
pub(super) struct Service {
    exports: Arc<Exports>,
    /// The kernel's error state.
    since: Since,
    path: PathBuf,
    queues: Vec<Queue>,
    /// Requests that wait for a device: (queue, tag).
    workers: Workers<(u16, u16)>,
    /// True if a queue is not served any more.
    over: AtomicBool,
}

/// Reports, when dropped, that a queue is not served any more.
struct Broke<'a> {
    service: &'a Service,
    begun: &'a Sender<bool>,
}

impl Drop for Broke<'_> {
    fn drop(&mut self) {
        self.service.broke(self.begun);
    }
}

/// A function that starts a worker thread; false if that is impossible.
type Spawn<'a> = dyn Fn() -> bool + 'a;

impl Service {
    /// A service of the device whose channel is at `path`.
    pub(super) fn open(
        path: PathBuf,
        queues: u16,
        exports: Arc<Exports>,
    ) -> Result<Service, Error> {
        let channel = Arc::new(channel(&path).map_err(|e| Error::os("open", &path, e))?);
        let queues = (0..queues)
            .map(|number| Queue::open(number, channel.clone()))
            .collect::<Result<_, _>>();
        let queues = queues.map_err(|e| Error::os("serve", &path, e))?;
        let since = exports.0.first().map_or_else(Since::default, |export| export.errors.sample());
        // The kernel sends no more requests than there are tags.
        let depth = exports.0.first().map_or(1, |export| export.store.properties().depth);
        let workers = Workers::new(Most { threads: depth, jobs: usize::MAX, bytes: usize::MAX });
        Ok(Service { exports, since, path, queues, workers, over: AtomicBool::new(false) })
    }

    fn export(&self) -> &Export {
        // There is an export: `attach` checked.
        &self.exports.0[0]
    }

    /// True if a queue is not served any more: the device was stopped, or an error occurred.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Serves until the device is stopped. Every queue reports to `begun` whether it waits for
    /// requests.
    pub(super) fn run(&self, begun: &Sender<bool>) -> Result<(), Error> {
        as_io_flusher();
        let served = thread::scope(|scope| {
            let spawn = move || {
                Builder::new()
                    .name("ublk worker".into())
                    .spawn_scoped(scope, || self.answer_waiting())
                    .is_ok()
            };
            let serve = |queue| {
                Builder::new()
                    .name("ublk".into())
                    .spawn_scoped(scope, move || self.serve(queue, begun, &spawn))
            };
            let closing = self.workers.closing();
            let threads: Vec<_> = self.queues.iter().map(serve).collect();
            let ends = threads.into_iter().map(|thread| {
                match thread.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(served)) => served,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(e) => {
                        self.broke(begun);
                        Err(e)
                    }
                }
            });
            let served = ends.fold(Ok(()), std::io::Result::and);
            drop(closing);
            served
        });
        served.map_err(|e| Error::os("serve", &self.path, e))
    }

    fn serve(&self, queue: &Queue, begun: &Sender<bool>, spawn: &Spawn<'_>) -> std::io::Result<()> {
        // Without one of its queues the device is useless, so every end counts.
        let _broke = Broke { service: self, begun };
        // The receiver may be gone.
        queue.serve(&mut |tag| self.take(queue, tag, spawn), &mut || {
            let _ = begun.send(true);
        })
    }

    /// Answers the request `tag`, or leaves it to a thread that may wait.
    fn take(&self, queue: &Queue, tag: u16, spawn: &Spawn<'_>) -> Option<i32> {
        let request = Request::read(&queue.asked(tag));
        let answer = request.answer_now(self.export(), &self.since, &mut queue.buffer(tag));
        // Without other threads, this one waits for the device itself.
        let alone = || {
            (!self.leave(queue.number, tag, spawn))
                .then(|| request.answer(self.export(), &self.since, &mut queue.buffer(tag)))
        };
        answer.or_else(alone)
    }

    fn broke(&self, begun: &Sender<bool>) {
        self.over.store(true, Ordering::Relaxed);
        let _ = begun.send(false);
    }

    /// Leaves a request to a thread that may wait. False if there is none and none can be started.
    fn leave(&self, queue: u16, tag: u16, spawn: &Spawn<'_>) -> bool {
        self.workers.hand_over((queue, tag), 0, &mut || spawn()).is_ok()
    }

    /// Answers waiting requests until there will be no more.
    fn answer_waiting(&self) {
        self.workers.work(|(queue, tag)| {
            let queue = &self.queues[usize::from(queue)];
            let result = Request::read(&queue.asked(tag)).answer(
                self.export(),
                &self.since,
                &mut queue.buffer(tag),
            );
            queue.answered(tag, result);
        });
    }
}

/// Opens the channel of a device's requests, which only one process can.
fn channel(path: &Path) -> io::Result<OwnedFd> {
    let open = || rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let mut file = open();
    for _ in 0..TRIES {
        if !matches!(file, Err(io::Errno::NOENT | io::Errno::ACCESS)) {
            break;
        }
        thread::sleep(super::TICK);
        file = open();
    }
    file
}
