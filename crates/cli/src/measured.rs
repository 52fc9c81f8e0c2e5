//! Units that `probe` has measured, by drive: a small file that `check` and the others read.
//!
//! A drive is known by its model and serial number. Its measured unit takes the place of the
//! physical one that it claims, and what the settings state of it the place of both.

use crate::config;
use crate::failure::{Reason, complain};
use crate::input_text;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use trueline_geom::base::finding::Finding;
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_host::device::Device;

/// Environment variable that names the file.
pub(crate) const VARIABLE: &str = "TRUELINE_MEASURED";
/// The file of the machine, which root writes.
const OF_MACHINE: &str = "/var/lib/trueline/measured.json";
/// Longest such file, in bytes.
const LONGEST: u64 = 1 << 20;
/// Most drives in it; the oldest go.
const MOST: usize = 1000;
/// Format of the file, its first key.
const FORMAT: &str = "trueline/measured/1";

/// A drive and its measured unit, in bytes from the start of the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasuredDrive {
    #[serde(default)]
    pub(crate) model: String,
    pub(crate) serial: String,
    pub(crate) size: u64,
    pub(crate) phase: u64,
    pub(crate) confidence: f64,
}

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Drives {
    format: String,
    drives: Vec<MeasuredDrive>,
}

impl MeasuredDrive {
    /// The measured grain of a device, which begins `start` bytes into its drive. `None`: nothing
    /// tells the drive from another.
    pub(crate) fn of(device: &Device, grain: Grain, confidence: f64) -> Option<MeasuredDrive> {
        let (model, serial) = names(device)?;
        let start = device.medium_start()?;
        let phase = Grain::new(grain.size(), grain.phase().checked_add(start)?)?.phase();
        Some(MeasuredDrive { model, serial, size: grain.size(), phase, confidence })
    }

    /// Writes it to the file, in the place of what was known. Returns the file's path.
    pub(crate) fn remember(self) -> Result<PathBuf, Reason> {
        let path = own().ok_or("there is no home directory: TRUELINE_MEASURED names a file")?;
        self.remember_in(&path)?;
        Ok(path)
    }

    /// Writes it to the file at `path`.
    fn remember_in(self, path: &Path) -> Result<(), Reason> {
        let failed =
            |e: io::Error| Reason::from(e).behind(format_args!("write {}", path.display()));
        let mut drives = read(path)?;
        drives.retain(|drive| (&drive.model, &drive.serial) != (&self.model, &self.serial));
        drives.push(self);
        drives.drain(..drives.len().saturating_sub(MOST));
        let text = serde_json::to_string_pretty(&Drives { format: FORMAT.into(), drives })
            .map_err(io::Error::from)
            .map_err(failed)?;
        let directory = path.parent().filter(|at| !at.as_os_str().is_empty());
        directory.map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        // A reader sees the old one or the new one.
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let write = || {
            let mut file = File::options().write(true).create_new(true).mode(0o644).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        write().map_err(|e| {
            // The error that led here is the one to report.
            let _ = fs::remove_file(&new);
            failed(e)
        })
    }
}

/// The boundaries of a device: those that it claims, with the physical one as measured, and those
/// that the settings state.
pub(crate) fn topology(device: &Device) -> (Topology, Vec<Finding>) {
    let (mut topology, findings) = device.topology();
    let Some(((model, serial), start)) = names(device).zip(device.medium_start()) else {
        return (topology, findings);
    };
    let measured = known(&model, &serial).and_then(|known| Grain::new(known.size, known.phase));
    if let Some(grain) = measured {
        let (why, source, trust) = (Why::Physical, Source::Measured, Trust::Trusted);
        topology = topology.instead(Fact { grain: grain.shift(start), why, source, trust });
    }
    (config::load(None).config.state(topology, (&model, &serial), start), findings)
}

/// The files of what was measured, those that count first before others, and the drives in each or
/// the reason why it is not read.
pub(crate) fn files() -> Vec<(PathBuf, Result<Vec<MeasuredDrive>, Reason>)> {
    let of = |path: PathBuf| (path.clone(), read(&path));
    places().into_iter().map(of).collect()
}

fn places() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = own().into_iter().collect();
    if std::env::var_os(VARIABLE).is_none()
        && !files.iter().any(|own| own.as_path() == Path::new(OF_MACHINE))
    {
        files.push(OF_MACHINE.into());
    }
    files
}

/// Names that tell a drive from others: its model and serial number.
fn names(device: &Device) -> Option<(String, String)> {
    let serial = device.serial.as_deref().map(str::trim).filter(|serial| !serial.is_empty())?;
    let model = device.model.as_deref().map(str::trim).unwrap_or_default();
    Some((model.into(), serial.into()))
}

/// Unit that is known of a drive, from the user's own file, else from that of the machine. A file
/// that cannot be read is complained of once.
fn known(model: &str, serial: &str) -> Option<MeasuredDrive> {
    static COMPLAINT: Once = Once::new();
    places().iter().find_map(|path| match read(path) {
        Ok(drives) => drives.into_iter().find(|of| of.model == model && of.serial == serial),
        Err(why) => {
            COMPLAINT
                .call_once(|| complain(&format!("note: what was measured is not used: {}", why.0)));
            None
        }
    })
}

/// The file that this user writes; `None` without a home directory.
fn own() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = named(VARIABLE) {
        return Some(path.into());
    }
    if trueline_host::process::is_root() {
        return Some(OF_MACHINE.into());
    }
    let state = named("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(Path::new(&named("HOME")?).join(".local/state")))?;
    Some(state.join("trueline/measured.json"))
}

/// The drives in a file; none if there is no such file. Errors: it is of another form; a unit that
/// no drive has.
fn read(path: &Path) -> Result<Vec<MeasuredDrive>, Reason> {
    let failed = |why: Reason| why.behind(format_args!("read {}", path.display()));
    let file = match input_text::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e.into())),
        Ok(file) => file,
    };
    let text = input_text::read(file, LONGEST).map_err(failed)?;
    let found: Drives = serde_json::from_str(&text).map_err(|e| failed(e.to_string().into()))?;
    if found.format != FORMAT {
        return Err(failed(format!("its format is not {FORMAT}").into()));
    }
    let is_odd = |of: &MeasuredDrive| !of.size.is_power_of_two() || of.phase >= of.size;
    match found.drives.iter().find(|of| is_odd(of)) {
        Some(of) => Err(failed(
            format!("the unit of {}, {} bytes at {}, is none", of.serial, of.size, of.phase).into(),
        )),
        None => Ok(found.drives),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grain, MeasuredDrive, read, topology};
    use std::fs;
    use trueline_geom::base::topology::Why;
    use trueline_host::device::{Device, DeviceKind};

    fn drive(serial: &str) -> Device {
        Device {
            model: Some("disk  ".into()),
            serial: Some(serial.into()),
            size: 1 << 30,
            ..Device::default()
        }
    }

    #[test]
    fn a_drive_is_known_again_and_the_last_measurement_counts() {
        let path = std::env::temp_dir().join(format!("trueline-measured-{}", std::process::id()));
        let grain = |phase| Grain::new(4096, phase).expect("a size");
        let of = |device: &Device, phase| MeasuredDrive::of(device, grain(phase), 0.999);
        for (device, phase) in [(drive("a"), 0), (drive("b "), 512), (drive("a"), 3584)] {
            of(&device, phase).expect("it has a serial number").remember_in(&path).expect("a file");
        }
        let known = read(&path).expect("it was written");
        fs::remove_file(&path).expect("it is there");
        let told: Vec<_> = known.iter().map(|of| (of.serial.as_str(), of.phase)).collect();
        assert_eq!(told, [("b", 512), ("a", 3584)]);
        assert_eq!(of(&drive("  "), 0), None);
        let mut part = drive("a");
        part.kind = DeviceKind::Partition {
            parent: "sda".into(),
            number: Some(1),
            start: Some(63 * 512),
            whole: 1 << 30,
        };
        assert_eq!(of(&part, 512).map(|of| of.phase), Some(0), "its phase is that of the drive");
    }

    #[test]
    fn a_file_of_another_form_is_refused() {
        let path = std::env::temp_dir().join(format!("trueline-odd-{}", std::process::id()));
        let drive = |unit: &str| {
            let drive = format!(r#"{{"serial": "a", {unit}, "confidence": 1}}"#);
            format!(r#"{{"format": "trueline/measured/1", "drives": [{drive}]}}"#)
        };
        for text in [
            "",
            "{}",
            r#"{"format": "trueline/measured/2", "drives": []}"#,
            &drive(r#""size": 0, "phase": 0"#),
            &drive(r#""size": 3000, "phase": 0"#),
            &drive(r#""size": 4096, "phase": 4096"#),
        ] {
            fs::write(&path, text).expect("a file");
            assert!(read(&path).is_err(), "{text}");
        }
        fs::remove_file(&path).expect("it is there");
        assert_eq!(read(&path), Ok(Vec::new()), "no file is no drive");
    }

    #[test]
    fn nothing_changes_for_a_drive_that_is_not_known() {
        let device = drive("a serial number that no file has");
        let facts = |facts: Vec<trueline_geom::base::topology::Fact>| {
            facts.into_iter().filter(|fact| fact.why == Why::Physical).collect::<Vec<_>>()
        };
        assert_eq!(facts(topology(&device).0.facts), facts(device.topology().0.facts));
    }
}
