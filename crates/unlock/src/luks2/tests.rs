//! A LUKS2 volume made here, as it should be and with hostile numbers. cryptsetup's own are opened
//! by the tests of the command line.

use super::*;
use crate::antiforensic::tests::split;
use crate::{Keys, LONGEST_PASSPHRASE};
use aes::Aes128;
use aes::cipher::{BlockEncrypt, KeyInit};
use serde_json::{Value, json};
use trueline_geom::base::error::Errno;
use trueline_geom::probe::Blind;
use trueline_geom::probe::unlock::{Locked, Payload, Unlock};

const ROOM: u64 = 1 << 20;
/// Volume key of AES-128 in CBC: its material is the smallest.
const VOLUME: [u8; 16] = *b"the volume's key";
const AREA: u64 = 0x8000;

fn metadata() -> Value {
    let salt = Base64::encode_string(&[5; 32]);
    let mut digest = [0; 32];
    let made = Derivation::Pbkdf2 { hash: Hash::Sha256, iterations: 1 };
    let filled = made.fill(&VOLUME, &[5; 32], &mut Effort::default(), &mut digest);
    assert!(filled.is_ok());
    json!({
        "keyslots": {"0": {
            "type": "luks2", "key_size": 16,
            "area": {"type": "raw", "offset": AREA.to_string(), "size": "65536",
                "encryption": "aes-cbc-plain64", "key_size": 16},
            "kdf": {"type": "pbkdf2", "hash": "sha256", "iterations": 1, "salt": salt},
            "af": {"type": "luks1", "stripes": 4000, "hash": "sha256"},
        }},
        "tokens": {},
        "segments": {"0": {"type": "crypt", "offset": "131072", "size": "dynamic", "iv_tweak": "0",
            "encryption": "aes-cbc-plain64", "sector_size": 512}},
        "digests": {"0": {"type": "pbkdf2", "keyslots": ["0"], "segments": ["0"], "hash": "sha256",
            "iterations": 1, "salt": salt, "digest": Base64::encode_string(&digest)}},
        "config": {"json_size": "12288", "keyslots_size": "65536"},
    })
}

/// A header with `json` in it, for byte `at`; its checksum is right.
fn sealed(at: u64, seqid: u64, json: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 0x4000];
    header[..6].copy_from_slice(if at == 0 { MAGIC } else { MAGIC_2ND });
    header[6..8].copy_from_slice(&[0, 2]);
    header[8..16].copy_from_slice(&0x4000u64.to_be_bytes());
    header[16..24].copy_from_slice(&seqid.to_be_bytes());
    header[72..78].copy_from_slice(b"sha256");
    header[256..264].copy_from_slice(&at.to_be_bytes());
    header[4096..4096 + json.len()].copy_from_slice(json);
    let sum = Sha256::digest(&header);
    header[448..480].copy_from_slice(&sum);
    header
}

/// Key material of [`VOLUME`] for the passphrase `right`.
fn material() -> Vec<u8> {
    let mut key = [0; 16];
    let derivation = Derivation::Pbkdf2 { hash: Hash::Sha256, iterations: 1 };
    assert!(derivation.fill(b"right", &[5; 32], &mut Effort::default(), &mut key).is_ok());
    let cipher = Aes128::new(&key.into());
    let mut material = split(&VOLUME, Hash::Sha256);
    for (number, sector) in material.chunks_mut(512).enumerate() {
        let mut before = (number as u128).to_le_bytes();
        for block in sector.chunks_exact_mut(16) {
            block.iter_mut().zip(before).for_each(|(byte, other)| *byte ^= other);
            cipher.encrypt_block(block.into());
            before.copy_from_slice(block);
        }
    }
    material
}

/// The answer to a volume of these headers, with `passphrase`; nothing outside of it is read, and
/// not more than twice its headers and eight slots.
fn answer(headers: [Option<Vec<u8>>; 2], passphrase: &str) -> Result<Payload, Locked> {
    let mut disk = vec![0; usize::try_from(ROOM).unwrap()];
    for (at, header) in [0, 0x4000].into_iter().zip(headers) {
        if let Some(header) = header {
            disk[at..at + header.len()].copy_from_slice(&header);
        }
    }
    let slot = material();
    let area = usize::try_from(AREA).unwrap();
    disk[area..area + slot.len()].copy_from_slice(&slot);
    let key = Key {
        source: "a file".into(),
        passphrase: Arc::new(Zeroizing::new(passphrase.as_bytes().to_vec())),
    };
    let mut read = 0;
    let answer = Keys::new(vec![key]).luks(ROOM, &mut |buffer, offset| {
        read += buffer.len();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = disk.get(from..from.saturating_add(buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(Blind::Unreadable(offset, Errno::Range))?);
        Ok(())
    });
    assert!(read < LONGEST_PASSPHRASE, "{read} bytes are read");
    answer
}

fn of(json: &Value) -> Result<Payload, Locked> {
    answer([Some(sealed(0, 3, json.to_string().as_bytes())), None], "right")
}

fn why(answer: Result<Payload, Locked>) -> String {
    answer.err().map_or("it is open".into(), |Locked(why)| why)
}

#[test]
fn the_right_passphrase_opens_it() {
    let payload = of(&metadata()).ok().unwrap();
    assert_eq!((payload.offset, payload.length, payload.sector), (131_072, None, 512));
    let header = || Some(sealed(0, 3, metadata().to_string().as_bytes()));
    assert_eq!(why(answer([header(), None], "wrong")), "no key in a file opens it");
}

#[test]
fn the_newer_header_whose_checksum_is_right_counts() {
    let json = |offset: &str| {
        let mut json = metadata();
        json["segments"]["0"]["offset"] = offset.into();
        json.to_string().into_bytes()
    };
    let damaged = |mut header: Vec<u8>| {
        header[5000] ^= 1;
        Some(header)
    };
    let first = |seqid| sealed(0, seqid, &json("65536"));
    let second = |seqid| sealed(0x4000, seqid, &json("131072"));
    for (headers, offset) in [
        ([Some(first(3)), Some(second(3))], 65536),
        ([Some(first(3)), Some(second(4))], 131_072),
        ([Some(first(4)), Some(second(3))], 65536),
        ([damaged(first(4)), Some(second(3))], 131_072),
        ([Some(first(3)), damaged(second(4))], 65536),
        ([None, Some(second(3))], 131_072),
    ] {
        assert_eq!(answer(headers, "right").ok().unwrap().offset, offset);
    }
    // A right checksum over JSON that is none does not make a copy count.
    let senseless = |at, seqid| Some(sealed(at, seqid, b"{\"segments\": 7}"));
    for headers in [
        [senseless(0, 4), Some(second(3))],
        [Some(first(3)), senseless(0x4000, 4)],
        [senseless(0, 3), Some(second(4))],
    ] {
        let offset =
            if headers[0].as_ref().is_some_and(|h| *h == first(3)) { 65536 } else { 131_072 };
        assert_eq!(answer(headers, "right").ok().unwrap().offset, offset);
    }
    // What one copy demands is no damage: the other is not asked instead.
    let mut demanding = metadata();
    demanding["config"]["requirements"] = json!({"mandatory": ["online-reencrypt-v2"]});
    let demanding = sealed(0, 4, demanding.to_string().as_bytes());
    assert!(why(answer([Some(demanding), Some(second(3))], "right")).contains("it needs"));
    let both = why(answer([damaged(first(3)), damaged(second(3))], "right"));
    assert_eq!(both, "its header's checksum is wrong");
}

/// Every place in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, v)| (name.clone(), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    found.push(at.to_string());
    inside.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), found));
}

#[test]
fn hostile_numbers_open_nothing_and_end() {
    let mut all = Vec::new();
    places(&metadata(), "", &mut all);
    assert!(all.len() > 30, "{all:?}");
    let hostile = [
        json!(0),
        json!(u64::MAX),
        json!(-1),
        json!(1e300),
        json!("0"),
        json!("18446744073709551615"),
        json!("18446744073709551616"),
        json!("aes-xts-plain64"),
        json!("\u{0}\u{1b}["),
        json!(null),
        json!([]),
        json!({}),
        json!({"mandatory": ["online-reencrypt-v2"]}),
    ];
    for place in &all {
        for value in &hostile {
            let mut json = metadata();
            *json.pointer_mut(place).unwrap() = value.clone();
            // An offset or a length may be any: the class holds them to the disk.
            if let Ok(payload) = of(&json) {
                assert!([512, 1024, 2048, 4096].contains(&payload.sector), "{place} {value}");
            }
        }
    }
    for json in ["", "{", "[]", "null", &"[".repeat(12000), &"{\"a\":".repeat(2000)] {
        let said = why(answer([Some(sealed(0, 1, json.as_bytes())), None], "right"));
        assert!(said.starts_with("its JSON cannot be understood"), "{said}");
    }
}

#[test]
fn what_is_not_done_says_so() {
    let changed = |place: &str, value: Value| {
        let mut json = metadata();
        let (parent, name) = place.rsplit_once('/').unwrap();
        json.pointer_mut(parent).unwrap()[name] = value;
        why(of(&json))
    };
    for (place, value, want) in [
        ("/config/requirements", json!({"mandatory": ["online-reencrypt"]}), "it needs"),
        ("/segments/1", json!({}), "in 2 segments"),
        ("/segments/0/integrity", json!({"type": "hmac(sha256)"}), "has none for its tags"),
        ("/segments/0/integrity", json!({"type": "aead"}), "tags by \"aead\""),
        ("/segments/0/type", json!("linear"), "a segment \"linear\""),
        ("/segments/0/encryption", json!("serpent-xts-plain64"), "is not known here"),
        ("/keyslots/0/af/stripes", json!(1), "1 stripes, not 4000"),
        ("/keyslots/0/area/offset", json!("1048064"), "past the end"),
        ("/keyslots/0/area/size", json!("512"), "longer than its area"),
        ("/keyslots/0/kdf/iterations", json!(u32::MAX), "4294967295 iterations"),
        ("/digests/0/iterations", json!(u32::MAX), "4294967295 iterations"),
        ("/digests/0/hash", json!("md5"), "\"md5\" is not known"),
        (
            "/keyslots/0/kdf",
            json!({"type": "argon2id", "time": 4, "memory": 4 << 20, "cpus": 4, "salt": "AAAA"}),
            "4194304 KiB of memory",
        ),
    ] {
        let said = changed(place, value);
        assert!(said.contains(want), "{place}: {said}");
    }
}

#[test]
fn a_header_is_not_parsed_and_not_repeated_at_any_length() {
    let long = "x".repeat(1 << 11);
    let mut json = metadata();
    json["segments"]["0"]["encryption"] = json!(format!("{long}-xts-plain64"));
    let Err(Locked(why)) = of(&json) else { panic!("a cipher that there is not") };
    assert!(why.starts_with("its cipher") && why.chars().count() <= 201, "{}", why.len());
    let area = vec![b' '; (256 << 10) + 1];
    for (length, want) in [(area.len(), "longer than 262144"), (area.len() - 1, "understood")] {
        let Err(Fault::Refused(why)) = Metadata::parse(&area[..length]) else { panic!("parsed") };
        assert!(why.contains(want), "{why}");
    }
}
