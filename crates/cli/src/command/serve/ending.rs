//! Lines on stderr at the end of a server: what its layers did.

use super::emulate;
use crate::failure::Failure;
use crate::log::{self, LogEvent};
use trueline_serve::layer::faulty::Faults;
use trueline_serve::layer::recorded::Recording;
use trueline_serve::layer_stack::LayerStack;

/// Tells how many requests `--strict` has refused; `true` if there are any.
pub(super) fn refused(layers: &LayerStack) -> bool {
    match layers.refused().map(|refused| refused.told()) {
        Some((count, Some(first))) => {
            let requests = if count == 1 { "request was" } else { "requests were" };
            let message = format!(
                "strict: {count} {requests} off the grain and refused, the first a {first}"
            );
            log::write(LogEvent::Refused, &message, &[("requests", count.into())]);
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
        let message = format!("fault {rule}: {count} of {all} requests{which}");
        let rule = rule.to_string();
        let fields = [("rule", rule.into()), ("hits", count.into()), ("requests", all.into())];
        log::write(LogEvent::Fault, &message, &fields);
    }
}

/// Ends a recording, and tells how much is in it.
fn recording(recording: &Recording) -> Result<(), Failure> {
    let requests = recording.end()?;
    let path = recording.path().display().to_string();
    let message = format!("record {path}: {requests} requests");
    let fields = [("path", path.into()), ("requests", requests.into())];
    log::write(LogEvent::Recording, &message, &fields);
    Ok(())
}
