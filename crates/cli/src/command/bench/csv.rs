//! `bench --csv`: a line for each run; for bonnie the line of bonnie++ 1.96, which its tools read.

use crate::words::csv::quoted;
use std::io::{self, Write};
use trueline_lab::result::bench::BenchDocument;

/// Writes the header and the runs.
pub(crate) fn write(document: &BenchDocument, out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<&String> = document
        .variants
        .iter()
        .flat_map(|v| &v.runs)
        .filter_map(|run| run.bonnie_csv.as_ref())
        .collect();
    if !lines.is_empty() {
        return lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    }
    writeln!(
        out,
        "workload,time,variant,target,offset,run,seconds,ops,bytes,errors,mean_ns,p50_ns,p99_ns,max_ns,host_reads,engine"
    )?;
    for variant in &document.variants {
        for (nth, run) in variant.runs.iter().enumerate() {
            let (name, target) = (quoted(&variant.name), quoted(&variant.target));
            write!(
                out,
                "{},{},{name},{target},{},{},",
                document.workload,
                document.time,
                variant.offset,
                nth + 1
            )?;
            write!(out, "{},{},{},{},", run.seconds, run.ops, run.bytes, run.errors)?;
            let l = &run.latency_ns;
            write!(out, "{},{},{},{},", l.mean, l.p50, l.p99, l.max)?;
            let reads = run.host_reads.map_or_else(String::new, |reads| reads.to_string());
            writeln!(out, "{reads},{}", variant.engine.unwrap_or_default())?;
        }
    }
    Ok(())
}
