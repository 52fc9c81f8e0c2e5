//! LUKS volumes whose headers say anything, and what must hold when they are opened.
//!
//! The key material of every slot is zero, wherever it lies: [`TEXT`] and [`header_1`] have the
//! digests of the key that this makes.

use crate::invariants::{SHORT, Subject, graph_with_keys_holds};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use trueline_geom::base::store::Sparse;
use trueline_unlock::{Key, Keys};
use zeroize::Zeroizing;

/// Work of all key derivations of one volume: keys are found in far less.
const WORK: u64 = 40_000;
/// Length of a volume in bytes.
const LENGTH: u64 = 1 << 20;
/// First byte of the payload that [`TEXT`] and [`header_1`] say.
const PAYLOAD: u64 = 128 << 10;
/// Bytes of a header of LUKS2, and of its binary part.
const HEADER: usize = 16 << 10;
const BINARY: usize = 4096;

/// JSON of a volume that the passphrase `right` opens.
pub const TEXT: &str = r#"{"keyslots":{"0":{"type":"luks2","key_size":16,
"area":{"type":"raw","offset":"32768",
"size":"65536","encryption":"aes-cbc-plain64","key_size":16},"kdf":{"type":"pbkdf2",
"hash":"sha256","iterations":1,"salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
"af":{"type":"luks1","stripes":4000,"hash":"sha256"}}},"tokens":{},
"segments":{"0":{"type":"crypt","offset":"131072","size":"dynamic","iv_tweak":"0",
"encryption":"aes-cbc-plain64","sector_size":512}},"digests":{"0":{"type":"pbkdf2",
"keyslots":["0"],"segments":["0"],"hash":"sha256","iterations":1,
"salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
"digest":"ZbfzTKNHeUJQFKCtCANiHvwEvOqGa3x+jWvxR5hOESk="}},"config":{"json_size":"12288",
"keyslots_size":"65536"}}"#;

/// Header of LUKS1 of a volume that the passphrase `right` opens.
pub fn header_1() -> Vec<u8> {
    let mut header = vec![0; 592];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"LUKS\xba\xbe\0\x01");
    put(8, b"aes");
    put(40, b"cbc-plain64");
    put(72, b"sha256");
    put(104, &u32::try_from(PAYLOAD / 512).unwrap_or(0).to_be_bytes());
    put(108, &16_u32.to_be_bytes());
    let digest =
        [0x65, 0xb7, 0xf3, 0x4c, 0xa3, 0x47, 0x79, 0x42, 0x50, 0x14, 0xa0, 0xad, 0x08, 0x03];
    put(112, &digest);
    put(112 + digest.len(), &[0x62, 0x1e, 0xfc, 0x04, 0xbc, 0xea]);
    put(164, &1_u32.to_be_bytes());
    put(208, &0x00ac_71f3_u32.to_be_bytes());
    put(212, &1_u32.to_be_bytes());
    put(248, &64_u32.to_be_bytes());
    put(252, &4000_u32.to_be_bytes());
    header
}

/// The start of a payload with tags: dm-integrity's superblock of areas of 64 KiB.
pub fn tags() -> Vec<u8> {
    let mut sb = vec![0; 48];
    sb[..8].copy_from_slice(b"integrt\0");
    (sb[8], sb[9], sb[10], sb[12], sb[24]) = (5, 7, 32, 1, 8);
    sb[16..24].copy_from_slice(&1000_u64.to_le_bytes());
    sb
}

/// A header of LUKS2 with this JSON, as far as it has room; its checksum is right.
fn header_2(json: &[u8]) -> Vec<u8> {
    let mut header = vec![0; HEADER];
    header[..8].copy_from_slice(b"LUKS\xba\xbe\0\x02");
    header[8..16].copy_from_slice(&(HEADER as u64).to_be_bytes());
    header[72..78].copy_from_slice(b"sha256");
    let json = &json[..json.len().min(HEADER - BINARY)];
    header[BINARY..BINARY + json.len()].copy_from_slice(json);
    let sum = Sha256::digest(&header);
    header[448..480].copy_from_slice(&sum);
    header
}

/// The volume that `data` makes. Its first byte is 1 for a header of LUKS1, which follows with its
/// payload; else the JSON of LUKS2 follows up to a NUL, and then the payload.
pub fn volume(data: &[u8]) -> Sparse {
    let (kind, rest) = data.split_first().unwrap_or((&0, &[]));
    let end = match kind {
        1 => header_1().len().min(rest.len()),
        _ => rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len()),
    };
    let (head, rest) = rest.split_at(end);
    let (header, payload) = match kind {
        1 => (head.to_vec(), rest),
        _ => (header_2(head), rest.get(1..).unwrap_or_default()),
    };
    let mut disk = Sparse::new(LENGTH);
    disk.put(0, &header);
    disk.put(PAYLOAD, &payload[..payload.len().min(64 << 10)]);
    disk
}

/// Opens the volume that `data` makes, and checks every invariant; true if it is open.
pub fn volume_holds(data: &[u8]) -> bool {
    let passphrase = Arc::new(Zeroizing::new(b"right".to_vec()));
    let keys = Keys::with_work(vec![Key { source: "a file".into(), passphrase }], WORK);
    let subject = Subject::new(volume(data), 512);
    let graph = graph_with_keys_holds(&[subject], SHORT, Some(Arc::new(keys)));
    graph.providers.iter().any(|provider| provider.name.starts_with("luks/"))
}
