//! A variant of a row, ready to run: disks tasted, provider found, drive models read.

use super::error::in_model;
use super::file::{DriveForm, Processor, RowForm, VariantForm};
use super::{Lab, LabError};
use crate::error::Error;
use crate::layer::stack::LayerStack;
use crate::result::Layout;
use crate::rig::observed::Observed;
use crate::rig::simulated::Simulated;
use crate::sweep::text_hash;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::{Spanned, Value};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Why, is_whole};
use trueline_geom::graph::{Disk, Graph, Id};
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::Slices;
use trueline_geom::probe::Limits;
use trueline_sim::model::{MODELS, Model};
use trueline_sim::time::{NS, Ps, span};
use trueline_sim::world::{Schedule, World};

/// The provider, drives and costs that a variant runs on.
pub(super) struct Scene {
    drives: Vec<Drive>,
    route: Route,
    sector: u64,
    cost: Ps,
    schedule: Schedule,
    /// The disks and the provider as text.
    pub target: String,
    /// The layers' first bytes for a drawing; its requests are still empty.
    pub layout: Layout,
    /// Bytes that the workload adds to every request.
    pub by: u64,
    /// The layers between the host and the provider.
    pub layers: LayerStack,
    /// A hash of the texts that the variant is made of: models, and the dump of its disks.
    pub texts: u64,
}

/// A drive's model: its text and the keys that the lab overrides.
struct Drive {
    text: String,
    set: Vec<(String, Value)>,
    place: usize,
    name: String,
}

impl Scene {
    /// Lays out `variant` of `row`.
    pub(super) fn new(lab: &Lab, row: &RowForm, variant: &VariantForm) -> Result<Scene, LabError> {
        let drives = row
            .drives(&lab.form)
            .iter()
            .map(|form| Drive::new(lab, form, variant))
            .collect::<Result<Vec<_>, _>>()?;
        let models = drives
            .iter()
            .map(|drive| drive.model(&[]).map_err(|e| lab.at_byte(drive.place, e)))
            .collect::<Result<Vec<_>, _>>()?;
        let dump = variant.disk.as_ref().map(|name| lab.read(name, "hexdump")).transpose()?;
        let graph = taste(lab, variant, dump.as_deref(), &models)?;
        let id = find(lab, variant, &graph)?;
        let provider = &graph.providers[id];
        let room = provider.route().length();
        let offset = variant.offset;
        if offset >= room {
            let place = variant.provider.as_ref().map_or(0, |name| name.span().start);
            return Err(lab
                .at_byte(place, format!("offset = {offset}: the provider has only {room} bytes")));
        }
        let sector = provider.topology.sector;
        if !is_whole(offset, sector) {
            let place = variant.provider.as_ref().map_or(0, |name| name.span().start);
            return Err(lab.at_byte(
                place,
                format!(
                    "offset = {offset}: not a multiple of the provider's sectors of {sector} bytes"
                ),
            ));
        }
        let shifted: Arc<dyn Geom> = Arc::new(Slices::data_area(offset, room - offset));
        let route = Route::new(&shifted, 0, room - offset, std::slice::from_ref(provider.route()));
        let processor = row.processor(&lab.form);
        Ok(Scene {
            route,
            sector: provider.topology.sector,
            cost: cost(processor, &graph, id, &variant.through),
            schedule: row.host(&lab.form).schedule(),
            target: target(&drives, provider.name.as_str(), offset),
            layout: layout(&graph, id, offset, &models),
            texts: drives
                .iter()
                .map(|drive| drive.text.as_str())
                .chain(dump.as_deref())
                .fold(0, |hash, text| hash.rotate_left(1) ^ text_hash(text)),
            drives,
            layers: variant.layers.as_ref().unwrap_or(&row.layers).clone(),
            by: variant.by,
        })
    }

    /// The drives at their `start`th start, with further keys of every model set. `random` seeds
    /// the positions of their platters.
    pub(super) fn rig(
        &self,
        set: &[(String, Value)],
        random: u64,
        start: u32,
    ) -> Result<Observed, Error> {
        // Every start of every drive has a seed of its own.
        let before = u64::from(start).wrapping_mul(self.drives.len() as u64);
        let drives = self.drives.iter().zip(random.wrapping_add(before)..).map(|(drive, seed)| {
            let model = drive.model(set)?;
            Ok((model.drive(seed), model.logical_block_size))
        });
        let world = World::new(drives.collect::<Result<Vec<_>, Error>>()?, self.schedule);
        Ok(Observed::new(Simulated::new(world, self.route.clone(), self.sector, self.cost)))
    }

    /// The model of the first drive.
    pub(super) fn first_model(&self) -> Option<Model> {
        self.drives.first()?.model(&[]).ok()
    }

    /// The bytes that requests may use.
    pub(super) fn length(&self) -> u64 {
        self.route.length()
    }

    /// The firmware personality of the first drive, if it has one.
    pub(super) fn personality(&self, set: &[(String, Value)]) -> Option<String> {
        let drive = self.drives.first()?;
        let said = set
            .iter()
            .chain(&drive.set)
            .find(|(key, _)| key == PERSONALITY || key == "disk.personality");
        let own = || drive.text.parse::<toml::Table>().ok()?.get("disk")?.get(PERSONALITY).cloned();
        said.map(|(_, value)| value.clone()).or_else(own)?.as_str().map(str::to_owned)
    }

    /// The text of the drives' model, if all drives are of one.
    pub(super) fn only_model(&self) -> Option<&str> {
        let (first, others) = self.drives.split_first()?;
        others.iter().all(|drive| drive.text == first.text).then_some(first.text.as_str())
    }

    /// The keys that the lab overrides in its drives.
    pub(super) fn own_keys(&self) -> impl Iterator<Item = &(String, Value)> {
        self.drives.iter().flat_map(|drive| &drive.set)
    }

    /// The place of a request of the provider, `(offset, length)`, on the medium that
    /// [`Scene::layout`] shows.
    pub(super) fn place(&self, (offset, length): (u64, u64)) -> (u64, u64) {
        (self.route.base().saturating_add(offset), length)
    }
}

/// The model key of a firmware personality.
pub(super) const PERSONALITY: &str = "personality";

impl Drive {
    fn new(lab: &Lab, form: &DriveForm, variant: &VariantForm) -> Result<Drive, LabError> {
        let (name, place) = (form.model.get_ref(), form.model.span().start);
        let text = match Model::named(name) {
            Some(text) => text.to_owned(),
            None if name.contains(['/', '.']) => lab.read(&form.model, "model")?,
            None => {
                let names: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
                return Err(lab.at_byte(
                    place,
                    format!(
                        "no model '{name}': there are {}, or a model file ./{name}.toml",
                        names.join(", ")
                    ),
                ));
            }
        };
        // A variant's keys override the drive's.
        let set: BTreeMap<String, Value> =
            form.set.iter().chain(&variant.set).map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Drive { text, set: set.into_iter().collect(), place, name: name.clone() })
    }

    fn model(&self, further: &[(String, Value)]) -> Result<Model, Error> {
        let set: Vec<(String, Value)> = self.set.iter().chain(further).cloned().collect();
        Model::parse_with(&self.text, &set).map_err(|e| in_model(&self.name, &e))
    }
}

/// The disks of a variant, with all providers found on them.
fn taste(
    lab: &Lab,
    variant: &VariantForm,
    dump: Option<&str>,
    models: &[Model],
) -> Result<Graph, LabError> {
    let dumps: Vec<(String, Sparse)> = match (&variant.disk, dump) {
        (Some(name), Some(text)) => Sparse::from_hexdumps(text)
            .map_err(|e| lab.refuse(name, format!("hexdump {}: {e}", name.get_ref())))?,
        _ => models
            .iter()
            .enumerate()
            .map(|(nth, model)| (format!("disk{nth}"), Sparse::new(model.size)))
            .collect(),
    };
    let place = variant.disk.as_ref().map_or(0, |name| name.span().start);
    if dumps.len() != models.len() {
        return Err(lab.at_byte(
            place,
            format!(
                "there are {} drives for {} disks: name a drive for each disk",
                models.len(),
                dumps.len()
            ),
        ));
    }
    let several = dumps.len() > 1;
    let mut disks = Vec::new();
    for ((name, disk), model) in dumps.into_iter().zip(models) {
        let length = disk.length();
        if length > model.size {
            let message = format!(
                "disk {name} has {length} bytes, and the model {} only {}: set its size",
                model.name, model.size
            );
            return Err(lab.at_byte(place, message));
        }
        disks.push(Disk::new(
            if several { name } else { String::new() },
            Box::new(disk),
            model.topology(length),
        ));
    }
    Ok(Graph::taste(disks, Limits::default()))
}

/// The provider of a variant. It is an error if several disks leave it open.
fn find(lab: &Lab, variant: &VariantForm, graph: &Graph) -> Result<Id, LabError> {
    let Some(name) = &variant.provider else {
        let several = graph.providers.iter().filter(|p| p.class == "disk").count() > 1;
        let place = variant.disk.as_ref().map_or(0, |name| name.span().start);
        return if several {
            Err(lab.at_byte(place, String::from("there are several disks: name the provider")))
        } else {
            Ok(0)
        };
    };
    graph.find(name.get_ref()).ok_or_else(|| {
        let there: Vec<&str> = graph
            .providers
            .iter()
            .map(|p| p.name.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        let there = if there.is_empty() {
            "there is only the disk itself".to_owned()
        } else {
            format!("there are {}", there.join(", "))
        };
        lab.refuse(name, format!("no provider '{}': {there}", name.get_ref()))
    })
}

/// The provider `id` and its ancestors, the outermost first.
fn path(graph: &Graph, id: Id) -> Vec<Id> {
    let mut path = vec![id];
    while let Some(&parent) = path.last().and_then(|&id| graph.providers[id].parents.first()) {
        path.push(parent);
    }
    path.reverse();
    path
}

/// The processor time of a request to `id` in picoseconds, including the classes of `through`.
fn cost(processor: &Processor, graph: &Graph, id: Id, through: &[String]) -> Ps {
    let classes = path(graph, id)
        .into_iter()
        .map(|id| graph.providers[id].class)
        .chain(through.iter().map(String::as_str));
    let layers: f64 = classes.filter_map(|class| processor.class_ns.get(class)).sum();
    span(processor.syscall_ns + processor.fixed_ns + layers, NS)
}

fn target(drives: &[Drive], provider: &str, offset: u64) -> String {
    let names: Vec<String> = drives.iter().map(|drive| format!("drive:{}", drive.name)).collect();
    let provider = if provider.is_empty() { String::new() } else { format!("#{provider}") };
    let offset = if offset > 0 { format!(" from byte {offset}") } else { String::new() };
    format!("{}{provider}{offset}", names.join(","))
}

/// The layers over the first medium or, if there is a set, over the set.
fn layout(graph: &Graph, id: Id, offset: u64, models: &[Model]) -> Layout {
    let root = graph.root(id);
    let provider = |id: Id| &graph.providers[id];
    let chunk = provider(root)
        .topology
        .facts
        .iter()
        .find(|fact| fact.why == Why::Chunk)
        .map(|fact| fact.grain);
    let (unit, phase) = match (chunk, models.first()) {
        (Some(chunk), _) => (chunk.size(), chunk.phase()),
        (None, Some(model)) => (model.physical_block_size, model.phase()),
        (None, None) => (0, 0),
    };
    let inside = path(graph, id).into_iter().skip_while(|&id| id != root);
    let name = |id: Id| {
        if provider(id).name.is_empty() { "disk".to_owned() } else { provider(id).name.clone() }
    };
    let mut layers: Vec<(String, u64)> = inside.map(|id| (name(id), provider(id).base())).collect();
    if offset > 0 {
        layers.push(("requests".into(), provider(id).base().saturating_add(offset)));
    }
    Layout { unit, phase, layers, requests: Vec::new() }
}

impl Lab {
    fn at_byte(&self, byte: usize, cause: impl Into<Error>) -> LabError {
        LabError { line: (byte > 0).then(|| super::line(&self.text, byte)), cause: cause.into() }
    }

    /// The text of a file that the lab names.
    fn read(&self, name: &Spanned<String>, what: &str) -> Result<String, LabError> {
        let text = self.text(name.get_ref());
        text.map(std::borrow::Cow::into_owned)
            .map_err(|e| self.refuse(name, format!("read the {what} {}: {e}", name.get_ref())))
    }
}
