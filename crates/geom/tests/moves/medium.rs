//! A disk and a journal file with caches, which a kill leaves as they are and a loss of power
//! empties.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % below
    }
}

/// Writes since the last flush: the first byte and the bytes of each.
pub(crate) type Cached = Vec<(usize, Vec<u8>)>;

/// A medium whose requests fail after so many, and whose cache loses what was not flushed, in any
/// part, when the power fails.
pub(crate) struct Medium {
    pub(crate) power: Arc<AtomicU64>,
    /// On the medium, in the cache.
    pub(crate) bytes: Mutex<(Vec<u8>, Cached)>,
    /// Whether each byte was read.
    pub(crate) looked: Mutex<Vec<bool>>,
    /// First byte of every write, with what was left of the power then.
    pub(crate) writes: Mutex<Vec<(u64, u64)>>,
}

impl Medium {
    pub(crate) fn new(bytes: Vec<u8>, power: &Arc<AtomicU64>) -> Medium {
        let looked = Mutex::new(vec![false; bytes.len()]);
        let bytes = Mutex::new((bytes, Vec::new()));
        Medium { power: power.clone(), bytes, looked, writes: Mutex::default() }
    }

    /// A medium that never fails.
    pub(crate) fn steady(bytes: Vec<u8>) -> Medium {
        Medium::new(bytes, &Arc::new(AtomicU64::new(u64::MAX)))
    }

    fn spend(&self) -> Result<(), Errno> {
        self.power
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .map(|_| ())
            .map_err(|_| Errno::Io)
    }

    /// The bytes that a reader finds.
    pub(crate) fn seen(&self) -> Vec<u8> {
        let (mut bytes, cached) = self.bytes.lock().unwrap().clone();
        cached.iter().for_each(|(at, data)| bytes[*at..at + data.len()].copy_from_slice(data));
        bytes
    }

    /// The bytes when the power is back: of what was not flushed any sectors, the later over the
    /// earlier.
    pub(crate) fn after(&self, random: &mut Random) -> Vec<u8> {
        let (mut bytes, cached) = self.bytes.lock().unwrap().clone();
        let keep = random.next(4);
        for (at, data) in cached {
            for (nth, sector) in data.chunks(512).enumerate() {
                // All of it, nothing of it, most of it, half of it.
                if keep == 0 || keep > 1 && random.next(keep * 4 - 6) != 0 {
                    bytes[at + nth * 512..][..sector.len()].copy_from_slice(sector);
                }
            }
        }
        bytes
    }
}

impl Store for Medium {
    fn length(&self) -> u64 {
        self.bytes.lock().unwrap().0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let state = self.bytes.lock().unwrap();
        let from = usize::try_from(offset).unwrap();
        let to = from + buffer.len();
        buffer.copy_from_slice(state.0.get(from..to).ok_or(Errno::Range)?);
        for (at, data) in &state.1 {
            let (first, last) = (from.max(*at), to.min(at + data.len()));
            if first < last {
                buffer[first - from..last - from].copy_from_slice(&data[first - at..last - at]);
            }
        }
        self.looked.lock().unwrap()[from..to].fill(true);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.spend()?;
        self.writes.lock().unwrap().push((offset, self.power.load(Ordering::Relaxed)));
        assert!(offset + bytes.len() as u64 <= self.length());
        self.bytes.lock().unwrap().1.push((usize::try_from(offset).unwrap(), bytes.to_vec()));
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.spend()?;
        let (bytes, cached) = &mut *self.bytes.lock().unwrap();
        for (at, data) in cached.drain(..) {
            bytes[at..at + data.len()].copy_from_slice(&data);
        }
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}
