//! The client's side of the handshake: the server's greeting, TLS if it is wanted, and the options.

use super::Session;
use super::head::PendingRequest;
use super::timed::Timed;
use crate::nbd::client::ExportInfo;
use crate::nbd::client::patience::Patience;
use crate::nbd::contexts::CONTEXTS;
use crate::nbd::socket::Client as Socket;
use crate::nbd::stream::Stream;
use crate::nbd::tls::{Credentials, Encrypted};
use crate::nbd::wire::{
    Fields, Headers, IHAVEOPT, NBDMAGIC, OPTION_REPLY_MAGIC, handshake, info, option, reply,
};
use std::time::Instant;
use std::{fmt, io};

/// The longest answer to an option in bytes: a name or a description.
const LONGEST: u32 = 64 << 10;
/// The most answers to one option: the server decides how many there are.
const ANSWERS: usize = 256;

/// The requirements on a connection.
pub(in crate::nbd) struct Wanted<'a> {
    /// The name of the export.
    pub(in crate::nbd) export: &'a str,
    /// Credentials if TLS is required; [`None`] without TLS.
    pub(in crate::nbd) credentials: Option<&'a Credentials>,
    /// The deadlines of the server.
    pub(in crate::nbd) patience: Patience,
}

/// The end of a handshake that failed.
#[derive(Debug)]
pub(in crate::nbd) enum HandshakeError {
    /// The connection failed or timed out.
    Io(io::Error),
    /// The server does not speak the protocol.
    Protocol(&'static str),
    /// The server refused an option: its error type and message.
    Server(u32, String),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> HandshakeError {
        HandshakeError::Io(error)
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the server hung up")
            }
            HandshakeError::Io(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                f.write_str("the server takes too long to answer")
            }
            HandshakeError::Io(error) => write!(f, "{error}"),
            HandshakeError::Protocol(what) => {
                write!(f, "not an NBD server that this client understands: {what}")
            }
            HandshakeError::Server(reply::ERR_UNKNOWN, _) => f.write_str(
                "the server has no export of that name: nbdinfo --list names those it has",
            ),
            HandshakeError::Server(reply::ERR_TLS_REQD, _) => f.write_str(
                "the server requires TLS: write nbds: instead of nbd:, and ?tls-certificates=DIR at the end",
            ),
            HandshakeError::Server(_, why) if !why.is_empty() => {
                write!(f, "the server refuses: {why}")
            }
            HandshakeError::Server(number, _) => {
                write!(f, "the server refuses (error {})", number & !(1 << 31))
            }
        }
    }
}

/// An answer to an option.
struct Answer {
    kind: u32,
    data: Vec<u8>,
}

/// Exchanges greetings, and starts TLS if it is required: with a server without TLS the handshake
/// ends there.
fn greet(socket: Socket, wanted: &Wanted<'_>) -> Result<Timed, HandshakeError> {
    let within = wanted.patience.handshake;
    let end = Instant::now() + within;
    socket.set_patience(Some(within))?;
    socket.set_patience_to_send(wanted.patience.request)?;
    let line = Timed::new(Box::new(socket), end);
    let hello = line.fixed::<18>()?;
    let mut fields = Fields(&hello);
    if fields.u64() != Some(NBDMAGIC) || fields.u64() != Some(IHAVEOPT) {
        return Err(HandshakeError::Protocol("its first bytes are not a server's greeting"));
    }
    let flags = fields.u16().unwrap_or(0) & (handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
    if flags & handshake::FIXED_NEWSTYLE == 0 {
        return Err(HandshakeError::Protocol("its protocol is older than fixed newstyle"));
    }
    line.send(&u32::from(flags).to_be_bytes())?;
    let Some(credentials) = wanted.credentials else { return Ok(line) };
    line.option(option::STARTTLS, &[])?;
    let Answer { kind, data } = line.answer(option::STARTTLS)?;
    if kind != reply::ACK {
        let why = String::from_utf8_lossy(&data).into_owned();
        return Err(HandshakeError::Server(
            kind,
            if why.is_empty() { "it has no TLS".into() } else { why },
        ));
    }
    let line = line.through(|stream| Encrypted::connect(stream, credentials, end))?;
    line.set_patience(within)?;
    Ok(line)
}

impl Timed {
    fn option(&self, option: u32, data: &[u8]) -> io::Result<()> {
        let length = u32::try_from(data.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let head =
            [&IHAVEOPT.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), data]
                .concat();
        self.send(&head)
    }

    fn answer(&self, option: u32) -> Result<Answer, HandshakeError> {
        let head = self.fixed::<20>()?;
        let mut fields = Fields(&head);
        let (magic, of, kind, length) = (fields.u64(), fields.u32(), fields.u32(), fields.u32());
        let (Some(OPTION_REPLY_MAGIC), true, Some(kind), Some(length)) =
            (magic, of == Some(option), kind, length)
        else {
            return Err(HandshakeError::Protocol("it answers another option"));
        };
        if length > LONGEST {
            return Err(HandshakeError::Protocol("an answer is too long"));
        }
        let mut data = vec![0; usize::try_from(length).unwrap_or(0)];
        self.receive(&mut data)?;
        Ok(Answer { kind, data })
    }
}

impl Session {
    /// Negotiates a session: headers, contexts, and the export.
    pub(in crate::nbd) fn begin(
        socket: Socket,
        wanted: &Wanted<'_>,
    ) -> Result<Session, HandshakeError> {
        let line = greet(socket, wanted)?;
        let told = ExportInfo { length: 0, flags: 0, sizes: None, extended: false };
        let patience = wanted.patience;
        let (headers, contexts, asked) =
            (Headers::Simple, [None; CONTEXTS.len()], PendingRequest::default());
        let mut session = Session { line, patience, told, headers, contexts, asked, broken: true };
        for (number, headers) in [
            (option::EXTENDED_HEADERS, Headers::Extended),
            (option::STRUCTURED_REPLY, Headers::Structured),
        ] {
            if session.headers == Headers::Simple && session.is_granted(number, &[])? {
                session.headers = headers;
            }
        }
        session.told.extended = session.headers == Headers::Extended;
        if session.headers.are_chunks() {
            session.set_contexts(wanted.export)?;
        }
        session.go(wanted.export)?;
        session.line.set_patience(patience.request)?;
        session.broken = false;
        Ok(session)
    }

    /// True if the server grants an option whose only answer is an acknowledgement.
    fn is_granted(&self, option: u32, data: &[u8]) -> Result<bool, HandshakeError> {
        self.line.option(option, data)?;
        Ok(self.line.answer(option)?.kind == reply::ACK)
    }

    fn set_contexts(&mut self, export: &str) -> Result<(), HandshakeError> {
        let string = |text: &str| {
            [&u32::try_from(text.len()).unwrap_or(0).to_be_bytes()[..], text.as_bytes()].concat()
        };
        let count = u32::try_from(CONTEXTS.len()).unwrap_or(0).to_be_bytes().to_vec();
        let data: Vec<Vec<u8>> = [string(export), count]
            .into_iter()
            .chain(CONTEXTS.iter().map(|(context, _)| string(context)))
            .collect();
        self.line.option(option::SET_META_CONTEXT, &data.concat())?;
        for _ in 0..ANSWERS {
            let Answer { kind, data } = self.line.answer(option::SET_META_CONTEXT)?;
            if kind != reply::META_CONTEXT {
                // A server without contexts answers with an acknowledgement or an error, and
                // nothing more.
                return Ok(());
            }
            let mut fields = Fields(&data);
            let number = fields.u32();
            for (own, (context, _)) in self.contexts.iter_mut().zip(CONTEXTS) {
                *own = if fields.0 == context.as_bytes() { number } else { *own };
            }
        }
        Err(HandshakeError::Protocol("it names metadata contexts without end"))
    }

    fn go(&mut self, export: &str) -> Result<(), HandshakeError> {
        let length = u32::try_from(export.len()).unwrap_or(0).to_be_bytes();
        let data =
            [&length[..], export.as_bytes(), &1u16.to_be_bytes(), &info::BLOCK_SIZE.to_be_bytes()]
                .concat();
        self.line.option(option::GO, &data)?;
        let mut told = None;
        for _ in 0..ANSWERS {
            let Answer { kind, data } = self.line.answer(option::GO)?;
            let mut fields = Fields(&data);
            match kind {
                reply::INFO => match (fields.u16(), fields.u64(), fields.u16()) {
                    (Some(info::EXPORT), Some(length), Some(flags)) => told = Some((length, flags)),
                    (Some(info::BLOCK_SIZE), ..) => {
                        self.told.sizes =
                            Some(sizes(&data[2..]).ok_or(HandshakeError::Protocol(
                                "its block sizes are impossible",
                            ))?)
                    }
                    _ => {}
                },
                reply::ACK => {
                    let (length, flags) = told.ok_or(HandshakeError::Protocol(
                        "it does not give the size of the export",
                    ))?;
                    // The largest file offset: bytes beyond it could not be addressed.
                    if length > i64::MAX.unsigned_abs() {
                        return Err(HandshakeError::Protocol(
                            "the size of the export is impossible",
                        ));
                    }
                    (self.told.length, self.told.flags) = (length, flags);
                    return Ok(());
                }
                refused => {
                    return Err(HandshakeError::Server(
                        refused,
                        String::from_utf8_lossy(&data).into_owned(),
                    ));
                }
            }
        }
        Err(HandshakeError::Protocol("it describes the export without end"))
    }
}

/// The block sizes of the answer, if valid (section "Block size constraints").
fn sizes(data: &[u8]) -> Option<[u32; 3]> {
    let mut fields = Fields(data);
    let sizes = [fields.u32()?, fields.u32()?, fields.u32()?];
    let [least, preferred, most] = sizes;
    let possible = least.is_power_of_two()
        && least <= 64 << 10
        && preferred.is_power_of_two()
        && preferred >= least
        && most >= least;
    possible.then_some(sizes)
}
