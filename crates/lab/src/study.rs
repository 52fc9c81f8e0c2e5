//! Labs: published measurements, each with what is needed to make it again.
//!
//! # Form
//! A lab is a TOML file: `name`, `title`, the document (`source`, `seed`), and one `[[row]]` a
//! measurement. A row says what the document found (`published`), what is run (`workload`, `host`,
//! `drives`, `processor`) and where: the variants `aligned` and `unaligned`, each with the disks of
//! a hexdump and a provider on them, or a bare offset. What a row needs and does not say, the lab
//! may say once for all of them. `docs/manual/lab.md` has every key.
//!
//! # Running
//! The disks are tasted as `check` tastes them, with what the models know of their boundaries; the
//! provider's route drives simulated drives. No layer is written a second time for the lab.
//!
//! # Errors
//! What is not TOML, not a key, or names what is not there is refused with the line and the reason.
//! A row that fails is reported; the others are not lost.

use crate::error::{Error, Remedy};
use file::{Form, RowForm};
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toml::Spanned;
use trueline_sim::model::in_words;

mod bounds;
mod built_in;
mod error;
mod file;
mod host;
mod null_model;
mod range;
mod ready;
mod real;
mod rows;
mod scene;
mod swept;
mod workload;

pub use built_in::{BUILT_IN, BuiltIn, every};
pub use error::LabError;
pub use rows::{Failure, Progress, Selection, Step, run};
pub use swept::{PointFate, PointJob, PointKey, PointValues, SweepSelection, SweptRows};

/// The texts that a lab names: hexdumps and model files, by name.
pub trait Texts: Send + Sync {
    /// The whole text, or the reason why it cannot be read. The caller has checked that the name
    /// stays beside the lab.
    fn read(&self, name: &str) -> Result<Cow<'static, str>, Error>;

    /// The path of a named file beside the lab, such as a trace. The caller has checked the name.
    fn beside(&self, _name: &Path) -> Result<PathBuf, Error> {
        Err(Error::new("this lab has no directory with files".into()))
    }
}

/// Refuses a name that leads elsewhere: a lab may be untrusted, and opens nothing but files beside
/// it or below.
fn stays(name: &Path) -> Result<(), Error> {
    let stays = !name.as_os_str().is_empty()
        && name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if stays {
        Ok(())
    } else {
        Err(Error::new(
            "name a file in the directory of the lab or below, without .. and without a / in front"
                .into(),
        ))
    }
}

/// A lab as its file describes it.
pub struct Lab {
    form: Form,
    text: String,
    texts: Box<dyn Texts>,
    /// True if the work of all its rows together has no bounds: the lab comes with the program, or
    /// the user lifted them.
    unbounded: bool,
    /// Bytes of texts read for its rows so far.
    texts_read: AtomicU64,
    /// Requests made so far by rows that only time ends.
    by_time: Arc<AtomicU64>,
}

impl Lab {
    /// Reads a lab from the text of its file. The files it names are read when a row is run.
    pub fn parse(text: &str, texts: Box<dyn Texts>) -> Result<Lab, LabError> {
        let mut form: Form = toml::from_str(text).map_err(|e| not_toml(text, &e))?;
        for row in &mut form.row {
            let start = row.span().start;
            let RowForm { id, workload, swept, .. } = row.get_mut();
            let found = workload
                .iter_mut()
                .chain(swept)
                .try_for_each(|workload| workload.find_beside(&*texts));
            found.map_err(|why| LabError {
                line: Some(line(text, start)),
                cause: Error::new(format!("row {id}: {why}")),
            })?;
        }
        let lab = Lab {
            form,
            text: text.to_owned(),
            texts,
            unbounded: false,
            texts_read: AtomicU64::new(0),
            by_time: Arc::default(),
        };
        lab.check()?;
        Ok(lab)
    }

    /// The lab without bounds on the work of all its rows together.
    #[must_use]
    pub fn unbounded(self) -> Lab {
        Lab { unbounded: true, ..self }
    }

    /// The name of the lab.
    pub fn name(&self) -> &str {
        &self.form.name
    }

    /// The title of the lab, one line.
    pub fn title(&self) -> &str {
        &self.form.title
    }

    /// True if any row is measured on this machine: such a lab runs only when named.
    pub fn measures_here(&self) -> bool {
        self.form.row.iter().any(|row| row.get_ref().real.is_some())
    }

    /// The ids of its rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.form.row.iter().map(|row| row.get_ref().id.as_str())
    }

    fn check(&self) -> Result<(), LabError> {
        if self.form.row.is_empty() {
            return Err(Error::new("a lab has at least one [[row]]".into()).into());
        }
        if let Some(row) = self.form.row.get(bounds::ROWS) {
            return Err(self.refuse(
                row,
                format!("{} rows: a lab has at most {}", self.form.row.len(), bounds::ROWS),
            ));
        }
        let mut seen: Vec<&str> = Vec::new();
        for row in &self.form.row {
            let id = row.get_ref().id.as_str();
            if seen.contains(&id) {
                return Err(self.refuse(
                    row,
                    format!("a row {id} is there already: every row has an id of its own"),
                ));
            }
            seen.push(id);
            row.get_ref()
                .check(&self.form)
                .map_err(|error| self.refuse(row, format!("row {id}: {error}")))?;
        }
        Ok(())
    }

    /// An error with the line of `place`.
    fn refuse<T>(&self, place: &Spanned<T>, cause: impl Into<Error>) -> LabError {
        LabError { line: Some(line(&self.text, place.span().start)), cause: cause.into() }
    }

    /// A text that the lab names: a golden disk of the program, or a file beside the lab.
    fn text(&self, name: &str) -> Result<Cow<'static, str>, Error> {
        let text = match built_in::disk(name) {
            Some(disk) => disk.into(),
            None => stays(Path::new(name)).and_then(|()| self.texts.read(name))?,
        };
        let before = self.texts_read.fetch_add(text.len() as u64, Ordering::Relaxed);
        if before.saturating_add(text.len() as u64) > bounds::TEXTS {
            let message = format!(
                "with it the rows of the lab read more than {} bytes of hexdumps and models",
                bounds::TEXTS
            );
            return Err(Error::new(message).with(Remedy::FewerRows));
        }
        Ok(text)
    }

    fn row(&self, index: usize) -> &Spanned<RowForm> {
        &self.form.row[index]
    }
}

/// A TOML error with its line.
fn not_toml(text: &str, error: &toml::de::Error) -> LabError {
    // The name of a Rust type means nothing to the author of a lab.
    let host = "expected a table: { kind = \"direct\" }";
    let message = in_words(text, error).replace("expected internally tagged enum Host", host);
    LabError { line: error.span().map(|span| line(text, span.start)), cause: Error::new(message) }
}

/// The line number of a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}
