//! A server that runs: every way in, and the thread that tastes again.

use crate::counting::Counting;
use crate::error::Error;
use crate::front::{Front, as_io_flusher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Has the ways in end when it is dropped, also where what they are served for panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves through all `fronts`, and has `counting` follow what clients write, as long as `until`
/// runs. `until` is given a function that tells whether a way in has ended by itself; its result is
/// passed on once every way in has answered what it was asked.
pub fn run<T>(
    fronts: &[Box<dyn Front>],
    counting: Option<&Counting>,
    until: impl FnOnce(&mut dyn FnMut() -> bool) -> T,
) -> Result<T, Error> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let running: Vec<_> = fronts.iter().map(|front| scope.spawn(|| front.run(&stop))).collect();
        if let Some(counting) = counting {
            scope.spawn(|| {
                as_io_flusher();
                counting.keep_up(&stop);
            });
        }
        let ends = Stop(&stop);
        let result = until(&mut || running.iter().any(|front| front.is_finished()));
        drop(ends);
        for front in running {
            match front.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(result)
    })
}
