//! Validation of requests: the protocol's errors for requests that an export does not allow.

use crate::export::Export;
use crate::front::nbd::negotiate::Agreed;
use trueline_geom::base::topology::is_whole;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{Fields, Headers, command, error, flag};

/// The bytes of a status's payload before the context ids.
const FILTER: u64 = 8;

/// Checks that a request is allowed on `export`, as it was `agreed`; else the error is the
/// protocol's. [`status`] checks the payload of a status.
#[inline]
pub fn check(request: &Request, export: &Export, agreed: &Agreed) -> Result<(), u32> {
    let carries = if agreed.headers == Headers::Extended { flag::PAYLOAD_LEN } else { 0 };
    let known = match request.command {
        // Fragmentation, and the flag against it, exist only with structured replies (section
        // "Transmission flags").
        command::READ if agreed.headers.are_chunks() => flag::FUA | flag::DF,
        command::READ => flag::FUA,
        command::WRITE => flag::FUA | carries,
        command::TRIM => flag::FUA,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
        // A flag without meaning here, which some clients send with every command.
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
        return if (request.offset, request.length) == (0, 0) {
            Ok(())
        } else {
            Err(error::EINVAL)
        };
    }
    if request.command == command::BLOCK_STATUS && request.has(flag::PAYLOAD_LEN) {
        // No more ids than there are contexts: none may be repeated.
        let numbers = request
            .length
            .checked_sub(FILTER)
            .filter(|&numbers| is_whole(numbers, 4) && numbers > 0);
        return if numbers.is_some_and(|numbers| numbers / 4 <= agreed.contexts.len() as u64) {
            Ok(())
        } else {
            Err(error::EINVAL)
        };
    }
    let inside =
        request.offset.checked_add(request.length).is_some_and(|end| end <= export.store.length());
    if !inside {
        return Err(if writes && request.command != command::TRIM {
            error::ENOSPC
        } else {
            error::EINVAL
        });
    }
    if request.length > u64::from(export.sizes.most)
        && matches!(request.command, command::READ | command::WRITE)
    {
        // Section "Error values": EOVERFLOW is for a read that may not be fragmented.
        return Err(if request.has(flag::DF) { error::EOVERFLOW } else { error::EINVAL });
    }
    // The protocol leaves requests of zero bytes open ("Terminology"): an empty read succeeds, an
    // empty status has no answer.
    if request.length == 0 && request.command == command::BLOCK_STATUS {
        Err(error::EINVAL)
    } else {
        Ok(())
    }
}

/// The status request without its payload, and the contexts it selects; else the protocol's error.
pub fn status(
    request: &Request,
    payload: &[u8],
    export: &Export,
    agreed: &Agreed,
) -> Result<(Request, Vec<u32>), u32> {
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
