//! A store that stands over another at the same addresses and sees every request: what counts,
//! records, delays, fails or refuses.

use crate::base::error::Errno;
use crate::base::store::{Properties, Run, Store};
use std::sync::atomic::AtomicU8;

/// A layer that changes no address. Everything that reads, writes, zeros, discards or flushes comes
/// to [`Filter::pass`], so a filter cannot be gone around; the ways that do not wait come to
/// [`Filter::attempt`] and are closed until the filter opens them. What carries no bytes (content,
/// prefetch, writeback) goes by. A method that [`Store`] is given one day is written in this file,
/// once for all filters.
///
/// A layer that changes addresses is a [`Store`] of its own: what it leaves out is made of its own
/// reads and writes.
pub trait Filter: Send + Sync {
    /// The store beneath this layer.
    fn inner(&self) -> &dyn Store;

    /// A request on its way down. `run` has the store beneath do it, at most once; without it the
    /// request is not done.
    fn pass(&self, request: &Request, run: impl FnOnce() -> Result<(), Errno>)
    -> Result<(), Errno>;

    /// A request that the store beneath may decline: a read that must not wait, memory that is
    /// borrowed, zeros that are not sent. [`None`]: declined, and it comes again as a request that
    /// waits, or as writes. By default each is declined before it is tried.
    fn attempt<T>(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        let _ = (request, run);
        Ok(None)
    }

    /// A read that may wait, for a filter that changes what is read.
    fn pass_read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.pass(&Request::new(Action::Read, offset, buffer.len() as u64), || {
            self.inner().read_at(buffer, offset)
        })
    }

    /// A write, for a filter that changes what is written; `durable` as in [`Request::durable`].
    fn pass_write(&self, bytes: &[u8], offset: u64, durable: bool) -> Result<(), Errno> {
        let request =
            Request { durable, ..Request::new(Action::Write, offset, bytes.len() as u64) };
        self.pass(&request, || write(self.inner(), bytes, offset, durable))
    }

    /// Properties of the filter: by default those of the store beneath, and that everything may
    /// wait. A filter that never waits by itself says [`Store::properties`] of the store beneath.
    fn offered(&self) -> Properties {
        Properties { write_back: false, non_blocking: false, ..self.inner().properties() }
    }
}

/// A request as a filter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The kind of request.
    pub action: Action,
    /// The first byte; 0 of a flush.
    pub offset: u64,
    /// Its length in bytes; 0 of a flush.
    pub length: u64,
    /// Done only when it would survive a loss of power (forced unit access); of writes alone.
    pub durable: bool,
}

/// Kind of request that reaches a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bytes to the client.
    Read,
    /// Bytes from the client.
    Write,
    /// Zeros without a payload.
    Zero,
    /// Bytes of no interest any more.
    Discard,
    /// Everything written so far to the medium.
    Flush,
}

impl Request {
    /// A request of `length` bytes at `offset`, not durable.
    #[inline]
    pub fn new(action: Action, offset: u64, length: u64) -> Request {
        Request { action, offset, length, durable: false }
    }
}

/// Writes to a store, through its cache or not.
#[inline]
fn write(store: &dyn Store, bytes: &[u8], offset: u64, durable: bool) -> Result<(), Errno> {
    if durable { store.write_through(bytes, offset) } else { store.write_at(bytes, offset) }
}

impl<F: Filter> Store for F {
    fn length(&self) -> u64 {
        self.inner().length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.pass_read(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.pass_write(bytes, offset, false)
    }

    fn flush(&self) -> Result<(), Errno> {
        self.pass(&Request::new(Action::Flush, 0, 0), || self.inner().flush())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.pass(&Request::new(Action::Discard, offset, length), || {
            self.inner().discard(offset, length)
        })
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.pass_write(bytes, offset, true)
    }

    fn grow(&self, length: u64) -> Result<(), Errno> {
        self.inner().grow(length)
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        let tried = self.attempt(&Request::new(Action::Zero, offset, length), || {
            match self.inner().try_zero(offset, length, keep) {
                Err(Errno::Unsupported) => Ok(None),
                done => done.map(Some),
            }
        });
        tried?.ok_or(Errno::Unsupported)
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let request = Request::new(Action::Read, offset, buffer.len() as u64);
        let tried =
            self.attempt(&request, || Ok(self.inner().try_read(buffer, offset)?.then_some(())));
        Ok(tried?.is_some())
    }

    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        self.attempt(&Request::new(Action::Read, offset, length), || {
            self.inner().borrow(offset, length)
        })
    }

    fn properties(&self) -> Properties {
        self.offered()
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.inner().extent(offset, length)
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.inner().prefetch(offset, length);
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.inner().start_writeback(offset, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::store::write_zeros;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering::Relaxed;

    /// A byte store that declines nothing.
    struct Cells(Vec<AtomicU8>);

    impl Store for Cells {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
            let cells = self.borrow(offset, buffer.len() as u64)?.ok_or(Errno::Range)?;
            buffer.iter_mut().zip(cells).for_each(|(byte, cell)| *byte = cell.load(Relaxed));
            Ok(())
        }

        fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
            let cells = self.borrow(offset, bytes.len() as u64)?.ok_or(Errno::Range)?;
            bytes.iter().zip(cells).for_each(|(byte, cell)| cell.store(*byte, Relaxed));
            Ok(())
        }

        fn flush(&self) -> Result<(), Errno> {
            Ok(())
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Ok(())
        }

        fn try_zero(&self, offset: u64, length: u64, _: bool) -> Result<(), Errno> {
            write_zeros(length, &mut |done, zeros| self.write_at(zeros, offset + done))
        }

        fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
            self.read_at(buffer, offset).map(|()| true)
        }

        fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
            let range = usize::try_from(offset).map_err(|_| Errno::Range)?
                ..usize::try_from(offset + length).map_err(|_| Errno::Range)?;
            self.0.get(range).map(Some).ok_or(Errno::Range)
        }

        fn properties(&self) -> Properties {
            Properties { unit: 2, depth: 3, write_back: true, non_blocking: true, is_far: true }
        }
    }

    /// A filter that notes what it sees and has the least that a filter must have.
    struct Least(Cells, Mutex<Vec<Request>>);

    impl Filter for Least {
        fn inner(&self) -> &dyn Store {
            &self.0
        }

        fn pass(
            &self,
            request: &Request,
            run: impl FnOnce() -> Result<(), Errno>,
        ) -> Result<(), Errno> {
            self.1.lock().unwrap().push(*request);
            run()
        }
    }

    #[test]
    fn a_filter_that_says_nothing_is_not_gone_around() {
        let least = Least(Cells((0..64).map(AtomicU8::new).collect()), Mutex::default());
        let seen = || std::mem::take(&mut *least.1.lock().unwrap());
        // Closed until they are opened: each comes again as a request that waits.
        assert_eq!(least.try_read(&mut [0; 8], 0), Ok(false));
        assert_eq!(least.borrow(0, 8).map(|lent| lent.is_some()), Ok(false));
        assert_eq!(least.try_zero(0, 8, false), Err(Errno::Unsupported));
        assert_eq!(
            least.properties(),
            Properties { unit: 2, depth: 3, write_back: false, non_blocking: false, is_far: true }
        );
        assert_eq!(seen(), []);
        // Zeros are writes then, and are seen.
        least.zero(8, 16).unwrap();
        assert_eq!(seen(), [Request::new(Action::Write, 8, 16)]);
        least.write_through(&[1; 2], 0).unwrap();
        assert_eq!(seen(), [Request { durable: true, ..Request::new(Action::Write, 0, 2) }]);
        least.discard(2, 4).unwrap();
        least.flush().unwrap();
        let mut bytes = [9; 10];
        least.read_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [1, 1, 2, 3, 4, 5, 6, 7, 0, 0]);
        assert_eq!(
            seen(),
            [
                Request::new(Action::Discard, 2, 4),
                Request::new(Action::Flush, 0, 0),
                Request::new(Action::Read, 0, 10)
            ]
        );
    }
}
