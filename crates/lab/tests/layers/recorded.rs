//! Recordings of what a kernel's layers asked of the devices beneath (`tests/kernel/layers`), and
//! what a model asks for the same requests.

use toml::Table;
use trueline_lab::layer::steps::Steps;
use trueline_lab::layer::{FLUSH, Layer, LayerKind};
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;

/// A device of a recording, with its requests in order.
pub(crate) struct Device {
    /// The line that describes it.
    pub(crate) title: String,
    pub(crate) layer: Box<dyn Layer>,
    /// The length and the sector size of what is beneath, and of the device.
    pub(crate) beneath: (u64, u64),
    pub(crate) shown: (u64, u64),
    pub(crate) lines: Vec<Line>,
}

/// Requests that came to a device at one time, and those that the kernel made of them.
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) asked: Vec<Ask>,
    pub(crate) made: Vec<Ask>,
}

impl Line {
    /// The number of requests that came: a commit by a timer did not.
    pub(crate) fn came(&self) -> usize {
        if self.text.starts_with('c') { 0 } else { self.asked.len() }
    }
}

/// The devices of a recording of the layer `name`.
pub(crate) fn devices(name: &str, recording: &str) -> Vec<Device> {
    let kind = LayerKind::named(name).expect("a layer");
    let mut devices: Vec<Device> = Vec::new();
    for text in recording.lines().filter(|text| !text.starts_with('#')) {
        if let Some(title) = text.strip_prefix("= ") {
            devices.push(device(kind, title));
            continue;
        }
        let (asked, made) = text.split_once(" | ").expect("requests | requests");
        let line = Line { text: text.to_owned(), asked: asks(asked), made: asks(made) };
        devices.last_mut().expect("a device").lines.push(line);
    }
    assert!(!devices.is_empty() && devices.iter().all(|device| !device.lines.is_empty()));
    devices
}

/// `{ KEYS } over LENGTH SECTOR shows LENGTH SECTOR`.
fn device(kind: &LayerKind, title: &str) -> Device {
    let (keys, sizes) = title.split_once(" over ").expect("keys over sizes");
    let mut keys: Table = format!("keys = {keys}").parse().expect("keys");
    let Some(toml::Value::Table(keys)) = keys.remove("keys") else { panic!("keys: {title}") };
    let (beneath, shown) = sizes.split_once(" shows ").expect("sizes");
    let pair = |text: &str| {
        let (length, sector) = text.split_once(' ').expect("two numbers");
        (length.parse().expect("bytes"), sector.parse().expect("bytes"))
    };
    let (beneath, shown) = (pair(beneath), pair(shown));
    let mut layer = kind.make(keys).expect("a layer");
    layer.attach(beneath.0, beneath.1).expect("it stands there");
    Device { title: title.to_owned(), layer, beneath, shown, lines: Vec::new() }
}

/// Requests as a recording has them: `w 0 4096, f`. A commit that the timer of a pool makes is for
/// the data device what a flush makes.
fn asks(text: &str) -> Vec<Ask> {
    if text == "-" {
        return Vec::new();
    }
    text.split(", ")
        .map(|one| {
            let mut words = one.split(' ');
            let op = words.next().expect("a request");
            let mut number = || words.next().and_then(|n| n.parse().ok()).expect("bytes");
            let data = |op, offset, length| Ask { op, offset, length, fua: false };
            match op {
                "r" => data(Op::Read, number(), number()),
                "w" => data(Op::Write, number(), number()),
                "s" => Ask { fua: true, ..data(Op::Write, number(), number()) },
                "f" | "c" => FLUSH,
                _ => panic!("{text}"),
            }
        })
        .collect()
}

impl Device {
    /// The requests that the model makes for those of a line.
    pub(crate) fn plan(&mut self, asked: &[Ask]) -> Vec<Ask> {
        let mut steps = Steps::default();
        for ask in asked {
            self.layer.plan(*ask, &mut steps).expect("a plan");
        }
        steps.asks().collect()
    }
}

/// Why a layer cannot be made of these keys over a device of `length` bytes with such sectors.
pub(crate) fn refused(name: &str, keys: &str, length: u64, sector: u64) -> String {
    let kind = LayerKind::named(name).expect("a layer");
    kind.make(keys.parse().expect("keys"))
        .and_then(|mut layer| layer.attach(length, sector))
        .expect_err("it is refused")
        .message
}

/// Requests in an order of their own: the kernel's are sent as those before them are done.
pub(crate) fn sorted(asks: impl IntoIterator<Item = Ask>) -> Vec<(u64, u64, bool, bool, bool)> {
    let mut all: Vec<_> = asks
        .into_iter()
        .map(|Ask { op, offset, length, fua }| {
            (offset, length, fua, op == Op::Read, op == Op::Flush)
        })
        .collect();
    all.sort_unstable();
    all
}
