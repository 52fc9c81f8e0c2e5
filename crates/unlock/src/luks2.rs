//! LUKS2: two copies of a binary header with JSON behind it, which describes key slots, digests and
//! segments.

use crate::antiforensic::Material;
use crate::cipher::{Cipher, LONGEST_KEY};
use crate::derive::{Derivation, Effort, Hash};
use crate::{Fault, Key, Opened, Secret, first_key, refused};
use base64ct::{Base64, Encoding};
use metadata::{Area, Digest, Kdf, Metadata, Segment, Slot};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use trueline_geom::format::luks::{BINARY, Header2, MAGIC, MAGIC_2ND, SECOND};
use trueline_geom::probe::unlock::ReadHeader;
use zerocopy::FromBytes;
use zeroize::Zeroizing;

mod metadata;

/// Largest volume key in bytes: a cipher's, and one for tags by HMAC-SHA512.
const LONGEST_VOLUME_KEY: usize = LONGEST_KEY + 64;
/// Most key slots of a volume.
const MOST_SLOTS: usize = 32;

/// The newer of the two copies whose checksum is right and whose JSON can be understood: binary
/// header and JSON.
pub(crate) fn header(read: &mut ReadHeader<'_>) -> Result<Vec<u8>, Fault> {
    let first = copy(0, MAGIC, read);
    let places = match &first {
        Ok(bytes) => vec![bytes.len() as u64],
        // Its size is not known: the copy is behind a header of one of the sizes.
        Err(_) => SECOND.to_vec(),
    };
    let second = places.into_iter().find_map(|at| copy(at, MAGIC_2ND, read).ok());
    match (first, second) {
        (Ok(first), Some(second)) if seqid(&second) > seqid(&first) => Ok(second),
        (Ok(first), _) => Ok(first),
        (Err(_), Some(second)) => Ok(second),
        (Err(fault), None) => Err(fault),
    }
}

fn seqid(header: &[u8]) -> u64 {
    Header2::ref_from_prefix(header).map_or(0, |(header, _)| header.seqid.get())
}

/// The copy of the header at byte `at`.
fn copy(at: u64, magic: &[u8; 6], read: &mut ReadHeader<'_>) -> Result<Vec<u8>, Fault> {
    let mut bytes = vec![0; size_of::<Header2>()];
    read(&mut bytes, at)?;
    let Ok((binary, _)) = Header2::ref_from_prefix(&bytes) else {
        return refused("its header is cut short");
    };
    let (size, own) = (binary.hdr_size.get(), binary.hdr_offset.get());
    if binary.magic != *magic || binary.version.get() != 2 || own != at || !SECOND.contains(&size) {
        return refused("its header is damaged");
    }
    if at != 0 && size != at {
        return refused("the copy of its header is not behind it");
    }
    if !binary.checksum_alg.starts_with(b"sha256\0") {
        return refused("its header's checksum is none that is known here");
    }
    let sum = binary.csum;
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    read(&mut bytes, at)?;
    let mut hash = Sha256::new();
    hash.update(&bytes[..SUM.start]);
    hash.update([0; SUM.end - SUM.start]);
    hash.update(&bytes[SUM.end..]);
    if sum[..32] != hash.finalize()[..] {
        return refused("its header's checksum is wrong");
    }
    Metadata::parse(json(&bytes))?;
    Ok(bytes)
}

/// The JSON area of a header.
fn json(header: &[u8]) -> &[u8] {
    header.get(usize::try_from(BINARY).unwrap_or(0)..).unwrap_or_default()
}

/// Place of the checksum in the binary header.
const SUM: std::ops::Range<usize> = 448..512;

/// The volume that one of `keys` opens; `None` if none does.
pub(crate) fn open(
    header: &[u8],
    keys: &[Key],
    effort: &mut Effort,
    room: u64,
    read: &mut ReadHeader<'_>,
) -> Result<Option<Opened>, Fault> {
    let metadata = Metadata::parse(json(header))?;
    metadata.demands_nothing()?;
    let (name, segment) = metadata.segment()?;
    // An unknown cipher says so before work is done.
    segment.tag_key()?;
    let largest = segment.cipher(&[0; LONGEST_KEY]).or_else(|_| segment.cipher(&[0; 32]));
    largest.or_else(|_| segment.cipher(&[0; 16]))?;
    let digest = metadata.digest(name)?;
    if digest.keyslots.len() > MOST_SLOTS {
        return refused(format!("it has more than {MOST_SLOTS} key slots"));
    }
    let found = first_key(digest.keyslots.iter().map(|id| match metadata.slot(id)? {
        Some(slot) => slot.open(&digest, keys, effort, room, read),
        None => Ok(None),
    }))?;
    found.map(|key| segment.opened(&key)).transpose()
}

impl Segment {
    fn cipher(&self, key: &[u8]) -> Result<Cipher, Fault> {
        Cipher::new(&self.encryption, key, self.sector_size, number(&self.iv_tweak)?)
    }

    fn opened(&self, key: &[u8]) -> Result<Opened, Fault> {
        let length = match self.size.as_str() {
            "dynamic" => None,
            size => Some(number(size)?),
        };
        let (offset, sector, tags) = (number(&self.offset)?, self.sector_size, self.tag_key()?);
        let Some(own) = key.len().checked_sub(tags.unwrap_or(0)) else {
            return refused(format!("its volume key of {} bytes has none for its tags", key.len()));
        };
        let cipher = Arc::new(self.cipher(&key[..own])?);
        Ok(Opened { offset, length, sector, tagged: tags.is_some(), cipher })
    }
}

impl Slot {
    /// The volume key in the slot, if one of `keys` opens it.
    fn open(
        &self,
        digest: &Digest,
        keys: &[Key],
        effort: &mut Effort,
        room: u64,
        read: &mut ReadHeader<'_>,
    ) -> Result<Option<Secret>, Fault> {
        let Area { kind, offset, size, encryption, key_size } = &self.area;
        let (volume, slot) = (1..=LONGEST_VOLUME_KEY, 1..=LONGEST_KEY);
        let (key, wrap) = (self.key_size, *key_size);
        if self.kind != "luks2" || kind != "raw" || self.af.kind != "luks1" {
            return refused("a key slot is of a kind that is not known here");
        }
        if !volume.contains(&key) || !slot.contains(&wrap) {
            return refused(format!("a key slot has keys of {key} and {wrap} bytes"));
        }
        let (offset, stripes, hash) =
            (number(offset)?, self.af.stripes, Hash::named(&self.af.hash)?);
        let material = Material { offset, key, stripes, hash };
        let encrypted = material.read(room, read)?;
        if encrypted.len() as u64 > number(size)? {
            return refused("a key slot is longer than its area");
        }
        let (derivation, salt) = self.kdf.function()?;
        for passphrase in keys.iter().map(|key| &key.passphrase) {
            let mut derived: Secret = Zeroizing::new(vec![0; wrap]);
            derivation.fill(passphrase, &salt, effort, &mut derived)?;
            let cipher = Cipher::new(encryption, &derived, 512, 0)?;
            let found = material.key(&encrypted, &cipher, effort)?;
            if digest.is_of(&found, effort)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Kdf {
    /// The function and its salt.
    fn function(&self) -> Result<(Derivation, Vec<u8>), Fault> {
        Ok(match self {
            Kdf::Pbkdf2 { hash, iterations, salt } => {
                let hash = Hash::named(hash)?;
                (Derivation::Pbkdf2 { hash, iterations: *iterations }, decoded(salt)?)
            }
            Kdf::Argon2i { time, memory, cpus, salt } => {
                let (time, memory, lanes) = (*time, *memory, *cpus);
                (Derivation::Argon2 { id: false, time, memory, lanes }, decoded(salt)?)
            }
            Kdf::Argon2id { time, memory, cpus, salt } => {
                let (time, memory, lanes) = (*time, *memory, *cpus);
                (Derivation::Argon2 { id: true, time, memory, lanes }, decoded(salt)?)
            }
        })
    }
}

impl Digest {
    /// True if `key` is the volume key that this is the digest of.
    fn is_of(&self, key: &[u8], effort: &mut Effort) -> Result<bool, Fault> {
        let (hash, want) = (Hash::named(&self.hash)?, decoded(&self.digest)?);
        if self.kind != "pbkdf2" || want.is_empty() || want.len() > hash.length() {
            return refused("its digest is of a kind that is not known here");
        }
        let derivation = Derivation::Pbkdf2 { hash, iterations: self.iterations };
        let mut digest = vec![0; want.len()];
        derivation.fill(key, &decoded(&self.salt)?, effort, &mut digest)?;
        Ok(digest == want)
    }
}

/// A number of 64 bits, which JSON has as text.
fn number(text: &str) -> Result<u64, Fault> {
    text.parse().or_else(|_| refused(format!("its number {text:?} is none")))
}

fn decoded(text: &str) -> Result<Vec<u8>, Fault> {
    Base64::decode_vec(text).or_else(|_| refused("its JSON has a salt or digest that is no base64"))
}

#[cfg(test)]
mod tests;
