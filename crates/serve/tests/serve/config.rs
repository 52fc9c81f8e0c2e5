//! Configurations that cannot be: each is refused by an error that says why.

use crate::Scratch;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;
use trueline_host::disk::memory::Memory;
use trueline_serve::error::{Error, RecordingError};
use trueline_serve::export::{Exports, Outside, Range};
use trueline_serve::front::Front;
use trueline_serve::front::config::{FrontConfig, TlsUse};
use trueline_serve::layer::overlay::{Covered, OverlayStorage, Overlays};
use trueline_serve::layer_stack::{LayerConfig, LayerStack, Strictness};
use trueline_serve::notice::Tell;
use trueline_serve::selection::Selection;
use trueline_serve::server;

/// A disk of 64 KiB in memory of whose units nothing is known.
fn graph() -> Graph {
    let topology = trueline_geom::base::topology::Topology::new(512, 1 << 16);
    Graph::taste(
        vec![Disk::new("", Box::new(Memory::new(1 << 16).unwrap()), topology)],
        Limits::default(),
    )
}

fn tell() -> Arc<Tell> {
    Arc::new(|_| ())
}

fn layers(config: LayerConfig) -> Result<LayerStack, Error> {
    LayerStack::new(&graph(), 0, &LayerConfig { target: "a disk".into(), ..config }, &tell())
}

#[test]
fn requests_are_not_judged_by_a_grain_that_is_not_known() {
    let refused = layers(LayerConfig { strict: Some(Strictness::All), ..LayerConfig::default() })
        .err()
        .unwrap();
    assert!(matches!(&refused, Error::NoGrain { target } if target == "a disk"), "{refused}");
    assert_eq!(
        refused.to_string(),
        "serve a disk: nothing is known of its units, so none is refused"
    );
}

#[test]
fn a_recording_takes_the_place_of_no_other_file() {
    let scratch = Scratch::new();
    let path = scratch.0.join("letter");
    let record = |path: &Path| {
        layers(LayerConfig { record: Some(path.to_owned()), ..LayerConfig::default() })
    };
    fs::write(&path, "Dear all").unwrap();
    let refused = record(&path).err().unwrap();
    assert!(
        matches!(&refused, Error::Recording { cause: RecordingError::NotATrace, .. }),
        "{refused}"
    );
    assert_eq!(
        refused.to_string(),
        format!("record {}: it is there and no trace: name a new file", path.display())
    );
    assert_eq!(fs::read(&path).unwrap(), b"Dear all");
    assert!(matches!(
        record(&scratch.0).err().unwrap(),
        Error::Recording { cause: RecordingError::NotAFile, .. }
    ));
    // One server at a time writes a trace.
    let path = scratch.0.join("trace");
    let first = record(&path).unwrap();
    assert!(matches!(
        record(&path).err().unwrap(),
        Error::Recording { cause: RecordingError::Busy, .. }
    ));
    drop(first);
    assert!(record(&path).is_ok());
}

#[test]
fn a_range_is_inside_of_its_target_and_served_alone() {
    let (graph, layers) = (graph(), layers(LayerConfig::default()).unwrap());
    let exports = |start, length| {
        let selection = Selection {
            target: "a disk".into(),
            range: Some(Range { start, length }),
            ..Selection::default()
        };
        selection.exports(&graph, 0, &layers, None)
    };
    let refused = exports(1 << 16, None).err().unwrap();
    assert!(matches!(refused, Error::Range(Outside { length: 65536, .. })), "{refused}");
    assert_eq!(refused.to_string(), "serve bytes 65536: the target has 65536 bytes");
    let Exports(exports) = exports(4096, Some(8192)).unwrap();
    assert_eq!((exports.len(), exports[0].store.length()), (1, 8192));
    assert_eq!(exports[0].description, "8192 bytes from byte 4096 of disk of a disk: disk");
}

#[test]
fn tls_needs_certificates_and_an_overlay_another_file_than_its_disk() {
    let fronts = FrontConfig { tls: Some(TlsUse::Required), ..FrontConfig::default() };
    let refused = fronts.open(&Arc::new(Exports(Vec::new())), &tell()).err().unwrap();
    assert!(matches!(refused, Error::NoCertificates), "{refused}");
    assert!(
        FrontConfig::default().open(&Arc::new(Exports(Vec::new())), &tell()).unwrap().is_empty()
    );
    let scratch = Scratch::new();
    let path = scratch.0.join("disk");
    fs::write(&path, [0; 4096]).unwrap();
    let disk = Covered {
        name: path.display().to_string(),
        image: Some(path.clone()),
        store: Box::new(Memory::new(4096).unwrap()),
    };
    let refused =
        Overlays::new(OverlayStorage::File(path.clone()), vec![disk], true).err().unwrap();
    assert_eq!(
        refused.to_string(),
        format!("put an overlay over {}: it is that disk itself: name a new file", path.display())
    );
}

/// A way in that nothing comes through.
struct Idle;

impl Front for Idle {
    fn place(&self) -> String {
        "nowhere".into()
    }

    fn variable(&self) -> &'static str {
        "nothing"
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), trueline_host::error::Error> {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// A mount or a device would stay behind, and the process with it.
#[test]
fn ways_in_end_where_the_caller_panics() {
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let ran = std::panic::catch_unwind(|| {
            let fronts: Vec<Box<dyn Front>> = vec![Box::new(Idle)];
            server::run(&fronts, None, |_| panic!("of the caller")).is_ok()
        });
        ended.send(ran.is_err()).unwrap();
    });
    assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(true));
}
