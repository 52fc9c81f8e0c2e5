//! Threads for blocking jobs: as many as there are jobs, up to a bound, with a bound on waiting
//! jobs. They know nothing of the jobs' nature.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard};
use trueline_host::lock::{lock, wait};

/// A queue of jobs with their threads, which borrow it and call [`Workers::work`].
pub(crate) struct Workers<Job> {
    queue: Mutex<Queue<Job>>,
    /// Signals that there is a job, or will be none.
    work: Condvar,
    /// Signals that a job is done.
    room: Condvar,
    most: Most,
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) threads: usize,
    /// The most jobs that are not done.
    pub(crate) jobs: usize,
    /// The most bytes of these jobs; a single job may have more.
    pub(crate) bytes: usize,
}

struct Queue<Job> {
    /// Waiting jobs, each with its bytes.
    waiting: VecDeque<(Job, usize)>,
    /// The number of idle threads.
    idle: usize,
    threads: usize,
    /// The number of jobs that are not done, and their bytes.
    jobs: usize,
    bytes: usize,
    closed: bool,
}

impl<Job> Workers<Job> {
    pub(crate) fn new(most: Most) -> Workers<Job> {
        let queue = Queue {
            waiting: VecDeque::new(),
            idle: 0,
            threads: 0,
            jobs: 0,
            bytes: 0,
            closed: false,
        };
        Workers { queue: Mutex::new(queue), work: Condvar::new(), room: Condvar::new(), most }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Job>> {
        lock(&self.queue)
    }

    /// The bytes of jobs that are not done.
    pub(crate) fn bytes(&self) -> usize {
        self.queue().bytes
    }

    /// Adds a job that holds `bytes`, and waits until there is room for it. Returns the job if
    /// there is no thread. `spawn` starts one, and returns false if that is impossible.
    pub(crate) fn hand_over(
        &self,
        job: Job,
        bytes: usize,
        spawn: &mut dyn FnMut() -> bool,
    ) -> Result<(), Job> {
        let mut queue = self.queue();
        while queue.jobs > 0
            && (queue.jobs >= self.most.jobs || queue.bytes + bytes > self.most.bytes)
        {
            queue = wait(&self.room, queue);
        }
        if queue.idle <= queue.waiting.len() && queue.threads < self.most.threads && spawn() {
            queue.threads += 1;
        }
        if queue.threads == 0 {
            return Err(job);
        }
        queue.jobs += 1;
        queue.bytes += bytes;
        queue.waiting.push_back((job, bytes));
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// Does jobs until there will be none. A panic of a job continues after that: otherwise waiting
    /// jobs, and callers that wait for room, would wait for a thread that is gone.
    pub(crate) fn work(&self, mut done: impl FnMut(Job)) {
        let (mut queue, mut panic) = (self.queue(), None);
        loop {
            if let Some((job, bytes)) = queue.waiting.pop_front() {
                drop(queue);
                // The caller's `done` restores whatever a panic leaves half done.
                if let Err(caught) = catch_unwind(AssertUnwindSafe(|| done(job))) {
                    panic = panic.or(Some(caught));
                }
                queue = self.queue();
                queue.jobs -= 1;
                queue.bytes -= bytes;
                self.room.notify_one();
            } else if queue.closed {
                drop(queue);
                if let Some(panic) = panic {
                    resume_unwind(panic);
                }
                return;
            } else {
                queue.idle += 1;
                queue = wait(&self.work, queue);
                queue.idle -= 1;
            }
        }
    }

    /// Closes the queue when the returned value is dropped: threads end after the waiting jobs. A
    /// scope that waits for the threads ends, even after a panic.
    pub(crate) fn closing(&self) -> Closing<'_, Job> {
        Closing(self)
    }
}

/// Closes the queue when dropped.
pub(crate) struct Closing<'a, Job>(&'a Workers<Job>);

impl<Job> Drop for Closing<'_, Job> {
    fn drop(&mut self) {
        self.0.queue().closed = true;
        self.0.work.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    /// Jobs of so many bytes, each of which waits until it is let go: what waits at one time, and
    /// by how many threads.
    #[test]
    fn what_waits_is_bounded() {
        for (most, bytes, at_once, threads) in [
            (Most { threads: 9, jobs: 3, bytes: 100 }, 1, 3, 3),
            (Most { threads: 2, jobs: 3, bytes: 100 }, 1, 3, 2),
            (Most { threads: 9, jobs: 9, bytes: 100 }, 40, 2, 2),
            (Most { threads: 9, jobs: 9, bytes: 100 }, 101, 1, 1),
        ] {
            let workers = Workers::new(most);
            let (given, done, spawned) =
                (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let gate = Mutex::new(());
            std::thread::scope(|scope| {
                let shut = gate.lock().unwrap();
                let giver = scope.spawn(|| {
                    for _ in 0..20 {
                        let spawn = &mut || {
                            spawned.fetch_add(1, Ordering::SeqCst);
                            scope.spawn(|| {
                                workers.work(|()| {
                                    drop(gate.lock().unwrap());
                                    // Never more than may be.
                                    let waiting = given.load(Ordering::SeqCst)
                                        - done.fetch_add(1, Ordering::SeqCst);
                                    assert!(
                                        waiting <= at_once + 1,
                                        "{waiting} of {at_once}, {most:?}"
                                    );
                                });
                            });
                            true
                        };
                        workers.hand_over((), bytes, spawn).unwrap();
                        given.fetch_add(1, Ordering::SeqCst);
                    }
                });
                let begun = Instant::now();
                while given.load(Ordering::SeqCst) < at_once {
                    assert!(begun.elapsed() < Duration::from_secs(600), "nothing more is given");
                    std::thread::yield_now();
                }
                assert_eq!(spawned.load(Ordering::SeqCst), threads, "{most:?}");
                drop(shut);
                giver.join().unwrap();
                drop(workers.closing());
            });
            assert_eq!(done.into_inner(), 20, "{most:?}");
            assert!(spawned.into_inner() <= most.threads, "{most:?}");
        }
    }

    /// After a panic there is room for the next job and a thread for it, and the panic is not lost.
    #[test]
    fn a_job_that_panics_is_done() {
        let workers = Workers::new(Most { threads: 1, jobs: 2, bytes: 10 });
        let done = AtomicUsize::new(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                let closing = workers.closing();
                let spawn = &mut || {
                    scope.spawn(|| {
                        workers.work(|fails: bool| {
                            assert!(!fails, "as a store might");
                            done.fetch_add(1, Ordering::SeqCst);
                        });
                    });
                    true
                };
                for job in 0..10 {
                    workers.hand_over(job < 3, 9, spawn).unwrap();
                }
                drop(closing);
            });
        }));
        assert!(panicked.is_err());
        assert_eq!((done.into_inner(), workers.bytes()), (7, 0));
    }

    /// Otherwise the scope that waits for the threads would wait for ever.
    #[test]
    fn threads_end_when_the_giver_of_jobs_panics() {
        let workers = Workers::new(Most { threads: 1, jobs: 1, bytes: 1 });
        let done = AtomicUsize::new(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                let _closing = workers.closing();
                let spawn = &mut || {
                    scope.spawn(|| workers.work(|()| done.store(1, Ordering::SeqCst)));
                    true
                };
                workers.hand_over((), 1, spawn).unwrap();
                panic!("as a reader might");
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(done.into_inner(), 1);
    }

    #[test]
    fn where_no_thread_is_to_be_had_the_job_comes_back() {
        let workers = Workers::new(Most { threads: 1, jobs: 1, bytes: 1 });
        assert_eq!(workers.hand_over(7, 1, &mut || false), Err(7));
    }
}
