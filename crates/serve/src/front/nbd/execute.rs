//! The execution of a request on the store, and its reply. [`crate::front::nbd::transmit`] decides
//! whether it is executed, by which thread, and when the reply is sent.

use super::{validate, zeros};
use crate::error_sequence::Since;
use crate::export::Export;
use crate::front::nbd::negotiate::Agreed;
use crate::front::nbd::reply::Replies;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Properties;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, command, flag};

/// The executor of one client's requests.
pub(super) struct Answers<'a> {
    export: &'a Export,
    agreed: &'a Agreed,
    /// Properties of its store.
    properties: Properties,
    /// The error state of the client.
    since: Since,
}

impl<'a> Answers<'a> {
    /// Answers from `export`, as it was `agreed`.
    pub(super) fn new(export: &'a Export, agreed: &'a Agreed) -> Answers<'a> {
        Answers {
            export,
            agreed,
            properties: export.store.properties(),
            since: export.errors.sample(),
        }
    }

    /// The most bytes that a request may carry, as the client was told.
    pub(super) fn most(&self) -> u32 {
        self.export.sizes.most
    }

    /// Checks that the request is allowed; else the error is the protocol's.
    #[inline]
    pub(super) fn check(&self, request: &Request) -> Result<(), u32> {
        validate::check(request, self.export, self.agreed)
    }

    /// Refuses a request with the protocol's error, and notes it in the logs.
    pub(super) fn refuse(&self, request: &Request, errno: u32, replies: &mut Replies<'_>) {
        if let Some(deed) = request.deed() {
            self.export.refuse(deed, request.offset, request.length);
        }
        replies.error(request, errno);
    }

    /// Answers a read with the bytes where they are; `false`, and nothing is answered, if they
    /// cannot be borrowed from the store.
    pub(super) fn borrow(&self, request: &Request, replies: &mut Replies<'a>) -> bool {
        match self.export.store.borrow(request.offset, request.length) {
            Ok(None) => return false,
            Ok(Some(bytes)) => replies.borrowed(request, bytes),
            Err(errno) => replies.error(request, wire::errno(errno)),
        }
        true
    }

    /// Answers without waiting for a device. False, without an answer, if it must. `left` tells if
    /// the client has gone.
    pub(super) fn now(
        &self,
        request: &Request,
        payload: &[u8],
        left: &dyn Fn() -> bool,
        replies: &mut Replies<'_>,
    ) -> bool {
        let store = &*self.export.store;
        match request.command {
            command::READ => {
                return replies.read(request, |buffer| store.try_read(buffer, request.offset));
            }
            command::WRITE if self.properties.write_back && !request.has(flag::FUA) => {
                replies.done(request, store.write_at(payload, request.offset));
            }
            _ if self.properties.non_blocking => self.waiting(request, payload, left, replies),
            _ => return false,
        }
        true
    }

    /// Answers, with all waits it takes; `left` as in [`Answers::now`].
    pub(super) fn waiting(
        &self,
        request: &Request,
        payload: &[u8],
        left: &dyn Fn() -> bool,
        replies: &mut Replies<'_>,
    ) {
        let (export, offset) = (self.export, request.offset);
        let (store, since) = (&*export.store, &self.since);
        let through = |done: Result<(), Errno>| {
            done.and_then(|()| if request.has(flag::FUA) { export.flush(since) } else { Ok(()) })
        };
        let done = match request.command {
            command::READ => {
                replies.read(request, |buffer| store.read_at(buffer, offset).map(|()| true));
                return;
            }
            command::BLOCK_STATUS => {
                return match validate::status(request, payload, export, self.agreed) {
                    Ok((asked, contexts)) => replies.status(&asked, &contexts, export),
                    Err(errno) => replies.error(request, errno),
                };
            }
            command::WRITE if request.has(flag::FUA) => {
                export.write_through(since, payload, offset)
            }
            command::WRITE => store.write_at(payload, offset),
            command::FLUSH => export.flush(since),
            command::TRIM => through(zeros::discard(export, request, left)),
            command::CACHE => {
                store.prefetch(offset, request.length);
                Ok(())
            }
            _ => through(zeros::zero(export, request, left)),
        };
        replies.done(request, done);
    }
}
