//! LUKS1: a binary header, and eight key slots.

use crate::antiforensic::Material;
use crate::cipher::{Cipher, LONGEST_KEY};
use crate::derive::{Derivation, Effort, Hash};
use crate::{Fault, Key, Opened, Secret, first_key, refused};
use std::sync::Arc;
use trueline_geom::format::luks::{Header1, Slot1};
use trueline_geom::probe::unlock::ReadHeader;
use zerocopy::FromBytes;
use zeroize::Zeroizing;

/// `active` of a slot that has a key.
const ENABLED: u32 = 0x00ac_71f3;
/// Bytes of the sectors in which it counts.
const SECTOR: u64 = 512;

/// The header as it is on the disk.
pub(crate) fn header(read: &mut ReadHeader<'_>) -> Result<Vec<u8>, Fault> {
    let mut header = vec![0; size_of::<Header1>()];
    read(&mut header, 0)?;
    Ok(header)
}

/// The volume that one of `keys` opens; `None` if none does.
pub(crate) fn open(
    header: &[u8],
    keys: &[Key],
    effort: &mut Effort,
    room: u64,
    read: &mut ReadHeader<'_>,
) -> Result<Option<Opened>, Fault> {
    let Ok((header, _)) = Header1::ref_from_prefix(header) else {
        return refused("its header is cut short");
    };
    let volume = Volume::new(header)?;
    let enabled = header.slots.iter().filter(|slot| slot.active.get() == ENABLED);
    let found = first_key(enabled.map(|slot| volume.slot(slot, keys, effort, room, read)))?;
    found.map(|key| volume.opened(&key)).transpose()
}

/// A header whose words are known.
struct Volume<'a> {
    header: &'a Header1,
    spec: String,
    hash: Hash,
    key: usize,
}

impl<'a> Volume<'a> {
    fn new(header: &'a Header1) -> Result<Volume<'a>, Fault> {
        let spec = format!("{}-{}", word(&header.cipher_name), word(&header.cipher_mode));
        let bytes = header.key_bytes.get();
        let key = usize::try_from(bytes).ok().filter(|n| (1..=LONGEST_KEY).contains(n));
        let Some(key) = key else {
            return refused(format!("its key would be of {bytes} bytes"));
        };
        // An unknown cipher says so before work is done.
        Cipher::new(&spec, &vec![0; key], SECTOR, 0)?;
        Ok(Volume { header, spec, hash: Hash::named(&word(&header.hash_spec))?, key })
    }

    /// The volume key in `slot`, if one of `keys` opens it.
    fn slot(
        &self,
        slot: &Slot1,
        keys: &[Key],
        effort: &mut Effort,
        room: u64,
        read: &mut ReadHeader<'_>,
    ) -> Result<Option<Secret>, Fault> {
        let material = Material {
            offset: u64::from(slot.key_material_offset.get()) * SECTOR,
            key: self.key,
            stripes: slot.stripes.get().into(),
            hash: self.hash,
        };
        let encrypted = material.read(room, read)?;
        let iterations = slot.iterations.get().into();
        let derivation = Derivation::Pbkdf2 { hash: self.hash, iterations };
        for key in keys {
            let mut derived: Secret = Zeroizing::new(vec![0; self.key]);
            derivation.fill(&key.passphrase, &slot.salt, effort, &mut derived)?;
            let cipher = Cipher::new(&self.spec, &derived, SECTOR, 0)?;
            let found = material.key(&encrypted, &cipher, effort)?;
            if self.is_key(&found, effort)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn is_key(&self, key: &[u8], effort: &mut Effort) -> Result<bool, Fault> {
        let iterations = self.header.mk_digest_iterations.get().into();
        let derivation = Derivation::Pbkdf2 { hash: self.hash, iterations };
        let mut digest = [0; 20];
        derivation.fill(key, &self.header.mk_digest_salt, effort, &mut digest)?;
        Ok(digest == self.header.mk_digest)
    }

    fn opened(&self, key: &[u8]) -> Result<Opened, Fault> {
        let cipher = Arc::new(Cipher::new(&self.spec, key, SECTOR, 0)?);
        let offset = u64::from(self.header.payload_offset.get()) * SECTOR;
        Ok(Opened { offset, length: None, sector: SECTOR, tagged: false, cipher })
    }
}

/// The text before the first zero byte.
fn word(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
