//! Shape of a set in the numbers of Linux's md, and its names as mdadm(8) prints them.

/// Shape of a set: what a reshape changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaidShape {
    /// Level as md counts: -1 linear, 0, 1, 4, 5, 6, 10.
    pub level: i32,
    /// Layout; its meaning depends on the level.
    pub layout: u32,
    /// Chunk in bytes; 0 where there are no chunks.
    pub chunk: u64,
    /// Members with a role.
    pub disks: u32,
}

/// Layouts of RAID5 and RAID6 by number; from 16 on those of RAID5 with Q on the last member.
const ROTATIONS: [(u32, &str); 15] = [
    (0, "left-asymmetric"),
    (1, "right-asymmetric"),
    (2, "left-symmetric"),
    (3, "right-symmetric"),
    (4, "parity-first"),
    (5, "parity-last"),
    (8, "ddf-zero-restart"),
    (9, "ddf-N-restart"),
    (10, "ddf-N-continue"),
    (16, "left-asymmetric-6"),
    (17, "right-asymmetric-6"),
    (18, "left-symmetric-6"),
    (19, "right-symmetric-6"),
    (20, "parity-first-6"),
    (21, "parity-last-6"),
];

impl RaidShape {
    /// The name of the level.
    pub fn level_name(&self) -> String {
        match self.level {
            -100 => "container".into(),
            -5 => "faulty".into(),
            -4 => "multipath".into(),
            -1 => "linear".into(),
            n => format!("raid{n}"),
        }
    }

    /// The name of the layout; `None` for a level without layouts, and for a number without a name.
    pub fn layout_name(&self) -> Option<String> {
        match self.level {
            0 => named(&[(1, "original"), (2, "alternate")], self.layout),
            5 | 6 => named(&ROTATIONS, self.layout),
            10 => {
                let (near, far) = (self.layout & 0xff, self.layout >> 8 & 0xff);
                let back = if self.layout & 1 << 16 == 0 { "far" } else { "offset" };
                let many =
                    [("near", near), (back, far)].into_iter().filter(|(_, copies)| *copies > 1);
                let named: Vec<String> =
                    many.map(|(name, copies)| format!("{name}={copies}")).collect();
                (!named.is_empty()).then(|| named.join(", "))
            }
            _ => None,
        }
    }
}

/// The name of `number`; `None` for one without.
fn named(names: &[(u32, &str)], number: u32) -> Option<String> {
    names.iter().find(|(own, _)| *own == number).map(|(_, name)| (*name).to_string())
}
