//! A stream encrypted with TLS over another stream.

use super::{Certificates, Credentials};
use crate::lock::lock;
use crate::nbd::stream::Stream;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Bytes received at once: a few records.
const BATCH: usize = 64 << 10;

/// Received bytes that are not decrypted yet.
struct Arriving {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

/// A stream encrypted over another one. One thread receives, while others send.
///
/// The TLS session is locked for encryption and decryption, never while waiting for a socket.
pub struct Encrypted<P> {
    beneath: P,
    session: Mutex<Connection>,
    arriving: Mutex<Arriving>,
    /// The buffer of records to send, locked from their encryption until they are sent: records
    /// leave in the order of their numbers.
    leaving: Mutex<Vec<u8>>,
    patience: Mutex<Option<Duration>>,
}

impl<P: Deref<Target: Stream> + Send + Sync> Encrypted<P> {
    /// Completes the handshake with a client that was told to begin, by `end`.
    pub fn accept(
        beneath: P,
        certificates: &Certificates,
        end: Instant,
    ) -> io::Result<Encrypted<P>> {
        let session = ServerConnection::new(certificates.0.clone()).map_err(io::Error::other)?;
        Encrypted::shake_hands(beneath, session.into(), end)
    }

    /// Completes the handshake with a waiting server by `end`. It is an error if the server is not
    /// the expected one.
    pub fn connect(
        beneath: P,
        credentials: &Credentials,
        end: Instant,
    ) -> io::Result<Encrypted<P>> {
        let session = ClientConnection::new(credentials.config.clone(), credentials.name.clone())
            .map_err(io::Error::other)?;
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
        // In a handshake the client sends first.
        stream.flush()?;
        while lock(&stream.session).is_handshaking() {
            let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
            stream.beneath.set_patience(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
            if !stream.take_records(&mut lock(&stream.arriving))? {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "TLS: the other side hung up during the handshake",
                ));
            }
            stream.flush()?;
        }
        Ok(stream)
    }

    /// Decrypts received records, after receiving more if there are none. False at the end of the
    /// stream.
    fn take_records(&self, arriving: &mut Arriving) -> io::Result<bool> {
        if arriving.start == arriving.end {
            (arriving.start, arriving.end) = (0, 0);
            arriving.end = self.beneath.receive(&mut arriving.buffer)?;
            if arriving.end == 0 {
                return Ok(false);
            }
        }
        let mut records = &arriving.buffer[arriving.start..arriving.end];
        let mut session = lock(&self.session);
        let took = session.read_tls(&mut records)?;
        arriving.start += took;
        if let Err(e) = session.process_new_packets() {
            drop(session);
            // Sends the alert that says what is wrong; a client that has gone does not need it.
            let _ = self.flush();
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {e}")));
        }
        // A session that takes nothing was ended by the other side.
        Ok(took > 0)
    }

    /// Sends the records that are ready.
    fn flush(&self) -> io::Result<()> {
        self.flush_after(&mut lock(&self.leaving), &mut |_| Ok(()))
    }

    fn flush_after(
        &self,
        leaving: &mut Vec<u8>,
        make: &mut dyn FnMut(&mut Connection) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut session = lock(&self.session);
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
        let mut arriving = lock(&self.arriving);
        let mut begun: Option<Instant> = None;
        loop {
            match lock(&self.session).reader().read(into) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // Many clients leave without a goodbye. If that cuts a request off, the reader of
                // requests notices.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                got => return got,
            }
            // Bytes without a complete record do not reset the timeout.
            let patience = *lock(&self.patience);
            if begun.zip(patience).is_some_and(|(begun, patience)| begun.elapsed() > patience) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !self.take_records(&mut arriving)? {
                return Ok(0);
            }
            begun.get_or_insert_with(Instant::now);
            // The session's own answer: a new key, or a goodbye.
            if lock(&self.session).wants_write() {
                self.flush()?;
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut leaving = lock(&self.leaving);
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
        *lock(&self.patience) = patience;
        self.beneath.set_patience(patience)
    }

    fn waiting(&self) -> usize {
        // Counted encrypted, which is somewhat longer.
        let arriving = lock(&self.arriving);
        self.beneath.waiting().saturating_add(arriving.end - arriving.start)
    }

    fn is_gone(&self) -> bool {
        self.beneath.is_gone()
    }

    fn end(&self) {
        // A client that has gone does not need a goodbye.
        let _ = self.flush_after(&mut lock(&self.leaving), &mut |session| {
            session.send_close_notify();
            Ok(())
        });
    }

    fn hang_up(&self) {
        self.beneath.hang_up();
    }
}
