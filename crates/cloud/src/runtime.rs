//! The asynchronous runtime, of which the rest of the program sees calls that wait.

use crate::error::ErrorClass;
use std::fmt;
use std::future::Future;
use std::io;
use std::process;
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};

/// Threads that speak to servers; each has many requests under way.
const THREADS: usize = 2;

/// The runtime, and the process that has its threads.
static RUNTIME: LazyLock<Result<(u32, Runtime), Arc<io::Error>>> = LazyLock::new(|| {
    let built = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    built.map(|runtime| (process::id(), runtime)).map_err(Arc::new)
});

/// Reason for which this process has no runtime.
#[derive(Clone, Debug)]
pub(crate) enum NoRuntime {
    /// None could be made.
    Failed(Arc<io::Error>),
    /// It was forked from a process that had made it, and has none of its threads.
    Forked,
}

impl NoRuntime {
    /// Class of the error about an object.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            NoRuntime::Failed(_) => ErrorClass::Unreadable,
            NoRuntime::Forked => ErrorClass::Forked,
        }
    }
}

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRuntime::Failed(why) => write!(f, "no runtime could be made: {why}"),
            NoRuntime::Forked => f.write_str(
                "this process was forked from one that had asked a server: start it by itself",
            ),
        }
    }
}

/// The result of `work`, for which this thread waits.
pub(crate) fn wait<F: Future>(work: F) -> Result<F::Output, NoRuntime> {
    let (owner, runtime) = RUNTIME.as_ref().map_err(|why| NoRuntime::Failed(Arc::clone(why)))?;
    if *owner != process::id() {
        return Err(NoRuntime::Forked);
    }
    Ok(runtime.block_on(work))
}
