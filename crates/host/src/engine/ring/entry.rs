//! An entry of the submission queue, as the kernel reads it (`struct io_uring_sqe`,
//! io_uring_enter(2)).
//!
//! The builders of the io-uring crate make one kind of request each. Where the kind is only known
//! at run time, their entries meet in memory and are copied from there, which stalls the processor;
//! one structure goes from registers into the queue.

use super::Flight;
use crate::disk::buffers::Buffers;
use crate::engine::{Op, Transfer};
use io_uring::types::FsyncFlags;
use io_uring::{opcode, squeue};
use rustix::io::ReadWriteFlags;

/// `struct io_uring_sqe` of a read, a write or an fsync.
#[repr(C)]
struct SubmissionEntry {
    code: u8,
    flags: u8,
    priority: u16,
    file: u32,
    offset: u64,
    address: u64,
    length: u32,
    /// Flags of the request, not of the entry: `RWF_DSYNC`, `IORING_FSYNC_DATASYNC`.
    request_flags: u32,
    tag: u64,
    /// The index of the registered memory, of which there is one.
    memory: u16,
    personality: u16,
    unused: [u32; 5],
}

/// The entry for the rest of the transfer in `slot`, for a ring with registered memory or not.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "64 bytes that are built where they are copied into the queue"
)]
pub(super) fn entry<Tag>(
    flight: &Flight<Tag>,
    slot: u32,
    registered: bool,
    buffers: &Buffers,
) -> squeue::Entry {
    let &Flight { transfer: Transfer { op, file, offset, length, fua, .. }, moved } = flight;
    let code = match (op, registered) {
        (Op::Read, true) => opcode::ReadFixed::CODE,
        (Op::Read, false) => opcode::Read::CODE,
        (Op::Write, true) => opcode::WriteFixed::CODE,
        (Op::Write, false) => opcode::Write::CODE,
        (Op::Flush, _) => opcode::Fsync::CODE,
    };
    let request_flags = match op {
        Op::Write if fua => ReadWriteFlags::DSYNC.bits(),
        Op::Flush => FsyncFlags::DATASYNC.bits(),
        _ => 0,
    };
    // A flush is of the whole file.
    let (offset, address, length) = match op {
        Op::Flush => (0, 0, 0),
        _ => (
            offset + u64::from(moved),
            buffers.address(slot as usize, moved) as u64,
            length - moved,
        ),
    };
    #[allow(
        clippy::cast_possible_truncation,
        reason = "`check` found the file, and a ring has far fewer than that many"
    )]
    let index = file as u32;
    let flags = squeue::Flags::FIXED_FILE.bits();
    let tag = u64::from(slot);
    let unused = [0; 5];
    let entry = SubmissionEntry {
        code,
        flags,
        priority: 0,
        file: index,
        offset,
        address,
        length,
        request_flags,
        tag,
        memory: 0,
        personality: 0,
        unused,
    };
    // SAFETY: `squeue::Entry` is `struct io_uring_sqe` (`repr(C)`), 64 bytes of integers, as is
    // `SubmissionEntry`, which has no padding; the sizes are compared by the compiler, and the
    // fields by the test below.
    unsafe { std::mem::transmute::<SubmissionEntry, squeue::Entry>(entry) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::types::Fixed;

    /// The bytes of an entry, as the kernel gets them.
    fn bytes(entry: squeue::Entry) -> [u8; 64] {
        // SAFETY: 64 bytes without padding, of which each is initialised.
        unsafe { std::mem::transmute(entry) }
    }

    #[test]
    fn they_are_those_of_the_library() {
        let buffers = Buffers::new(4, 8192).unwrap();
        let (file, offset, length, slot, moved) = (3, 0x1234_5678_9abc_d000, 8192, 2, 512);
        let (fixed, memory, rest) = (Fixed(3), buffers.address(2, 512), length - moved);
        let dsync = i32::try_from(ReadWriteFlags::DSYNC.bits()).unwrap();
        for (op, registered, fua) in [Op::Read, Op::Write, Op::Flush].into_iter().flat_map(|op| {
            [(op, false, false), (op, false, true), (op, true, false), (op, true, true)]
        }) {
            let flags = if fua { dsync } else { 0 };
            let library = match (op, registered) {
                (Op::Read, true) => {
                    opcode::ReadFixed::new(fixed, memory, rest, 0).offset(offset + 512).build()
                }
                (Op::Read, false) => {
                    opcode::Read::new(fixed, memory, rest).offset(offset + 512).build()
                }
                (Op::Write, true) => opcode::WriteFixed::new(fixed, memory, rest, 0)
                    .offset(offset + 512)
                    .rw_flags(flags)
                    .build(),
                (Op::Write, false) => opcode::Write::new(fixed, memory, rest)
                    .offset(offset + 512)
                    .rw_flags(flags)
                    .build(),
                (Op::Flush, _) => opcode::Fsync::new(fixed).flags(FsyncFlags::DATASYNC).build(),
            };
            let transfer = Transfer { tag: 5, op, file, offset, length, fua };
            let own = entry(&Flight { transfer, moved }, slot, registered, &buffers);
            assert_eq!(
                bytes(own),
                bytes(library.user_data(u64::from(slot))),
                "{op:?}, registered {registered}, {fua}"
            );
        }
    }
}
