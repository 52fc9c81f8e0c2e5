//! The dies, and their channels. A die is a server, first come first served. A channel has a
//! backlog of bytes asked for: no transfer ends before the channel could have carried everything
//! asked for before it.

use crate::model::ssd::Parameters;
use crate::time::{NS, Ps, S, span};

/// Dies and channels, each with the time until which it is busy.
#[derive(Debug)]
pub(super) struct Flash {
    dies: Vec<Ps>,
    channels: Vec<Ps>,
    read: Ps,
    program: Ps,
    erase: Ps,
    /// Picoseconds for a byte on a channel.
    per_byte: f64,
    page: u64,
    /// Pages that a die programs together.
    pub(super) planes: u64,
    /// The time until which any die is busy.
    pub(super) busy: Ps,
}

impl Flash {
    pub(super) fn new(parameters: &Parameters) -> Flash {
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let per_byte = S as f64 / parameters.channel_rate_bytes as f64;
        Flash {
            dies: vec![0; parameters.dies as usize],
            channels: vec![0; parameters.channels.min(parameters.dies) as usize],
            read: span(parameters.read_ns, NS),
            program: span(parameters.program_ns, NS),
            erase: span(parameters.erase_ns, NS),
            per_byte,
            page: parameters.page_bytes,
            planes: u64::from(parameters.planes),
            busy: 0,
        }
    }

    /// The die of the `nth` unit or page: they are striped over the dies.
    pub(super) fn home(&self, nth: u64) -> usize {
        usize::try_from(nth % self.dies.len() as u64).unwrap_or(0)
    }

    /// The die that is free first, with the time.
    pub(super) fn first_free(&self) -> (usize, Ps) {
        self.dies.iter().copied().enumerate().min_by_key(|&(_, free)| free).unwrap_or((0, 0))
    }

    /// The time at which a die is free.
    pub(super) fn free(&self, die: usize) -> Ps {
        self.dies[die]
    }

    /// Reads `bytes` of one page. Returns the time at which they have arrived.
    pub(super) fn read(&mut self, now: Ps, die: usize, bytes: u64) -> Ps {
        let begin = self.dies[die].max(now) + self.read;
        let end = self.carry(now, die, begin, bytes);
        self.busy_until(die, end)
    }

    /// Programs at most as many pages as there are planes. Returns the time of completion.
    pub(super) fn program(&mut self, now: Ps, die: usize, pages: u64) -> Ps {
        let begin = self.dies[die].max(now);
        let sent = self.carry(now, die, begin, pages * self.page);
        self.busy_until(die, sent + self.program)
    }

    /// Copies pages inside a die. Returns the time of completion.
    pub(super) fn copy(&mut self, now: Ps, die: usize, pages: u64) -> Ps {
        let end =
            self.dies[die].max(now) + pages.div_ceil(self.planes) * (self.read + self.program);
        self.busy_until(die, end)
    }

    /// Keeps a die busy for `time`. Returns the time of completion.
    pub(super) fn occupy(&mut self, now: Ps, die: usize, time: Ps) -> Ps {
        let end = self.dies[die].max(now) + time;
        self.busy_until(die, end)
    }

    /// Erases a block of each plane of a die.
    pub(super) fn erase(&mut self, now: Ps, die: usize) {
        let end = self.dies[die].max(now) + self.erase;
        self.busy_until(die, end);
    }

    fn busy_until(&mut self, die: usize, end: Ps) -> Ps {
        self.dies[die] = end;
        self.busy = self.busy.max(end);
        end
    }

    /// Carries `bytes` to or from a die, asked for at `now` and started at `begin` or later.
    /// Returns the end.
    fn carry(&mut self, now: Ps, die: usize, begin: Ps, bytes: u64) -> Ps {
        #[allow(clippy::cast_precision_loss, reason = "bytes of a few pages")]
        let transfer = span(bytes as f64 * self.per_byte, 1);
        let channel = die % self.channels.len();
        let channel = &mut self.channels[channel];
        *channel = (*channel).max(now) + transfer;
        (*channel).max(begin + transfer)
    }
}
