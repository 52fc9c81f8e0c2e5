//! The model of InnoDB against a recording of MariaDB (`innodb/record.py`): every request of its
//! log, its table and its doublewrite buffer, and the number of its system's pages.

use trueline_lab::layer::innodb::{InnoDb, Keys};
use trueline_lab::layer::steps::Steps;
use trueline_lab::layer::{Layer, ask};
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;

const RECORDING: &str = include_str!("innodb/mariadb-10.11.txt");
const PAGE: u64 = 16384;
const LOG: u64 = 8 << 20;
/// The first bytes of the doublewrite buffer in the recorded file, and of the model's table.
const DOUBLEWRITE: u64 = 1 << 20;
const TABLE: u64 = LOG + (128 + 256) * PAGE;

/// A request: the part of the server, the operation, the offset in the part and the length. Of
/// flushes, and of pages of rollback segments, only the number is compared.
type Seen = (&'static str, &'static str, u64, u64);

#[test]
fn innodb_makes_the_requests_that_the_model_makes() {
    let mut lines = RECORDING.lines().filter(|line| !line.starts_with('#')).peekable();
    let lsn = numbers(lines.next().expect("the LSN"))[0];
    let mut model = InnoDb::new(Keys { log: LOG, lsn, ..Keys::default() }).expect("a server");
    let (mut asked, mut pages) = (0, 0);
    while let Some(line) = lines.next() {
        let mut seen: Vec<Seen> = Vec::new();
        while let Some(request) = lines.next_if(|line| line.starts_with(' ')) {
            seen.push(recorded(request));
        }
        let [first, count, redo] = numbers(line)[..] else { panic!("{line}") };
        let mut steps = Steps::default();
        match line.split(' ').next() {
            Some("read") => model
                .plan(ask(Op::Read, first * PAGE, count * PAGE), &mut steps)
                .expect("it is read"),
            Some("write") => model.change(first, first + count, redo, &mut steps),
            _ => model.clean(redo / 2, &mut steps),
        }
        let mut planned: Vec<Seen> = steps.asks().map(modelled).collect();
        if line.starts_with("flush") {
            // Several threads write.
            seen.sort_unstable();
            planned.sort_unstable();
        }
        assert_eq!(seen, planned, "request {asked}, {line}: recorded left, the model right");
        asked += 1;
        pages += seen.iter().filter(|(.., length)| *length == PAGE).count();
    }
    assert!(asked == 378 && pages > 1000, "{asked} requests, {pages} pages");
}

/// The numbers of a line.
fn numbers(line: &str) -> Vec<u64> {
    line.split(' ').filter_map(|word| word.parse().ok()).collect()
}

/// A request of the recording.
fn recorded(line: &'static str) -> Seen {
    let mut words = line.split_whitespace();
    let [file, operation] = [(); 2].map(|()| words.next().expect("a word"));
    let [offset, length] = numbers(line)[..] else { panic!("{line}") };
    match (file, operation) {
        (_, "flush") => ("", "flush", 0, 0),
        ("system", _) if offset == DOUBLEWRITE => ("doublewrite", operation, 0, length),
        ("system", _) => ("system", operation, 0, length),
        _ => (file, operation, offset, length),
    }
}

/// A request of the model.
fn modelled(Ask { op, offset, length, .. }: Ask) -> Seen {
    let operation = match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => return ("", "flush", 0, 0),
    };
    let (part, offset) = match offset {
        at if at < LOG => ("log", at),
        at if at == LOG => ("doublewrite", 0),
        at if at < TABLE => ("system", 0),
        at => ("table", (at - TABLE) / PAGE),
    };
    (part, operation, offset, length)
}
