//! Keys from passphrases: PBKDF2 and Argon2, within bounds.

use crate::{Fault, Secret, refused};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use zeroize::{Zeroize, Zeroizing};

/// Most iterations of one PBKDF2: 14 seconds on a processor on which cryptsetup chooses two.
const MOST_ITERATIONS: u64 = 50_000_000;
/// Most memory of Argon2, in KiB.
const MOST_MEMORY: u32 = 1 << 20;
/// Most lanes of Argon2.
const MOST_LANES: u32 = 64;
/// Most work for all volumes of a graph together, in iterations of PBKDF2.
const MOST_WORK: u64 = 400_000_000;
/// Iterations of PBKDF2 that take no less time than one KiB of Argon2's memory, once.
const BLOCK_WORK: u64 = 4;

/// A hash function of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

impl Hash {
    /// The function that a header calls `name`.
    pub(crate) fn named(name: &str) -> Result<Hash, Fault> {
        match name {
            "sha1" => Ok(Hash::Sha1),
            "sha256" => Ok(Hash::Sha256),
            "sha512" => Ok(Hash::Sha512),
            _ => refused(format!("its hash {name:?} is not known here")),
        }
    }

    /// Bytes of a digest.
    pub(crate) fn length(self) -> usize {
        match self {
            Hash::Sha1 => 20,
            Hash::Sha256 => 32,
            Hash::Sha512 => 64,
        }
    }

    /// The digest of `first` and `second`.
    pub(crate) fn of(self, first: &[u8], second: &[u8]) -> Secret {
        fn digest<D: Digest>(first: &[u8], second: &[u8]) -> Secret {
            Zeroizing::new(D::new().chain_update(first).chain_update(second).finalize().to_vec())
        }
        match self {
            Hash::Sha1 => digest::<Sha1>(first, second),
            Hash::Sha256 => digest::<Sha256>(first, second),
            Hash::Sha512 => digest::<Sha512>(first, second),
        }
    }
}

/// A function that makes a key of a passphrase.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Derivation {
    Pbkdf2 { hash: Hash, iterations: u64 },
    Argon2 { id: bool, time: u32, memory: u32, lanes: u32 },
}

impl Derivation {
    /// Fills `key`. Errors: more work or memory than is spent, or numbers that cannot be.
    pub(crate) fn fill(
        &self,
        passphrase: &[u8],
        salt: &[u8],
        effort: &mut Effort,
        key: &mut [u8],
    ) -> Result<(), Fault> {
        match *self {
            Derivation::Pbkdf2 { hash, iterations } => {
                pbkdf2(hash, iterations, passphrase, salt, effort, key)
            }
            Derivation::Argon2 { id, time, memory, lanes } => {
                if memory > MOST_MEMORY || lanes > MOST_LANES {
                    return refused(format!(
                        "a key slot asks for {memory} KiB of memory in {lanes} lanes: {MOST_MEMORY} KiB in {MOST_LANES} are the most"
                    ));
                }
                let params = Params::new(memory, time, lanes, Some(key.len())).map_err(invalid)?;
                effort.spend(u64::from(memory) * BLOCK_WORK * u64::from(time))?;
                argon2(id, params, passphrase, salt, key)
            }
        }
    }
}

fn pbkdf2(
    hash: Hash,
    iterations: u64,
    passphrase: &[u8],
    salt: &[u8],
    effort: &mut Effort,
    key: &mut [u8],
) -> Result<(), Fault> {
    if iterations == 0 || iterations > MOST_ITERATIONS {
        return refused(format!(
            "a key slot or digest asks for {iterations} iterations: 1 to {MOST_ITERATIONS} are done"
        ));
    }
    // Each digest's worth of the key takes all of them.
    effort.spend(iterations.saturating_mul(key.len().div_ceil(hash.length()) as u64))?;
    let rounds = u32::try_from(iterations).unwrap_or(u32::MAX);
    match hash {
        Hash::Sha1 => pbkdf2_hmac::<Sha1>(passphrase, salt, rounds, key),
        Hash::Sha256 => pbkdf2_hmac::<Sha256>(passphrase, salt, rounds, key),
        Hash::Sha512 => pbkdf2_hmac::<Sha512>(passphrase, salt, rounds, key),
    }
    Ok(())
}

fn argon2(
    id: bool,
    params: Params,
    passphrase: &[u8],
    salt: &[u8],
    key: &mut [u8],
) -> Result<(), Fault> {
    let mut blocks: Vec<Block> = Vec::new();
    if blocks.try_reserve_exact(params.block_count()).is_err() {
        let memory = params.m_cost();
        return refused(format!("a key slot needs {memory} KiB of memory, which are not here"));
    }
    blocks.resize(params.block_count(), Block::default());
    let algorithm = if id { Algorithm::Argon2id } else { Algorithm::Argon2i };
    let function = Argon2::new(algorithm, Version::V0x13, params);
    let made = function.hash_password_into_with_memory(passphrase, salt, key, &mut blocks);
    blocks.iter_mut().for_each(Zeroize::zeroize);
    made.map_err(invalid)
}

fn invalid(error: argon2::Error) -> Fault {
    Fault::Refused(format!("a key slot's Argon2: {error}"))
}

/// Work that is left for deriving keys.
pub(crate) struct Effort(u64);

impl Default for Effort {
    fn default() -> Effort {
        Effort(MOST_WORK)
    }
}

impl Effort {
    /// Effort of so many iterations.
    pub(crate) fn of(work: u64) -> Effort {
        Effort(work)
    }

    /// Takes `work` iterations off. Errors: there are not as many left.
    pub(crate) fn spend(&mut self, work: u64) -> Result<(), Fault> {
        let Some(left) = self.0.checked_sub(work) else {
            return refused(
                "its key slots, with those before, ask for more work than is done here",
            );
        };
        self.0 = left;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_asks_for_is_bounded() {
        let why = |derivation: Derivation, effort: &mut Effort| match derivation.fill(
            b"key",
            &[1; 32],
            effort,
            &mut [0; 32],
        ) {
            Err(Fault::Refused(why)) => why,
            _ => String::new(),
        };
        let effort = &mut Effort::default();
        let argon2 = |time, memory, lanes| Derivation::Argon2 { id: true, time, memory, lanes };
        let pbkdf2 = |iterations| Derivation::Pbkdf2 { hash: Hash::Sha256, iterations };
        for (derivation, want) in [
            (pbkdf2(0), "1 to 50000000"),
            (pbkdf2(u64::MAX), "1 to 50000000"),
            (argon2(1, MOST_MEMORY + 1, 1), "1048576 KiB"),
            (argon2(1, 64, MOST_LANES + 1), "in 64 are the most"),
            (argon2(u32::MAX, MOST_MEMORY, 1), "more work"),
            (argon2(1, 0, 1), "Argon2: "),
            (argon2(1, 64, 0), "Argon2: "),
            (argon2(0, 64, 1), "Argon2: "),
        ] {
            let said = why(derivation, effort);
            assert!(said.contains(want), "{said}");
        }
        assert_eq!(effort.0, MOST_WORK);
        // What was spent on one volume is not there for the next.
        effort.0 = 1500;
        assert_eq!(why(pbkdf2(1000), effort), "");
        assert!(why(pbkdf2(1000), effort).contains("with those before"));
    }
}
