//! What must hold of the network block device server whatever a client sends. Shared by the
//! ordinary tests and the fuzz targets.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{Grain, Why};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::block_sizes::LARGEST_REQUEST;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::tls::{Encryption, Tls};
use trueline_host::nbd::wire::{self, Headers, command, flag};
use trueline_serve::export::{BlockSizes, Export, Exports};
use trueline_serve::front::nbd::connection::{self, Service};
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::front::nbd::memory_budget::MemoryBudget;
use trueline_serve::front::nbd::negotiate::{Haggle, Step};

#[path = "nbd_model.rs"]
mod model;

use model::{Chunk, Model};

/// Bytes of every export.
const LENGTH: u64 = 64 << 10;

/// Two exports of [`LENGTH`] bytes of memory.
fn exports() -> Exports {
    let one = |name: &str, grain: Option<Grain>| Export {
        name: name.into(),
        description: "memory".into(),
        store: Arc::new(Memory::new(LENGTH).expect("64 KiB")),
        read_only: false,
        rotational: false,
        sizes: BlockSizes { least: 1, preferred: 4096, most: LARGEST_REQUEST },
        boundaries: grain
            .map(|grain| Boundary { why: Why::Physical, grain: Some(grain) })
            .into_iter()
            .collect(),
        errors: Arc::default(),
        overlay: None,
        refusals: Vec::new(),
    };
    Exports(vec![one("", Grain::new(4096, 512)), one("p1", None)])
}

/// What an input says, a few bytes at a time; zeros when it has said everything.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u32 {
        let bytes = self.bytes(4);
        bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// A string, and sometimes one whose length lies.
fn string(script: &mut Script<'_>, known: &[&[u8]]) -> Vec<u8> {
    let pick = usize::from(script.byte());
    let text = known.get(pick).copied().unwrap_or_else(|| script.bytes(pick));
    let length = if pick == 255 { script.number() } else { u32::try_from(text.len()).unwrap_or(0) };
    [&length.to_be_bytes(), text].concat()
}

/// Options as clients send them, and others, from what `data` says.
fn options(data: &[u8]) -> Vec<u8> {
    let mut script = Script(data);
    let mut out = u32::from(script.byte() % 5).to_be_bytes().to_vec();
    while !script.0.is_empty() {
        let number = u32::from(script.byte() % 16);
        let names: [&[u8]; 3] = [b"", b"p1", b"absent"];
        let data = match number {
            6 | 7 => {
                let name = string(&mut script, &names);
                let count = script.byte();
                let kinds = script.bytes(2 * usize::from(count % 8));
                [&name[..], &u16::from(count).to_be_bytes(), kinds].concat()
            }
            9 | 10 => {
                let mut data = string(&mut script, &names);
                let count = script.byte() % 6;
                data.extend(u32::from(count).to_be_bytes());
                for _ in 0..count {
                    data.extend(string(
                        &mut script,
                        &[b"base:", b"base:allocation", b"trueline:", b"trueline:grain", b"x-y:z"],
                    ));
                }
                data
            }
            14 => {
                out.extend(script.bytes(20));
                continue;
            }
            _ => {
                let count = usize::from(script.byte() % 8);
                script.bytes(count).to_vec()
            }
        };
        let length = if script.byte() == 255 {
            script.number()
        } else {
            u32::try_from(data.len()).unwrap_or(0)
        };
        out.extend(b"IHAVEOPT");
        out.extend(number.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend(data);
    }
    out
}

/// Options in pieces of any size: every answer has its form and is not much longer than what was
/// said.
pub fn haggle(data: &[u8]) {
    let exports = exports();
    let Some((&kind, data)) = data.split_first() else { return };
    let input = if kind & 1 == 0 { options(data) } else { data.to_vec() };
    let mut haggle =
        Haggle::new([Tls::None, Tls::Offered, Tls::Required][usize::from(kind >> 1) % 3]);
    let piece = 1 + usize::from(kind >> 3);
    let (mut from, mut to) = (0, 0);
    loop {
        let mut out = Vec::new();
        let (taken, step) = haggle.take(&exports, &input[from..to], &mut out);
        assert!(taken <= to - from);
        assert!(out.len() <= 2048 + 4 * taken, "{} bytes for {taken}", out.len());
        let old = !out.is_empty() && !out.starts_with(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
        if old {
            assert!(matches!(step, Step::Transmission(_)) && (out.len() == 10 || out.len() == 134));
        } else {
            option_replies(&out);
        }
        from += taken;
        match step {
            Step::Close | Step::CutOff(_) => return,
            Step::Transmission(agreed) => {
                assert!(
                    agreed.export < 2
                        && agreed.contexts.iter().all(|number| (1..=2).contains(number))
                );
                assert!(agreed.headers.are_chunks() || agreed.contexts.is_empty());
                return;
            }
            Step::StartTls => haggle = haggle.encrypted(),
            Step::Answered => assert!(taken > 0),
            Step::More => {
                assert!(taken == 0 && out.is_empty());
                if to == input.len() {
                    return;
                }
                to = (to + piece).min(input.len());
            }
        }
    }
}

/// Takes replies to options apart.
fn option_replies(mut out: &[u8]) {
    while !out.is_empty() {
        let (head, rest) = out.split_first_chunk::<20>().expect("a whole head");
        assert_eq!(head[..8], wire::OPTION_REPLY_MAGIC.to_be_bytes());
        let length = head[16..].iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
        out = rest.get(length..).expect("whole data");
    }
}

/// A client in memory: what it sends, one message after the answer to the one before, and what it
/// got.
struct Client {
    headers: Headers,
    messages: Vec<Vec<u8>>,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    message: usize,
    at: usize,
    /// What came since the handshake.
    got: Vec<u8>,
    /// Answers in `got`, each with its place.
    answers: Vec<Answer>,
    parsed: usize,
}

/// An answer: bytes of `got` from which and to which, and whether it is the whole of it.
struct Answer {
    from: usize,
    to: usize,
    last: bool,
}

impl Client {
    fn new(headers: Headers, messages: Vec<Vec<u8>>) -> Client {
        Client { headers, messages, state: Mutex::default(), answered: Condvar::new() }
    }
}

impl State {
    /// Takes apart what came; panics where it has no form.
    fn parse(&mut self, headers: Headers) {
        while let Some((length, last)) = Chunk::measure(&self.got[self.parsed..], headers) {
            self.answers.push(Answer { from: self.parsed, to: self.parsed + length, last });
            self.parsed += length;
        }
    }
}

impl Stream for Client {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock().expect("no panic");
        // The handshake, then the first request: two messages to which there is no answer yet.
        let due = |state: &State| {
            state.answers.iter().filter(|answer| answer.last).count() + 1 < state.message
        };
        while state.at == 0 && state.message < self.messages.len() && due(&state) {
            let waited =
                self.answered.wait_timeout(state, Duration::from_secs(600)).expect("no panic");
            assert!(!waited.1.timed_out(), "no answer");
            state = waited.0;
        }
        let Some(message) = self.messages.get(state.message) else { return Ok(0) };
        let count = into.len().min(message.len() - state.at);
        into[..count].copy_from_slice(&message[state.at..state.at + count]);
        state.at += count;
        if state.at == message.len() {
            (state.message, state.at) = (state.message + 1, 0);
        }
        Ok(count)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().expect("no panic");
        if state.message > 0 && !bytes.starts_with(&wire::OPTION_REPLY_MAGIC.to_be_bytes()) {
            state.got.extend(bytes);
            state.parse(self.headers);
            self.answered.notify_all();
        }
        Ok(())
    }

    fn set_patience(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn hang_up(&self) {}
}

/// Chunks or extended headers, both contexts, the default export.
fn hello(headers: Headers) -> Vec<u8> {
    let contexts = [
        &[0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 15][..],
        b"base:allocation",
        &[0, 0, 0, 14],
        b"trueline:grain",
    ]
    .concat();
    let option = |number: u32, data: &[u8]| {
        [
            b"IHAVEOPT",
            &number.to_be_bytes()[..],
            &u32::try_from(data.len()).unwrap_or(0).to_be_bytes(),
            data,
        ]
        .concat()
    };
    let first = if headers == Headers::Extended {
        wire::option::EXTENDED_HEADERS
    } else {
        wire::option::STRUCTURED_REPLY
    };
    [vec![0, 0, 0, 3], option(first, &[]), option(10, &contexts), option(7, &[0; 6])].concat()
}

/// A request as it is sent.
fn message(headers: Headers, request: &Request, payload: &[u8]) -> Vec<u8> {
    match request.compact().filter(|_| headers != Headers::Extended) {
        Some(head) => [&head[..], payload].concat(),
        None => [&request.extended()[..], payload].concat(),
    }
}

/// Requests of any form, each sent after the answer to the one before, against a model of the
/// bytes.
pub fn transmit(headers: Headers, data: &[u8]) {
    let requests = requests(headers, data);
    let messages = requests.iter().map(|(request, payload)| message(headers, request, payload));
    let client = Client::new(headers, std::iter::once(hello(headers)).chain(messages).collect());
    let stop = AtomicBool::new(false);
    serve(&client, &stop, &mut || {}).expect("nothing is wrong with the stream");
    let state = client.state.into_inner().expect("no panic");
    assert_eq!(state.parsed, state.got.len(), "a part of a reply");
    let mut model = Model::new(LENGTH, headers);
    let mut answers = state.answers.iter();
    for (request, payload) in &requests {
        let mut chunks = Vec::new();
        for answer in answers.by_ref() {
            chunks.push(Chunk::new(&state.got[answer.from..answer.to], headers));
            if answer.last {
                break;
            }
        }
        model.check(request, payload, &chunks);
    }
    assert!(answers.next().is_none(), "an answer without a request");
}

/// Serves one client until it is done or `stop`; `agreed` is done before its first request.
fn serve(client: &Client, stop: &AtomicBool, agreed: &mut dyn FnMut()) -> io::Result<()> {
    let exports = exports();
    let room = &MemoryBudget::new(1 << 30);
    let service = Service {
        exports: &exports,
        encryption: &Encryption::Off,
        limits: Limits::default(),
        room,
        stop,
    };
    connection::serve(client, &service, &mut |_| agreed())
}

/// Requests that `data` says, none of which ends the connection.
fn requests(headers: Headers, data: &[u8]) -> Vec<(Request, Vec<u8>)> {
    let extended = headers == Headers::Extended;
    let mut script = Script(data);
    let mut requests = Vec::new();
    while !script.0.is_empty() && requests.len() < 200 {
        let command = match u16::from(script.byte() % 10) {
            command::DISC => command::READ,
            command => command,
        };
        let how = script.byte();
        let mut flags = if how & 1 == 0 { 0 } else { u16::from(script.byte()) };
        if extended && command == command::WRITE && how & 9 != 9 {
            flags |= flag::PAYLOAD_LEN;
        }
        let carries = command == command::WRITE || extended && flags & flag::PAYLOAD_LEN != 0;
        let near = |number: u32| u64::from(number) % (LENGTH + 2048);
        let offset = if how & 6 == 6 {
            u64::from(script.number()) << (how >> 3)
        } else {
            near(script.number())
        };
        let mut length = if how & 6 == 4 && !carries {
            u64::from(script.number())
        } else {
            near(script.number()) >> (how >> 4)
        };
        if extended && how & 14 == 12 && !carries {
            length <<= how >> 3;
        }
        let payload = match command {
            command::BLOCK_STATUS if carries && how & 8 == 0 => named(&mut script),
            _ if carries => vec![script.byte(); usize::try_from(length).unwrap_or(0)],
            _ => Vec::new(),
        };
        let length = if carries { payload.len() as u64 } else { length };
        let cookie = u64::try_from(requests.len()).unwrap_or(0) << 8 | u64::from(how);
        requests.push((Request { flags, command, cookie, offset, length }, payload));
    }
    requests
}

/// A payload of `BLOCK_STATUS`: how many bytes, and a few contexts, of which some are none.
fn named(script: &mut Script<'_>) -> Vec<u8> {
    let length = u64::from(script.number()) % (LENGTH + 2048);
    let mut payload = length.to_be_bytes().to_vec();
    for _ in 0..script.byte() % 4 {
        payload.extend(u32::from(script.byte() % 4).to_be_bytes());
    }
    payload
}

/// Bytes of any kind behind the handshake: what is answered has a form, and it ends.
pub fn noise(headers: Headers, data: &[u8]) {
    let client = Client::new(headers, vec![hello(headers), data.to_vec()]);
    // A stream that ends in the middle of a request is an error of the connection.
    let _ = serve(&client, &AtomicBool::new(false), &mut || {});
    let state = client.state.into_inner().expect("no panic");
    assert_eq!(state.parsed, state.got.len(), "a part of a reply");
}

/// What is answered to a request that comes when the server has been told to end.
pub fn while_ending(headers: Headers, request: &Request) -> Vec<u8> {
    let client = Client::new(headers, vec![hello(headers), message(headers, request, &[])]);
    let stop = AtomicBool::new(false);
    serve(&client, &stop, &mut || stop.store(true, Ordering::Relaxed))
        .expect("nothing is wrong with the stream");
    client.state.into_inner().expect("no panic").got
}
