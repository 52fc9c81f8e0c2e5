//! FreeBSD's own sets: `gstripe2`, `gstripe2:16k`, `gmirror2`. Metadata are in each member's last
//! sector, so data begin with the member.
//!
//! # Topology
//! Linux's md has the same classes ([`crate::plan::md`]); these have no data offset.
//!
//! # Sources
//! gstripe(8): `label -s` (64 KiB by default, a power of two); gmirror(8): `label -b` (load, or
//! round-robin). The seeds' striped UFS2.

use super::{
    Above, Choice, Host, Layer, LayerBase, Plan, Price, Value, describe_unit, powers, unit,
    unit_size,
};
use crate::base::size;
use crate::base::topology::{Source, Topology, is_whole, round_down};

/// Default chunk of gstripe, in bytes.
const CHUNK: u64 = 64 << 10;

/// Stripe or mirror of GEOM.
pub(super) struct Set {
    disks: u64,
    /// Chunk of a stripe in bytes; `None` for a mirror.
    chunk: Option<u64>,
}

/// Number of disks in `gstripe2` and its kind, 2 to 255; `None` for other text.
fn disks(text: &str) -> Option<u64> {
    text.strip_prefix('x').unwrap_or(text).parse().ok().filter(|n| (2..=255).contains(n))
}

/// The stripe that `gstripe2` or `gstripe2:16k` names; `None` for another word.
pub(super) fn stripe(word: &str) -> Option<Box<dyn Layer>> {
    let (count, chunk) = word
        .strip_prefix("gstripe")?
        .split_once(':')
        .map_or((word.strip_prefix("gstripe")?, None), |(n, c)| (n, Some(c)));
    let chunk = match chunk {
        Some(text) => {
            size::bytes(text).filter(|&c| c.is_power_of_two() && (4096..=1 << 30).contains(&c))?
        }
        None => CHUNK,
    };
    Some(Box::new(Set { disks: disks(count)?, chunk: Some(chunk) }))
}

/// The mirror that `gmirror2` names; `None` for another word.
pub(super) fn mirror(word: &str) -> Option<Box<dyn Layer>> {
    Some(Box::new(Set { disks: disks(word.strip_prefix("gmirror")?)?, chunk: None }))
}

impl Layer for Set {
    fn disks(&self) -> u64 {
        self.disks
    }

    fn host(&self) -> Host {
        Host::FreeBsd
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let names = base.arguments();
        // The last sector of each holds the metadata.
        let member = t.shift(0, t.length.saturating_sub(t.sector));
        let (topology, name) = match self.chunk {
            Some(chunk) => {
                let why = format!("gstripe's own, or as named; {}", describe_unit(t));
                let mut choice = Choice::new("gstripe", "chunk", Value::Bytes(chunk), why)
                    .typed(format!("-s {chunk}"));
                for other in
                    powers(16 << 10, 128 << 10).filter(|&c| c != chunk && is_whole(c, unit_size(t)))
                {
                    choice = choice.or(
                        Value::Bytes(other),
                        Price::amplified(1.0),
                        format!("rows of {} bytes", other.saturating_mul(self.disks)),
                    );
                }
                plan.choose(choice);
                if unit(t).is_some_and(|f| !is_whole(chunk, f.grain.size())) {
                    plan.note(format!(
                        "gstripe: a chunk of {chunk} bytes is not whole units: the members' {} is cut at its edges",
                        describe_unit(t)
                    ));
                }
                plan.run(format!("gstripe label -s {chunk} data {names}"));
                let members = vec![member.clone(); usize::try_from(self.disks).unwrap_or(2)];
                let length = round_down(member.length, chunk).saturating_mul(self.disks);
                (Topology::stripe(&members, chunk, length, Source::Label), "/dev/stripe/data")
            }
            None => {
                let copies = f64::from(u32::try_from(self.disks).unwrap_or(u32::MAX));
                let why = "every write goes to all members; they begin alike, so what is on the \
                    grain of one is on that of all";
                let choice = Choice::new("gmirror", "members", Value::Count(self.disks, ""), why);
                plan.choose(
                    choice.costing(
                        Price::amplified(copies)
                            .losing(t.length.saturating_mul(self.disks - 1), "copies"),
                    ),
                );
                plan.run(format!("gmirror label data {names}"));
                (Topology::mirror(std::slice::from_ref(&member), member.length), "/dev/mirror/data")
            }
        };
        LayerBase { topology, names: vec![name.into()], whole: false, ..base.clone() }
    }
}
