//! `s3://BUCKET/KEY`, `gs://`, `az://`, `http://` and `https://`: an object of a store, as a disk
//! that is read.

use super::open::image;
use super::{DiskOverrides, Source, Target};
use crate::failure::Reason;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trueline_cloud::{
    CONTAINER, Counts, DISK, ErrorClass, Listed, ListedObject, Object, ObjectError,
};
use trueline_geom::graph::Disk;
use trueline_host::disk::file::Access;

/// Object as typed, or as a listing has it.
#[derive(Clone, Debug)]
pub(crate) struct Spelling {
    object: Arc<Object>,
    /// Objects that names in it led to, by those names: what was fetched of them is kept while it
    /// is tasted again.
    others: Arc<Mutex<BTreeMap<String, Spelling>>>,
}

impl PartialEq for Spelling {
    fn eq(&self, other: &Spelling) -> bool {
        self.uri() == other.uri()
    }
}

impl Eq for Spelling {}

impl From<ObjectError> for Reason {
    fn from(error: ObjectError) -> Reason {
        Reason(error.to_string())
    }
}

/// True if `text` is a URI of an object, or the begin of many.
pub(crate) fn is_meant(text: &str) -> bool {
    trueline_cloud::is_meant(text)
}

impl Spelling {
    /// The object that `text` names. A `#` or `,` ends a target's disk, so a name with one is known
    /// by a listing alone.
    pub(super) fn parse(text: &str) -> Option<Spelling> {
        let is_whole = is_meant(text) && !text.contains(['#', ',']);
        is_whole.then(|| Spelling::new(Object::new(text, None)))
    }

    fn new(object: Object) -> Spelling {
        Spelling { object: Arc::new(object), others: Arc::default() }
    }

    /// URI that it was given.
    pub(super) fn uri(&self) -> &str {
        self.object.uri()
    }

    /// The object that `name`, in this one, leads to: one beside it, or below.
    ///
    /// Errors: a URI with a query, which is a signature of this object alone.
    pub(super) fn beside(&self, name: &str) -> Result<Spelling, Reason> {
        let uri = self.uri();
        if uri.contains('?') || name.contains(['?', '%']) {
            return Err(Reason("its URI has a query, or would have one".into()));
        }
        let mut others = self.others();
        if let Some(other) = others.get(name) {
            return Ok(other.clone());
        }
        let directory = uri.rsplit_once('/').map_or(uri, |(directory, _)| directory);
        let other = Spelling::new(Object::new(&format!("{directory}/{name}"), None));
        if self.object.reads_as_asked() {
            other.object.read_as_asked()?;
        }
        self.object.bounds().into_iter().for_each(|bounds| other.object.bound(bounds));
        others.insert(name.into(), other.clone());
        Ok(other)
    }

    /// True if names in it led to other objects, of which its state says nothing.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        !self.others().is_empty()
    }

    fn others(&self) -> MutexGuard<'_, BTreeMap<String, Spelling>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This object, then those that it led to, but for any that a store does not have or give: that
    /// is a finding about this one.
    fn all(&self) -> Vec<Spelling> {
        let others: Vec<Spelling> = self.others().values().cloned().collect();
        let is_there = |other: &&Spelling| {
            let class = other.object.failure().map(|failure| failure.class);
            let is_away = |class| {
                use ErrorClass::{Denied, Name, NotFound, Refused};
                matches!(class, Name | NotFound | Denied | Refused)
            };
            !class.is_some_and(is_away)
        };
        let others = others.iter().filter(is_there).flat_map(Spelling::all);
        std::iter::once(self.clone()).chain(others).collect()
    }

    /// Opens the object as a disk called `name`.
    pub(super) fn open(
        &self,
        name: String,
        overrides: &DiskOverrides,
        access: Access,
    ) -> Result<Disk, Reason> {
        if access.writes() {
            let uri = self.uri();
            return Err(Reason(format!(
                "open {uri}: objects are read, not written: copy it to a file"
            )));
        }
        Ok(image(name, Box::new(self.object.store()?), overrides))
    }

    /// State of the object: length in bytes, and a word that changes whenever it is written. Asks
    /// for it unless it was listed or opened; empty for one that cannot be opened.
    pub(crate) fn state(&self) -> (u64, String) {
        if let Some(Listed { size, etag }) = self.object.listed() {
            return (*size, etag.clone());
        }
        self.object.connect().map(|opened| (opened.length, opened.etag.clone())).unwrap_or_default()
    }

    /// The word of [`Spelling::state`] as the store has it now, by the cheapest request; empty for
    /// one that cannot be read.
    pub(crate) fn current_state(&self) -> String {
        self.object.peek().map(|opened| opened.etag).unwrap_or_default()
    }

    /// Class of the error that ended its reading, if one did.
    pub(crate) fn error_class(&self) -> Option<&'static str> {
        self.all().iter().find_map(|object| object.object.failure()).map(|e| e.class.name())
    }
}

/// Has few requests made for each object of `target`, which are containers or not.
pub(super) fn bound(target: &Target, are_containers: bool) {
    let bounds = if are_containers { CONTAINER } else { DISK };
    objects(target).for_each(|object| object.bound(bounds));
}

/// Fetches what tasting has missed of the objects of `target`; false if it missed nothing.
pub(super) fn fetch_missing(target: &Target) -> Result<bool, Reason> {
    let mut has_missed = false;
    for object in objects(target) {
        has_missed |= object.fetch_missing()?;
    }
    Ok(has_missed)
}

/// Has what is read of the objects of `target` fetched as it is read.
pub(super) fn read_as_asked(target: &Target) -> Result<(), Reason> {
    objects(target).try_for_each(|object| object.read_as_asked().map_err(Reason::from))
}

/// The objects of a target, each before those that it led to.
fn objects(target: &Target) -> impl Iterator<Item = Arc<Object>> {
    let named = target.sources().iter().filter_map(Source::object);
    named.flat_map(Spelling::all).map(|object| object.object)
}

/// The objects whose names begin with `prefix`, as targets with their length in bytes, in the order
/// of the store; an error is the last.
pub(crate) fn list(
    prefix: &str,
) -> impl Iterator<Item = Result<(Target, u64), Reason>> + Send + use<> {
    trueline_cloud::list(prefix).map(|entry| {
        let ListedObject { uri, listed } = entry?;
        let length = listed.size;
        let object = Spelling::new(Object::new(&uri, Some(listed)));
        Ok((Target::from_sources(vec![Source::of_object(&uri, object)], None), length))
    })
}

/// Requests of the objects of many targets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    objects: u64,
    all: Counts,
    most: Counts,
}

impl Requests {
    /// Those of one target.
    pub(crate) fn of(target: &Target) -> Requests {
        let mut requests = Requests::default();
        for object in objects(target) {
            let counts = object.counts();
            requests += Requests { objects: 1, all: counts, most: counts };
        }
        requests
    }

    /// A sentence of them; `None` for no object.
    pub(crate) fn sentence(&self) -> Option<String> {
        let Requests { objects, all, most } = *self;
        let each = |count: u64| {
            let tenths = (count * 10).checked_div(objects)?;
            Some(format!("{}.{}", tenths / 10, tenths % 10))
        };
        let requests = format!("{} (at most {})", each(all.requests)?, most.requests);
        let kib = format!("{} KiB (at most {})", each(all.bytes / 1024)?, most.bytes / 1024);
        let rounds = format!("{} rounds (at most {})", each(all.rounds)?, most.rounds);
        Some(format!("note: requests per object: {requests}, {kib}, in {rounds}"))
    }
}

impl AddAssign for Requests {
    fn add_assign(&mut self, other: Requests) {
        let sum = |a: Counts, b: Counts| Counts {
            requests: a.requests + b.requests,
            bytes: a.bytes + b.bytes,
            rounds: a.rounds + b.rounds,
        };
        let most = |a: Counts, b: Counts| Counts {
            requests: a.requests.max(b.requests),
            bytes: a.bytes.max(b.bytes),
            rounds: a.rounds.max(b.rounds),
        };
        self.objects += other.objects;
        self.all = sum(self.all, other.all);
        self.most = most(self.most, other.most);
    }
}
