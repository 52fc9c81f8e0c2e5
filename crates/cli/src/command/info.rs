//! `info`: one provider in the manner of `diskinfo -v`, with every grain and its source.

use crate::Failure;
use crate::options::Info;
use crate::out::size;
use crate::report::Provider;
use crate::survey::survey;
use crate::target::{Said, open};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    target: &'a str,
    #[serde(flatten)]
    provider: &'a Provider,
}

pub(crate) fn run(args: &Info) -> Result<ExitCode, Failure> {
    let said = Said::new(&args.disk)?;
    let (graph, only) = open(&args.target, &said)?;
    let target = survey(&args.target, &graph, only.as_deref()).map_err(|e| format!("open {}: {e}", args.target))?;
    // Several disks without a provider named: each of them.
    let asked: Vec<&Provider> = match &only {
        Some(_) => target.providers.iter().take(1).collect(),
        None => target.providers.iter().filter(|p| p.class == "disk").collect(),
    };
    if args.json && asked.len() > 1 {
        let names: Vec<&str> = target.providers.iter().map(|p| p.provider.as_str()).collect();
        return Err(format!("info --json {}: one provider is one document: name it after a #: {}", args.target, names.join(", ")).into());
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    let several = asked.len() > 1;
    for provider in asked {
        if args.json {
            let document = Document { format: "trueline/info/1", target: &args.target, provider };
            serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
            writeln!(stdout)?;
        } else {
            let name = if several { format!("{}#{}", args.target, provider.provider) } else { args.target.clone() };
            text(&name, provider, &mut stdout)?;
        }
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn text(target: &str, p: &Provider, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{target}")?;
    let mut line = |value: String, what: &str| writeln!(out, "\t{value:<12}\t# {what}");
    line(p.sector_size.to_string(), "sectorsize")?;
    line(p.length.to_string(), &format!("mediasize in bytes ({})", size::human(p.length)))?;
    line((p.length / p.sector_size.max(1)).to_string(), "mediasize in sectors")?;
    line(p.stripe_size.to_string(), "stripesize")?;
    line(p.stripe_offset.to_string(), "stripeoffset")?;
    if let Some(start) = p.start {
        line(start.to_string(), "start on the medium in bytes")?;
    }
    if let Some(sign) = &p.sign {
        line(sign.clone(), "contents")?;
    }
    writeln!(out, "\n\t{:>12} {:>12}  {:<12} {:<8} trust", "grain", "phase", "why", "source")?;
    for g in &p.grains {
        writeln!(out, "\t{:>12} {:>12}  {:<12} {:<8} {}", g.size, g.phase, g.why, g.source, g.trust)?;
    }
    Ok(())
}
