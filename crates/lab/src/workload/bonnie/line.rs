//! The output of bonnie++ 1.96: its CSV line, field by field, and its table.

use super::{Parameters, Phase, Phases};
use crate::run::Run;
use std::fmt::Write;

/// The shortest duration in ns for which bonnie++ shows a rate: half a second.
const SHORTEST_NS: u64 = 500_000_000;

/// The values in front of the measurements.
pub struct Head<'a> {
    /// The name of the machine.
    pub machine: &'a str,
    /// The time in seconds since 1970.
    pub time: u64,
    /// The parameters of the run.
    pub parameters: Parameters,
}

/// A rate and a percentage of the processor; a phase too quick to measure is `+++++`, one that was
/// not run is empty.
fn rate(run: Option<&Run>, kilobytes: bool) -> [String; 2] {
    let Some(run) = run else { return [String::new(), String::new()] };
    if run.ns < SHORTEST_NS {
        return ["+++++".into(), "+++".into()];
    }
    let per_second = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(run.ns);
    let value = if kilobytes { per_second(run.bytes / 1024) } else { per_second(run.ops) };
    [value.to_string(), String::new()]
}

/// The rate of seeks, with one decimal.
fn seeks(run: Option<&Run>) -> [String; 2] {
    match run {
        Some(run) if run.ns >= SHORTEST_NS => {
            let tenths = u128::from(run.ops) * 10_000_000_000 / u128::from(run.ns);
            [format!("{}.{}", tenths / 10, tenths % 10), String::new()]
        }
        other => rate(other, false),
    }
}

/// A latency as bonnie++ writes it: at most five digits.
fn latency(run: Option<&Run>) -> String {
    let Some(run) = run else { return String::new() };
    let us = run.longest_ns / 1000;
    match us {
        0..=99_999 => format!("{us}us"),
        100_000..=99_999_999 => format!("{}ms", us / 1000),
        _ => format!("{}s", us / 1_000_000),
    }
}

/// The size in MiB, as bonnie++'s option spells it.
fn size(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!("{}M", bytes >> 20) }
}

/// The CSV line of format 1.96, without its end.
pub fn csv(head: &Head<'_>, phases: &Phases) -> String {
    let of = |phase: Phase| phases[phase as usize].as_ref();
    let machine = head.machine.replace([',', '\n'], "_");
    let Parameters { size: bytes, kilo_files } = head.parameters;
    // Format, program, machine, concurrency, seed, size, piece.
    let mut fields: Vec<String> = vec![
        "1.96".into(),
        "1.96".into(),
        machine,
        "1".into(),
        head.time.to_string(),
        size(bytes),
        String::new(),
    ];
    for phase in &Phase::ALL[..5] {
        fields.extend(rate(of(*phase), true));
    }
    fields.extend(seeks(of(Phase::Seeks)));
    // Files, the largest, the smallest, directories; one field is for what bonnie++ never fills.
    fields.push(if kilo_files == 0 { String::new() } else { kilo_files.to_string() });
    fields.extend((0..4).map(|_| String::new()));
    for phase in &Phase::ALL[6..] {
        fields.extend(rate(of(*phase), false));
    }
    fields.extend(Phase::ALL.iter().map(|&phase| latency(of(phase))));
    fields.join(",")
}

/// The table, as bonnie++ prints it.
pub fn table(head: &Head<'_>, phases: &Phases) -> String {
    let of = |phase: Phase| phases[phase as usize].as_ref();
    let machine: String = head.machine.chars().filter(|c| !c.is_control()).collect();
    let mut text = String::new();
    let put = |text: &mut String, line: std::fmt::Arguments<'_>| {
        let _ = text.write_fmt(line);
        text.push('\n');
    };
    let cells = |values: Vec<[String; 2]>, widths: &[usize]| -> String {
        let cell =
            |([value, busy], width): ([String; 2], &usize)| format!(" {value:>width$} {busy:>3}");
        values.into_iter().zip(widths).map(cell).collect()
    };
    let latencies = |phases: &[Phase]| -> String {
        phases.iter().map(|&phase| format!(" {:>9}", latency(of(phase)))).collect()
    };
    put(
        &mut text,
        format_args!(
            "Version  1.96       ------Sequential Output------ --Sequential Input- --Random-"
        ),
    );
    put(
        &mut text,
        format_args!(
            "Concurrency   1     -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--"
        ),
    );
    put(
        &mut text,
        format_args!(
            "Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP"
        ),
    );
    let mut values: Vec<[String; 2]> =
        Phase::ALL[..5].iter().map(|&phase| rate(of(phase), true)).collect();
    values.push(seeks(of(Phase::Seeks)));
    let short: String = machine.chars().take(12).collect();
    put(
        &mut text,
        format_args!("{short:<12} {:>6}{}", size(head.parameters.size), cells(values, &[5; 6])),
    );
    put(&mut text, format_args!("Latency            {}", latencies(&Phase::ALL[..6])));
    put(
        &mut text,
        format_args!(
            "Version  1.96       ------Sequential Create------ --------Random Create--------"
        ),
    );
    let long: String = machine.chars().take(19).collect();
    put(
        &mut text,
        format_args!("{long:<19} -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--"),
    );
    put(
        &mut text,
        format_args!(
            "              files  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP"
        ),
    );
    let values = Phase::ALL[6..].iter().map(|&phase| rate(of(phase), false)).collect();
    put(&mut text, format_args!("{:>19}{}", head.parameters.kilo_files, cells(values, &[5; 6])));
    put(&mut text, format_args!("Latency            {}", latencies(&Phase::ALL[6..])));
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
