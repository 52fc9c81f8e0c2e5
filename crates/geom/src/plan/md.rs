//! Linux md: `md5x4`, `md0x2:64k`: chunk, data offset of the members, the bitmap's chunk.
//!
//! # Topology
//! That of the class (`class/md.rs`), over members that are all alike.
//!
//! # Sources
//! mdadm(8): `--chunk` (a multiple of 4 KiB, a power of two with parity and on RAID10; 512K by
//! default), `--data-offset` (in KiB), `--bitmap-chunk` (64M or larger by default). mdadm leaves
//! 128 MiB before the data of a large member, less on a smaller one, so that a reshape needs no
//! backup file. The kernel's RAID5 writes pieces of a page: it reads the old data and parity, or
//! the rest of the row, unless the row is written whole (Documentation/driver-api/md/raid5-cache,
//! drivers/md/raid5.c).

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, describe_unit, powers, short, unit,
    unit_size, up,
};
use crate::base::size;
use crate::base::topology::{Topology, is_whole, round_down};
use crate::mapping::raid::layout::Layout;
use crate::mapping::raid::shape::RaidShape;

/// Default layouts of mdadm: of RAID5 and RAID6, and of RAID10 with two near copies.
const LEFT_SYMMETRIC: u32 = 2;
const NEAR_2: u32 = 0x102;
/// Default chunk of mdadm, in bytes.
const CHUNK: u64 = 512 << 10;
/// Largest space in bytes that mdadm leaves before the data.
const HEADROOM: u64 = 128 << 20;
/// Default chunk of mdadm's bitmap, in bytes.
const BITMAP: u64 = 64 << 20;

/// Set of the Linux md driver.
pub(super) struct Md {
    level: u64,
    disks: u64,
    chunk: Option<u64>,
}

/// The set that `md5x4` or `md5x4:64k` names; `None` for another word.
pub(super) fn parse(word: &str) -> Option<Box<dyn Layer>> {
    let (set, chunk) = word
        .strip_prefix("md")?
        .split_once(':')
        .map_or((word.strip_prefix("md")?, None), |(s, c)| (s, Some(c)));
    let (level, disks) = set.split_once('x')?;
    let (level, disks): (u64, u64) = (level.parse().ok()?, disks.parse().ok()?);
    let least =
        [(0, 2), (1, 2), (4, 3), (5, 3), (6, 4), (10, 2)].into_iter().find(|row| row.0 == level)?.1;
    let chunk = match chunk {
        Some(text) => Some(
            size::bytes(text).filter(|&c| c.is_power_of_two() && (4096..=1 << 30).contains(&c))?,
        ),
        None => None,
    };
    ((least..=384).contains(&disks) && !(level == 1 && chunk.is_some()))
        .then(|| Box::new(Md { level, disks, chunk }) as Box<dyn Layer>)
}

impl Md {
    fn parity(&self) -> u64 {
        match self.level {
            4 | 5 => 1,
            6 => 2,
            _ => 0,
        }
    }

    /// Number of members' worth of data in a row.
    fn data(&self) -> u64 {
        match self.level {
            1 => 1,
            // Two copies of each chunk; over an odd number of members two rows go together.
            10 if is_whole(self.disks, 2) => self.disks / 2,
            10 => self.disks,
            _ => self.disks - self.parity(),
        }
    }

    /// Bytes written by the members for one of the set's: in whole rows, and in small pieces.
    fn written(&self) -> (f64, f64) {
        let ratio = |a: u64, b: u64| {
            f64::from(u32::try_from(a).unwrap_or(u32::MAX))
                / f64::from(u32::try_from(b).unwrap_or(u32::MAX))
        };
        match self.level {
            0 => (1.0, 1.0),
            1 => (ratio(self.disks, 1), ratio(self.disks, 1)),
            10 => (2.0, 2.0),
            _ => (ratio(self.disks, self.data()), ratio(1 + self.parity(), 1)),
        }
    }

    /// The topology that the set offers over members like `member`: that of its class, in the
    /// layout that mdadm chooses.
    fn topology(&self, member: &Topology, chunk: u64) -> Topology {
        let layout = match self.level {
            5 | 6 => LEFT_SYMMETRIC,
            10 => NEAR_2,
            _ => 0,
        };
        let (Ok(level), Ok(disks)) = (i32::try_from(self.level), u32::try_from(self.disks)) else {
            return member.clone();
        };
        let members = vec![member.clone(); disks as usize];
        let rooms = vec![member.length; disks as usize];
        let shape = RaidShape { level, layout, chunk, disks };
        // Members without room for a chunk make no set.
        Layout::new(&shape, round_down(member.length, chunk), &rooms)
            .map_or_else(|_| member.clone(), |layout| layout.topology(&members, layout.length()))
    }
}

impl Layer for Md {
    fn disks(&self) -> u64 {
        self.disks
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let offset = data_offset(t);
        if is_whole(offset, 1024) {
            plan.choose(offset_choice(t, offset));
        } else {
            plan.note(format!(
                "md: data would have to begin at {offset} on each member, and \
                --data-offset counts in KiB: put the members in partitions on the grain"
            ));
        }
        let offset = if is_whole(offset, 1024) { offset } else { round_down(offset, 1024) };
        let member = t.shift(offset, t.length.saturating_sub(offset));
        let chunk = self.chunk.unwrap_or(CHUNK).max(if self.chunk.is_some() {
            0
        } else {
            up(unit_size(t), 4096)
        });
        if self.level != 1 {
            plan.choose(self.chunk_choice(t, chunk));
        }
        if unit(t).is_some_and(|f| !is_whole(chunk, f.grain.size())) {
            plan.note(format!(
                "md: a chunk of {chunk} bytes is not whole units: the members' {} is cut at its edges; take a multiple of {}",
                describe_unit(t),
                unit_size(t)
            ));
        }
        if let Some(row) = super::stripe(t)
            .and_then(|set| set.row)
            .filter(|&row| self.level != 1 && !is_whole(chunk, row))
        {
            plan.note(format!(
                "md: a chunk of {chunk} bytes is not whole rows of {row} of the set beneath: every chunk ends within one; the layers above get md's chunks"
            ));
        }
        let mut command = format!(
            "mdadm --create /dev/md0 --run --metadata=1.2 --level={} --raid-devices={}",
            self.level, self.disks
        );
        if self.level != 1 {
            command += &format!(" --chunk={}K", chunk / 1024);
        }
        command += &format!(" --data-offset={}K", offset / 1024);
        if self.level != 0 {
            let why = "mdadm's own; a bit for each, written before and after the first write to it";
            let bitmap = Choice::new("md", "bitmap chunk", Value::Bytes(BITMAP), why)
                .typed(format!("--bitmap=internal --bitmap-chunk={}", short(BITMAP)));
            let bits = |chunk: u64| {
                Price::amplified(1.0)
                    .losing((t.length / chunk).div_ceil(8), "the bitmap, on each member")
            };
            let bitmap = bitmap.costing(bits(BITMAP)).or(
                Value::Bytes(BITMAP * 4),
                bits(BITMAP * 4),
                "fewer writes to the bitmap, more to copy after a crash",
            );
            plan.choose(bitmap.or(
                Value::Bytes(BITMAP / 8),
                bits(BITMAP / 8),
                "less to copy after a crash, more writes to the bitmap",
            ));
            command += &format!(" --bitmap=internal --bitmap-chunk={}", short(BITMAP));
        }
        plan.run(format!("{command} {}", base.arguments()));
        LayerBase::device(self.topology(&member, chunk), "/dev/md0")
    }
}

impl Md {
    fn chunk_choice(&self, t: &Topology, chunk: u64) -> Choice {
        let (whole, small) = self.written();
        let parity = self.parity() > 0;
        let why = match self.chunk {
            Some(_) => "as named".to_owned(),
            None => format!("mdadm's own, and whole units: {}", describe_unit(t)),
        };
        let why = if parity {
            format!(
                "{why}; a row is {} bytes: small chunks make short rows, which more writes fill; large ones keep a read on one member. A write that fills no row takes {} operations, and {small:.0} bytes are written for each byte",
                chunk.saturating_mul(self.data()),
                2 + 2 * self.parity()
            )
        } else {
            why
        };
        let redundant = match self.level {
            10 => t.length.saturating_mul(self.disks) / 2,
            _ => t.length.saturating_mul(self.parity()),
        };
        let price = || {
            Price::amplified(whole).losing(
                redundant,
                if parity {
                    "parity"
                } else if self.level == 10 {
                    "second copies"
                } else {
                    ""
                },
            )
        };
        let mut choice = Choice::new("md", "chunk", Value::Bytes(chunk), why)
            .typed(format!("--chunk={}K", chunk / 1024))
            .costing(price());
        for other in powers(64 << 10, 1 << 20).filter(|&c| c != chunk && is_whole(c, unit_size(t)))
        {
            let row = other.saturating_mul(self.data());
            choice = choice.or(Value::Bytes(other), price(), format!("rows of {row} bytes"));
        }
        choice
    }
}

/// Data offset in bytes that mdadm would leave, rounded up to the member's boundaries.
fn data_offset(t: &Topology) -> u64 {
    // Halved until it is a thousandth of the member.
    let room = std::iter::successors(Some(HEADROOM), |room| Some(room / 2))
        .find(|&room| room <= (1 << 20) || room.saturating_mul(1024) <= t.length);
    let least = room.unwrap_or(1 << 20).max(1 << 20);
    super::partition::grain(t).0.and_then(|g| g.next(least)).unwrap_or(least)
}

fn offset_choice(t: &Topology, offset: u64) -> Choice {
    let why = format!(
        "the data of each member begin on the {}; the room before them is for reshaping",
        describe_unit(t)
    );
    let choice = Choice::new("md", "data offset", Value::Bytes(offset), why)
        .typed(format!("--data-offset={}K", offset / 1024));
    choice.costing(Price::amplified(1.0).losing(offset, "on each member"))
}
