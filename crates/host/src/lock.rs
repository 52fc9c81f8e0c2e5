//! Locks whose holder may have panicked.
//!
//! A thread that panics poisons what it holds. Here every value that is locked is whole between any
//! two statements, and a server that lost a thread goes on for its other clients: so the poison is
//! passed over, in this place alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The value of `mutex`, once no other thread holds it.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condvar`, or for no reason, without the lock that `guard` holds; it holds it again
/// afterwards.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_another_thread_keeps_no_one_out() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let mut held = lock(&mutex);
                *held = 2;
                panic!("with the lock");
            });
            holder.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
    }
}
