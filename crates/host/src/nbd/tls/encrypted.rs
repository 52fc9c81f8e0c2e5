//! A stream in which another one is encrypted.

use super::{Certificates, Credentials};
use crate::nbd::stream::Stream;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes received at once: a few records.
const BATCH: usize = 64 << 10;

/// What came and is not decrypted.
struct Arriving {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

/// A stream in which another one is encrypted. One thread receives, while others send.
///
/// The session is locked to encrypt and to decrypt, never while a socket is waited for.
pub struct Encrypted<P> {
    beneath: P,
    session: Mutex<Connection>,
    arriving: Mutex<Arriving>,
    /// Held from when a record is made until it is sent: records leave in the order of their numbers.
    leaving: Mutex<Vec<u8>>,
    patience: Mutex<Option<Duration>>,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Deref<Target: Stream> + Send + Sync> Encrypted<P> {
    /// Shakes hands with a client that has been told to begin, until `end`.
    pub fn accept(beneath: P, certificates: &Certificates, end: Instant) -> io::Result<Encrypted<P>> {
        let session = ServerConnection::new(certificates.0.clone()).map_err(io::Error::other)?;
        Encrypted::shake_hands(beneath, session.into(), end)
    }

    /// Shakes hands with a server that waits for it, until `end`: it is the one that is meant, or there is an error.
    pub fn connect(beneath: P, credentials: &Credentials, end: Instant) -> io::Result<Encrypted<P>> {
        let session = ClientConnection::new(credentials.config.clone(), credentials.name.clone()).map_err(io::Error::other)?;
        Encrypted::shake_hands(beneath, session.into(), end)
    }

    fn shake_hands(beneath: P, session: Connection, end: Instant) -> io::Result<Encrypted<P>> {
        let arriving = Arriving { buffer: vec![0; BATCH].into(), start: 0, end: 0 };
        let stream = Encrypted {
            beneath,
            session: Mutex::new(session),
            arriving: Mutex::new(arriving),
            leaving: Mutex::default(),
            patience: Mutex::default(),
        };
        // A client speaks first.
        stream.flush()?;
        while locked(&stream.session).is_handshaking() {
            let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
            stream.beneath.set_patience(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
            if !stream.take_records(&mut locked(&stream.arriving))? {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "TLS: it hung up in the middle of the handshake"));
            }
            stream.flush()?;
        }
        Ok(stream)
    }

    /// Decrypts some of what came, having received more if there was nothing; `false` if nothing comes any more.
    fn take_records(&self, arriving: &mut Arriving) -> io::Result<bool> {
        if arriving.start == arriving.end {
            (arriving.start, arriving.end) = (0, 0);
            arriving.end = self.beneath.receive(&mut arriving.buffer)?;
            if arriving.end == 0 {
                return Ok(false);
            }
        }
        let mut records = &arriving.buffer[arriving.start..arriving.end];
        let mut session = locked(&self.session);
        let took = session.read_tls(&mut records)?;
        arriving.start += took;
        if let Err(e) = session.process_new_packets() {
            drop(session);
            // The alert that says what is wrong; a client that has gone does not want it.
            let _ = self.flush();
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {e}")));
        }
        // A session that takes nothing has been ended by its client.
        Ok(took > 0)
    }

    /// Sends the records that are made.
    fn flush(&self) -> io::Result<()> {
        self.flush_after(&mut locked(&self.leaving), &mut |_| Ok(()))
    }

    fn flush_after(&self, leaving: &mut Vec<u8>, make: &mut dyn FnMut(&mut Connection) -> io::Result<()>) -> io::Result<()> {
        let mut session = locked(&self.session);
        make(&mut session)?;
        while session.wants_write() {
            session.write_tls(leaving)?;
        }
        drop(session);
        let sent = if leaving.is_empty() { Ok(()) } else { self.beneath.send(leaving) };
        leaving.clear();
        sent
    }
}

impl<P: Deref<Target: Stream> + Send + Sync> Stream for Encrypted<P> {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut arriving = locked(&self.arriving);
        let mut begun: Option<Instant> = None;
        loop {
            match locked(&self.session).reader().read(into) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // Many clients leave without a goodbye. What is cut off here is a request, and it is seen there.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                got => return got,
            }
            // Bytes that make no record do not count as silence.
            let patience = *locked(&self.patience);
            if begun.zip(patience).is_some_and(|(begun, patience)| begun.elapsed() > patience) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !self.take_records(&mut arriving)? {
                return Ok(0);
            }
            begun.get_or_insert_with(Instant::now);
            // An answer to what is the session's own: a new key, a goodbye.
            if locked(&self.session).wants_write() {
                self.flush()?;
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut leaving = locked(&self.leaving);
        let mut rest = bytes;
        while !rest.is_empty() {
            self.flush_after(&mut leaving, &mut |session| {
                let taken = session.writer().write(rest)?;
                rest = &rest[taken..];
                if taken == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        *locked(&self.patience) = patience;
        self.beneath.set_patience(patience)
    }

    fn waiting(&self) -> usize {
        // Encrypted, it is somewhat longer.
        let arriving = locked(&self.arriving);
        self.beneath.waiting().saturating_add(arriving.end - arriving.start)
    }

    fn is_gone(&self) -> bool {
        self.beneath.is_gone()
    }

    fn end(&self) {
        // A client that has gone does not want a goodbye.
        let _ = self.flush_after(&mut locked(&self.leaving), &mut |session| {
            session.send_close_notify();
            Ok(())
        });
    }

    fn hang_up(&self) {
        self.beneath.hang_up();
    }
}
