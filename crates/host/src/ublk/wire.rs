//! The protocol's numbers, and the forms of its messages, in the byte order of this machine.

/// What goes to `/dev/ublk-control`: `UBLK_U_CMD_*`.
pub mod command {
    use super::{CONTROL, encoded, reading};

    /// Make a device.
    pub const ADD_DEV: u32 = encoded(0x04, CONTROL);
    /// What a device was made with.
    pub const GET_DEV_INFO: u32 = reading(0x02);
    /// Take a device away, and wait until nobody has it open.
    pub const DEL_DEV: u32 = encoded(0x05, CONTROL);
    /// The same without waiting (since Linux 6.9).
    pub const DEL_DEV_ASYNC: u32 = reading(0x14);
    /// Show the disk to everybody.
    pub const START_DEV: u32 = encoded(0x06, CONTROL);
    /// Take the disk away.
    pub const STOP_DEV: u32 = encoded(0x07, CONTROL);
    /// What the disk is like.
    pub const SET_PARAMS: u32 = encoded(0x08, CONTROL);
    /// Ask for a request: `UBLK_U_IO_FETCH_REQ`, to `/dev/ublkcN`.
    pub const FETCH_REQ: u32 = encoded(0x20, super::IO);
    /// Answer one and ask for the next.
    pub const COMMIT_AND_FETCH_REQ: u32 = encoded(0x21, super::IO);
}

/// Bytes of `struct ublksrv_ctrl_cmd`.
const CONTROL: u32 = 32;
/// Bytes of `struct ublksrv_io_cmd`.
const IO: u32 = 16;
/// Bytes of `struct ublksrv_ctrl_dev_info`.
pub const INFO: usize = 64;
/// Bytes of `struct ublk_params` up to and with `discard`.
const PARAMETERS: usize = 60;
/// Bytes of `struct ublksrv_io_desc`.
pub const DESCRIPTOR: usize = 24;
/// `UBLK_MAX_QUEUE_DEPTH`
pub const MOST_DEPTH: u64 = 4096;
/// The unit of every offset and length in the protocol, whatever the disk's sector.
pub const SECTOR: u64 = 512;
/// The largest logical block that a kernel with pages of 4096 bytes takes.
pub const MOST_LOGICAL: u64 = 4096;
/// The most bytes that one discard, or one request for zeros, is of.
const MOST_DISCARD: u64 = 1 << 30;

/// `_IOWR('u', number, ...)` of this many bytes.
const fn encoded(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

/// `_IOR('u', number, struct ublksrv_ctrl_cmd)`: what the header has as a command that only reads.
const fn reading(number: u32) -> u32 {
    encoded(number, CONTROL) & !(1 << 30)
}

/// A message that is put together field by field.
struct Message<const N: usize>([u8; N]);

impl<const N: usize> Message<N> {
    fn put<const M: usize>(&mut self, at: usize, bytes: [u8; M]) -> &mut Message<N> {
        self.0[at..at + M].copy_from_slice(&bytes);
        self
    }
}

/// `struct ublksrv_ctrl_cmd`, in the place that a command has for it.
pub fn control(device: u32, address: usize, length: usize, data: u64) -> [u8; 80] {
    let mut message = Message([0; 80]);
    message.put(0, device.to_ne_bytes()).put(4, u16::MAX.to_ne_bytes()).put(6, u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    message.put(8, u64::try_from(address).unwrap_or(u64::MAX).to_ne_bytes()).put(16, data.to_ne_bytes());
    message.0
}

/// What this program's devices are known by: the upper half of `ublksrv_flags`, which the driver keeps and does not look at.
const MARK: u32 = u32::from_be_bytes(*b"TRLN");

/// `struct ublksrv_ctrl_dev_info` of a device that is to be made by `process`: so many queues, a number of the kernel's choice.
pub fn info(queues: u16, depth: u16, largest: u32, process: u32) -> [u8; INFO] {
    let mut message = Message([0; INFO]);
    message.put(0, queues.to_ne_bytes()).put(2, depth.to_ne_bytes()).put(8, largest.to_ne_bytes()).put(12, u32::MAX.to_ne_bytes());
    message.put(32, (u64::from(MARK) << 32 | u64::from(process)).to_ne_bytes());
    message.0
}

/// The number of the device that was made.
pub fn number(info: &[u8; INFO]) -> u32 {
    u32::from_ne_bytes([12, 13, 14, 15].map(|at| info[at]))
}

/// How many queues the device that was made has: the kernel makes no more than there are processors.
pub fn queues(info: &[u8; INFO]) -> u16 {
    u16::from_ne_bytes([info[0], info[1]])
}

/// The process of this program that made a device; [`None`] if another program did.
pub fn process(info: &[u8; INFO]) -> Option<i32> {
    let flags = u64::from_ne_bytes([32, 33, 34, 35, 36, 37, 38, 39].map(|at| info[at]));
    (flags >> 32 == u64::from(MARK)).then(|| i32::try_from(flags & u64::from(u32::MAX)).ok())?
}

/// `struct ublksrv_io_cmd`: the request `tag` of a queue, what came of it, and where its bytes are.
pub fn io(queue: u16, tag: u16, result: i32, address: usize) -> [u8; 16] {
    let mut message = Message([0; 16]);
    message.put(0, queue.to_ne_bytes()).put(2, tag.to_ne_bytes()).put(4, result.to_ne_bytes());
    message.put(8, u64::try_from(address).unwrap_or(u64::MAX).to_ne_bytes());
    message.0
}

/// What a disk is like, as its kernel is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nothing may be written.
    pub read_only: bool,
    /// Seeking takes time.
    pub rotational: bool,
    /// Bytes of a logical block, a power of two.
    pub logical: u64,
    /// Bytes of a physical block, a power of two.
    pub physical: u64,
    /// Bytes of the least I/O that is good (`io_min`), a power of two.
    pub least: u64,
    /// Bytes of the best I/O (`io_opt`), a power of two.
    pub optimal: u64,
    /// Length in sectors of 512 bytes.
    pub sectors: u64,
    /// Bytes of the unit of discards, and the first byte of one.
    pub discard: (u64, u64),
}

impl Shape {
    /// `struct ublk_params` with `basic` and `discard`.
    pub fn parameters(&self) -> [u8; PARAMETERS] {
        /// `UBLK_PARAM_TYPE_BASIC`, `UBLK_PARAM_TYPE_DISCARD`.
        const TYPES: u32 = 1 | 2;
        /// `UBLK_ATTR_VOLATILE_CACHE`, `UBLK_ATTR_FUA`: it is to be flushed.
        const ATTRIBUTES: u32 = 1 << 2 | 1 << 3;
        let sectors = |bytes: u64| u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX).to_ne_bytes();
        let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes();
        let shift = |bytes: u64| [u8::try_from(bytes.trailing_zeros()).unwrap_or(u8::MAX)];
        let attributes = ATTRIBUTES | u32::from(self.read_only) | u32::from(self.rotational) << 1;
        let mut message = Message([0; PARAMETERS]);
        message.put(0, u32::try_from(PARAMETERS).unwrap_or(u32::MAX).to_ne_bytes()).put(4, TYPES.to_ne_bytes());
        message.put(8, attributes.to_ne_bytes()).put(12, shift(self.logical)).put(13, shift(self.physical));
        message.put(14, shift(self.optimal)).put(15, shift(self.least));
        message.put(16, sectors(super::queue::LARGEST.into())).put(24, self.sectors.to_ne_bytes());
        let most = if self.read_only { 0 } else { MOST_DISCARD };
        message.put(40, bytes(self.discard.1)).put(44, bytes(self.discard.0)).put(48, sectors(most)).put(52, sectors(most));
        // The driver takes one range a discard, and no other number.
        message.put(56, 1u16.to_ne_bytes());
        message.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the header's macros come to.
    #[test]
    fn commands_are_encoded_as_ioctls() {
        assert_eq!((command::ADD_DEV, command::START_DEV), (0xc020_7504, 0xc020_7506));
        assert_eq!((command::GET_DEV_INFO, command::DEL_DEV_ASYNC), (0x8020_7502, 0x8020_7514));
        assert_eq!((command::FETCH_REQ, command::COMMIT_AND_FETCH_REQ), (0xc010_7520, 0xc010_7521));
    }

    /// A device is known to be this program's, whatever the kernel makes of the rest.
    #[test]
    fn a_device_says_whose_it_is() {
        let mut made = info(4, 64, 1 << 20, 4711);
        assert_eq!((queues(&made), number(&made), process(&made)), (4, u32::MAX, Some(4711)));
        (made[4], made[16], made[24]) = (1, 77, 0x42);
        assert_eq!(process(&made), Some(4711));
        assert_eq!(process(&[0; INFO]), None);
    }
}
