//! One client: asks as fast as it is answered, and looks at every byte it reads.

use super::ledger::{self, BLOCK, BLOCKS, Ledger};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{
    IHAVEOPT, SIMPLE_REPLY, SIMPLE_REPLY_MAGIC, command, error, flag, option,
};

/// Requests that wait for an answer.
pub(super) const DEPTH: usize = 32;
/// Once this file is there, clients ask nothing more.
pub(super) const ENOUGH: &str = "enough";

/// A sequence of numbers that look like none (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 33).expect("31 bits") % limit
    }
}

/// The task of a client.
pub(super) struct Order {
    /// Number of the client.
    pub(super) client: usize,
    pub(super) seed: u64,
    /// One request in so many is a flush, one write in so many has FUA.
    pub(super) sync: usize,
    /// True if the server may end first.
    pub(super) outlives: bool,
}

enum What {
    Read,
    Write {
        durable: bool,
    },
    /// The blocks, and their generations, that had been answered when it was sent.
    Flush(Vec<(usize, u32)>),
}

struct Asked {
    what: What,
    block: usize,
}

struct Client {
    stream: UnixStream,
    ledger: Ledger,
    order: Order,
    random: Random,
    asked: Vec<Option<Asked>>,
    busy: Vec<bool>,
    /// Writes answered since the last flush was sent.
    unflushed: Vec<(usize, u32)>,
}

/// Connects to the default export, with simple replies.
pub(super) fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.read_exact(&mut [0; 18])?;
    let hello = [
        &3_u32.to_be_bytes()[..],
        &IHAVEOPT.to_be_bytes(),
        &option::EXPORT_NAME.to_be_bytes(),
        &0_u32.to_be_bytes(),
    ]
    .concat();
    stream.write_all(&hello)?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

/// Does what it is told, in the current directory; says why it could not.
pub(super) fn run(order: Order) -> Result<(), String> {
    let ledger = Ledger::open(format!("ledger{}", order.client).as_ref());
    let stream = match connect("s".as_ref()) {
        Ok(stream) => stream,
        Err(_) if order.outlives => return Ok(()),
        Err(e) => return Err(format!("connect: {e}")),
    };
    let random = Random(order.seed);
    let asked = (0..DEPTH).map(|_| None).collect();
    let mut client = Client {
        stream,
        ledger,
        order,
        random,
        asked,
        busy: vec![false; BLOCKS],
        unflushed: Vec::new(),
    };
    client.go()
}

impl Client {
    fn go(&mut self) -> Result<(), String> {
        let (mut inbox, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let mut outbox = Vec::new();
            if !Path::new(ENOUGH).exists() {
                (0..DEPTH).for_each(|slot| self.ask(slot, &mut outbox));
            }
            if self.asked.iter().all(Option::is_none) {
                return Ok(());
            }
            let got =
                match self.stream.write_all(&outbox).and_then(|()| self.stream.read(&mut piece)) {
                    Ok(0) if self.order.outlives => return Ok(()),
                    Ok(0) => return Err("the server hung up".into()),
                    Ok(got) => got,
                    Err(e)
                        if self.order.outlives
                            && matches!(
                                e.kind(),
                                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                            ) =>
                    {
                        return Ok(());
                    }
                    Err(e) => return Err(e.to_string()),
                };
            inbox.extend(&piece[..got]);
            let (mut used, mut replies) = (0, 0);
            while let Some(length) = self.take(&inbox[used..])? {
                used += length;
                replies += 1;
            }
            self.ledger.count(replies);
            inbox.drain(..used);
        }
    }

    /// Puts a request into `outbox`, if the slot is free.
    fn ask(&mut self, slot: usize, outbox: &mut Vec<u8>) {
        if self.asked[slot].is_some() {
            return;
        }
        let is_flush = self.random.below(self.order.sync) == 0;
        let is_write = !is_flush && self.random.below(2) == 0;
        let durable = is_write && self.random.below(self.order.sync) == 0;
        let block = loop {
            let block = self.random.below(BLOCKS);
            // What is in doubt is only read: the server may still write what a client left there
            // that was killed.
            if !(self.busy[block] || is_write && self.ledger.blocks[block].in_doubt()) {
                break block;
            }
        };
        let number = ledger::number(self.order.client, block);
        let mut request = Request {
            flags: if durable { flag::FUA } else { 0 },
            command: command::READ,
            cookie: slot as u64,
            offset: (number * BLOCK) as u64,
            length: BLOCK as u64,
        };
        let what = if is_flush {
            request = Request { command: command::FLUSH, offset: 0, length: 0, ..request };
            What::Flush(std::mem::take(&mut self.unflushed))
        } else {
            self.busy[block] = true;
            if is_write { What::Write { durable } } else { What::Read }
        };
        if is_write {
            // Written down before it is sent.
            self.ledger.set(block, |b| b.sent += 1);
            let generation = self.ledger.blocks[block].sent;
            request.command =
                if ledger::is_zeros(generation) { command::WRITE_ZEROES } else { command::WRITE };
            outbox.extend(request.compact().expect("a block is short"));
            if !ledger::is_zeros(generation) {
                outbox.extend(ledger::content(number, generation));
            }
        } else {
            outbox.extend(request.compact().expect("a block is short"));
        }
        self.asked[slot] = Some(Asked { what, block });
    }

    /// Takes the reply at the beginning of `bytes`; its length, or [`None`] if it is not there as a
    /// whole.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some(head) = bytes.first_chunk::<SIMPLE_REPLY>() else { return Ok(None) };
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let slot = usize::try_from(word(12)).expect("a slot");
        if word(0) != SIMPLE_REPLY_MAGIC
            || word(8) != 0
            || self.asked.get(slot).is_none_or(Option::is_none)
        {
            return Err(format!("a reply to nothing: {head:x?}"));
        }
        if word(4) == error::ESHUTDOWN && self.order.outlives {
            // It was not done, and the client goes on to ask: that keeps no server.
            if let Some(Asked { what, block }) = self.asked[slot].take() {
                if matches!(what, What::Write { .. }) {
                    self.ledger.set(block, |b| b.sent = b.answered);
                }
                self.busy[block] &= matches!(what, What::Flush(_));
            }
            return Ok(Some(SIMPLE_REPLY));
        }
        if word(4) != 0 {
            return Err(format!("error {} of the request in slot {slot}", word(4)));
        }
        let is_read = matches!(self.asked[slot], Some(Asked { what: What::Read, .. }));
        let length = SIMPLE_REPLY + if is_read { BLOCK } else { 0 };
        let Some(data) = bytes.get(SIMPLE_REPLY..length) else { return Ok(None) };
        let Some(Asked { what, block }) = self.asked[slot].take() else { return Ok(None) };
        match what {
            What::Read => {
                let now = self.ledger.blocks[block];
                let number = ledger::number(self.order.client, block);
                if !ledger::holds(data, number, now.answered, now.sent) {
                    return Err(format!(
                        "block {number} is not of generation {} to {}: {data:x?}",
                        now.answered, now.sent
                    ));
                }
            }
            What::Write { durable } => {
                self.ledger.set(block, |b| {
                    b.answered = b.sent;
                    b.durable = if durable { b.sent } else { b.durable };
                });
                self.unflushed.push((block, self.ledger.blocks[block].sent));
            }
            What::Flush(blocks) => {
                for (block, generation) in blocks {
                    self.ledger.set(block, |b| b.durable = b.durable.max(generation));
                }
                return Ok(Some(length));
            }
        }
        self.busy[block] = false;
        Ok(Some(length))
    }
}
