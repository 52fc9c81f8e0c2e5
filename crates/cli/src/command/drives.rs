//! `drives`: the simulated drives, the parameters of one, its file.

pub(crate) mod args;
pub(crate) mod text;
use crate::command::drives::args::Drives;
use crate::command::drives::text as out;
use crate::command::drives::text::{Document, ListedModel};
use crate::failure::{Failure, Reason};
use crate::style::Style;
use crate::target::simulated::{model, model_text};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use toml::Value;
use trueline_sim::model::{MODELS, Parameter};

pub(crate) fn run(args: &Drives) -> Result<ExitCode, Failure> {
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    let entries = match (&args.template, &args.model) {
        (Some(name), _) => {
            let mut entry = entry(name, &[])?;
            let template = text(name)?;
            if !args.json {
                stdout.write_all(template.as_bytes())?;
                stdout.flush()?;
                return Ok(ExitCode::SUCCESS);
            }
            entry.template = Some(template);
            vec![entry]
        }
        (None, Some(name)) => vec![entry(name, &args.set)?],
        (None, None) => {
            MODELS.iter().map(|(name, _)| entry(name, &[])).collect::<Result<_, _>>()?
        }
    };
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &Document::new(entries))
            .map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else if args.model.is_some() {
        entries
            .iter()
            .try_for_each(|entry| out::parameters(entry, &mut stdout, Style::of_stdout()))?;
    } else {
        out::list(&entries, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn text(name: &str) -> Result<String, Reason> {
    model_text(name).map_err(|e| e.behind(format_args!("read the model {name}")))
}

fn entry(name: &str, set: &[(String, Value)]) -> Result<ListedModel, Reason> {
    let failed = |e: Reason| e.behind(format_args!("read the model {name}"));
    let parameters = Parameter::list(&text(name)?, set).map_err(|e| failed(e.into()))?;
    Ok(ListedModel::new(model(name, set).map_err(failed)?, parameters))
}
