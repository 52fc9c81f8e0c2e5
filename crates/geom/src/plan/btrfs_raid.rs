//! Btrfs over several disks: `btrfs-raid1x2`, `btrfs-raid10x4`; the writes of its profiles.
//!
//! Chunks are cut into stripes of 64 KiB, which begin on multiples of 1 MiB and more of each disk,
//! whatever the profile.
//!
//! # Sources
//! mkfs.btrfs(8), "PROFILES": copies and least disks of each; `-d`, `-m`; btrfs(5), "RAID56 STATUS
//! AND RECOMMENDED PRACTICES" (metadata not in raid5 or raid6). Stripes of 64 KiB:
//! `BTRFS_STRIPE_LEN`.

use super::btrfs::Parameters;
use super::{Above, Choice, Files, Layer, LayerBase, Plan, Price, Value, describe_unit, written};

/// Stripe on one disk, in bytes.
const STRIPE: u64 = 64 << 10;

/// Profile of data: the least number of disks, copies of each byte, disks of parity.
struct Profile {
    name: &'static str,
    least: u64,
    copies: u64,
    parity: u64,
    /// Profile of the metadata that goes with it.
    metadata: &'static str,
}

static PROFILES: &[Profile] = &[
    Profile { name: "single", least: 2, copies: 1, parity: 0, metadata: "raid1" },
    Profile { name: "raid0", least: 2, copies: 1, parity: 0, metadata: "raid1" },
    Profile { name: "raid1", least: 2, copies: 2, parity: 0, metadata: "raid1" },
    Profile { name: "raid1c3", least: 3, copies: 3, parity: 0, metadata: "raid1c3" },
    Profile { name: "raid1c4", least: 4, copies: 4, parity: 0, metadata: "raid1c4" },
    Profile { name: "raid10", least: 4, copies: 2, parity: 0, metadata: "raid10" },
    Profile { name: "raid5", least: 3, copies: 1, parity: 1, metadata: "raid1" },
    Profile { name: "raid6", least: 4, copies: 1, parity: 2, metadata: "raid1c3" },
];

/// File system over `disks` disks.
struct Raid {
    profile: &'static Profile,
    disks: u64,
}

/// The file system that a word such as `btrfs-raid1x2` names; `None` for another word.
pub(super) fn parse(word: &str) -> Option<Box<dyn Layer>> {
    let (name, disks) = word.strip_prefix("btrfs-")?.split_once('x')?;
    let profile = PROFILES.iter().find(|p| p.name == name)?;
    let disks = disks.parse().ok().filter(|n| (profile.least..=64).contains(n))?;
    Some(Box::new(Raid { profile, disks }))
}

impl Layer for Raid {
    fn disks(&self) -> u64 {
        self.disks
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let (t, p) = (&base.topology, Parameters::for_topology(&base.topology));
        let ratio = |a: u64, b: u64| {
            f64::from(u32::try_from(a).unwrap_or(u32::MAX))
                / f64::from(u32::try_from(b.max(1)).unwrap_or(u32::MAX))
        };
        let times = match self.profile.parity {
            0 => ratio(self.profile.copies, 1),
            parity => ratio(self.disks, self.disks - parity),
        };
        let all = t.length.saturating_mul(self.disks);
        let lost = match self.profile.parity {
            0 => all / self.profile.copies * (self.profile.copies - 1),
            parity => t.length.saturating_mul(parity),
        };
        let why = format!(
            "stripes of {STRIPE} bytes on each disk, on whole MiB of it; {}",
            describe_unit(t)
        );
        let choice = Choice::new("btrfs", "data profile", Value::word(self.profile.name), why)
            .typed(format!("-d {}", self.profile.name));
        plan.choose(
            choice.costing(
                Price::amplified(times * written(t, STRIPE, STRIPE))
                    .losing(lost, if lost > 0 { "copies or parity" } else { "" }),
            ),
        );
        let meta = self.profile.metadata;
        let why = "trees survive what the data survive, in whole copies";
        plan.choose(
            Choice::new("btrfs", "metadata profile", Value::word(meta), why)
                .typed(format!("-m {meta}"))
                .costing(Price::amplified(written(t, p.node, p.node))),
        );
        if self.profile.parity > 0 {
            plan.note(
                "btrfs: raid5 and raid6 have a write hole: a crash may leave parity that does not belong to its row: scrub after each",
            );
        }
        let options = format!("{} -d {} -m {meta}", p.options().join(" "), self.profile.name);
        plan.run(format!("mkfs.btrfs {options} {}", base.arguments()));
        super::btrfs::choices(p, base, plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "btrfs", grid: p.sector, whole_blocks: false })
    }
}
