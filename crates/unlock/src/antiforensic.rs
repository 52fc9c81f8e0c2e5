//! Key material: a key spread over stripes, of which all are needed ("LUKS On-Disk Format
//! Specification" 1.2.3, section 2.4).

use crate::cipher::Cipher;
use crate::derive::{Effort, Hash};
use crate::{Fault, Secret, refused};
use trueline_geom::probe::unlock::{Decrypt, ReadHeader};
use zeroize::Zeroizing;

/// Stripes of a key, always as many.
pub(crate) const STRIPES: usize = 4000;
/// Bytes of the sectors in which key material is encrypted.
const SECTOR: usize = 512;

/// Place of the material of one slot, on a provider of `room` bytes.
pub(crate) struct Material {
    pub(crate) offset: u64,
    /// Bytes of the key that is spread.
    pub(crate) key: usize,
    pub(crate) stripes: u64,
    pub(crate) hash: Hash,
}

impl Material {
    /// Reads the material of the slot. Errors: it does not lie on the provider; another number of
    /// stripes.
    pub(crate) fn read(&self, room: u64, read: &mut ReadHeader<'_>) -> Result<Secret, Fault> {
        if self.stripes != STRIPES as u64 {
            return refused(format!("a key slot has {} stripes, not {STRIPES}", self.stripes));
        }
        let length = (self.key * STRIPES).next_multiple_of(SECTOR);
        let end = self.offset.checked_add(length as u64);
        if end.is_none_or(|end| end > room) {
            return refused("a key slot lies past the end");
        }
        let mut material = Zeroizing::new(vec![0; length]);
        read(&mut material, self.offset)?;
        Ok(material)
    }

    /// The key in the material `encrypted`, if `cipher` is the right one.
    ///
    /// Errors: more work than is spent.
    pub(crate) fn key(
        &self,
        encrypted: &[u8],
        cipher: &Cipher,
        effort: &mut Effort,
    ) -> Result<Secret, Fault> {
        // A digest for every piece of every stripe.
        effort.spend((STRIPES * self.key.div_ceil(self.hash.length())) as u64)?;
        let mut material: Secret = Zeroizing::new(encrypted.to_vec());
        cipher.decrypt(0, &mut material);
        Ok(merge(&material[..self.key * STRIPES], self.key, self.hash))
    }
}

/// The key of `size` bytes that `stripes` are of.
fn merge(stripes: &[u8], size: usize, hash: Hash) -> Secret {
    let mut key: Secret = Zeroizing::new(vec![0; size]);
    let last = stripes.len() / size - 1;
    for (nth, stripe) in stripes.chunks_exact(size).enumerate() {
        key.iter_mut().zip(stripe).for_each(|(sum, byte)| *sum ^= byte);
        if nth < last {
            diffuse(&mut key, hash);
        }
    }
    key
}

/// Hashes `block` in pieces of a digest, each with its number before it.
fn diffuse(block: &mut [u8], hash: Hash) {
    for (number, piece) in (0u32..).zip(block.chunks_mut(hash.length())) {
        let digest = hash.of(&number.to_be_bytes(), piece);
        let length = piece.len();
        piece.copy_from_slice(&digest[..length]);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Stripes of which `key` is made, filled from `noise`.
    pub(crate) fn split(key: &[u8], hash: Hash) -> Vec<u8> {
        let mut stripes: Vec<u8> = (0..=250).cycle().take(key.len() * (STRIPES - 1)).collect();
        let mut sum = vec![0; key.len()];
        for stripe in stripes.chunks_exact(key.len()) {
            sum.iter_mut().zip(stripe).for_each(|(sum, byte)| *sum ^= byte);
            diffuse(&mut sum, hash);
        }
        stripes.extend(sum.iter().zip(key).map(|(sum, byte)| sum ^ byte));
        stripes
    }

    #[test]
    fn a_split_key_comes_together_and_no_stripe_can_be_missed() {
        let key: Vec<u8> = (7..71).collect();
        for hash in [Hash::Sha1, Hash::Sha256, Hash::Sha512] {
            let mut stripes = split(&key, hash);
            assert_eq!(*merge(&stripes, key.len(), hash), key);
            stripes[64 * 1234 + 5] ^= 1;
            assert_ne!(*merge(&stripes, key.len(), hash), key);
        }
    }
}
