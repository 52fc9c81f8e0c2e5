//! What answers the requests of a disk: a thread for each queue, and threads that wait for devices in their stead.

use super::request::Request;
use crate::errseq::Since;
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

/// How often `/dev/ublkcN` is looked for: udev may have to make it.
const TRIES: u32 = 250;

/// A disk that is not yet served.
pub(super) struct Service {
    exports: Arc<Exports>,
    /// Errors that the kernel knows of.
    since: Since,
    path: PathBuf,
    queues: Vec<Queue>,
    /// Requests that wait for a device: queue and tag.
    workers: Workers<(u16, u16)>,
    /// Whether a queue is not served any more.
    over: AtomicBool,
}

/// Says, when it goes, that a queue is not served any more.
struct Broke<'a> {
    service: &'a Service,
    begun: &'a Sender<bool>,
}

impl Drop for Broke<'_> {
    fn drop(&mut self) {
        self.service.broke(self.begun);
    }
}

/// Starts a thread that does such work; `false` if there is none to be had.
type Spawn<'a> = dyn Fn() -> bool + 'a;

impl Service {
    /// Of the device whose channel is at `path`.
    pub(super) fn open(path: PathBuf, queues: u16, exports: Arc<Exports>) -> Result<Service, Error> {
        let channel = Arc::new(channel(&path).map_err(|e| Error::os("open", &path, e))?);
        let queues = (0..queues).map(|number| Queue::open(number, channel.clone())).collect::<Result<_, _>>();
        let queues = queues.map_err(|e| Error::os("serve", &path, e))?;
        let since = exports.0.first().map_or_else(Since::default, |export| export.errors.sample());
        // The kernel asks for no more than it has tags.
        let depth = exports.0.first().map_or(1, |export| export.store.depth());
        let workers = Workers::new(Most { threads: depth, jobs: usize::MAX, bytes: usize::MAX });
        Ok(Service { exports, since, path, queues, workers, over: AtomicBool::new(false) })
    }

    fn export(&self) -> &Export {
        // `attach` found one.
        &self.exports.0[0]
    }

    /// Whether a queue is not served any more: the device was stopped, or something failed.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Serves until the device is stopped. Every queue says by `begun` whether it waits for requests.
    pub(super) fn run(&self, begun: &Sender<bool>) -> Result<(), Error> {
        as_io_flusher();
        let served = thread::scope(|scope| {
            let spawn = move || Builder::new().name("ublk worker".into()).spawn_scoped(scope, || self.answer_waiting()).is_ok();
            let serve = |queue| Builder::new().name("ublk".into()).spawn_scoped(scope, move || self.serve(queue, begun, &spawn));
            let closing = self.workers.closing();
            let threads: Vec<_> = self.queues.iter().map(serve).collect();
            let ends = threads.into_iter().map(|thread| match thread.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(served)) => served,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(e) => {
                    self.broke(begun);
                    Err(e)
                }
            });
            let served = ends.fold(Ok(()), std::io::Result::and);
            drop(closing);
            served
        });
        served.map_err(|e| Error::os("serve", &self.path, e))
    }

    fn serve(&self, queue: &Queue, begun: &Sender<bool>, spawn: &Spawn<'_>) -> std::io::Result<()> {
        // However it ends, the device is of no use without one of its queues.
        let _broke = Broke { service: self, begun };
        // Nobody may want to know any more.
        queue.serve(&mut |tag| self.take(queue, tag, spawn), &mut || {
            let _ = begun.send(true);
        })
    }

    /// Answers the request that came under `tag`, or leaves it to a thread that may wait.
    fn take(&self, queue: &Queue, tag: u16, spawn: &Spawn<'_>) -> Option<i32> {
        let request = Request::read(&queue.asked(tag));
        let answer = request.answer_now(self.export(), &self.since, &mut queue.buffer(tag));
        // Without other threads everything waits for everything, and is answered.
        let alone = || (!self.leave(queue.number, tag, spawn)).then(|| request.answer(self.export(), &self.since, &mut queue.buffer(tag)));
        answer.or_else(alone)
    }

    fn broke(&self, begun: &Sender<bool>) {
        self.over.store(true, Ordering::Relaxed);
        let _ = begun.send(false);
    }

    /// Leaves a request to a thread that may wait; `false` if there is none and none can be had.
    fn leave(&self, queue: u16, tag: u16, spawn: &Spawn<'_>) -> bool {
        self.workers.hand_over((queue, tag), 0, &mut || spawn()).is_ok()
    }

    /// Answers what waits until nothing comes any more.
    fn answer_waiting(&self) {
        self.workers.work(|(queue, tag)| {
            let queue = &self.queues[usize::from(queue)];
            let result = Request::read(&queue.asked(tag)).answer(self.export(), &self.since, &mut queue.buffer(tag));
            queue.answered(tag, result);
        });
    }
}

/// The way to the requests of a device, which can be opened once.
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
