//! Permits for work on this host's processors, where there are more threads than those.

use std::sync::{Condvar, Mutex, PoisonError};

/// Permits that are left. A thread that has one works; others wait.
pub(super) struct Permits {
    left: Mutex<usize>,
    returned: Condvar,
}

/// One of the permits, until it is dropped.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    pub(super) fn new(count: usize) -> Permits {
        Permits { left: Mutex::new(count), returned: Condvar::new() }
    }

    /// One of the permits; waits while none is left.
    pub(super) fn take(&self) -> Permit<'_> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        while *left == 0 {
            left = self.returned.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
        *left -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn no_more_work_than_have_a_permit() {
        let (permits, working, most) = (Permits::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _permit = permits.take();
                        most.fetch_max(
                            working.fetch_add(1, Ordering::SeqCst) + 1,
                            Ordering::SeqCst,
                        );
                        thread::sleep(Duration::from_micros(100));
                        working.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}
