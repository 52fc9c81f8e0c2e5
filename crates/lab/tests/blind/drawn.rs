//! A drive that is drawn at random, and what a probe of it answers.

use crate::noise::{Noise, Noisy};
use std::fmt;
use trueline_geom::base::topology::{Grain, Why};
use trueline_geom::mapping::route::Route;
use trueline_lab::probe::{ProbeSetup, ProbeVerdict, probe};
use trueline_lab::rig::Op;
use trueline_lab::rig::simulated::Simulated;
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// A drive with hidden units.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    kind: &'static str,
    model: Model,
    noise: Noise,
    seconds: u64,
    erase: Option<u64>,
}

/// What a probe says, held against what is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Right,
    Wrong(String),
    Unsure(String),
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Model { physical_block_size, .. } = self.model;
        write!(
            f,
            "{}: unit {physical_block_size}, phase {}, {:?}, {:?}",
            self.kind,
            self.model.phase(),
            self.noise,
            self.model.kind()
        )
    }
}

/// Bytes between boundaries of two grains of one size.
pub(crate) fn off(one: Grain, other: Grain) -> u64 {
    let apart = one.remainder(other.phase());
    apart.min(one.size() - apart)
}

const CARD: &str = "card 4 MiB";
const KINDS: [&str; 8] = [
    "disk command",
    "disk stream",
    "disk window",
    "disk log",
    "ssd",
    "ssd buffered",
    "ssd protected",
    CARD,
];

/// One of a few values, at random.
pub(crate) fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[usize::try_from(random.below(of.len() as u64)).expect("an index")]
}

/// A number from `first` to `last`, at random.
pub(crate) fn between(random: &mut Random, first: u64, last: u64) -> u64 {
    first + random.below(last - first + 1)
}

impl Drawn {
    pub(crate) fn new(seed: u64) -> Drawn {
        let mut random = Random::new(seed ^ 0x7072_6f62);
        let kind = one(&mut random, &KINDS);
        let is_card = kind == CARD;
        let unit = if is_card { 8192 << random.below(4) } else { 512u64 << random.below(8) };
        let offset = random.below(unit / 512) * 512;
        let noise = Noise {
            spread: one(&mut random, &[0.0, 0.02, 0.05, 0.1]),
            drift: one(&mut random, &[0.0, 0.05, 0.1]),
            pauses: one(&mut random, &[0.0, 1.0, 10.0]),
            // Another program would close a card's few open units before each request.
            others: if is_card { 0.0 } else { one(&mut random, &[0.0, 1.0, 5.0]) },
        };
        let (base, own) = match kind {
            CARD => ("sd-4m", Drawn::card(&mut random, unit)),
            "ssd" | "ssd buffered" | "ssd protected" => {
                ("qlc-16k", Drawn::ssd(&mut random, unit, kind))
            }
            disk => {
                let personality = disk.trim_start_matches("disk ");
                let rpm = one(&mut random, &["5400.0", "5900.0", "7200.0"]);
                let personality = format!("\"{personality}\"");
                ("wd10ears", vec![("personality", personality), ("rpm", rpm.into())])
            }
        };
        let common =
            [("physical_block_size", unit.to_string()), ("alignment_offset", offset.to_string())];
        let parsed = |(key, value): (&str, String)| {
            let table: toml::Table = format!("v = {value}").parse().expect("TOML");
            (key.to_owned(), table["v"].clone())
        };
        let set: Vec<_> = common.into_iter().chain(own).map(parsed).collect();
        let text = Model::named(base).expect("it is built in");
        let model = Model::parse_with(text, &set).expect("a model");
        let (seconds, erase) = if is_card { (600, Some(4 << 20)) } else { (120, None) };
        Drawn { kind, model, noise, seconds, erase }
    }

    fn card(random: &mut Random, unit: u64) -> Vec<(&'static str, String)> {
        let page = (unit >> random.below(2)).max(8192);
        [
            ("page_bytes", page),
            ("open_units", between(random, 1, 5)),
            ("read_ns", between(random, 25_000, 100_000)),
            ("program_ns", between(random, 700_000, 1_100_000)),
        ]
        .map(|(key, value)| (key, value.to_string()))
        .into()
    }

    fn ssd(random: &mut Random, unit: u64, kind: &str) -> Vec<(&'static str, String)> {
        let page = (unit >> random.below(3)).max(512);
        // Less than a page takes less time, or small units would be out of proportion.
        let program = between(random, 300_000, 2_800_000) * page.clamp(2048, 16384) / 16384;
        let buffer = if kind == "ssd" { 0 } else { 1 << between(random, 20, 23) };
        let numbers = [
            ("page_bytes", page),
            ("dies", 4 << random.below(5)),
            ("planes", 1 << random.below(3)),
            ("read_ns", between(random, 25_000, 125_000)),
            ("program_ns", program),
            ("buffer_bytes", buffer),
            // What is drawn here are units, and not how full a drive is; and the same drives
            // whatever becomes of the model.
            ("spare_percent", 0),
            ("size", 15_360_950_534_144),
            ("link_rate_bytes", 7_400_000_000),
            ("controller_ns", 1075),
        ];
        let protected = ("power_loss_protection", (kind == "ssd protected").to_string());
        numbers
            .map(|(key, value)| (key, value.to_string()))
            .into_iter()
            .chain([protected])
            .collect()
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// The answer of a probe, and the virtual seconds that it took.
    pub(crate) fn probe(&self, seed: u64) -> (Answer, f64) {
        let sector = self.model.logical_block_size;
        let world = World::new(vec![(self.model.drive(seed), sector)], Schedule::Fifo);
        let rig = Simulated::new(world, Route::store(0, self.model.size), sector, 0);
        let mut rig = Noisy::new(rig, self.noise, seed);
        let setup = ProbeSetup {
            op: Op::Write,
            budget_ns: self.seconds * 1_000_000_000,
            seed,
            depth: 32,
            is_set: false,
        };
        let report = probe(&mut rig, setup, &mut |_| true).expect("no request fails");
        #[allow(clippy::cast_precision_loss)]
        let seconds = report.spent_ns as f64 / 1e9;
        let hidden =
            Grain::new(self.model.physical_block_size, self.model.phase()).expect("a size");
        let told = format!("{:?} {:?} {:?}", report.verdict, report.units, report.single_ns);
        let mut unsure = false;
        let physical = report.units.iter().find(|unit| unit.why == Why::Physical);
        match (physical, report.verdict) {
            (Some(unit), _) if unit.grain == hidden && hidden.size() > sector => {}
            (Some(_), _) => return (Answer::Wrong(told), seconds),
            (None, ProbeVerdict::Nothing { .. }) if hidden.size() == sector => {}
            (None, ProbeVerdict::Nothing { .. }) => return (Answer::Wrong(told), seconds),
            _ => unsure = true,
        }
        // Allocation units begin where the first indirection unit does.
        let lead = hidden.remainder(0);
        let report_of = |size| Grain::multiples(size).shift(lead);
        let erase = report.units.iter().find(|unit| unit.why == Why::Erase);
        match (erase, self.erase) {
            (None, None) => {}
            (Some(unit), Some(size))
                if unit.grain.size() == size
                    && (unit.grain == report_of(size)
                        || unit.blur >= off(unit.grain, report_of(size))) => {}
            (Some(_), _) => return (Answer::Wrong(told), seconds),
            (None, Some(_)) => unsure = true,
        }
        let answer = if unsure { Answer::Unsure(told) } else { Answer::Right };
        (answer, seconds)
    }
}
