//! A gathering write of several places, some in memory that other threads write at the same time:
//! no copy is made.
//!
//! # Sources
//! writev(2), `IOV_MAX` in limits.h(0p).

#![allow(
    unsafe_code,
    reason = "places in memory that others write are told to the kernel by address: no slice of \
        plain bytes may exist of them"
)]

use rustix::io;
use std::io::IoSlice;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU8;

/// The most places in one call (`IOV_MAX`).
const MOST: usize = 1024;

/// A range of bytes, laid out as `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IoVec<'a> {
    address: *const u8,
    length: usize,
    lifetime: PhantomData<&'a [AtomicU8]>,
}

impl<'a> IoVec<'a> {
    /// Bytes that do not change meanwhile.
    pub fn own(bytes: &'a [u8]) -> IoVec<'a> {
        IoVec { address: bytes.as_ptr(), length: bytes.len(), lifetime: PhantomData }
    }

    /// Bytes that other threads may change meanwhile.
    pub fn shared(bytes: &'a [AtomicU8]) -> IoVec<'a> {
        IoVec { address: bytes.as_ptr().cast(), length: bytes.len(), lifetime: PhantomData }
    }

    /// Drops the first `count` bytes.
    fn skip(&mut self, count: usize) {
        (self.address, self.length) = (self.address.wrapping_add(count), self.length - count);
    }
}

/// Sends all bytes of all places, in order.
pub fn send(socket: BorrowedFd<'_>, mut places: &mut [IoVec<'_>]) -> io::Result<()> {
    while !places.is_empty() {
        let now = &places[..places.len().min(MOST)];
        // SAFETY: IoSlice is guaranteed to be laid out as `struct iovec`, which Place is; the
        // kernel alone reads through these, and every place is alive. No IoSlice is turned into a
        // slice.
        let now: &[IoSlice<'_>] = unsafe { &*(std::ptr::from_ref(now) as *const [IoSlice<'_>]) };
        let sent = io::retry_on_intr(|| io::writev(socket, now))?;
        if sent == 0 && places.iter().any(|place| place.length > 0) {
            return Err(io::Errno::PIPE);
        }
        places = without(places, sent);
    }
    Ok(())
}

/// The `places` without their first `count` bytes.
fn without<'a, 'b>(mut places: &'a mut [IoVec<'b>], mut count: usize) -> &'a mut [IoVec<'b>] {
    while places.first().is_some_and(|place| place.length <= count) {
        count -= places[0].length;
        places = &mut places[1..];
    }
    if let Some(first) = places.first_mut() {
        first.skip(count);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn shared(bytes: &[u8]) -> Vec<AtomicU8> {
        bytes.iter().map(|&byte| AtomicU8::new(byte)).collect()
    }

    /// More bytes than a socket holds, in more places than a call accepts, some of them empty.
    #[test]
    fn all_places_are_sent_in_order() {
        let own: Vec<Vec<u8>> =
            (0..3000_usize).map(|i| vec![u8::try_from(i % 251).unwrap(); i * 7 % 600]).collect();
        let others: Vec<Vec<AtomicU8>> = own.iter().map(|bytes| shared(bytes)).collect();
        let expected = own.concat().len() * 2;
        let (one, mut other) = UnixStream::pair().unwrap();
        let received = std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut all = Vec::new();
                other.read_to_end(&mut all).unwrap();
                all
            });
            let mut places: Vec<IoVec<'_>> = own
                .iter()
                .zip(&others)
                .flat_map(|(a, b)| [IoVec::own(a), IoVec::shared(b)])
                .collect();
            send(one.as_fd(), &mut places).unwrap();
            drop(one);
            reader.join().unwrap()
        });
        assert_eq!(received.len(), expected);
        assert_eq!(
            received,
            own.iter()
                .flat_map(|bytes| [bytes.clone(), bytes.clone()])
                .collect::<Vec<_>>()
                .concat()
        );
        let (one, other) = UnixStream::pair().unwrap();
        drop(other);
        assert_eq!(send(one.as_fd(), &mut [IoVec::own(&[1])]), Err(io::Errno::PIPE));
        send(one.as_fd(), &mut [IoVec::own(&[])]).unwrap();
    }
}
