//! Lines on stderr at the end of a server: what its layers did.

use super::emulate;
use crate::failure::{Failure, complain};
use trueline_serve::layer::faulty::Faults;
use trueline_serve::layer::recorded::Recording;
use trueline_serve::layer_stack::LayerStack;

/// Tells how many requests `--strict` has refused; `true` if there are any.
pub(super) fn refused(layers: &LayerStack) -> bool {
    match layers.refused().map(|refused| refused.told()) {
        Some((count, Some(first))) => {
            let requests = if count == 1 { "request was" } else { "requests were" };
            complain(&format!(
                "strict: {count} {requests} off the grain and refused, the first a {first}"
            ));
            true
        }
        _ => false,
    }
}

/// Tells what drives and faults did, and ends the recording.
pub(super) fn layers(layers: &LayerStack) -> Result<(), Failure> {
    if let Some(drives) = layers.drives() {
        // Where stderr is closed, the rest is done all the same.
        let _ = emulate::tell(drives, layers.models());
    }
    layers.faults().into_iter().for_each(faults);
    layers.recording().map_or(Ok(()), recording)
}

/// Tells what every rule did.
fn faults(faults: &Faults) {
    for (rule, done) in faults.plan().rules.iter().zip(faults.done()) {
        let first: Vec<String> = done.first.iter().map(u64::to_string).collect();
        let more = if done.count > done.first.len() as u64 { ", ..." } else { "" };
        let which = if first.is_empty() {
            String::new()
        } else {
            format!(", number {}{more}", first.join(", "))
        };
        let (count, all) = (done.count, faults.asked(rule));
        complain(&format!("fault {rule}: {count} of {all} requests{which}"));
    }
}

/// Ends a recording, and tells how much is in it.
fn recording(recording: &Recording) -> Result<(), Failure> {
    let requests = recording.end()?;
    complain(&format!("record {}: {requests} requests", recording.path().display()));
    Ok(())
}
