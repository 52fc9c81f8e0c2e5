//! `luks`: the payload of an encrypted volume, in the clear, where the graph has a key for it.
//!
//! # On disk
//! LUKS1 and LUKS2, as [`crate::format::luks`] recognises them. Key slots are read and keys derived
//! by the [`Unlock`](crate::probe::unlock::Unlock) that the graph was given; without one this class
//! finds nothing, and the volume is a format whose payload is noise.
//!
//! # Topology
//! Boundaries beneath, shifted by the payload's offset. With integrity the payload is a volume of
//! dm-integrity ([`super::integrity`]), and its areas of data have the boundaries. The logical
//! sector is no smaller than the encryption sector, as dm-crypt has it; the encryption sector is no
//! further unit of I/O.
//!
//! # Limits
//! Read only. A volume whose payload is on another device, with another integrity than HMAC, or in
//! the middle of a reencryption stays closed, with the reason. Tags are not verified: what the
//! kernel would refuse to read is shown as it is.
//!
//! # Sources
//! cryptsetup: "LUKS On-Disk Format Specification" 1.2.3; "LUKS2 On-Disk Format Specification" 1.1;
//! Linux `drivers/md/dm-crypt.c` (`crypt_io_hints`).

use super::integrity::Areas;
use super::{Assembly, Below, Claim, Class, Layer, Member, Present, Taste};
use crate::base::error::Errno;
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::{Topology, round_down};
use crate::format::luks::KIND;
use crate::format::{self, Sign, integrity};
use crate::mapping::geom::{Extent, Geom, Op, ReadConsumer, Slot};
use crate::probe::Probe;
use crate::probe::unlock::{Decrypt, Locked, Payload};
use std::sync::Arc;

/// The class `luks`, for volumes that were unlocked.
pub struct Luks;

/// Largest encryption sector in bytes.
const LARGEST_SECTOR: usize = 4096;

impl Class for Luks {
    fn name(&self) -> &'static str {
        "luks"
    }

    fn sign(&self) -> Option<format::FormatKind> {
        Some(KIND)
    }

    fn judges_data_areas(&self) -> bool {
        true
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(keys) = probe.keys() else { return Taste::No };
        let Some(sign) = KIND.format.recognise(probe) else { return Taste::No };
        let opened = keys
            .luks(probe.length(), &mut |buffer, offset| probe.map(offset, buffer))
            .and_then(|payload| Volume::new(name(&sign), payload, probe));
        match opened {
            Ok(volume) => Taste::Member(member(&sign, volume)),
            Err(Locked(why)) => {
                let message = format!("the {KIND} volume stays closed: {why}");
                Taste::Refused(vec![Finding::new(&finding::BLIND, Severity::Warning, 0, message)])
            }
        }
    }

    fn waits_for_contents(&self) -> bool {
        true
    }

    fn joins(&self) -> bool {
        false
    }

    fn build(&self, present: &[Present<'_>], _degraded: bool) -> Option<Assembly> {
        let volume = present.first()?.member.claim.get::<Arc<Volume>>()?;
        let findings = volume.pending.iter().cloned().collect();
        let layer = Layer { findings, ..Layer::new(volume.clone(), vec![Below::Member(0)]) };
        Some(Assembly { layers: vec![layer], here: vec![0], ..Assembly::default() })
    }
}

/// The name of the volume's provider. A UUID that is none would be a name that cannot be typed.
fn name(sign: &Sign) -> String {
    let plain = |text: &&str| text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let uuid = sign.uuid.as_deref().filter(plain).filter(|uuid| !uuid.is_empty());
    format!("luks/{}", uuid.unwrap_or("volume"))
}

fn member(sign: &Sign, volume: Volume) -> Member {
    let (set, provider) = (sign.uuid.clone().unwrap_or_default(), volume.name.clone());
    let length = volume.length;
    let claim = Claim::new(Arc::new(volume));
    // Without a UUID it is still the member of a set.
    let set = if set.is_empty() { provider.clone() } else { set };
    Member { set, provider, number: Some(0), count: 1, enough: 1, chunk: 0, length, claim }
}

/// Volume that was unlocked, over one consumer.
struct Volume {
    name: String,
    /// First byte of the payload.
    start: u64,
    length: u64,
    /// Bytes that are encrypted at once.
    sector: u64,
    cipher: Arc<dyn Decrypt>,
    /// Places of the sectors among their tags; `None` for a volume without.
    areas: Option<integrity::Layout>,
    /// Finding about the journal of a volume with tags.
    pending: Option<Finding>,
}

impl Volume {
    /// The volume on a provider; the payload must lie on it.
    fn new(name: String, payload: Payload, probe: &Probe<'_>) -> Result<Volume, Locked> {
        let Payload { offset: start, length, sector, tagged, cipher } = payload;
        let locked = |why: String| Err(Locked(why));
        if !sector.is_power_of_two() || !(512..=LARGEST_SECTOR as u64).contains(&sector) {
            return locked(format!("its encryption sector would be of {sector} bytes"));
        }
        if !start.is_multiple_of(512) {
            return locked(format!("its data would begin at byte {start}, in no whole sector"));
        }
        if start == 0 {
            return locked("its header is detached: the data are on another device".into());
        }
        let Some(behind) = probe.length().checked_sub(start) else {
            return locked(format!("its data would begin past the end, at byte {start}"));
        };
        let length = length.unwrap_or(round_down(behind, sector));
        if length == 0 || length > behind || !length.is_multiple_of(sector) {
            return locked(format!(
                "it says that its data are {length} bytes in sectors of {sector}: {behind} bytes are here"
            ));
        }
        let volume = Volume { name, start, length, sector, cipher, areas: None, pending: None };
        if tagged { volume.between_tags(probe) } else { Ok(volume) }
    }

    /// The same volume with its sectors between the tags of dm-integrity.
    fn between_tags(self, probe: &Probe<'_>) -> Result<Volume, Locked> {
        let locked = |why: String| Err(Locked(why));
        let Some(sb) = integrity::read(probe, self.start) else {
            return locked("the superblock that says where its tags lie is not there".into());
        };
        let found = sb.layout(self.length).map_err(|why| Locked(why.words().into()))?;
        let Some(areas) = found.from(self.start).filter(|_| found.block == self.sector) else {
            let (own, block) = (self.sector, found.block);
            return locked(format!("its sectors of {own} bytes have tags for {block}"));
        };
        let pending = areas.journal.finding(probe, self.start);
        Ok(Volume { length: areas.length, areas: Some(areas), pending, ..self })
    }

    /// The byte on the consumer of byte `offset` of the volume, and the bytes from there that lie
    /// in one piece.
    fn place(&self, offset: u64) -> Option<(u64, u64)> {
        match &self.areas {
            Some(areas) => areas.place(offset),
            None => Some((self.start.checked_add(offset)?, u64::MAX)),
        }
    }

    /// Fills `sectors`, whole encryption sectors, with the plain text at `offset`.
    fn read(
        &self,
        offset: u64,
        sectors: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        let (mut at, mut rest) = (offset, &mut *sectors);
        while !rest.is_empty() {
            let (place, left) = self.place(at).ok_or(Errno::Range)?;
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let (part, after) = rest.split_at_mut(step);
            read(0, part, place)?;
            (at, rest) = (at + step as u64, after);
        }
        self.cipher.decrypt(offset, sectors);
        Ok(())
    }

    /// Fills `part`, of one sector, from `offset`.
    fn read_part(
        &self,
        offset: u64,
        part: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        let index = |bytes: u64| usize::try_from(bytes).map_err(|_| Errno::Range);
        let whole = round_down(offset, self.sector);
        let (from, size) = (index(offset - whole)?, index(self.sector)?);
        let mut sector = [0; LARGEST_SECTOR];
        let sector = sector.get_mut(..size).ok_or(Errno::Range)?;
        self.read(whole, sector, read)?;
        part.copy_from_slice(sector.get(from..from + part.len()).ok_or(Errno::Range)?);
        Ok(())
    }
}

impl Geom for Volume {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        let Some(below) = below.first() else { return Topology::new(self.sector, self.length) };
        let sector = below.sector.max(self.sector);
        let top = match self.areas {
            Some(areas) => Areas::new(areas).topology(0, std::slice::from_ref(below)),
            None => below.shift(self.start, self.length),
        };
        Topology { sector, ..top }
    }

    fn map(&self, _slot: usize, _offset: u64, length: u64, op: Op) -> Extent {
        match op {
            Op::Read => Extent::Rebuilt { length },
            Op::Write => Extent::ReadOnly { length },
        }
    }

    fn rebuild(
        &self,
        _slot: usize,
        offset: u64,
        buffer: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let (past, left) = (at % self.sector, rest.len() as u64);
            let whole = if past == 0 { round_down(left, self.sector) } else { 0 };
            let step = if whole > 0 { whole } else { left.min(self.sector - past) };
            let (part, after) = rest
                .split_at_mut_checked(usize::try_from(step).map_err(|_| Errno::Range)?)
                .ok_or(Errno::Range)?;
            if whole > 0 {
                self.read(at, part, read)?;
            } else {
                self.read_part(at, part, read)?;
            }
            (at, rest) = (at + step, after);
        }
        Ok(())
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        Some("it is decrypted here, never encrypted")
    }
}

#[cfg(test)]
mod tests;
