//! One client's connection, from the greeting to its end: the handshake here, requests in
//! `transmit`.

use super::input::Input;
use super::limits::Limits;
use crate::export::{Export, Exports};
use crate::front::nbd::memory_budget::MemoryBudget;
use crate::front::nbd::negotiate::{self, Haggle, Step};
use crate::front::nbd::reply::BATCH;
use crate::front::nbd::transmit::transmit;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::tls::{Encrypted, Encryption};

/// The exports and limits that a server has for every client.
pub struct Service<'a> {
    /// The exports on offer.
    pub exports: &'a Exports,
    /// The use of TLS.
    pub encryption: &'a Encryption,
    /// The limits of time for each client.
    pub limits: Limits,
    /// The memory that all clients share.
    pub room: &'a MemoryBudget,
    /// True if the server is stopping: requests made by then are answered, and no others.
    pub stop: &'a AtomicBool,
}

/// Serves one client. An error concerns the connection; an invalid request is answered with an
/// error.
pub fn serve(
    stream: &dyn Stream,
    service: &Service<'_>,
    served: &mut dyn FnMut(&Export),
) -> io::Result<()> {
    let end = Instant::now() + service.limits.handshake;
    let (mut haggle, mut input) = (Haggle::new(service.encryption.tls()), Input::new());
    stream.send(&negotiate::greeting())?;
    match shake_hands(stream, &mut input, &mut haggle, service, end)? {
        Step::Transmission(agreed) => transmit(stream, &mut input, service, &agreed, served),
        // Bytes before the TLS handshake do not come from the authenticated client.
        Step::StartTls if input.is_empty() => {
            let Some(certificates) = service.encryption.certificates() else { return Ok(()) };
            let stream = Encrypted::accept(stream, certificates, end)?;
            let done =
                match shake_hands(&stream, &mut input, &mut haggle.encrypted(), service, end)? {
                    Step::Transmission(agreed) => {
                        transmit(&stream, &mut input, service, &agreed, served)
                    }
                    _ => Ok(()),
                };
            stream.end();
            done
        }
        _ => Ok(()),
    }
}

/// Negotiates options, up to the step that ends it: [`Step::Close`] if the client is done or has
/// violated the protocol.
fn shake_hands(
    stream: &dyn Stream,
    input: &mut Input,
    haggle: &mut Haggle,
    service: &Service<'_>,
    end: Instant,
) -> io::Result<Step> {
    let mut out = Vec::new();
    loop {
        if service.stop.load(Ordering::Relaxed) {
            haggle.shut_down();
        }
        let (taken, step) = haggle.take(service.exports, input.bytes(), &mut out);
        input.take(taken);
        if !out.is_empty() && (step != Step::Answered || out.len() > BATCH || input.is_empty()) {
            stream.send(&out)?;
            out.clear();
        }
        match step {
            Step::Answered => {}
            Step::More => {
                let left =
                    end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
                stream.set_patience(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
                if !input.fill(stream)? {
                    return Ok(Step::Close);
                }
            }
            Step::CutOff(why) => return Err(cut_off(why)),
            step => return Ok(step),
        }
    }
}

/// The error of a client that violated a limit, as a message.
pub(super) fn cut_off(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
