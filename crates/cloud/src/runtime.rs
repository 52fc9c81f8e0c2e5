//! The asynchronous runtime, of which the rest of the program sees calls that wait.

use std::future::Future;
use std::io;
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};

/// Threads that speak to servers; each has many requests under way.
const THREADS: usize = 2;

static RUNTIME: LazyLock<Result<Runtime, Arc<io::Error>>> = LazyLock::new(|| {
    let built = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    built.map_err(Arc::new)
});

/// The result of `work`, for which this thread waits. Errors: no runtime could be made.
pub(crate) fn wait<F: Future>(work: F) -> Result<F::Output, Arc<io::Error>> {
    RUNTIME.as_ref().map(|runtime| runtime.block_on(work)).map_err(Arc::clone)
}
