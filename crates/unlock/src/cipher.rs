//! Ciphers of sectors: AES in XTS, and in CBC with the initial vectors of dm-crypt.
//!
//! # Sources
//! IEEE 1619-2018; Linux `drivers/md/dm-crypt.c`.

use crate::{Fault, refused};
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use sha2::{Digest, Sha256};
use trueline_geom::probe::unlock::Decrypt;
use xts_mode::Xts128;
use zeroize::Zeroizing;

/// Largest key in bytes: two of AES-256.
pub(crate) const LONGEST_KEY: usize = 64;
/// Bytes of the sectors that initial vectors count.
const COUNTED: u64 = 512;
/// Bytes of a block of AES.
const BLOCK: usize = 16;

/// A cipher of sectors, with its key.
pub(crate) struct Cipher {
    mode: Mode,
    vector: Vector,
    /// Bytes that are encrypted at once.
    sector: usize,
    /// Number of the first sector.
    first: u64,
}

/// A block cipher in a mode. Key schedules are boxed: they are of unlike sizes, and wiped.
enum Mode {
    Xts128(Box<Xts128<Aes128>>),
    Xts256(Box<Xts128<Aes256>>),
    Cbc128(Box<Aes128>),
    Cbc256(Box<Aes256>),
}

/// Making of a sector's initial vector.
enum Vector {
    /// The sector's number, of 64 bits.
    Plain64,
    /// Its low 32 bits.
    Plain,
    /// The number, encrypted with the key's SHA-256.
    Essiv(Box<Aes256>),
}

impl Cipher {
    /// The cipher that `spec` names (`aes-xts-plain64`), for sectors of `sector` bytes, numbered
    /// from `first` in units of 512. Errors: an unknown cipher, a key that is not for it.
    pub(crate) fn new(spec: &str, key: &[u8], sector: u64, first: u64) -> Result<Cipher, Fault> {
        let sector = usize::try_from(sector).ok().filter(|s| (512..=4096).contains(s));
        let Some(sector) = sector.filter(|s| s.is_power_of_two()) else {
            return refused("its encryption sector is none of 512 to 4096 bytes");
        };
        let named = spec.strip_prefix("aes-").and_then(|mode| mode.split_once('-'));
        let unknown = || refused(format!("its cipher {spec:?} is not known here"));
        let Some((mode, vector)) = named else { return unknown() };
        let vector = match vector {
            "plain64" => Vector::Plain64,
            "plain" => Vector::Plain,
            "essiv:sha256" => {
                let salt = Zeroizing::new(<[u8; 32]>::from(Sha256::digest(key)));
                Vector::Essiv(Box::new(Aes256::new(GenericArray::from_slice(&*salt))))
            }
            _ => return unknown(),
        };
        let half = key.split_at(key.len() / 2);
        let mode = match (mode, key.len()) {
            ("xts", 32) => Mode::Xts128(Box::new(Xts128::new(aes128(half.0), aes128(half.1)))),
            ("xts", 64) => Mode::Xts256(Box::new(Xts128::new(aes256(half.0), aes256(half.1)))),
            ("cbc", 16) => Mode::Cbc128(Box::new(aes128(key))),
            ("cbc", 32) => Mode::Cbc256(Box::new(aes256(key))),
            ("xts" | "cbc", bytes) => {
                return refused(format!("its cipher {spec} has a key of {bytes} bytes"));
            }
            _ => return unknown(),
        };
        Ok(Cipher { mode, vector, sector, first })
    }

    /// The initial vector of the sector at byte `offset`.
    fn vector(&self, offset: u64) -> [u8; BLOCK] {
        let number = self.first.wrapping_add(offset / COUNTED);
        let number =
            if matches!(self.vector, Vector::Plain) { number & 0xffff_ffff } else { number };
        let mut vector = u128::from(number).to_le_bytes();
        if let Vector::Essiv(cipher) = &self.vector {
            cipher.encrypt_block(GenericArray::from_mut_slice(&mut vector));
        }
        vector
    }
}

impl Decrypt for Cipher {
    fn decrypt(&self, offset: u64, sectors: &mut [u8]) {
        let starts = (offset..).step_by(self.sector);
        for (at, sector) in starts.zip(sectors.chunks_exact_mut(self.sector)) {
            let vector = self.vector(at);
            match &self.mode {
                Mode::Xts128(cipher) => cipher.decrypt_sector(sector, vector),
                Mode::Xts256(cipher) => cipher.decrypt_sector(sector, vector),
                Mode::Cbc128(cipher) => cbc(&**cipher, sector, vector),
                Mode::Cbc256(cipher) => cbc(&**cipher, sector, vector),
            }
        }
    }
}

fn aes128(key: &[u8]) -> Aes128 {
    Aes128::new(GenericArray::from_slice(key))
}

fn aes256(key: &[u8]) -> Aes256 {
    Aes256::new(GenericArray::from_slice(key))
}

fn cbc<C>(cipher: &C, sector: &mut [u8], vector: [u8; BLOCK])
where
    C: BlockDecrypt + aes::cipher::BlockSizeUser<BlockSize = aes::cipher::consts::U16>,
{
    let mut before = vector;
    for block in sector.chunks_exact_mut(BLOCK) {
        let mut next = [0; BLOCK];
        next.copy_from_slice(block);
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
        block.iter_mut().zip(before).for_each(|(byte, other)| *byte ^= other);
        before = next;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Hexadecimal digits as bytes.
    pub(crate) fn bytes(digits: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    /// IEEE 1619-2018, annex B: vector 4, of data unit 0, and vector 10, of data unit 255.
    #[test]
    fn xts_is_as_the_standard_has_it() {
        let plain: Vec<u8> = (0..=255).chain(0..=255).collect();
        let vectors = include_str!("cipher/ieee-1619.txt");
        let vectors: Vec<&str> = vectors.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(vectors.len(), 6);
        for vector in vectors.chunks_exact(3) {
            let (key, unit) = (bytes(vector[0]), u64::from_str_radix(vector[1], 16).unwrap());
            let mut sector = bytes(vector[2]);
            Cipher::new("aes-xts-plain64", &key, 512, unit).ok().unwrap().decrypt(0, &mut sector);
            assert!(sector == plain, "{unit}");
            // Sectors before it have other vectors.
            let mut second =
                [vec![0; 512 * usize::try_from(unit).unwrap()], bytes(vector[2])].concat();
            let cipher = Cipher::new("aes-xts-plain64", &key, 512, 0).ok().unwrap();
            cipher.decrypt(0, &mut second);
            assert!(second.ends_with(&plain), "{unit}");
        }
    }

    #[test]
    fn vectors_count_sectors_of_512_bytes() {
        let cipher = |spec, sector, first| Cipher::new(spec, &[7; 32], sector, first).ok().unwrap();
        let large = cipher("aes-xts-plain64", 4096, 0);
        assert_eq!(large.vector(8192), 16u128.to_le_bytes());
        let tweaked = cipher("aes-cbc-plain64", 512, 1 << 40);
        assert_eq!(tweaked.vector(512), ((1u128 << 40) + 1).to_le_bytes());
        assert_eq!(cipher("aes-cbc-plain", 512, 1 << 40).vector(512), 1u128.to_le_bytes());
        // Several sectors at once are those one by one.
        let mut whole: Vec<u8> = (0..=255).cycle().take(4 * 4096).collect();
        let mut parts = whole.clone();
        large.decrypt(4096, &mut whole);
        for (at, part) in (4096..).step_by(4096).zip(parts.chunks_mut(4096)) {
            large.decrypt(at, part);
        }
        assert!(whole == parts);
    }

    #[test]
    fn other_ciphers_are_refused() {
        for (spec, key, sector) in [
            ("aes-xts-plain64", 16, 512),
            ("aes-xts-plain64", 48, 512),
            ("aes-cbc-plain64", 64, 512),
            ("aes-ctr-plain64", 32, 512),
            ("aes-xts", 32, 512),
            ("aes-cbc-essiv:sha1", 32, 512),
            ("serpent-xts-plain64", 32, 512),
            ("", 32, 512),
            ("aes-xts-plain64", 32, 0),
            ("aes-xts-plain64", 32, 768),
            ("aes-xts-plain64", 32, 8192),
        ] {
            assert!(Cipher::new(spec, &vec![0; key], sector, 0).is_err(), "{spec} {key} {sector}");
        }
    }
}
