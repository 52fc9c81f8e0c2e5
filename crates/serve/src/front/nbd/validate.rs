//! Validation of requests: what a client may ask of an export, and the protocol's error for what it may not.

use crate::export::Export;
use crate::front::nbd::negotiate::Agreed;
use trueline_geom::base::topology::is_whole;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, Fields, Headers, command, error, flag};

/// Bytes of a status's payload before the numbers of its contexts.
const FILTER: u64 = 8;

/// Whether it may be done on `export`, as it was `agreed`; else the protocol's error. What the payload of a status asks is looked at by
/// [`status`].
#[inline]
pub fn check(request: &Request, export: &Export, agreed: &Agreed) -> Result<(), u32> {
    let carries = if agreed.headers == Headers::Extended { flag::PAYLOAD_LEN } else { 0 };
    let known = match request.command {
        // Not to be fragmented is a flag of structured replies (section "Transmission flags").
        command::READ if agreed.headers.are_chunks() => flag::FUA | flag::DF,
        command::READ => flag::FUA,
        command::WRITE => flag::FUA | carries,
        command::TRIM => flag::FUA,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
        // A flag that says nothing here and that some clients send with everything.
        command::FLUSH | command::CACHE => flag::FUA,
        command::BLOCK_STATUS if !agreed.contexts.is_empty() => flag::FUA | flag::REQ_ONE | carries,
        _ => return Err(error::EINVAL),
    };
    if request.flags & !known != 0 {
        return Err(error::EINVAL);
    }
    let writes = matches!(request.command, command::WRITE | command::TRIM | command::WRITE_ZEROES);
    if writes && export.read_only {
        return Err(error::EPERM);
    }
    if request.command == command::FLUSH {
        return if (request.offset, request.length) == (0, 0) { Ok(()) } else { Err(error::EINVAL) };
    }
    if request.command == command::BLOCK_STATUS && request.has(flag::PAYLOAD_LEN) {
        // No more numbers than there are contexts: none may be said twice.
        let numbers = request.length.checked_sub(FILTER).filter(|&numbers| is_whole(numbers, 4) && numbers > 0);
        return if numbers.is_some_and(|numbers| numbers / 4 <= agreed.contexts.len() as u64) { Ok(()) } else { Err(error::EINVAL) };
    }
    let inside = request.offset.checked_add(request.length).is_some_and(|end| end <= export.store.length());
    if !inside {
        return Err(if writes && request.command != command::TRIM { error::ENOSPC } else { error::EINVAL });
    }
    if request.length > u64::from(wire::MAXIMUM) && matches!(request.command, command::READ | command::WRITE) {
        // Section "Error values": the one is for a read that may not be fragmented.
        return Err(if request.has(flag::DF) { error::EOVERFLOW } else { error::EINVAL });
    }
    // What a request of no bytes does is not said ("Terminology"): a read of nothing is nothing, a status of nothing has no answer.
    if request.length == 0 && request.command == command::BLOCK_STATUS { Err(error::EINVAL) } else { Ok(()) }
}

/// The status that is asked for: the same without a payload, and of which contexts; else the protocol's error.
pub fn status(request: &Request, payload: &[u8], export: &Export, agreed: &Agreed) -> Result<(Request, Vec<u32>), u32> {
    if !request.has(flag::PAYLOAD_LEN) {
        return Ok((*request, agreed.contexts.clone()));
    }
    let mut fields = Fields(payload);
    let length = fields.u64().ok_or(error::EINVAL)?;
    let mut contexts = Vec::new();
    while let Some(number) = fields.u32() {
        if !agreed.contexts.contains(&number) || contexts.contains(&number) {
            return Err(error::EINVAL);
        }
        contexts.push(number);
    }
    let asked = Request { flags: request.flags & !flag::PAYLOAD_LEN, length, ..*request };
    check(&asked, export, agreed)?;
    Ok((asked, contexts))
}

#[cfg(test)]
mod tests;
