//! `crypt`: an encrypted device of Linux's device mapper (dm-crypt), as LUKS lays it out.
//!
//! # Rules
//! - **The payload** begins `offset` bytes into the device, behind the LUKS header.
//! - **The sector** of the device is the larger of the encryption sector and that of the device
//!   beneath (`crypt_io_hints` in drivers/md/dm-crypt.c). Nothing smaller is asked, so no write
//!   causes a read: a client that writes a part of a sector reads it first, above this layer. A
//!   device of no whole number of encryption sectors is refused (cryptsetup 2.6.1).
//! - **A request is cut** into pieces of `max-read` or `max-write` bytes from its beginning, on no
//!   grain (`get_max_request_sectors`, since Linux 6.11). A piece of a write is at most 1 MiB in
//!   every kernel (256 pages).
//! - **A flush** passes, and a write with FUA is one in each of its pieces.
//!
//! # Limits
//! No integrity (`--integrity`), whose tags are another device. Zoned devices, whose writes are not
//! cut, are not modelled.
//!
//! # Measured
//! Linux 6.1.0 (`max-read = 0`, `max-write = 0`) and 6.12.85 (the defaults) in a guest, LUKS2 of
//! cryptsetup 2.6.1, with the recordings `tests/kernel/layers/crypt-*.txt`: every request equals.

use super::steps::Steps;
use super::{Layer, LayerKind, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use serde::Deserialize;
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{is_whole, round_down};
use trueline_sim::model::keys::names;

/// The layer `crypt` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "crypt",
    title: "an encrypted device of the device mapper (LUKS)",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(Crypt::new(parameters(keys)?)?)),
};

/// The most bytes of a write in every kernel (`BIO_MAX_VECS` pages).
const LARGEST_WRITE: u64 = 256 * PAGE;

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The bytes of an encryption sector.
    pub sector: u64,
    /// The first byte of the payload; 16 MiB is LUKS2's of cryptsetup, 2 MiB LUKS1's.
    pub offset: u64,
    /// The most bytes of a read; 0 without a limit, as before Linux 6.11.
    pub max_read: u64,
    /// The most bytes of a write; 0 without a limit but 1 MiB.
    pub max_write: u64,
}

impl Default for Keys {
    fn default() -> Keys {
        // DM_CRYPT_DEFAULT_MAX_READ_SIZE and DM_CRYPT_DEFAULT_MAX_WRITE_SIZE.
        Keys { sector: 512, offset: 16 << 20, max_read: 128 << 10, max_write: 128 << 10 }
    }
}

/// An encrypted device over another.
struct Crypt {
    keys: Keys,
    /// The device's sector size in bytes.
    sector: u64,
}

impl Crypt {
    fn new(keys: Keys) -> Result<Crypt, Error> {
        let Keys { sector, offset, .. } = keys;
        if !sector.is_power_of_two() || !(512..=PAGE).contains(&sector) {
            return Err(Error::new(format!(
                "sector = {sector}: a power of two from 512 to {PAGE} bytes"
            )));
        }
        if !is_whole(offset, 512) {
            return Err(Error::new(format!("offset = {offset}: a multiple of 512 bytes")));
        }
        Ok(Crypt { keys, sector })
    }

    /// The most bytes of a piece: the limit in whole sectors, and one at least.
    fn largest(&self, op: Op) -> u64 {
        let limit = |most: u64| if most == 0 { u64::MAX } else { most };
        let most = match op {
            Op::Read => limit(self.keys.max_read),
            Op::Write | Op::Flush => limit(self.keys.max_write).min(LARGEST_WRITE),
        };
        round_down(most, self.sector).max(self.sector)
    }
}

impl Layer for Crypt {
    fn length(&self, beneath: u64) -> u64 {
        round_down(beneath.saturating_sub(self.keys.offset), self.keys.sector)
    }

    fn sector(&self, beneath: u64) -> u64 {
        beneath.max(self.keys.sector)
    }

    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let Keys { sector: own, offset, .. } = self.keys;
        self.sector = self.sector(sector);
        if !is_whole(offset, sector) {
            return Err(Error::new(format!(
                "offset = {offset}: a multiple of the {sector} bytes of a sector beneath"
            )));
        }
        if offset >= length {
            return Err(Error::new(format!("offset = {offset}: {length} bytes are beneath")));
        }
        if !is_whole(length, own) {
            return Err(Error::new(format!(
                "sector = {own}: the {length} bytes beneath are no whole number of these"
            )));
        }
        Ok(())
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        if ask.op == Op::Flush {
            steps.add(ask);
            return Ok(());
        }
        let largest = self.largest(ask.op);
        let begin = ask.offset.checked_add(self.keys.offset).ok_or(Errno::Range)?;
        let mut done = 0;
        while done < ask.length {
            let length = (ask.length - done).min(largest);
            steps.add(Ask { offset: begin + done, length, ..ask });
            done += length;
        }
        Ok(())
    }
}
