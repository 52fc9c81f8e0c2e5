//! `--overlay`: what clients write goes there, and the target is only read.

use crate::command::serve::args::Serve;
use crate::failure::Failure;
use crate::log::{self, LogEvent};
use crate::target::simulated::Spelling;
use crate::target::{Target, serving};
use crate::words;
use trueline_geom::graph::{Bytes, Disk, Reported};
use trueline_serve::layer::overlay::{Covered, OverlayStorage, Overlays};

/// The disks under the overlay that was asked for; as they are if none was.
pub(super) fn put(
    args: &Serve,
    disks: Vec<Disk>,
) -> Result<(Vec<Disk>, Option<Overlays>), Failure> {
    let Some(place) = args.overlay.clone() else { return Ok((disks, None)) };
    let (mut covered, mut rest) = (Vec::new(), Vec::new());
    for (mut disk, source) in disks.into_iter().zip(args.target.sources()) {
        let bytes = std::mem::replace(&mut disk.bytes, Bytes::Reported(Reported::default()));
        let typed = source.typed();
        let image = source.simulated().and_then(Spelling::image).unwrap_or(typed);
        covered.push(Covered {
            name: typed.into(),
            image: Some(image.into()),
            store: serving::store(bytes)?,
        });
        rest.push(disk);
    }
    let overlays = Overlays::new(place, covered, !args.read_only)?;
    let over = |(over, disk)| {
        let bytes = Bytes::Store(Box::new(Clone::clone(over)));
        Disk { bytes, ..disk }
    };
    let disks = overlays.disks().iter().zip(rest).map(over).collect();
    Ok((disks, Some(overlays)))
}

/// Says on stderr what was written where.
pub(super) fn tell(overlays: &Overlays, target: &Target) {
    let (written, zero) = overlays.changed();
    let after = match overlays.place() {
        OverlayStorage::Memory => "are gone now",
        OverlayStorage::File(_) => "are kept for the next time",
    };
    let blocks = format!(
        "{} of written blocks and {} of zeroed or discarded ones",
        words::bytes(written),
        words::bytes(zero)
    );
    let place = overlays.place().to_string();
    let message = format!("overlay {place}: {blocks} {after}; {target} is unchanged");
    let fields =
        [("place", place.into()), ("written_bytes", written.into()), ("zeroed_bytes", zero.into())];
    log::write(LogEvent::Overlay, &message, &fields);
}
