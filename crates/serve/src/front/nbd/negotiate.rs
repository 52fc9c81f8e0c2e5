//! The server's side of option haggling (section "Option haggling"), as a function of the received
//! bytes.
//!
//! # Limits
//! An option has at most [`LONGEST`] bytes of data, a session at most [`OPTIONS`] options.

use crate::export::{Export, Exports};
use trueline_geom::base::topology::Why;
use trueline_host::nbd::contexts::{CONTEXTS, OVERLAY, OVERLAY_NAME};
use trueline_host::nbd::tls::Tls;
use trueline_host::nbd::wire::{
    self, Fields, Headers, IHAVEOPT, NBDMAGIC, OPTION, handshake, info, option, reply, transmission,
};

/// The most bytes of an option's data: a name, and queries or kinds of information.
pub const LONGEST: usize = 64 << 10;
/// The most options of a session: a client that lists all exports and asks about each needs two for
/// each.
pub const OPTIONS: usize = 10_000;

/// The result of the negotiation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// The index of the export.
    pub export: usize,
    /// The headers of requests and replies.
    pub headers: Headers,
    /// The ids of the contexts that `BLOCK_STATUS` reports.
    pub contexts: Vec<u32>,
}

/// The next step of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed.
    More,
    /// An option was answered; another may follow.
    Answered,
    /// TLS begins after the pending answer is sent.
    StartTls,
    /// The transmission phase follows.
    Transmission(Agreed),
    /// The client is done, or has violated the protocol: nothing more is read.
    Close,
    /// The client has exceeded a limit: nothing more is read; the reason is given.
    CutOff(&'static str),
}

/// A session up to its first request.
pub struct Haggle {
    tls: Tls,
    greeted: bool,
    /// True if the client knows that options can be refused (fixed newstyle).
    fixed: bool,
    closing: bool,
    no_zeroes: bool,
    options: usize,
    headers: Headers,
    /// The export that contexts were selected for, and their ids.
    contexts: Option<(usize, Vec<u32>)>,
}

/// The greeting of a server.
pub fn greeting() -> [u8; 18] {
    let mut hello = [0; 18];
    hello[..8].copy_from_slice(&NBDMAGIC.to_be_bytes());
    hello[8..16].copy_from_slice(&IHAVEOPT.to_be_bytes());
    hello[16..].copy_from_slice(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
    hello
}

impl Haggle {
    /// A session at its beginning.
    pub fn new(tls: Tls) -> Haggle {
        Haggle {
            tls,
            greeted: false,
            fixed: false,
            closing: false,
            no_zeroes: false,
            options: 0,
            headers: Headers::Simple,
            contexts: None,
        }
    }

    /// The session after the TLS handshake. What was negotiated before may have come from an
    /// attacker, and is forgotten.
    pub fn encrypted(self) -> Haggle {
        Haggle { tls: Tls::Established, headers: Headers::Simple, contexts: None, ..self }
    }

    /// Makes the session refuse all further options: the server is stopping.
    pub fn shut_down(&mut self) {
        self.closing = true;
    }

    /// Takes at most one message from the beginning of `input`, and appends the answer to `out`.
    /// Returns the number of bytes taken.
    pub fn take(&mut self, exports: &Exports, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        if !self.greeted {
            return self.greet(input);
        }
        let mut head = Fields(input);
        let (Some(magic), Some(option), Some(length)) = (head.u64(), head.u32(), head.u32()) else {
            return (0, Step::More);
        };
        self.options += 1;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if magic != IHAVEOPT {
            return (input.len(), Step::Close);
        }
        if self.options > OPTIONS {
            return (input.len(), Step::CutOff("more than 10000 options, and no request"));
        }
        if length > LONGEST {
            // Too long to wait for: the client is out of step. EXPORT_NAME has no answer but the
            // end.
            if option != option::EXPORT_NAME {
                wire::option_reply(
                    out,
                    option,
                    reply::ERR_TOO_BIG,
                    &[b"an option of at most 65536 bytes"],
                );
            }
            return (input.len(), Step::CutOff("an option of more than 65536 bytes"));
        }
        let Some(data) = head.bytes(length) else {
            self.options -= 1;
            return (0, Step::More);
        };
        (OPTION + length, self.option(exports, option, data, out))
    }

    fn greet(&mut self, input: &[u8]) -> (usize, Step) {
        let Some(flags) = Fields(input).u32() else { return (0, Step::More) };
        let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        if flags & !known != 0 {
            return (input.len(), Step::Close);
        }
        let said = |flag: u16| flags & u32::from(flag) != 0;
        (self.greeted, self.fixed, self.no_zeroes) =
            (true, said(handshake::FIXED_NEWSTYLE), said(handshake::NO_ZEROES));
        (4, Step::Answered)
    }

    fn option(&mut self, exports: &Exports, option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        let mut refuse = |kind: u32, why: &str| {
            wire::option_reply(out, option, kind, &[why.as_bytes()]);
            Step::Answered
        };
        match option {
            // The old newstyle had only this option, and no refusals (section "Newstyle
            // negotiation").
            _ if !self.fixed && option != option::EXPORT_NAME => Step::Close,
            option::ABORT => {
                wire::option_reply(out, option, reply::ACK, &[]);
                Step::Close
            }
            option::EXPORT_NAME if self.closing => Step::Close,
            _ if self.closing => refuse(reply::ERR_SHUTDOWN, "this server is about to end"),
            option::STARTTLS if self.tls == Tls::None => {
                refuse(reply::ERR_POLICY, "this server has no certificate")
            }
            option::STARTTLS if self.tls == Tls::Established => {
                refuse(reply::ERR_INVALID, "it is TLS already")
            }
            option::STARTTLS if !data.is_empty() => {
                refuse(reply::ERR_INVALID, "STARTTLS has no data")
            }
            option::STARTTLS => {
                wire::option_reply(out, option, reply::ACK, &[]);
                Step::StartTls
            }
            // The one option that has no answer but the end.
            option::EXPORT_NAME if self.tls == Tls::Required => Step::Close,
            _ if self.tls == Tls::Required => refuse(reply::ERR_TLS_REQD, "TLS first"),
            // It cannot express that extended headers are agreed, and a client that agreed to them
            // must not use it.
            option::EXPORT_NAME if self.headers == Headers::Extended => Step::Close,
            option::EXPORT_NAME => self.export_name(exports, data, out),
            option::LIST if !data.is_empty() => refuse(reply::ERR_INVALID, "LIST has no data"),
            option::LIST => {
                for export in &exports.0 {
                    let (name, length) =
                        (export.name.as_bytes(), u32::try_from(export.name.len()).unwrap_or(0));
                    wire::option_reply(
                        out,
                        option,
                        reply::SERVER,
                        &[&length.to_be_bytes(), name, export.description.as_bytes()],
                    );
                }
                wire::option_reply(out, option, reply::ACK, &[]);
                Step::Answered
            }
            option::INFO | option::GO => self.info(exports, option, data, out),
            option::STRUCTURED_REPLY | option::EXTENDED_HEADERS => self.agree_on(option, data, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_context(exports, option, data, out)
            }
            _ => refuse(reply::ERR_UNSUP, "this server does not know that option"),
        }
    }

    /// Handles `STRUCTURED_REPLY` and `EXTENDED_HEADERS`; the latter includes the former.
    fn agree_on(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        let headers = if option == option::EXTENDED_HEADERS {
            Headers::Extended
        } else {
            Headers::Structured
        };
        let (kind, why) = match headers {
            _ if !data.is_empty() => (reply::ERR_INVALID, "this option has no data"),
            // As in QEMU's server: nothing is left to agree on, and a client that asks is out of
            // step.
            Headers::Extended if self.headers == Headers::Extended => {
                (reply::ERR_INVALID, "extended headers are agreed already")
            }
            Headers::Structured if self.headers == Headers::Extended => {
                (reply::ERR_EXT_HEADER_REQD, "extended headers are agreed")
            }
            _ => {
                self.headers = headers;
                (reply::ACK, "")
            }
        };
        wire::option_reply(out, option, kind, &[why.as_bytes()]);
        Step::Answered
    }

    fn export_name(&mut self, exports: &Exports, name: &[u8], out: &mut Vec<u8>) -> Step {
        let Some(index) = exports.find(name) else { return Step::Close };
        let export = &exports.0[index];
        out.extend(export.store.length().to_be_bytes());
        let agreed = self.agreed(index);
        out.extend(flags(export, &agreed).to_be_bytes());
        if !self.no_zeroes {
            out.extend([0; 124]);
        }
        Step::Transmission(agreed)
    }

    fn agreed(&self, export: usize) -> Agreed {
        let contexts = self
            .contexts
            .as_ref()
            .filter(|(of, _)| *of == export)
            .map_or(Vec::new(), |(_, numbers)| numbers.clone());
        Agreed { export, headers: self.headers, contexts }
    }

    fn info(&mut self, exports: &Exports, option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        let mut refuse = |kind: u32, why: &str| {
            wire::option_reply(out, option, kind, &[why.as_bytes()]);
            Step::Answered
        };
        let Some((name, asked)) = info_request(data) else {
            return refuse(reply::ERR_INVALID, "ill-formed");
        };
        let Some(index) = exports.find(name) else {
            return refuse(reply::ERR_UNKNOWN, "no such export: ask for the list");
        };
        let export = &exports.0[index];
        let mut tell = |kind: u16, pieces: &[&[u8]]| {
            let kind = kind.to_be_bytes();
            let data: Vec<&[u8]> =
                std::iter::once(&kind[..]).chain(pieces.iter().copied()).collect();
            wire::option_reply(out, option, reply::INFO, &data);
        };
        let agreed = self.agreed(index);
        tell(
            info::EXPORT,
            &[&export.store.length().to_be_bytes(), &flags(export, &agreed).to_be_bytes()],
        );
        // Once, however often it is asked: an answer must not be much longer than the question.
        if asked.contains(&info::NAME) {
            tell(info::NAME, &[export.name.as_bytes()]);
        }
        if asked.contains(&info::DESCRIPTION) {
            tell(info::DESCRIPTION, &[export.description.as_bytes()]);
        }
        // Reported even if not asked for, as the protocol allows: a client that does not know it
        // ignores it.
        let sizes = export.sizes;
        tell(
            info::BLOCK_SIZE,
            &[
                &sizes.least.to_be_bytes(),
                &sizes.preferred.to_be_bytes(),
                &sizes.most.to_be_bytes(),
            ],
        );
        wire::option_reply(out, option, reply::ACK, &[]);
        if option == option::GO { Step::Transmission(agreed) } else { Step::Answered }
    }

    fn meta_context(
        &mut self,
        exports: &Exports,
        option: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Step {
        let mut refuse = |kind: u32, why: &str| {
            wire::option_reply(out, option, kind, &[why.as_bytes()]);
            Step::Answered
        };
        let set = option == option::SET_META_CONTEXT;
        if set {
            self.contexts = None;
        }
        if !self.headers.are_chunks() {
            return refuse(reply::ERR_INVALID, "STRUCTURED_REPLY or EXTENDED_HEADERS first");
        }
        let Some((name, queries)) = context_request(data) else {
            return refuse(reply::ERR_INVALID, "ill-formed");
        };
        if !queries.iter().all(|query| is_query(query)) {
            return refuse(reply::ERR_INVALID, "a query is NAMESPACE:NAME, of at most 4096 bytes");
        }
        let Some(index) = exports.find(name) else {
            return refuse(reply::ERR_UNKNOWN, "no such export: ask for the list");
        };
        let known = contexts(&exports.0[index]);
        let all = !set && queries.is_empty();
        let matches =
            |context: &str| all || queries.iter().any(|query| is_named(context, query, set));
        let chosen: Vec<(u32, &str)> =
            known.into_iter().filter(|(_, context)| matches(context)).collect();
        for (number, context) in &chosen {
            // The id means something only where the context is selected.
            let number = if set { *number } else { 0 };
            wire::option_reply(
                out,
                option,
                reply::META_CONTEXT,
                &[&number.to_be_bytes(), context.as_bytes()],
            );
        }
        wire::option_reply(out, option, reply::ACK, &[]);
        if set {
            self.contexts = Some((index, chosen.into_iter().map(|(number, _)| number).collect()));
        }
        Step::Answered
    }
}

/// The capabilities of an export for a client after this negotiation: `NBD_FLAG_*` of the
/// transmission phase.
fn flags(export: &Export, agreed: &Agreed) -> u16 {
    use transmission as t;
    // Every connection uses the same store, and a flush covers all of it.
    let mut flags = t::HAS_FLAGS | t::SEND_FLUSH | t::CAN_MULTI_CONN | t::SEND_CACHE;
    if export.read_only {
        flags |= t::READ_ONLY;
    } else {
        flags |= t::SEND_FUA | t::SEND_TRIM | t::SEND_WRITE_ZEROES | t::SEND_FAST_ZERO;
    }
    if agreed.headers.are_chunks() {
        flags |= t::SEND_DF;
    }
    // Not for a client that has selected no contexts (section "Transmission flags").
    if agreed.headers == Headers::Extended && !agreed.contexts.is_empty() {
        flags |= t::BLOCK_STATUS_PAYLOAD;
    }
    flags | if export.rotational { t::ROTATIONAL } else { 0 }
}

/// The contexts of an export, each with its id.
fn contexts(export: &Export) -> Vec<(u32, &'static str)> {
    let told = |why: Option<Why>| {
        why.is_none_or(|why| export.boundaries.iter().any(|boundary| boundary.why == why))
    };
    let told = (1..)
        .zip(CONTEXTS)
        .filter(|(_, (_, why))| told(*why))
        .map(|(number, (name, _))| (number, name));
    told.chain(export.overlay.as_ref().map(|_| (OVERLAY, OVERLAY_NAME))).collect()
}

/// True if it has the form of a query (section "Metadata querying"), whether its context is known
/// or not.
fn is_query(query: &[u8]) -> bool {
    query.len() <= wire::STRING && query.contains(&b':') && std::str::from_utf8(query).is_ok()
}

/// True if a query names a context. In a list, a namespace (`base:`) names all contexts in it.
fn is_named(context: &str, query: &[u8], set: bool) -> bool {
    query == context.as_bytes()
        || !set && query.ends_with(b":") && context.as_bytes().starts_with(query)
}

/// The export name and the kinds of information of `INFO` and `GO`; [`None`] if malformed.
fn info_request(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u16()?;
    let asked = (0..count).map(|_| fields.u16()).collect::<Option<_>>()?;
    fields.0.is_empty().then_some((name, asked))
}

/// The export name and the queries of `LIST_META_CONTEXT` and `SET_META_CONTEXT`; [`None`] if
/// malformed.
fn context_request(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u32()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(fields.string()?);
    }
    fields.0.is_empty().then_some((name, queries))
}

#[cfg(test)]
mod tests;
