//! `drive:MODEL[@SIZE][=IMAGE]`: a simulated drive as a disk.
//!
//! Without an image it is empty, of its model's size or of `SIZE`. With one it holds the image's
//! bytes and is as long as the image; zeros follow up to `SIZE` if that is given. Its boundaries
//! are the model's true ones. `serve` alone opens it to write: that changes memory, or the image.

use super::{DiskOverrides, Source};
use crate::failure::Reason;
use crate::input_text;
use image::Image;
use std::fs::File;
use std::path::Path;
use toml::Value;
use trueline_geom::base::size;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::graph::{Bytes, Disk};
use trueline_host::disk::file::{self, Access};
use trueline_host::disk::memory::Memory;
use trueline_sim::model::{MODELS, Model};

pub(super) mod image;

/// Prefix of such a disk.
const KIND: &str = "drive:";

/// Longest model file, in bytes.
const LONGEST: u64 = 1 << 20;

/// The parts of `drive:MODEL[@SIZE][=IMAGE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spelling {
    /// Name of a built-in model, or path of a model file.
    model: String,
    size: Option<String>,
    image: Option<String>,
}

impl Spelling {
    /// Splits the text; `None` if it is another kind of disk.
    pub(super) fn parse(disk: &str) -> Option<Spelling> {
        disk.strip_prefix(KIND).map(Spelling::split)
    }

    /// Splits `MODEL[@SIZE][=IMAGE]`. A model file may have any name: existing files decide.
    fn split(rest: &str) -> Spelling {
        let spelling = |model: &str, size: Option<&str>, image: Option<&str>| Spelling {
            model: model.into(),
            size: size.map(str::to_owned),
            image: image.map(str::to_owned),
        };
        if Path::new(rest).is_file() {
            return spelling(rest, None, None);
        }
        let (rest, image) =
            rest.split_once('=').map_or((rest, None), |(rest, image)| (rest, Some(image)));
        if Path::new(rest).is_file() {
            return spelling(rest, None, image);
        }
        let (model, size) =
            rest.rsplit_once('@').map_or((rest, None), |(model, size)| (model, Some(size)));
        spelling(model, size, image)
    }

    /// True if its model and image exist and its size is valid.
    pub(super) fn is_whole(&self) -> bool {
        let model = Model::named(&self.model).is_some() || Path::new(&self.model).is_file();
        model
            && self.size.as_ref().is_none_or(|size| size::bytes(size).is_some())
            && self.image.as_ref().is_none_or(|image| Path::new(image).exists())
    }

    /// Path of the image on it.
    pub(crate) fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// File that gives the drive its name: its image, or its model.
    pub(super) fn file(&self) -> &str {
        self.image().unwrap_or(&self.model)
    }

    /// The drive that was typed as `typed`, as a disk called `name`.
    pub(super) fn disk(
        &self,
        typed: &str,
        name: &str,
        overrides: &DiskOverrides,
        access: Access,
    ) -> Result<(Disk, Model), Reason> {
        let Opened { model, store } = self.open(typed, &overrides.set, access)?;
        let length = store.length();
        let disk = Disk {
            name: name.into(),
            bytes: Bytes::Store(store),
            topology: model.topology(length),
            start: Some(0),
            serial: None,
            nop: Some(overrides.nop(length)),
            findings: Vec::new(),
            references: Vec::new(),
            refused: Vec::new(),
            format: None,
        };
        Ok((disk, model))
    }

    /// Opens the drive with keys of its model set to `set`.
    fn open(&self, disk: &str, set: &[(String, Value)], access: Access) -> Result<Opened, Reason> {
        let failed = |why: Reason| why.behind(format_args!("open {disk}"));
        let (model, size) = sized(&self.model, self.size.as_deref(), set).map_err(failed)?;
        let store: Box<dyn Store> = match self.image() {
            // A read needs no memory.
            None if !access.writes() => Box::new(Sparse::new(model.size)),
            None => Box::new(Memory::new(model.size).map_err(|e| failed(e.into()))?),
            Some("") => {
                return Err(failed(
                    "the name of the image is missing: write drive:MODEL=disk.img".into(),
                ));
            }
            Some(path) => {
                let medium =
                    file::open_for(Path::new(path), access).map_err(|e| failed(e.into()))?.store;
                let advice = |has: u64| format!("drive:{}@{has}={path}", model.name);
                let image = Image::new(Box::new(medium), path, &model, size.is_some(), &advice);
                Box::new(image.map_err(failed)?)
            }
        };
        Ok(Opened { model, store })
    }
}

/// True if `disk` is the name of a built-in model, without the `drive:` that belongs before it.
pub(super) fn is_model(disk: &str) -> bool {
    Model::named(disk).is_some()
}

/// The text of a model, built in or from a file. Errors: no such model, no plain file, more than 1
/// MiB.
pub(crate) fn model_text(name: &str) -> Result<String, Reason> {
    if let Some(text) = Model::named(name) {
        return Ok(text.to_owned());
    }
    let looks_like_a_file = name.contains('/')
        || Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    if !looks_like_a_file && !Path::new(name).is_file() {
        let names: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
        return Err(Reason(format!(
            "no model '{name}': there are {}, or a model file ./x.toml",
            names.join(", ")
        )));
    }
    // An open of a pipe would block.
    match std::fs::metadata(name) {
        Ok(found) if !found.is_file() => {
            return Err(Reason(
                "it is not a regular file: a model is a TOML file, as trueline drives --template prints it"
                    .into(),
            ));
        }
        Ok(_) => {}
        Err(e) => return Err(e.into()),
    }
    let file = File::open(name)?;
    input_text::read(file, LONGEST)
}

/// A model, with keys of it set to the given values.
pub(crate) fn model(name: &str, set: &[(String, Value)]) -> Result<Model, Reason> {
    Ok(Model::parse_with(&model_text(name)?, set)?)
}

/// A simulated drive: its model and its bytes.
struct Opened {
    model: Model,
    store: Box<dyn Store>,
}

/// A model with keys of it set, and its size in bytes if `size` gives one. The size is a key as
/// well.
fn sized(
    name: &str,
    size: Option<&str>,
    set: &[(String, Value)],
) -> Result<(Model, Option<u64>), Reason> {
    let size = size
        .map(|size| size::bytes(size).ok_or_else(|| format!("'{size}' is not a size: 64m, 1g")))
        .transpose()?;
    let value = size
        .map(|size| {
            i64::try_from(size).map_err(|_| format!("{size} bytes are more than a drive has"))
        })
        .transpose()?;
    let set: Vec<(String, Value)> = set
        .iter()
        .cloned()
        .chain(value.map(|size| ("size".to_owned(), Value::Integer(size))))
        .collect();
    Ok((model(name, &set)?, size))
}

/// The model of `--drive MODEL[@SIZE]`, and the size if one is given, in bytes.
pub(super) fn model_and_size(
    drive: &str,
    set: &[(String, Value)],
) -> Result<(Model, Option<u64>), Reason> {
    let failed = |why: Reason| why.behind(format_args!("--drive {drive}"));
    match Spelling::split(drive) {
        Spelling { model, size, image: None } => {
            sized(&model, size.as_deref(), set).map_err(failed)
        }
        _ => Err(failed("write MODEL or MODEL@SIZE, as trueline drives lists them".into())),
    }
}

/// A simulated drive as a disk called `name`; `None` if it is another kind of disk.
pub(super) fn open_disk(
    source: &Source,
    name: &str,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Option<(Disk, Model)>, Reason> {
    let drive = source.simulated();
    drive.map(|drive| drive.disk(source.typed(), name, overrides, access)).transpose()
}
