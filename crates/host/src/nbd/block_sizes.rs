//! Block size constraints of NBD in bytes, of servers and clients alike: the largest request first.
//!
//! # Sources
//! `doc/proto.md` of NetworkBlockDevice/nbd, section "Block size constraints".

/// The largest request: the most bytes of a read or write if nothing else was agreed.
pub const LARGEST_REQUEST: u32 = 32 << 20;
/// The smallest preferred block size.
pub const LEAST_PREFERRED: u64 = 512;
/// The largest preferred block size.
pub const MOST_PREFERRED: u64 = 32 << 20;
/// The largest minimum block size.
pub const MOST_LEAST: u64 = 64 << 10;
