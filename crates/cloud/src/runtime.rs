//! The asynchronous runtime, of which the rest of the program sees calls that wait.

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

/// The result of `work`, for which this thread waits. Errors: no runtime could be made, or this
/// process was forked from one that had made it, and has none of its threads.
pub(crate) fn wait<F: Future>(work: F) -> Result<F::Output, Arc<io::Error>> {
    let (owner, runtime) = RUNTIME.as_ref().map_err(Arc::clone)?;
    if *owner != process::id() {
        let why = "this process was forked from one that had asked a server: start it by itself";
        return Err(Arc::new(io::Error::other(why)));
    }
    Ok(runtime.block_on(work))
}
