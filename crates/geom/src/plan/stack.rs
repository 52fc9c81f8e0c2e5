//! Uses: stacks of layers in the user's words, `md5x4+luks+lvm+xfs`, and their layout on a disk.

use super::uses::{LayerKind, USES};
use super::{Above, Host, Layer, LayerBase, Note, Plan, partition};
use crate::base::topology::Topology;

mod invalid;

pub use invalid::InvalidUse;

/// Base that a layer stands on, or offers to those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseKind {
    /// Whole disks, one or several.
    Disks,
    /// One device: a disk, partition, set or volume.
    Device,
    /// Files in a directory.
    Files,
    /// Files, or one device.
    Either,
    /// No layer stands on it.
    Nothing,
}

/// Stack of layers, from the bottom.
pub struct Use {
    layers: Vec<(&'static LayerKind, Box<dyn Layer>)>,
    /// Layers (name, of the one above) that were put beneath because none was named there.
    implied: Vec<(&'static str, &'static str)>,
}

/// Largest number of layers, more than any stack has.
const DEEPEST: usize = 16;

impl Use {
    /// Parses a use such as `md5x4+luks+lvm+xfs`.
    pub fn parse(text: &str) -> Result<Use, InvalidUse> {
        let (mut wanted, mut place) =
            (Use { layers: Vec::new(), implied: Vec::new() }, BaseKind::Disks);
        for word in text.split('+').map(str::trim) {
            let (kind, layer) = parse_layer(word)?;
            if wanted.layers.len() >= DEEPEST {
                return Err(InvalidUse::TooDeep);
            }
            // A pool or a volume may be handed to a guest as it is; a whole disk needs a file
            // system first.
            let files = kind.on == BaseKind::Files
                && place != BaseKind::Nothing
                && !matches!(place, BaseKind::Files | BaseKind::Either);
            if files || kind.on == BaseKind::Either && place == BaseKind::Disks {
                let (beneath, layer) = parse_layer(kind.beneath)?;
                wanted.implied.push((beneath.name, kind.name));
                wanted.layers.push((beneath, layer));
                place = BaseKind::Files;
            }
            // Below everything there are disks; md and RAID-Z are made of them.
            let fits = match (place, kind.on) {
                (BaseKind::Disks, BaseKind::Disks) => wanted.layers.is_empty(),
                (BaseKind::Nothing, _) | (_, BaseKind::Disks) => false,
                (BaseKind::Files, on) => on != BaseKind::Device,
                (BaseKind::Disks | BaseKind::Device | BaseKind::Either, _) => true,
            };
            if !fits {
                let below = wanted.layers.last().map_or("nothing", |(below, _)| below.name);
                return Err(InvalidUse::Misplaced { layer: word.into(), below });
            }
            place = kind.gives;
            wanted.layers.push((kind, layer));
        }
        Ok(wanted)
    }

    /// Number of disks that it is made of.
    pub fn disks(&self) -> u64 {
        self.layers.first().map_or(1, |(_, layer)| layer.disks())
    }
}

impl Use {
    /// System on which its commands are typed, with disks that are like `disk`, or images of them.
    pub fn host(&self, disk: &Topology, images: bool) -> Host {
        let mut hosts = self.layers.iter().map(|(_, layer)| layer.host());
        match &self.layers[..] {
            _ if hosts.any(|host| host == Host::FreeBsd) => Host::FreeBsd,
            [(_, layer)] if images && layer.in_image(disk) => Host::Image,
            _ => Host::Linux,
        }
    }
}

fn parse_layer(word: &str) -> Result<(&'static LayerKind, Box<dyn Layer>), InvalidUse> {
    let found = USES.iter().find_map(|kind| Some((kind, kind.layer(word)?)));
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    found.ok_or_else(|| {
        if word.strip_prefix("md").is_some_and(digit) {
            return InvalidUse::Set(word.into());
        }
        if word.starts_with("raidz") {
            return InvalidUse::Pool(word.into());
        }
        match word.strip_prefix("raid").filter(|rest| digit(rest)) {
            Some(level) => {
                let md = format!("md{level}");
                let is_set = USES.iter().any(|kind| kind.layer(&md).is_some());
                let set = if is_set { md } else { "md5x4".into() };
                InvalidUse::Level { word: word.into(), set }
            }
            None => InvalidUse::Unknown { word: word.into(), near: near(word) },
        }
    })
}

/// Names that `word` may have been meant for, the nearest first: at most three.
pub(super) fn near(word: &str) -> Vec<&'static str> {
    let word = word.to_lowercase();
    // Sets are distinguished by their letters: the rest is numbers.
    let letters = |text: &str| text.chars().filter(|c| c.is_ascii_alphabetic()).collect::<String>();
    let wanted = letters(&word);
    let distance = |name: &'static str| {
        let name = letters(name);
        let holds = wanted.len() >= 3
            && (name.contains(&wanted) || wanted.contains(&name) && name.len() >= 3);
        if holds { 1 } else { edits(&wanted, &name) }
    };
    let names = USES.iter().flat_map(|kind| {
        [kind.name]
            .into_iter()
            .chain(kind.also.iter().copied())
            .map(move |name| (distance(name), kind.name))
    });
    let mut near: Vec<(usize, &str)> =
        names.filter(|&(far, name)| far <= 1 + wanted.len().min(name.len()) / 4).collect();
    near.sort_by_key(|&(far, _)| far);
    let mut found: Vec<&str> = Vec::new();
    for (_, name) in near {
        if !found.contains(&name) && found.len() < 3 {
            found.push(name);
        }
    }
    found
}

/// Edit distance (Levenshtein) between `a` and `b` in letters. Only the first 32 count: a longer
/// word is far from all.
pub fn edits(a: &str, b: &str) -> usize {
    const LONGEST: usize = 32;
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(LONGEST).collect(), b.chars().take(LONGEST).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let exchanged = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(before + 1);
        }
    }
    row.last().copied().unwrap_or(a.len())
}

/// Adds the layout of `wanted` on `disk` to the plan, a partition over every whole disk first.
pub(super) fn lay(wanted: &Use, disk: LayerBase, plan: &mut Plan) {
    let mut base = disk;
    for (beneath, above) in &wanted.implied {
        plan.note(format!(
            "nothing is named beneath {above}: {beneath} is taken; name another as \
            {beneath}+{above}"
        ));
    }
    let presumed: Vec<_> =
        wanted.layers.iter().filter_map(|(_, layer)| layer.presumes(&base.topology)).collect();
    for fact in presumed {
        plan.note(Note::Presumed { why: fact.why, bytes: fact.grain.size() });
        base.topology.facts.push(fact);
    }
    if !base.whole {
        partition::given(&base, plan);
    }
    for (at, (kind, layer)) in wanted.layers.iter().enumerate() {
        let above = wanted.layers.get(at + 1).map_or(Above::default(), |(above, _)| Above {
            name: Some(above.name),
            device: above.on == BaseKind::Device,
            page: above.page,
            extent: above.extent,
        });
        if base.whole && at > 0 {
            plan.run("# in the guest");
        }
        if base.whole {
            base = match layer.table(&base.topology) {
                Some(own) => partition::lay_own(&base, &own, plan),
                None => partition::lay(&base, kind.partition, plan),
            };
        }
        base = layer.lay(&base, above, plan);
    }
}
