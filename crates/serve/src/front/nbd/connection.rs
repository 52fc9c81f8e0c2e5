//! One client's connection, from its greeting to its end: the handshake here, requests in `transmission`.

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

/// What a server offers to every client.
pub struct Service<'a> {
    /// What it exports.
    pub exports: &'a Exports,
    /// Whether through TLS.
    pub encryption: &'a Encryption,
    /// What a client may keep.
    pub limits: Limits,
    /// What all clients have together.
    pub room: &'a MemoryBudget,
    /// Whether it ends: what was asked is answered, and nothing more.
    pub stop: &'a AtomicBool,
}

/// Serves one client. An error is of the connection; what is wrong with a request is its answer.
pub fn serve(stream: &dyn Stream, service: &Service<'_>, served: &mut dyn FnMut(&Export)) -> io::Result<()> {
    let end = Instant::now() + service.limits.handshake;
    let (mut haggle, mut input) = (Haggle::new(service.encryption.tls()), Input::new());
    stream.send(&negotiate::greeting())?;
    match shake_hands(stream, &mut input, &mut haggle, service, end)? {
        Step::Transmission(agreed) => transmit(stream, &mut input, service, &agreed, served),
        // What came before the answer is not the client's who proves itself after it.
        Step::StartTls if input.is_empty() => {
            let Some(certificates) = service.encryption.certificates() else { return Ok(()) };
            let stream = Encrypted::accept(stream, certificates, end)?;
            let done = match shake_hands(&stream, &mut input, &mut haggle.encrypted(), service, end)? {
                Step::Transmission(agreed) => transmit(&stream, &mut input, service, &agreed, served),
                _ => Ok(()),
            };
            stream.end();
            done
        }
        _ => Ok(()),
    }
}

/// Option haggling, to the step that ends it: [`Step::Close`] if the client is done or has broken the protocol.
fn shake_hands(stream: &dyn Stream, input: &mut Input, haggle: &mut Haggle, service: &Service<'_>, end: Instant) -> io::Result<Step> {
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
                let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
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

/// A client has done what no client may: said in words.
pub(super) fn cut_off(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
