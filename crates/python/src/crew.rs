//! Threads that check targets. They are Rust's: an interpreter that ends, or a caller that wants no
//! more, does not wait for a server that is silent.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use trueline::checker::{Checker, LineForm};

/// Time between looks at the signals of the process: an interrupt is answered as soon.
const LOOK: Duration = Duration::from_millis(50);

/// Target to be checked, and the place for its lines.
struct Job {
    target: PathBuf,
    form: LineForm,
    lines: Sender<Vec<u8>>,
}

/// Threads of one checker, begun as they are needed. They end once this is dropped, behind the last
/// job; once it is closed, with what they are at.
#[pyclass(frozen, module = "trueline._native")]
pub struct Crew {
    checker: Arc<Checker>,
    jobs: Mutex<Jobs>,
    waiting: Arc<Mutex<Receiver<Job>>>,
    most: usize,
}

/// Queue of jobs, and the number of threads that take from it.
struct Jobs {
    /// `None` once no more are wanted.
    queue: Option<Sender<Job>>,
    threads: usize,
}

/// Lines that a thread is working on.
#[pyclass(frozen, module = "trueline._native")]
pub struct Pending(Mutex<State>);

enum State {
    Waiting(Receiver<Vec<u8>>),
    Here(Vec<u8>),
    /// Taken, or lost with the thread that made them.
    Gone,
}

impl Crew {
    pub(crate) fn new(checker: Arc<Checker>, threads: NonZeroUsize) -> Crew {
        let (queue, waiting) = channel();
        let jobs = Mutex::new(Jobs { queue: Some(queue), threads: 0 });
        Crew { checker, jobs, waiting: Arc::new(Mutex::new(waiting)), most: threads.get() }
    }

    fn begin(&self, target: PathBuf, form: LineForm) -> PyResult<Pending> {
        let (lines, found) = channel();
        let mut jobs = locked(&self.jobs);
        let queue = jobs.queue.as_ref().ok_or_else(|| PyRuntimeError::new_err("it was closed"))?;
        // The receiver lives as long as this.
        let _ = queue.send(Job { target, form, lines });
        if jobs.threads < self.most {
            let (checker, waiting) = (Arc::clone(&self.checker), Arc::clone(&self.waiting));
            thread::Builder::new().spawn(move || work(&checker, &waiting))?;
            jobs.threads += 1;
        }
        Ok(Pending(Mutex::new(State::Waiting(found))))
    }
}

/// Takes jobs until there will be none.
fn work(checker: &Checker, waiting: &Mutex<Receiver<Job>>) {
    loop {
        let next = locked(waiting).recv();
        let Ok(Job { target, form, lines }) = next else { return };
        // A caller that has left wants no lines.
        let _ = lines.send(checker.lines(target, form));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Crew {
    /// Begins with the line of `check --jsonl` about a target.
    fn line(&self, target: PathBuf) -> PyResult<Pending> {
        self.begin(target, LineForm::Report)
    }

    /// Begins with the lines of `check --rows` about a target.
    fn rows(&self, target: PathBuf) -> PyResult<Pending> {
        self.begin(target, LineForm::Rows)
    }

    /// Leaves what was not begun; what was is not waited for.
    fn close(&self, python: Python<'_>) {
        python.detach(|| {
            locked(&self.jobs).queue = None;
            // A thread that waits for a job holds the lock, and leaves by itself.
            if let Ok(waiting) = self.waiting.try_lock() {
                while waiting.try_recv().is_ok() {}
            }
        });
    }
}

impl Pending {
    /// Takes lines that have come.
    fn look(state: &mut State) {
        if let State::Waiting(found) = state {
            match found.try_recv() {
                Ok(lines) => *state = State::Here(lines),
                Err(TryRecvError::Disconnected) => *state = State::Gone,
                Err(TryRecvError::Empty) => {}
            }
        }
    }
}

#[pymethods]
impl Pending {
    /// True once the lines are there.
    fn done(&self) -> bool {
        let mut state = locked(&self.0);
        Pending::look(&mut state);
        !matches!(*state, State::Waiting(_))
    }

    /// The lines, once they are there, each with its end. Errors: that of a signal's handler, such
    /// as `KeyboardInterrupt`; `RuntimeError` for lines that were taken or never came.
    fn result<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        loop {
            python.detach(|| {
                let mut state = locked(&self.0);
                if let State::Waiting(found) = &*state {
                    match found.recv_timeout(LOOK) {
                        Ok(lines) => *state = State::Here(lines),
                        Err(RecvTimeoutError::Disconnected) => *state = State::Gone,
                        Err(RecvTimeoutError::Timeout) => {}
                    }
                }
            });
            let mut state = locked(&self.0);
            match std::mem::replace(&mut *state, State::Gone) {
                State::Here(lines) => return Ok(PyBytes::new(python, &lines)),
                State::Gone => return Err(PyRuntimeError::new_err("the check ended early")),
                waiting => *state = waiting,
            }
            drop(state);
            python.check_signals()?;
        }
    }
}
