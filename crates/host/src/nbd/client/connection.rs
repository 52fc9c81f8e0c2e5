//! The client's side of one connection, with one request at a time; [`pipeline`] has several.
//!
//! # Limits
//! A server cannot make the client keep more than was asked for. An answer has a deadline, however
//! it arrives ([`Patience`]): a server that trickles bytes counts as one that does not answer.

use super::patience::Patience;
use crate::nbd::block_sizes::LARGEST_REQUEST;
use crate::nbd::client::ExportInfo;
use crate::nbd::contexts::CONTEXTS;
use crate::nbd::request::Request;
use crate::nbd::wire::{self, Fields, Headers, chunk, command, flag, transmission};
use filled::Filled;
use head::{Head, Input, PendingRequest};
use std::io;
use timed::Timed;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Run};
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{Grain, round_down};

mod filled;
mod handshake;
mod head;
pub mod pipeline;
mod timed;

pub(super) use handshake::Wanted;

/// The most descriptors read of an answer to `BLOCK_STATUS`.
const DESCRIPTORS: u32 = 64 << 10;
/// The longest error chunk in bytes: its number, and a message for people (section "Structured
/// reply types").
const LONGEST: u32 = 64 << 10;
/// The most chunks of one reply: one for every sector of the largest request.
const CHUNKS: u32 = LARGEST_REQUEST / 512;

/// A connection in its transmission phase.
pub(super) struct Session {
    line: Timed,
    patience: Patience,
    told: ExportInfo,
    headers: Headers,
    /// The server's ids of the contexts, in the order of [`CONTEXTS`].
    contexts: [Option<u32>; CONTEXTS.len()],
    asked: PendingRequest,
    /// True if the connection cannot be used any more, or not yet.
    broken: bool,
}

/// Descriptors of a status: (length, flags), in order.
type Descriptors = Vec<(u64, u64)>;

impl Drop for Session {
    fn drop(&mut self) {
        if !self.broken {
            // A goodbye: the server has answered everything, and reads it at once.
            let _ = self.request(command::DISC, 0, 0, 0, &[]);
            self.line.end();
        }
    }
}

impl Session {
    pub(super) fn told(&self) -> ExportInfo {
        self.told
    }

    /// True if the connection cannot be used any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Sends a request, whose answer is still to be read.
    fn request(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> io::Result<()> {
        self.asked = PendingRequest { cookie: self.asked.cookie + 1, offset };
        let request = Request { flags, command, cookie: self.asked.cookie, offset, length };
        let carries = if command == command::READ {
            usize::try_from(length).unwrap_or(usize::MAX)
        } else {
            payload.len()
        };
        self.line.restart(self.patience.carries(carries));
        let mut bytes = Vec::new();
        put_request(request, self.headers, payload, &mut bytes)?;
        self.line.send(&bytes)
    }

    /// Sends a request without data in its answer, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> Result<(), Errno> {
        let asked = self.request(command, flags, offset, length, payload);
        self.done(asked)
    }

    /// Sends a flush, whose answer [`Session::done`] waits for.
    pub(super) fn begin_flush(&mut self) -> io::Result<()> {
        self.request(command::FLUSH, 0, 0, 0, &[])
    }

    /// Waits for an answer without data.
    pub(super) fn done(&mut self, asked: io::Result<()>) -> Result<(), Errno> {
        self.settle(asked, |session| {
            session.chunks(&mut |_, kind, _| {
                if kind == chunk::NONE { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
            })
        })
    }

    /// Fills `buffer` with the bytes from `offset` on.
    pub(super) fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let asked = self.request(command::READ, 0, offset, buffer.len() as u64, &[]);
        let mut filled = Filled::default();
        let done = self.settle(asked, |session| {
            session.chunks(&mut |line, kind, length| {
                fill(&mut &*line, kind, length, buffer, offset, &mut filled)
            })
        });
        if done.is_ok() && !filled.is_all_of(buffer.len()) {
            self.broken = true;
            return Err(Errno::Io);
        }
        done
    }

    /// The first run at `offset`; [`None`] if the server has no allocation status.
    pub(super) fn allocation(&mut self, offset: u64, length: u64) -> Result<Option<Run>, Errno> {
        let Some(context) = self.contexts[0] else { return Ok(None) };
        let found = self.status(&[context], flag::REQ_ONE, offset, length)?;
        let found = found
            .into_iter()
            .find(|(number, _)| *number == context)
            .and_then(|(_, found)| found.first().copied());
        Ok(found.map(|(length, flags)| {
            let content = match flags & 3 {
                3 => Content::Hole,
                2 => Content::Zero,
                _ => Content::Data,
            };
            Run { content, length }
        }))
    }

    /// The boundaries that the server reports.
    pub(super) fn boundaries(&mut self) -> Result<Vec<Boundary>, Errno> {
        // Whole blocks: a strict server refuses others.
        let least = self.told.sizes.map_or(1, |[least, ..]| u64::from(least));
        let most = if self.headers == Headers::Extended {
            u64::MAX
        } else {
            round_down(u64::from(u32::MAX), least)
        };
        let length = self.told.length.min(most);
        let contexts: Vec<u32> = self.contexts[1..].iter().flatten().copied().collect();
        if length == 0 || contexts.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.status(&contexts, 0, 0, length)?;
        let told = |number: u32| {
            found.iter().find(|(of, _)| *of == number).and_then(|(_, found)| grain(found))
        };
        let all = CONTEXTS.iter().zip(self.contexts);
        Ok(all
            .filter_map(|((_, why), number)| Some(Boundary { why: (*why)?, grain: told(number?)? }))
            .collect())
    }

    /// The descriptors of `contexts`, each with its id.
    fn status(
        &mut self,
        contexts: &[u32],
        flags: u16,
        offset: u64,
        length: u64,
    ) -> Result<Vec<(u32, Descriptors)>, Errno> {
        let asked = if self.told.flags & transmission::BLOCK_STATUS_PAYLOAD != 0
            && self.headers == Headers::Extended
        {
            // Without the payload the server would report the other contexts too.
            let payload: Vec<u8> = length
                .to_be_bytes()
                .into_iter()
                .chain(contexts.iter().flat_map(|context| context.to_be_bytes()))
                .collect();
            self.request(command::BLOCK_STATUS, flags, offset, payload.len() as u64, &payload)
        } else {
            self.request(command::BLOCK_STATUS, flags, offset, length, &[])
        };
        let mut found = Vec::new();
        self.settle(asked, |session| {
            let headers = session.headers;
            session.chunks(&mut |line, kind, length| {
                let unexpected = || io::Error::from(io::ErrorKind::InvalidData);
                if length > 8 + 16 * DESCRIPTORS {
                    return Err(unexpected());
                }
                let mut data = vec![0; usize::try_from(length).unwrap_or(0)];
                line.receive(&mut data)?;
                let (of, descriptors) = descriptors(headers, kind, &data).ok_or_else(unexpected)?;
                // Each context once: the server decides how many chunks there are.
                if contexts.contains(&of) && found.iter().all(|(number, _)| *number != of) {
                    found.push((of, descriptors));
                }
                Ok(())
            })
        })?;
        Ok(found)
    }

    /// The result of a request: a failed connection, or the server's error.
    fn settle(
        &mut self,
        asked: io::Result<()>,
        answer: impl FnOnce(&mut Session) -> io::Result<u32>,
    ) -> Result<(), Errno> {
        match asked.and_then(|()| answer(self)) {
            Ok(0) => Ok(()),
            Ok(error) => Err(wire::from_errno(error)),
            Err(_) => {
                self.broken = true;
                Err(Errno::NoDevice)
            }
        }
    }

    /// Reads a reply, and calls `take` for chunks with content. Returns the server's error number,
    /// 0 if none.
    fn chunks(&mut self, take: &mut Take<'_>) -> io::Result<u32> {
        let mut error = 0;
        for _ in 0..CHUNKS {
            let (kind, last, length) = match self.line.head(self.headers, self.asked)? {
                Head::Chunk { kind, last, length } => (kind, last, length),
                Head::Simple(found) => {
                    if found == 0 && !self.headers.are_chunks() {
                        // The bytes of a read follow without another header.
                        take(&self.line, chunk::NONE, 0)?;
                    }
                    return Ok(found);
                }
            };
            if kind & 1 << 15 != 0 {
                error = error_number(&mut &self.line, length)?;
            } else if kind != chunk::NONE {
                take(&self.line, kind, length)?;
            } else if length != 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if last {
                return Ok(error);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Reads an error chunk, and returns its number. The message is ignored.
fn error_number(input: &mut impl Input, length: u32) -> io::Result<u32> {
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut data = vec![0; usize::try_from(length).unwrap_or(0)];
    input.fill(&mut data)?;
    Fields(&data).u32().filter(|&error| error != 0).ok_or(io::ErrorKind::InvalidData.into())
}

/// Appends the bytes of a request and its payload to `to`. It is an error if its length needs
/// extended headers, and there are none.
fn put_request(
    mut request: Request,
    headers: Headers,
    payload: &[u8],
    to: &mut Vec<u8>,
) -> io::Result<()> {
    if headers == Headers::Extended {
        request.flags |= if payload.is_empty() { 0 } else { flag::PAYLOAD_LEN };
        to.extend_from_slice(&request.extended());
    } else {
        let head = request.compact().ok_or(io::ErrorKind::InvalidInput)?;
        to.extend_from_slice(&head);
    }
    to.extend_from_slice(payload);
    Ok(())
}

/// A reader of a chunk: connection, chunk type, bytes that follow.
type Take<'a> = dyn FnMut(&Timed, u16, u32) -> io::Result<()> + 'a;

/// Stores a chunk of a read from `offset` in `buffer`, if none of its bytes came before.
fn fill(
    input: &mut impl Input,
    kind: u16,
    length: u32,
    buffer: &mut [u8],
    offset: u64,
    filled: &mut Filled,
) -> io::Result<()> {
    let unexpected = || io::Error::from(io::ErrorKind::InvalidData);
    if kind == chunk::NONE {
        filled.add(0, buffer.len()).ok_or_else(unexpected)?;
        return input.fill(buffer);
    }
    let at = u64::from_be_bytes(input.fixed()?)
        .checked_sub(offset)
        .and_then(|at| usize::try_from(at).ok())
        .ok_or_else(unexpected)?;
    let bytes = match kind {
        chunk::OFFSET_DATA => length.checked_sub(8).ok_or_else(unexpected)?,
        chunk::OFFSET_HOLE if length == 12 => u32::from_be_bytes(input.fixed()?),
        _ => return Err(unexpected()),
    };
    let end = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| at.checked_add(bytes))
        .ok_or_else(unexpected)?;
    let part = buffer.get_mut(at..end).ok_or_else(unexpected)?;
    // Bytes in two chunks imply that others may be in none (section "Structured reply types").
    filled.add(at, end).ok_or_else(unexpected)?;
    if kind == chunk::OFFSET_HOLE {
        part.fill(0);
        return Ok(());
    }
    input.fill(part)
}

/// The context and descriptors of a status chunk; [`None`] if it is none. With extended headers,
/// both kinds are valid.
fn descriptors(headers: Headers, kind: u16, data: &[u8]) -> Option<(u32, Descriptors)> {
    let mut fields = Fields(data);
    let context = fields.u32()?;
    let found: Descriptors = match kind {
        chunk::BLOCK_STATUS => {
            std::iter::from_fn(|| Some((u64::from(fields.u32()?), u64::from(fields.u32()?))))
                .collect()
        }
        chunk::BLOCK_STATUS_EXT if headers == Headers::Extended => {
            let count = u64::from(fields.u32()?);
            let found: Descriptors =
                std::iter::from_fn(|| Some((fields.u64()?, fields.u64()?))).collect();
            // A count of 0 means all that follow (section "Structured reply types").
            return (count == 0 || count == found.len() as u64).then_some((context, found));
        }
        _ => return None,
    };
    Some((context, found))
}

/// The grain that descriptors of `trueline:grain` and the like, from byte 0 on, describe.
/// `Some(None)` if no unit is whole; [`None`] if they are invalid.
fn grain(descriptors: &[(u64, u64)]) -> Option<Option<Grain>> {
    let mut at = 0u64;
    for &(length, size) in descriptors {
        if size > 0 {
            return Some(Some(Grain::new(size, at).filter(|grain| grain.phase() == at)?));
        }
        at = at.checked_add(length)?;
    }
    (at > 0).then_some(None)
}
