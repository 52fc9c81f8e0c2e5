//! `bench --csv`: a run a line.

use std::io::{self, Write};
use trueline_lab::result::bench::BenchDocument;

/// Writes the header and the runs.
pub(crate) fn write(document: &BenchDocument, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "workload,time,variant,target,offset,run,seconds,ops,bytes,errors,mean_ns,p50_ns,p99_ns,max_ns,host_reads")?;
    for variant in &document.variants {
        for (nth, run) in variant.runs.iter().enumerate() {
            let (name, target) = (quoted(&variant.name), quoted(&variant.target));
            write!(out, "{},{},{name},{target},{},{},", document.workload, document.time, variant.offset, nth + 1)?;
            write!(out, "{},{},{},{},", run.seconds, run.ops, run.bytes, run.errors)?;
            let l = &run.latency_ns;
            write!(out, "{},{},{},{},", l.mean, l.p50, l.p99, l.max)?;
            writeln!(out, "{}", run.host_reads.map_or_else(String::new, |reads| reads.to_string()))?;
        }
    }
    Ok(())
}

/// A field as RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}
