//! LUKS1 and LUKS2: an encrypted volume.
//!
//! # On disk
//! Big-endian. LUKS1: `LUKS BA BE` and version 1 at byte 0, the payload's offset in 512-byte
//! sectors. LUKS2: a 4096-byte binary header at byte 0 and JSON behind it, a copy of both (`SKUL BA
//! BE`) at `hdr_size`; in the JSON, `segments."0"` says where the data begin and in sectors of
//! which size they are encrypted.
//!
//! # Topology
//! The encrypted sectors lie at multiples of their size from the payload. dm-crypt passes I/O on in
//! the size it came in, so their size is not a unit of I/O.
//!
//! # Limits
//! With integrity the payload is a volume of [dm-integrity](super::integrity), whose first area of
//! data is where data begin. At most 16 KiB of JSON are read, and of it only the first segment;
//! checksums are not verified. With a detached header the payload is on another device. The content
//! is noise and is not tasted.
//!
//! # Sources
//! cryptsetup: "LUKS On-Disk Format Specification" 1.2.3, section 2; "LUKS2 On-Disk Format
//! Specification" 1.1, sections 2 and 3.

use super::{Format, FormatKind, Inside, Piece, Sign, StrayData, integrity};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::big_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct Luks;

/// The kind that blkid calls `crypto_LUKS`.
pub const KIND: FormatKind = FormatKind::new("crypto_LUKS", &Luks);

impl Format for Luks {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn only_carries(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, unit: u64) -> Option<String> {
        Some(format!(
            "reencrypt it with larger sectors: cryptsetup reencrypt --sector-size {}",
            unit.min(LARGEST_SECTOR)
        ))
    }

    fn shift_data(&self, area: &StrayData<'_>) -> String {
        let sectors = area.unit.max(LARGEST_SECTOR) / 512;
        format!(
            "make it anew with cryptsetup luksFormat --offset on a multiple of {sectors} sectors of 512 bytes"
        )
    }
}

/// The largest sector that is encrypted at once, in bytes.
pub const LARGEST_SECTOR: u64 = 4096;
/// Name of the detail with the size of a sector in bytes.
pub const SECTOR: &str = "encryption sector";
/// The first bytes of both versions.
pub const MAGIC: &[u8; 6] = b"LUKS\xba\xbe";
/// The first bytes of the copy of LUKS2's header.
pub const MAGIC_2ND: &[u8; 6] = b"SKUL\xba\xbe";
/// Bytes of LUKS2's binary header; the JSON follows.
pub const BINARY: u64 = 4096;
/// The most JSON that is read. The default area is 12 KiB, the largest 4 MiB, nearly all of it
/// empty.
const JSON: u64 = 16 << 10;
/// The places where the second header may be, one for each size of the first.
pub const SECOND: [u64; 9] =
    [0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000];
/// Where it is looked for when the first is gone: behind a header of the usual size. Every provider
/// pays for this read.
const USUAL: u64 = SECOND[0];

on_disk! {
    /// On-disk header of LUKS1, `struct luks_phdr`. Offsets are in sectors of 512 bytes.
    pub struct Header1 of 592 bytes {
          0 => magic: [u8; 6],
          6 => version: U16,
          /// Name of the block cipher: `aes`.
          8 => pub cipher_name: [u8; 32],
          /// Mode and initial vectors: `xts-plain64`.
         40 => pub cipher_mode: [u8; 32],
          /// Hash of key derivation, spreading and digest: `sha256`.
         72 => pub hash_spec: [u8; 32],
          /// First sector of the payload.
        104 => pub payload_offset: U32,
          /// Bytes of the volume key.
        108 => pub key_bytes: U32,
          /// Digest of the volume key, by PBKDF2.
        112 => pub mk_digest: [u8; 20],
          /// Salt of the digest.
        132 => pub mk_digest_salt: [u8; 32],
          /// Iterations of the digest.
        164 => pub mk_digest_iterations: U32,
        168 => uuid: [u8; 40],
          /// Key slots, used or not.
        208 => pub slots: [Slot1; 8],
    }

    /// One key slot of LUKS1.
    pub struct Slot1 of 48 bytes {
          /// `0x00ac71f3` for a slot with a key.
          0 => pub active: U32,
          /// Iterations of the slot's PBKDF2.
          4 => pub iterations: U32,
          /// Salt of the slot's PBKDF2.
          8 => pub salt: [u8; 32],
          /// First sector of the key material.
         40 => pub key_material_offset: U32,
          /// Stripes that the key is spread over: 4000.
         44 => pub stripes: U32,
    }
}

on_disk! {
    /// `struct luks2_hdr_disk`, up to its padding.
    pub struct Header2 of 512 bytes {
          /// [`MAGIC`], or of the copy [`MAGIC_2ND`].
          0 => pub magic: [u8; 6],
          /// Version of the format: 2.
          6 => pub version: U16,
          /// Bytes of this header with its JSON.
          8 => pub hdr_size: U64,
          /// Number of the update that wrote it.
         16 => pub seqid: U64,
         24 => label: [u8; 48],
          /// Hash of the checksum: `sha256`.
         72 => pub checksum_alg: [u8; 32],
        104 => salt: [u8; 64],
        168 => uuid: [u8; 40],
        208 => subsystem: [u8; 48],
          /// Byte at which it stands.
        256 => pub hdr_offset: U64,
        264 => padding: [u8; 184],
          /// Checksum of the header and the JSON, itself as zeros.
        448 => pub csum: [u8; 64],
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    if probe.has(0, MAGIC) {
        let version: U16 = probe.read(6)?;
        return match version.get() {
            1 => version_1(probe),
            2 => version_2(probe, 0, MAGIC),
            _ => None,
        };
    }
    probe.reaches(USUAL).then(|| version_2(probe, USUAL, MAGIC_2ND)).flatten()
}

fn version_1(probe: &Probe<'_>) -> Option<Sign> {
    let header: Header1 = probe.read(0)?;
    let mut sign = Sign::new(KIND, 0);
    sign.version = Some("1".to_string());
    sign.uuid = ondisk::text(&header.uuid);
    sign.details.push((SECTOR, "512".to_string()));
    sign.details.extend(ondisk::text(&header.cipher_name).map(|cipher| ("cipher", cipher)));
    payload(&mut sign, probe, Some(u64::from(header.payload_offset.get()) * 512), None);
    Some(sign)
}

fn version_2(probe: &Probe<'_>, at: u64, magic: &[u8; 6]) -> Option<Sign> {
    let header: Header2 = probe.read(at)?;
    if header.magic != *magic || header.version.get() != 2 || header.hdr_offset.get() != at {
        return None;
    }
    let mut sign = Sign::new(KIND, at);
    sign.version = Some("2".to_string());
    sign.label = ondisk::text(&header.label);
    sign.uuid = ondisk::text(&header.uuid);
    sign.details.extend(ondisk::text(&header.subsystem).map(|name| ("subsystem", name)));
    // Damaged JSON has a copy; one hdr_size after the first header or, seen from the copy, nowhere
    // else.
    let size = header.hdr_size.get();
    let second = if at == 0 { Some(size).filter(|size| SECOND.contains(size)) } else { None };
    let segment = segment(probe, at, size).or_else(|| segment(probe, second?, size));
    match segment {
        Some(segment) => {
            sign.details.extend(segment.sector_size.map(|size| (SECTOR, size.to_string())));
            sign.details.extend(segment.encryption.map(|cipher| ("encryption", cipher)));
            match segment.integrity {
                Some(tag) => tagged(&mut sign, probe, segment.offset, tag),
                None => payload(&mut sign, probe, segment.offset, segment.size),
            }
        }
        None => {
            sign.inside =
                Inside::Unknown("its JSON area is damaged, or longer than what is read of it")
        }
    }
    Some(sign)
}

/// A payload at 0 would overwrite the header: the header is detached.
fn payload(sign: &mut Sign, probe: &Probe<'_>, offset: Option<u64>, length: Option<u64>) {
    if offset == Some(0) {
        sign.inside = Inside::Unknown("a detached header: its data are on another device");
    } else {
        sign.size = offset.zip(length).and_then(|(offset, length)| offset.checked_add(length));
        sign.data_at(probe, offset, length, false);
    }
}

/// A payload with a tag for each sector; `tag` names their function.
fn tagged(sign: &mut Sign, probe: &Probe<'_>, offset: Option<u64>, tag: String) {
    sign.details.push(("integrity", tag));
    let Some(offset) = offset.filter(|&offset| offset > 0) else {
        return payload(sign, probe, offset, None);
    };
    let behind = probe.length().saturating_sub(offset);
    let found = integrity::read(probe, offset).map(|sb| sb.layout(behind));
    match found.map(|found| found.map(|layout| layout.from(offset).ok_or(layout))) {
        Some(Ok(Ok(layout))) => {
            sign.details.extend(layout.details());
            sign.data_at(probe, Some(layout.first), None, false);
        }
        Some(Err(why)) => sign.inside = Inside::Unknown(why.words()),
        Some(Ok(Err(_))) | None => {
            sign.inside =
                Inside::Unknown("the superblock that says where its tags lie is not there");
        }
    }
}

/// The first segment of the data, as the JSON has it.
struct Segment {
    offset: Option<u64>,
    /// `None` where it is "dynamic": to the end.
    size: Option<u64>,
    sector_size: Option<u64>,
    encryption: Option<String>,
    /// Function of the tags; `None` without tags.
    integrity: Option<String>,
}

/// `segments."0"` of the JSON behind the binary header at `at`.
fn segment(probe: &Probe<'_>, at: u64, hdr_size: u64) -> Option<Segment> {
    let length = usize::try_from(hdr_size.checked_sub(BINARY)?.min(JSON)).ok()?;
    let json = probe.bytes(at.checked_add(BINARY)?, length)?;
    let segment = member(member(&json, "segments")?, "0")?;
    let number = |name| std::str::from_utf8(unquoted(member(segment, name)?)).ok()?.parse().ok();
    Some(Segment {
        offset: number("offset"),
        size: number("size"),
        sector_size: number("sector_size"),
        encryption: member(segment, "encryption").and_then(|value| ondisk::text(unquoted(value))),
        integrity: member(segment, "integrity").map(|tags| {
            let kind = member(tags, "type").and_then(|value| ondisk::text(unquoted(value)));
            kind.unwrap_or_default()
        }),
    })
}

/// The value of `name` in the JSON object that `json` begins with, as text; `None` if it is no
/// object, or cut short before. Each byte is looked at once: nesting is counted, not followed.
fn member<'a>(json: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = json.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (key, after) = value(rest)?;
        let (found, after) = value(after.trim_ascii_start().strip_prefix(b":")?)?;
        if key.len() == name.len() + 2 && unquoted(key) == name.as_bytes() {
            return Some(found);
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// One JSON value and what follows it.
fn value(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let json = json.trim_ascii_start();
    let (mut depth, mut quoted, mut escaped) = (0u32, false, false);
    for (at, &byte) in json.iter().enumerate() {
        let ends = match byte {
            _ if escaped => {
                escaped = false;
                false
            }
            b'\\' if quoted => {
                escaped = true;
                false
            }
            b'"' => {
                quoted = !quoted;
                !quoted && depth == 0
            }
            _ if quoted => false,
            b'{' | b'[' => {
                depth += 1;
                false
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                depth == 0
            }
            // A bare number or word ends before what follows it.
            b',' | b':' | b'}' | b']' if depth == 0 => return (at > 0).then(|| json.split_at(at)),
            _ => false,
        };
        if ends {
            return Some(json.split_at(at + 1));
        }
    }
    None
}

/// A string without its quotes; anything else without the blanks around it.
fn unquoted(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    const JSON_TEXT: &str = r#"{"keyslots":{"0":{"area":{"offset":"32768"},"x":"}\"{\\"}},"segments" : {"1":{"offset":"1"},
        "0":{"type":"crypt","offset":"16777216","size":"dynamic","sector_size":4096 }},"config":{}}"#;

    fn header(at: u64, magic: &[u8; 6]) -> Vec<u8> {
        let mut header = vec![0u8; 4096];
        header[..6].copy_from_slice(magic);
        header[6..8].copy_from_slice(&[0, 2]);
        header[8..16].copy_from_slice(&0x4000u64.to_be_bytes());
        header[256..264].copy_from_slice(&at.to_be_bytes());
        header
    }

    #[test]
    fn members_are_found_and_nothing_else() {
        let get = |json: &'static str, name| {
            member(json.as_bytes(), name).map(|v| std::str::from_utf8(v).unwrap())
        };
        assert_eq!(get(r#"{"a":{"b":1},"b":[2,{"b":3}],"c":"b"}"#, "b"), Some(r#"[2,{"b":3}]"#));
        assert_eq!(get(r#" { "a" : "x\"y" , "b" : 7 }"#, "b"), Some("7 "));
        for cut in [
            "",
            "{",
            "{}",
            "[1]",
            "{,}",
            "{\"b\"",
            "{\"b\":",
            "{\"b\":\"",
            "{\"b\":{\"b\":1",
            "{b:1",
            "{\"a\":1 \"b\":2}",
        ] {
            assert_eq!(get(cut, "b"), None, "{cut}");
        }
    }

    #[test]
    fn damaged_json_is_read_from_its_copy() {
        let (first, second) = (header(0, MAGIC), header(0x4000, MAGIC_2ND));
        for at in [0x1000, 0x5000] {
            let disk =
                disk(64 << 20, &[(0, &first), (0x4000, &second), (at, JSON_TEXT.as_bytes())]);
            let sign = recognised(&Luks, disk).unwrap();
            assert_eq!((sign.data.unwrap().offset, sign.magic), (16 << 20, 0));
            assert!(sign.details.contains(&("encryption sector", "4096".to_string())));
        }
        let only_second = disk(64 << 20, &[(0x4000, &second), (0x5000, JSON_TEXT.as_bytes())]);
        assert_eq!(recognised(&Luks, only_second).unwrap().magic, 0x4000);
        let none = recognised(&Luks, disk(64 << 20, &[(0, &first)])).unwrap();
        assert!(matches!(none.inside, Inside::Unknown(_)));
    }

    #[test]
    fn a_payload_with_tags_is_named_with_them() {
        let json = JSON_TEXT.replace(
            "\"sector_size\":4096 }",
            "\"sector_size\":4096,\"integrity\":{\"type\":\"hmac(sha256)\"}}",
        );
        let mut sb = vec![0; 48];
        sb[..8].copy_from_slice(b"integrt\0");
        (sb[8], sb[9], sb[10], sb[12], sb[24], sb[28]) = (5, 15, 32, 1, 8, 3);
        sb[16..24].copy_from_slice(&80_000_u64.to_le_bytes());
        let (head, json) = (header(0, MAGIC), json.as_bytes());
        let with = disk(64 << 20, &[(0, &head), (0x1000, json), (16 << 20, &sb)]);
        let sign = recognised(&Luks, with).unwrap();
        // Behind the superblock, a journal of one section of 32 blocks, and tags of 4096 blocks.
        let journal = (8 + 32 * 8) * 512;
        assert_eq!(sign.data.unwrap().offset, (16 << 20) + 4096 + journal + (128 << 10));
        for detail in [("integrity", "hmac(sha256)"), ("tag", "32"), ("journal", "135168")] {
            assert!(sign.details.contains(&(detail.0, detail.1.into())), "{:?}", sign.details);
        }
        let bare = recognised(&Luks, disk(64 << 20, &[(0, &head), (0x1000, json)])).unwrap();
        assert!(matches!(bare, Sign { data: None, inside: Inside::Unknown(_), .. }), "{bare:?}");
    }

    #[test]
    fn deep_or_endless_json_ends() {
        for (open, close) in
            [("{\"a\":", ""), ("[", ""), ("\"\\", "\\"), ("{\"segments\":{\"0\":", "}")]
        {
            let json = format!("{{\"a\":{}{}", open.repeat(3000), close.repeat(3000));
            let disk = disk(1 << 20, &[(0, &header(0, MAGIC)), (0x1000, json.as_bytes())]);
            assert_eq!(recognised(&Luks, disk).unwrap().data, None);
        }
    }

    #[test]
    fn headers_without_a_payload_behind_them() {
        let why = |disk| match recognised(&Luks, disk).unwrap() {
            Sign { data: None, inside: Inside::Unknown(why), .. } => why,
            sign => panic!("{sign:?}"),
        };
        // Detached, in both versions.
        let one = [&MAGIC[..], &[0, 1], &[0; 200]].concat();
        assert!(why(disk(1 << 20, &[(0, &one)])).contains("detached"));
        let json = JSON_TEXT.replace("16777216", "0");
        assert!(
            why(disk(64 << 20, &[(0, &header(0, MAGIC)), (0x1000, json.as_bytes())]))
                .contains("detached")
        );
        // A header that says it is elsewhere is a copy of another; a second one is looked for only
        // where it may be.
        assert_eq!(recognised(&Luks, disk(64 << 20, &[(0, &header(0x4000, MAGIC))])), None);
        let mut odd = header(0, MAGIC);
        odd[8..16].copy_from_slice(&0x5000u64.to_be_bytes());
        assert!(
            why(disk(64 << 20, &[(0, &odd), (0x6000, JSON_TEXT.as_bytes())]))
                .contains("JSON area is damaged")
        );
    }
}
