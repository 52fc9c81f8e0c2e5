//! Memory that all threads may read and write at any time without waiting: the bytes of a disk,
//! whose users decide what concurrent writes to the same place mean.
//!
//! The program's own accesses are word by word, each word atomically. The kernel copies from and to
//! the same bytes.
//!
//! Long writes bypass the caches. A disk is larger than they are, so a line to be overwritten would
//! first be fetched from memory, and would evict the buffer that it is copied from. Measured in
//! docs/decisions/0017.
//!
//! # Sources
//! Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, section 10.4.6.2
//! "Caching of Temporal vs. Non-Temporal Data"; volume 3, section 9.1.1 "Guaranteed Atomic
//! Operations".

#![allow(
    unsafe_code,
    reason = "one memory seen as words and as bytes, written past the caches, and given back to \
        the kernel"
)]

use crate::disk::buffers::Buffers;
use rustix::io;
use rustix::mm::Advice;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Zeroed memory that takes room only where it is written.
#[derive(Debug)]
pub(crate) struct Shared {
    map: Buffers,
}

const WORD: usize = size_of::<u64>();
/// The unit of a non-temporal write in bytes: a cache line.
const LINE: usize = 64;
/// The least length in bytes of a write past the caches: fewer bytes may well be read again from a
/// cache.
const MANY: usize = 16 << 10;

impl Shared {
    /// A mapping of at least `length` zero bytes.
    pub(crate) fn new(length: u64) -> io::Result<Shared> {
        Ok(Shared { map: Buffers::zeros(length)? })
    }

    /// True if `length` bytes from `at` are all inside.
    fn holds(&self, at: usize, length: usize) -> bool {
        at.checked_add(length).is_some_and(|end| end <= self.map.len())
    }

    /// The address of byte `at`, which must be inside.
    fn address(&self, at: usize) -> *mut u8 {
        self.map.address(0, 0).wrapping_add(at)
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is whole pages, initialised when it was made, and lives as long as
        // `self`. Rust reads and writes it through these words alone: the bytes of `Buffers` are
        // never asked for.
        unsafe { std::slice::from_raw_parts(self.address(0).cast(), self.map.len() / WORD) }
    }

    /// The bytes from `at` on, `length` of them, for the kernel.
    pub(crate) fn bytes(&self, at: usize, length: usize) -> &[AtomicU8] {
        assert!(self.holds(at, length), "{length} bytes at {at} of {}", self.map.len());
        // SAFETY: inside the mapping, as above. Every access by Rust is atomic, and the kernel's
        // are no accesses of Rust.
        unsafe { std::slice::from_raw_parts(self.address(at).cast(), length) }
    }

    /// Fills `into` with the bytes from `at` on.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) {
        let (head, rest) = into.split_at_mut(into.len().min(to_next(at, WORD)));
        self.look(at, head);
        let at = at + head.len();
        let (whole, tail) = rest.as_chunks_mut::<WORD>();
        for (eight, word) in whole.iter_mut().zip(&self.words()[at / WORD..]) {
            *eight = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        self.look(at + whole.as_flattened().len(), tail);
    }

    /// Fills `into`, which is part of one word.
    fn look(&self, at: usize, into: &mut [u8]) {
        if !into.is_empty() {
            let word = self.words()[at / WORD].load(Ordering::Relaxed).to_ne_bytes();
            into.copy_from_slice(&word[at % WORD..][..into.len()]);
        }
    }

    /// Writes `bytes` from byte `at` on.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        if bytes.len() < MANY {
            return self.put(at, bytes);
        }
        let (head, rest) = bytes.split_at(to_next(at, LINE));
        let (lines, tail) = rest.as_chunks();
        self.put(at, head);
        let at = at + head.len();
        self.put_lines(at, lines);
        self.put(at + lines.as_flattened().len(), tail);
    }

    /// Writes whole lines past the caches from byte `at`, the start of a line. All threads see them
    /// when it returns.
    #[cfg(target_arch = "x86_64")]
    fn put_lines(&self, at: usize, lines: &[[u8; LINE]]) {
        assert!(
            self.holds(at, lines.as_flattened().len()) && to_next(at, LINE) == 0,
            "{} lines at {at}",
            lines.len()
        );
        if lines.is_empty() {
            return;
        }
        // SAFETY: all of it is inside the mapping, and begins where a line does, as the mapping
        // begins with a page. SSE2 is in every x86-64. These are no accesses of Rust, as the
        // kernel's are none; each stores 16 bytes, in words that are each stored in one step, and
        // the fence orders them before whatever this thread does next, as atomic stores that others
        // synchronise with do not.
        unsafe {
            std::arch::asm!(
                "2:",
                "movdqu {a}, [{from}]",
                "movdqu {b}, [{from} + 16]",
                "movdqu {c}, [{from} + 32]",
                "movdqu {d}, [{from} + 48]",
                "movntdq [{to}], {a}",
                "movntdq [{to} + 16], {b}",
                "movntdq [{to} + 32], {c}",
                "movntdq [{to} + 48], {d}",
                "add {from}, 64",
                "add {to}, 64",
                "dec {left}",
                "jnz 2b",
                "sfence",
                from = inout(reg) lines.as_ptr() => _,
                to = inout(reg) self.address(at) => _,
                left = inout(reg) lines.len() => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        }
    }

    /// Writes lines word by word: other processors have no such store, or do not specify it.
    #[cfg(not(target_arch = "x86_64"))]
    fn put_lines(&self, at: usize, lines: &[[u8; LINE]]) {
        self.put(at, lines.as_flattened());
    }

    /// Writes `bytes` from byte `at` on, word by word.
    fn put(&self, at: usize, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(to_next(at, WORD)));
        self.change(at, head);
        let at = at + head.len();
        let (whole, tail) = rest.as_chunks::<WORD>();
        for (eight, word) in whole.iter().zip(&self.words()[at / WORD..]) {
            word.store(u64::from_ne_bytes(*eight), Ordering::Relaxed);
        }
        self.change(at + whole.as_flattened().len(), tail);
    }

    /// Writes `bytes`, which are part of one word. Concurrent writes to the rest of the word are
    /// kept.
    fn change(&self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let changed = |old: u64| {
            let mut word = old.to_ne_bytes();
            word[at % WORD..][..bytes.len()].copy_from_slice(bytes);
            Some(u64::from_ne_bytes(word))
        };
        // The closure always returns a value, so this cannot fail.
        let _ = self.words()[at / WORD].fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }

    /// Zeros whole pages by freeing their memory.
    pub(crate) fn give_back(&self, pages: Range<usize>) -> io::Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        assert!(self.holds(pages.start, pages.len()), "{pages:?} of {}", self.map.len());
        // SAFETY: inside a private anonymous mapping, whose pages read as zeros afterwards; all
        // other accesses are atomic.
        unsafe {
            rustix::mm::madvise(
                self.address(pages.start).cast(),
                pages.len(),
                Advice::LinuxDontNeed,
            )
        }
    }
}

/// The bytes from `at` to the next multiple of `size`, a power of two: 0 at one.
fn to_next(at: usize, size: usize) -> usize {
    at.wrapping_neg() % size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every beginning and length around words, beside bytes that stay.
    #[test]
    fn any_bytes_are_written_and_read() {
        let shared = Shared::new(4096).unwrap();
        let mut model = vec![0; 64];
        for at in 0..20 {
            for length in 0..30 {
                let bytes: Vec<u8> =
                    (0..length).map(|i| u8::try_from(at * 7 + i * 3 + 1).unwrap()).collect();
                shared.write(at, &bytes);
                model[at..at + length].copy_from_slice(&bytes);
                let mut all = vec![0xee; 64];
                shared.read(0, &mut all);
                assert_eq!(all, model, "{length} bytes at {at}");
                let mut part = vec![0xee; length];
                shared.read(at, &mut part);
                assert_eq!(part, bytes, "{length} bytes at {at}");
            }
        }
        shared.write(4096, &[]);
        shared.read(4096, &mut []);
        let lent: Vec<u8> =
            shared.bytes(3, 40).iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        assert_eq!(lent, model[3..43]);
    }

    /// Every beginning and end around lines, written past the caches, beside bytes that stay.
    #[test]
    fn many_bytes_are_written_and_nothing_else() {
        let room = MANY + 4 * LINE;
        let shared = Shared::new(room as u64).unwrap();
        let bytes: Vec<u8> =
            (0..room).map(|i| u8::try_from((i * 31 + i / 251) % 255).unwrap()).collect();
        for at in [0, 1, 7, 8, 9, LINE - 1, LINE, LINE + 1] {
            for length in (MANY - 1..MANY + 1).chain(MANY + 50..MANY + LINE + 9) {
                shared.put(0, &vec![0xff; room]);
                shared.write(at, &bytes[..length]);
                let mut all = vec![0; room];
                shared.read(0, &mut all);
                assert!(all[at..at + length] == bytes[..length], "{length} bytes at {at}");
                let around = all[..at].iter().chain(&all[at + length..]);
                assert!(
                    around.into_iter().all(|&byte| byte == 0xff),
                    "beside {length} bytes at {at}"
                );
            }
        }
    }

    /// Two that write beside each other within one word lose nothing of each other's.
    #[test]
    fn neighbours_in_a_word_do_not_disturb_each_other() {
        let shared = Shared::new(4096).unwrap();
        std::thread::scope(|scope| {
            for place in [5, 7] {
                let shared = &shared;
                scope.spawn(move || {
                    for round in 0..20_000_u32 {
                        let bytes = [round.to_ne_bytes()[0], round.to_ne_bytes()[1]];
                        shared.write(place, &bytes);
                        let mut back = [0; 2];
                        shared.read(place, &mut back);
                        assert_eq!(back, bytes);
                    }
                });
            }
        });
    }

    #[test]
    fn pages_that_are_given_back_are_zero() {
        let shared = Shared::new(16384).unwrap();
        shared.write(0, &[7; 16384]);
        shared.give_back(4096..12288).unwrap();
        shared.give_back(4096..4096).unwrap();
        let mut all = vec![9; 16384];
        shared.read(0, &mut all);
        let expected = |at: usize| if (4096..12288).contains(&at) { 0 } else { 7 };
        assert!(all.iter().enumerate().all(|(at, &byte)| byte == expected(at)));
    }
}
