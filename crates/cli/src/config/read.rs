//! The text of a file of settings: what each key takes, and the line of each.

use super::{Config, ConfigLine, Setting, StatedDrive};
use crate::disk_options::{known_profile, parse_grain};
use crate::fail_on::FailOn;
use crate::failure::Reason;
use crate::words;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use trueline_geom::base::topology::{Grain, Why};

/// Keys of a file, of `[check]`, and of `[[drive]]` beside the purposes of boundaries.
const KEYS: [&str; 3] = ["for", "check", "drive"];
const OF_CHECK: [&str; 2] = ["fail-on", "strict"];
const OF_DRIVE: [&str; 3] = ["model", "serial", "from"];

/// The settings of the text of the file at `path`. Errors: a line for each that is wrong.
pub(super) fn config(path: &str, text: &str) -> Result<Config, Vec<String>> {
    let ends = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut reader = Reader { path, ends, wrong: BTreeMap::new() };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(e) => {
            let message = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
            reader.refuse(e.span().unwrap_or(0..0), message);
            return Err(reader.lines());
        }
    };
    let config = reader.top(table.get_ref());
    if reader.wrong.is_empty() { Ok(config) } else { Err(reader.lines()) }
}

/// A value in the text.
type Value<'a> = Spanned<DeValue<'a>>;

/// Place of a part of the text, in bytes.
type Span = Range<usize>;

struct Reader<'a> {
    path: &'a str,
    /// Bytes at which lines end: one search for a place, not one through the text.
    ends: Vec<usize>,
    /// Reasons of what is wrong, in the order of the text.
    wrong: BTreeMap<(usize, usize), String>,
}

impl Reader<'_> {
    fn line(&self, at: Span) -> ConfigLine {
        let line = self.ends.partition_point(|end| *end < at.start) + 1;
        ConfigLine { path: self.path.into(), line }
    }

    fn refuse(&mut self, at: Span, why: impl Into<String>) {
        let next = self.wrong.len();
        self.wrong.insert((at.start, next), why.into());
    }

    /// Lines of what is wrong, each with its place.
    fn lines(&self) -> Vec<String> {
        let line = |(&(at, _), why): (&(usize, usize), &String)| {
            format!("read {}: {why}", self.line(at..at))
        };
        self.wrong.iter().map(line).collect()
    }

    fn top(&mut self, table: &DeTable<'_>) -> Config {
        let mut config = Config::default();
        for (key, value) in table {
            match &**key.get_ref() {
                "for" => config.profile = self.setting(value, profile),
                "check" => self.check(value, &mut config),
                "drive" => self.drives(value, &mut config),
                other => self.unknown(key.span(), other, "setting", &KEYS),
            }
        }
        config
    }

    /// The keys of `[check]`.
    fn check(&mut self, value: &Value<'_>, config: &mut Config) {
        let DeValue::Table(table) = value.get_ref() else {
            return self.refuse(value.span(), "check: write it as a table: [check]");
        };
        for (key, value) in table {
            match &**key.get_ref() {
                "fail-on" => config.fail_on = self.setting(value, fail_on),
                "strict" => config.strict = self.setting(value, truth),
                other => self.unknown(key.span(), other, "setting of check", &OF_CHECK),
            }
        }
    }

    /// The drives of `[[drive]]`, each once.
    fn drives(&mut self, value: &Value<'_>, config: &mut Config) {
        let DeValue::Array(drives) = value.get_ref() else {
            return self.refuse(value.span(), "drive: write each as [[drive]]");
        };
        let mut lines = BTreeMap::new();
        for drive in drives.iter() {
            let DeValue::Table(table) = drive.get_ref() else {
                self.refuse(drive.span(), "drive: write each as [[drive]]");
                continue;
            };
            let at = table.keys().map(|key| key.span().start).min().unwrap_or(drive.span().start);
            let Some(stated) = self.drive(table, at) else { continue };
            let from = self.line(at..at);
            match lines.entry((stated.model.clone(), stated.serial.clone())) {
                Entry::Occupied(first) => {
                    let line: &usize = first.get();
                    self.refuse(at..at, format!("drive {}: line {line} has it too", stated.serial));
                }
                Entry::Vacant(place) => {
                    place.insert(from.line);
                    config.drives.push(Setting { value: stated, from });
                }
            }
        }
    }

    fn drive(&mut self, table: &DeTable<'_>, at: usize) -> Option<StatedDrive> {
        let (mut model, mut serial, mut source, mut units) = (None, None, None, Vec::new());
        let purposes = || Why::ALL.into_iter().filter(|why| *why != Why::Logical);
        let before = self.wrong.len();
        for (key, value) in table {
            match &**key.get_ref() {
                "model" => model = self.setting(value, name),
                "serial" => serial = self.setting(value, name),
                "from" => source = self.setting(value, name),
                other => match purposes().find(|why| why.name() == other) {
                    Some(why) => units.extend(self.setting(value, grain).map(|unit| (why, unit))),
                    None => {
                        let keys: Vec<&str> =
                            OF_DRIVE.into_iter().chain(purposes().map(Why::name)).collect();
                        self.unknown(key.span(), other, "key of drive", &keys);
                    }
                },
            }
        }
        units.sort_by_key(|(_, unit)| unit.from.line);
        if self.wrong.len() > before {
            return None;
        }
        if serial.is_none() {
            self.refuse(at..at, "drive: its serial is missing: serial = \"...\"");
        } else if units.is_empty() {
            self.refuse(at..at, "drive: a boundary is missing: physical = \"4k\"");
        }
        let text = |setting: Option<Setting<String>>| setting.map(|setting| setting.value);
        let (model, source) = (text(model), text(source));
        Some(StatedDrive { model, serial: text(serial)?, units, source })
    }

    /// A value as `read` reads it.
    fn setting<T>(
        &mut self,
        value: &Value<'_>,
        read: fn(&DeValue<'_>) -> Result<T, Reason>,
    ) -> Option<Setting<T>> {
        match read(value.get_ref()) {
            Ok(read) => Some(Setting { value: read, from: self.line(value.span()) }),
            Err(why) => {
                self.refuse(value.span(), why.0);
                None
            }
        }
    }

    /// Refuses a key: the one that was perhaps meant, and all that there are.
    fn unknown(&mut self, at: Span, key: &str, what: &str, known: &[&str]) {
        let near = words::near(key, known.iter().copied());
        let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
        let all = known.join(", ");
        self.refuse(at, format!("no {what} '{key}': {near}there are {all}"));
    }
}

/// A text of a value; `as_in` shows how one is written.
fn text<'a>(value: &'a DeValue<'_>, as_in: &str) -> Result<&'a str, Reason> {
    value.as_str().ok_or_else(|| Reason(format!("it is no text: write it as in {as_in}")))
}

fn profile(value: &DeValue<'_>) -> Result<String, Reason> {
    let name = text(value, "for = \"ssd-16k\"")?;
    known_profile(name).map(|()| name.to_owned())
}

fn fail_on(value: &DeValue<'_>) -> Result<FailOn, Reason> {
    let name = text(value, "fail-on = \"error\"")?;
    let all = FailOn::value_variants().iter().copied();
    all.clone().find(|fail_on| fail_on.name() == name).ok_or_else(|| {
        let names: Vec<&str> = all.map(FailOn::name).collect();
        Reason(format!("no severity '{name}': there are {}", names.join(", ")))
    })
}

fn truth(value: &DeValue<'_>) -> Result<bool, Reason> {
    value.as_bool().ok_or_else(|| Reason("it is neither true nor false".into()))
}

/// A model, a serial number, an origin: one line, not empty.
fn name(value: &DeValue<'_>) -> Result<String, Reason> {
    let name = text(value, "serial = \"WD-1234\"")?.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Reason("it is empty, or not one line of text".into()));
    }
    Ok(name.to_owned())
}

/// A boundary: a number of bytes, or what `--physical` takes.
fn grain(value: &DeValue<'_>) -> Result<Grain, Reason> {
    let bytes = value.as_integer().map(|number| {
        let read = u64::from_str_radix(number.as_str(), number.radix());
        read.map_or_else(|_| number.as_str().to_owned(), |bytes| bytes.to_string())
    });
    let text = match &bytes {
        Some(bytes) => bytes.as_str(),
        None => text(value, "physical = \"4k+3584\"")?,
    };
    let (size, phase) = parse_grain(text)?;
    Grain::new(size, phase).ok_or_else(|| Reason("it is no boundary".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, wanted) in [
            ("fro = \"512n\"", "1: no setting 'fro': did you mean for? there are for, check, "),
            ("\nfor = \"512x\"", "2: no profile '512x': did you mean 512e? there are "),
            ("for = 7", "1: it is no text: write it as in for = \"ssd-16k\""),
            ("for = \"4kn\"\nfor = \"4kn\"", "2: duplicate key"),
            ("check = 1", "1: check: write it as a table"),
            ("[check]\nstrikt = true", "2: no setting of check 'strikt': did you mean strict? "),
            ("[check]\nstrict = \"yes\"", "2: it is neither true nor false"),
            ("[check]\nfail-on = \"all\"", "2: no severity 'all': there are error, warning, note"),
            ("drive = 1", "1: drive: write each as [[drive]]"),
            ("drive = [1]", "1: drive: write each as [[drive]]"),
            ("[[drive]]\nphysical = \"4k\"", "2: drive: its serial is missing"),
            ("[[drive]]\nserial = \"a\"", "2: drive: a boundary is missing"),
            ("[[drive]]\nserial = \" \"", "2: it is empty, or not one line"),
            ("[[drive]]\nserial = \"a\"\nphysical = 0", "3: not a size"),
            ("[[drive]]\nserial = \"a\"\nphysical = -1", "3: not a size"),
            ("[[drive]]\nserial = \"a\"\nphysical = \"4k+4k\"", "3: the phase must be less"),
            ("[[drive]]\nserial = \"a\"\nlogical = 512", "3: no key of drive 'logical'"),
            ("[[drive]]\nserial = \"a\"\nphysica = 512", "did you mean physical? "),
            (
                "[[drive]]\nserial = \"a\"\nchunk = 512\n[[drive]]\nserial = \"a\"\nchunk = 512",
                "5: drive a: line 2 has it too",
            ),
            ("for = \"", "1: "),
            ("\u{0}", "1: "),
        ] {
            let wrong = config("f", text).expect_err(text);
            assert!(wrong[0].starts_with("read f:") && wrong[0].contains(wanted), "{wrong:?}");
        }
        let both = config("f", "[check]\nb = 1\na = 1").expect_err("two keys are unknown");
        assert!(both[0].starts_with("read f:2: ") && both[1].starts_with("read f:3: "), "{both:?}");
    }

    #[test]
    fn every_setting_is_read() {
        let text = "for = \"raid64kx4\"\ncheck.fail-on = \"note\"\n\
            check.strict = false\n[[drive]]\nserial = \" a \"\nmodel = \"m\"\n\
            from = \"data sheet\"\nchunk = 0x4000\nphysical = \"4k+512\"";
        let read = config("f", text).expect("settings");
        assert_eq!(read.profile.map(|of| (of.value, of.from.line)), Some(("raid64kx4".into(), 1)));
        assert_eq!(read.fail_on.map(|of| of.value), Some(FailOn::Note));
        assert_eq!(read.strict.map(|of| (of.value, of.from.line)), Some((false, 3)));
        let drive = &read.drives[0].value;
        assert_eq!((drive.serial.as_str(), drive.model.as_deref()), ("a", Some("m")));
        let units: Vec<_> =
            drive.units.iter().map(|(why, unit)| (*why, unit.value, unit.from.line)).collect();
        let grain = |size, phase| Grain::new(size, phase).expect("a grain");
        let wanted = [(Why::Chunk, grain(16384, 0), 8), (Why::Physical, grain(4096, 512), 9)];
        assert_eq!(units, wanted);
    }
}
