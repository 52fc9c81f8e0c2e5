//! The numbers of the ublk protocol, and the layout of its messages, in this machine's byte order.

/// Commands to `/dev/ublk-control`, `UBLK_U_CMD_*`, and requests to a device.
pub mod command {
    use super::{CONTROL, encoded, reading};

    /// Makes a new device.
    pub const ADD_DEV: u32 = encoded(0x04, CONTROL);
    /// Returns the information that a device was made with.
    pub const GET_DEV_INFO: u32 = reading(0x02);
    /// Removes a device, and waits until its last user has closed it.
    pub const DEL_DEV: u32 = encoded(0x05, CONTROL);
    /// Removes a device without waiting (since Linux 6.9).
    pub const DEL_DEV_ASYNC: u32 = reading(0x14);
    /// Makes the disk visible to all programs.
    pub const START_DEV: u32 = encoded(0x06, CONTROL);
    /// Removes the disk, but not the device.
    pub const STOP_DEV: u32 = encoded(0x07, CONTROL);
    /// Sets the parameters of the disk.
    pub const SET_PARAMS: u32 = encoded(0x08, CONTROL);
    /// Fetches a request: `UBLK_U_IO_FETCH_REQ`, to `/dev/ublkcN`.
    pub const FETCH_REQ: u32 = encoded(0x20, super::IO);
    /// Answers a request and fetches the next.
    pub const COMMIT_AND_FETCH_REQ: u32 = encoded(0x21, super::IO);
}

/// The size of `struct ublksrv_ctrl_cmd` in bytes.
const CONTROL: u32 = 32;
/// The size of `struct ublksrv_io_cmd` in bytes.
const IO: u32 = 16;
/// The size of `struct ublksrv_ctrl_dev_info` in bytes.
pub const INFO: usize = 64;
/// The size of `struct ublk_params` in bytes, up to and including `discard`.
const PARAMETERS: usize = 60;
/// The size of `struct ublksrv_io_desc` in bytes.
pub const DESCRIPTOR: usize = 24;
/// The deepest queue, `UBLK_MAX_QUEUE_DEPTH`.
pub const MOST_DEPTH: u64 = 4096;
/// The unit of all offsets and lengths in the protocol in bytes, whatever the disk's sector.
pub const SECTOR: u64 = 512;
/// The largest logical block in bytes that a kernel with pages of 4096 bytes accepts.
pub const MOST_LOGICAL: u64 = 4096;
/// The most bytes of a discard or of a request for zeros.
const MOST_DISCARD: u64 = 1 << 30;

/// The command `_IOWR('u', number, ...)` with an argument of `bytes`.
const fn encoded(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

/// The command `_IOR('u', number, struct ublksrv_ctrl_cmd)`, as the header defines commands that
/// only read.
const fn reading(number: u32) -> u32 {
    encoded(number, CONTROL) & !(1 << 30)
}

/// A message under construction, field by field.
struct Message<const N: usize>([u8; N]);

impl<const N: usize> Message<N> {
    fn put<const M: usize>(&mut self, at: usize, bytes: [u8; M]) -> &mut Message<N> {
        self.0[at..at + M].copy_from_slice(&bytes);
        self
    }
}

/// `struct ublksrv_ctrl_cmd`, in the command area of an entry.
pub fn control(device: u32, address: usize, length: usize, data: u64) -> [u8; 80] {
    let mut message = Message([0; 80]);
    message
        .put(0, device.to_ne_bytes())
        .put(4, u16::MAX.to_ne_bytes())
        .put(6, u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    message
        .put(8, u64::try_from(address).unwrap_or(u64::MAX).to_ne_bytes())
        .put(16, data.to_ne_bytes());
    message.0
}

/// The mark of this program's devices: the upper half of `ublksrv_flags`, which the driver keeps
/// and ignores.
const MARK: u32 = u32::from_be_bytes(*b"TRLN");

/// `struct ublksrv_ctrl_dev_info` of a device to be made by `process`: its queues; the kernel
/// chooses its number.
pub fn info(queues: u16, depth: u16, largest: u32, process: u32) -> [u8; INFO] {
    let mut message = Message([0; INFO]);
    message
        .put(0, queues.to_ne_bytes())
        .put(2, depth.to_ne_bytes())
        .put(8, largest.to_ne_bytes())
        .put(12, u32::MAX.to_ne_bytes());
    message.put(32, (u64::from(MARK) << 32 | u64::from(process)).to_ne_bytes());
    message.0
}

/// The number of the new device.
pub fn number(info: &[u8; INFO]) -> u32 {
    u32::from_ne_bytes([12, 13, 14, 15].map(|at| info[at]))
}

/// The number of queues of the new device: the kernel makes at most one for each processor.
pub fn queues(info: &[u8; INFO]) -> u16 {
    u16::from_ne_bytes([info[0], info[1]])
}

/// The process of this program that made a device; [`None`] if another program did.
pub fn process(info: &[u8; INFO]) -> Option<i32> {
    let flags = u64::from_ne_bytes([32, 33, 34, 35, 36, 37, 38, 39].map(|at| info[at]));
    (flags >> 32 == u64::from(MARK)).then(|| i32::try_from(flags & u64::from(u32::MAX)).ok())?
}

/// `struct ublksrv_io_cmd`: the request `tag` of a queue, its result, and the address of its data.
pub fn io(queue: u16, tag: u16, result: i32, address: usize) -> [u8; 16] {
    let mut message = Message([0; 16]);
    message.put(0, queue.to_ne_bytes()).put(2, tag.to_ne_bytes()).put(4, result.to_ne_bytes());
    message.put(8, u64::try_from(address).unwrap_or(u64::MAX).to_ne_bytes());
    message.0
}

/// The properties of a disk for its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UblkParameters {
    /// True if writes are refused.
    pub read_only: bool,
    /// True if the medium is rotational: seeks take time.
    pub rotational: bool,
    /// The logical block size in bytes, a power of two.
    pub logical: u64,
    /// The physical block size in bytes, a power of two.
    pub physical: u64,
    /// The minimum I/O size in bytes (`io_min`), a power of two.
    pub least: u64,
    /// The optimal I/O size in bytes (`io_opt`), a power of two.
    pub optimal: u64,
    /// The length of the disk in sectors of 512 bytes.
    pub sectors: u64,
    /// The granularity of discards in bytes, and the first byte at which one begins.
    pub discard: (u64, u64),
}

impl UblkParameters {
    /// `struct ublk_params` with `basic` and `discard`.
    pub fn parameters(&self) -> [u8; PARAMETERS] {
        /// The types `UBLK_PARAM_TYPE_BASIC` and `UBLK_PARAM_TYPE_DISCARD`.
        const TYPES: u32 = 1 | 2;
        /// The attributes `UBLK_ATTR_VOLATILE_CACHE` and `UBLK_ATTR_FUA`: the disk must be flushed.
        const ATTRIBUTES: u32 = 1 << 2 | 1 << 3;
        let sectors = |bytes: u64| u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX).to_ne_bytes();
        let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes();
        let shift = |bytes: u64| [u8::try_from(bytes.trailing_zeros()).unwrap_or(u8::MAX)];
        let attributes = ATTRIBUTES | u32::from(self.read_only) | u32::from(self.rotational) << 1;
        let mut message = Message([0; PARAMETERS]);
        message
            .put(0, u32::try_from(PARAMETERS).unwrap_or(u32::MAX).to_ne_bytes())
            .put(4, TYPES.to_ne_bytes());
        message
            .put(8, attributes.to_ne_bytes())
            .put(12, shift(self.logical))
            .put(13, shift(self.physical));
        message.put(14, shift(self.optimal)).put(15, shift(self.least));
        message.put(16, sectors(super::queue::LARGEST.into())).put(24, self.sectors.to_ne_bytes());
        let most = if self.read_only { 0 } else { MOST_DISCARD };
        message
            .put(40, bytes(self.discard.1))
            .put(44, bytes(self.discard.0))
            .put(48, sectors(most))
            .put(52, sectors(most));
        // The driver accepts only one range in a discard.
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
