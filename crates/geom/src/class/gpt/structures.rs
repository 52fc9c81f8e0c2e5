//! Structures of a GPT on disk.
//!
//! # Sources
//! UEFI 2.10 §5.3.

use crate::base::ondisk::{Guid, on_disk};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

on_disk! {
    /// GPT header (UEFI 2.10, table 5.5).
    #[derive(Clone, IntoBytes)]
    pub(super) struct Header of 92 bytes {
         0 => pub(super) signature: [u8; 8],
         8 => pub(super) revision: U32,
        12 => pub(super) header_size: U32,
        16 => pub(super) header_crc32: U32,
        20 => pub(super) reserved: U32,
        24 => pub(super) my_lba: U64,
        32 => pub(super) alternate_lba: U64,
        40 => pub(super) first_usable_lba: U64,
        48 => pub(super) last_usable_lba: U64,
        56 => pub(super) disk_guid: Guid,
        72 => pub(super) partition_entry_lba: U64,
        80 => pub(super) number_of_partition_entries: U32,
        84 => pub(super) size_of_partition_entry: U32,
        88 => pub(super) partition_entry_array_crc32: U32,
    }
}

on_disk! {
    /// GPT partition entry (UEFI 2.10, table 5.6).
    #[derive(IntoBytes)]
    pub(super) struct GptEntry of 128 bytes {
         0 => pub(super) partition_type_guid: Guid,
        16 => pub(super) unique_partition_guid: Guid,
        32 => pub(super) starting_lba: U64,
        40 => pub(super) ending_lba: U64,
        48 => pub(super) attributes: U64,
        56 => pub(super) partition_name: [u8; 72],
    }
}

/// Signature of a header.
pub(super) const SIGNATURE: &[u8; 8] = b"EFI PART";
