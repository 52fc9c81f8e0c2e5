//! The model of PostgreSQL against the server that is installed: every request of its log, its
//! table, `pg_xact` and `pg_control`, and its own counters, to the request.
//!
//! The server runs with one process (`postgres --single`), in which no other process writes, under
//! strace. Models are of version 15.

use crate::modelled::sum;
use crate::skip::skip;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use trueline_lab::layer::postgresql::PostgreSql;
use trueline_lab::layer::postgresql::wal::WalCounts;
use trueline_lab::layer::steps::Steps;
use trueline_lab::layer::{FLUSH, Layer, ask};
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;
use trueline_sim::random::Random;

const PAGE: u64 = 8192;
/// The pages of a table, and the bytes of the log.
const PAGES: u64 = 48;
const LOG: u64 = 8 << 20;
/// The files of the directory that the server is told to read before the first request of a
/// sequence, and after the last.
const MARKS: [&str; 2] = ["pg_hba.conf", "pg_ident.conf"];

/// A table and a server, as both sides have them.
struct Case {
    name: &'static str,
    /// The columns after `id`, and the values of one row, of number `n` from 0 to 254.
    columns: &'static str,
    values: &'static str,
    /// The change of a row.
    change: &'static str,
    fillfactor: u64,
    /// Rows of which a page has no more.
    rows: u64,
    /// The writes of the sequence: at most 255, so that no value comes twice.
    writes: u64,
    /// Options of the server.
    options: &'static [&'static str],
    /// Keys of the model.
    keys: &'static str,
}

impl Case {
    /// The last column of the table.
    fn last(&self) -> &'static str {
        let last = self.columns.rsplit(", ").next();
        last.and_then(|last| last.split(' ').next()).expect("a column")
    }
}

const CASES: &[Case] = &[
    Case {
        name: "accounts",
        columns: "bid int, abalance int, filler character(84)",
        values: "1, 0, ''",
        change: "abalance = (N::bigint * 16843009 - 4294967296 * (N / 128))::int",
        fillfactor: 90,
        rows: 60,
        writes: 250,
        options: &["wal_level=replica", "wal_buffers=512kB"],
        keys: "wal-buffers = 524288",
    },
    Case {
        name: "wide",
        columns: "v text",
        values: "repeat(chr(255), 600)",
        change: "v = repeat(chr(N + 1), 600)",
        fillfactor: 50,
        rows: 8,
        writes: 150,
        options: &["wal_level=minimal", "wal_buffers=32kB"],
        keys: "wal-level = 'minimal'\nwal-buffers = 32768\nrow = 608\nbefore = 8\nafter = 0\n\
               fillfactor = 50",
    },
    Case {
        name: "marked",
        columns: "v text",
        values: "repeat(chr(255), 100)",
        change: "v = repeat(chr(N + 1), 100)",
        fillfactor: 95,
        rows: 60,
        writes: 150,
        options: &["wal_level=replica", "wal_buffers=256kB", "wal_log_hints=on"],
        keys: "wal-buffers = 262144\nrow = 105\nbefore = 5\nafter = 0\nfillfactor = 95\n\
               wal-log-hints = true",
    },
    Case {
        name: "narrow",
        columns: "v int",
        values: "0",
        change: "v = (N::bigint * 16843009 - 4294967296 * (N / 128))::int",
        fillfactor: 90,
        rows: 240,
        writes: 150,
        options: &["wal_level=minimal", "wal_buffers=32kB", "full_page_writes=off"],
        keys: "wal-level = 'minimal'\nwal-buffers = 32768\nrow = 8\nbefore = 4\nafter = 0\n\
               full-page-writes = false",
    },
];

#[test]
fn postgresql_makes_the_requests_that_the_model_makes() {
    let Some(server) = Server::new() else { return };
    for (seed, case) in (1..).zip(CASES) {
        let rows = server.load(case);
        let asks = sequence(seed, case.writes);
        let seen = server.run(case, &asks, &rows);
        let keys =
            format!("log = {LOG}\nsegment = 1048576\nposition = {}\n{}", seen.position, case.keys);
        let mut model = PostgreSql::new(toml::from_str(&keys).expect("keys")).expect("a server");
        let plans: Vec<Vec<Ask>> = asks
            .iter()
            .map(|ask| {
                let mut steps = Steps::default();
                model.plan(*ask, &mut steps).expect("a plan");
                steps.asks().collect()
            })
            .collect();
        let flat: Vec<Ask> = plans.iter().flatten().copied().collect();
        let differs = |n: &usize| seen.requests.get(*n) != flat.get(*n);
        if let Some(n) = (0..seen.requests.len().max(flat.len())).find(differs) {
            let near = |asks: &[Ask]| asks[n.saturating_sub(6)..asks.len().min(n + 4)].to_vec();
            panic!(
                "{}: request {n}, of the server {:#?}, of the model {:#?}",
                case.name,
                near(&seen.requests),
                near(&flat)
            );
        }
        assert_eq!(seen.counts, model.wal_counts(), "{}: server left, model right", case.name);
        let (caused, counts) = (sum(&plans), seen.counts);
        eprintln!("{}: {} requests became {caused:?}, {counts:?}", case.name, asks.len());
    }
}

/// Seeded requests: writes and reads of parts of pages and of several, and checkpoints.
fn sequence(seed: u64, count: u64) -> Vec<Ask> {
    let mut random = Random::new(seed);
    let mut writes = 0;
    let mut asks = Vec::new();
    while writes < count {
        let longest = if random.below(8) == 0 { 12 * PAGE } else { PAGE };
        let length = 512 * (1 + random.below(longest / 512));
        let offset = 512 * random.below((PAGES * PAGE - length) / 512);
        let op = match random.below(20) {
            0 => Op::Flush,
            1..=6 => Op::Read,
            _ => Op::Write,
        };
        writes += u64::from(op == Op::Write);
        asks.push(if op == Op::Flush { FLUSH } else { ask(op, offset, length) });
    }
    asks
}

/// A server's directory, and what it takes to run one.
struct Server {
    directory: Directory,
    programs: &'static Path,
}

/// The requests of a server from `position` in its log on.
struct Seen {
    position: u64,
    requests: Vec<Ask>,
    counts: WalCounts,
}

impl Server {
    /// A new cluster; `None`, with a word, where none can be had.
    fn new() -> Option<Server> {
        let skipped = |why: &str| {
            skip(&format!("the requests of PostgreSQL 15: {why}"));
            None
        };
        let programs = Path::new("/usr/lib/postgresql/15/bin");
        if !programs.join("initdb").exists() {
            return skipped("it is not installed");
        }
        let server = Server { directory: Directory::new(), programs };
        let root = std::fs::metadata("/proc/self").expect("Linux").uid() == 0;
        if root && !succeeds(Command::new("chown").arg("postgres:").arg(&server.directory.0)) {
            return skipped("it refuses root, and there is no user postgres");
        }
        if !succeeds(server.user("strace").args(["-f", "--seccomp-bpf", "-qq", "true"])) {
            return skipped("strace cannot trace");
        }
        let made = server
            .user(programs.join("initdb"))
            .args(["--no-sync", "--no-locale", "-E", "SQL_ASCII", "-U", "postgres"])
            .args(["--wal-segsize=1", "-D"])
            .arg(server.data())
            .output();
        ended(&made.expect("initdb runs"));
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.directory.0.join("data")
    }

    /// A program as a user that the server does not refuse.
    fn user(&self, program: impl AsRef<OsStr>) -> Command {
        let owner = std::fs::metadata(&self.directory.0).expect("it is there");
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={}", owner.uid())).arg(format!("--regid={}", owner.gid()));
        command.arg("--keep-groups").arg(program.as_ref()).current_dir(&self.directory.0);
        command
    }

    /// Runs statements in a server of one process, under strace if `trace` says where it goes.
    fn single(&self, options: &[&str], statements: &str, trace: Option<&Path>) -> String {
        let postgres = self.programs.join("postgres");
        let mut command = self.user(if trace.is_some() { "strace".as_ref() } else { &*postgres });
        if let Some(trace) = trace {
            command.args(["-f", "--seccomp-bpf", "-qq", "-y", "-s0", "-o"]).arg(trace);
            command.args(["-e", "trace=openat,pread64,pwrite64,pwritev,write,fdatasync,fsync"]);
            // Nothing is lost with the machine that the test would miss.
            command.args(["-e", "signal=none", "-e", "inject=fdatasync,fsync:retval=0"]);
            command.arg(postgres);
        }
        command.args(["--single", "-j", "-D"]).arg(self.data());
        for option in ["shared_buffers=32MB"].iter().chain(options) {
            command.args(["-c", option]);
        }
        let mut child = command
            .arg("template1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server runs");
        let mut input = child.stdin.take().expect("a pipe");
        let statements = statements.to_owned();
        let writer = std::thread::spawn(move || {
            std::io::Write::write_all(&mut input, statements.as_bytes()).expect("it reads");
        });
        let ran = child.wait_with_output().expect("it ends");
        writer.join().expect("it was written");
        ended(&ran);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!said.contains("ERROR"), "{said}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// Makes the table of a case; returns the first row of each page.
    fn load(&self, case: &Case) -> Vec<String> {
        let Case { name, columns, values, fillfactor, rows, .. } = case;
        let plain = if columns.ends_with("int") {
            String::new()
        } else {
            format!("alter table {name} alter {} set storage plain;\n\n", case.last())
        };
        let statements = format!(
            "create table {name}(id int primary key, {columns}) with (fillfactor={fillfactor});\n\n\
             {plain}insert into {name} select g, {values} from generate_series(0, {}) g;\n\n\
             select count(*) from {name};\n\n\
             select id from {name} where ctid::text like '%,1)' order by ctid;\n\n",
            PAGES * rows,
        );
        let said = self.single(&["fsync=off"], &statements, None);
        let rows = values_of(&said, "id");
        assert!(rows.len() as u64 >= PAGES, "{said}");
        rows
    }

    /// Asks a server for what a client of the layer asks, and what it asked of its files.
    fn run(&self, case: &Case, asks: &[Ask], rows: &[String]) -> Seen {
        let Case { name, change, options, .. } = case;
        let mut statements = format!(
            "set enable_seqscan=off;\n\nset enable_bitmapscan=off;\n\n\
             select pg_relation_filepath('{name}') as path;\n\n\
             explain update {name} set {} where id in (1, 2);\n\n\
             explain select count({}) from {name} where id in (1, 2);\n\n\
             checkpoint;\n\nselect pg_stat_force_next_flush();\n\nselect * from pg_stat_wal;\n\n\
             select length(pg_read_file('{}'));\n\n\
             select pg_current_wal_insert_lsn() as lsn;\n\n",
            change.replace('N', "1"),
            case.last(),
            MARKS[0]
        );
        let mut changes = 0;
        for Ask { op, offset, length, .. } in asks {
            let pages = offset / PAGE..(offset + length).div_ceil(PAGE);
            let covered = (0..).zip(rows).filter(|(page, _)| pages.contains(page));
            let ids = covered.map(|(_, id)| id.as_str()).collect::<Vec<_>>().join(", ");
            let statement = match op {
                Op::Flush => "checkpoint".to_owned(),
                Op::Read => {
                    format!("select count({}) from {name} where id in ({ids})", case.last())
                }
                Op::Write => {
                    changes += 1;
                    let change = change.replace('N', &(changes % 255).to_string());
                    format!("update {name} set {change} where id in ({ids})")
                }
            };
            write!(statements, "{statement};\n\n").expect("a string");
        }
        write!(
            statements,
            "select length(pg_read_file('{}'));\n\n\
             select pg_stat_force_next_flush();\n\nselect * from pg_stat_wal;\n\n",
            MARKS[1]
        )
        .expect("a string");
        let trace = self.directory.0.join(name);
        let said = self.single(options, &statements, Some(&trace));
        let lsn = &values_of(&said, "lsn")[0];
        let (high, low) = lsn.split_once('/').expect("a place in the log");
        let half = |text| u64::from_str_radix(text, 16).expect("hexadecimal");
        let position = (half(high) << 32) + half(low);
        let path = &values_of(&said, "path")[0];
        let traced = std::fs::read_to_string(&trace).expect("a trace");
        let grown = |column: &str| -> u64 {
            let found: Vec<u64> = values_of(&said, column)
                .iter()
                .map(|value| value.parse().expect("a number"))
                .collect();
            found[1] - found[0]
        };
        let counts = WalCounts {
            records: grown("wal_records"),
            images: grown("wal_fpi"),
            bytes: grown("wal_bytes"),
            ring_full: grown("wal_buffers_full"),
            writes: grown("wal_write"),
            syncs: grown("wal_sync"),
        };
        Seen { position, requests: requests(&traced, path), counts }
    }
}

/// The values of a column that a server of one process has printed.
fn values_of(said: &str, column: &str) -> Vec<String> {
    let begin = format!(": {column} = \"");
    said.lines()
        .filter_map(|line| line.split_once(&begin)?.1.split_once('"'))
        .map(|(value, _)| value.to_owned())
        .collect()
}

/// The requests of a trace between the marks, in the address space of the model. The file `table`
/// is its table.
fn requests(trace: &str, table: &str) -> Vec<Ask> {
    let [begin, end] = MARKS.map(|mark| trace.rfind(mark).expect("the server read it"));
    trace[begin..end].lines().filter_map(|line| request(line, table)).collect()
}

/// The request of a line of strace, `271 pwrite64(3</data/pg_wal/…>, ""..., 8192, 16384) = 8192`.
fn request(line: &str, table: &str) -> Option<Ask> {
    let (call, rest) = line.split_once('(')?;
    let call = call.rsplit(' ').next()?;
    let (path, rest) = rest.split_once('<')?.1.split_once('>')?;
    let numbers: Vec<u64> =
        rest.split([',', ')', ' ']).filter_map(|word| word.parse().ok()).collect();
    let (directory, name) = path.rsplit_once('/')?;
    let begin = if directory.ends_with("/pg_wal") && name.len() == 24 {
        // 4096 segments of 1 MiB have a number of the upper 32 bits.
        let number = |digits| u64::from_str_radix(digits, 16).expect("a segment");
        ((number(&name[8..16]) << 32) + (number(&name[16..]) << 20)) % LOG
    } else if directory.ends_with("/pg_xact") {
        LOG
    } else if name == "pg_control" {
        LOG + PAGE
    } else if path.ends_with(table) {
        LOG + 2 * PAGE
    } else {
        return None;
    };
    match (call, numbers.as_slice()) {
        // A segment that is renamed for its next use.
        ("fsync", _) if begin < LOG => None,
        ("fsync" | "fdatasync", _) => Some(FLUSH),
        ("pread64", [length, offset, _]) => Some(ask(Op::Read, begin + offset, *length)),
        ("pwrite64", [length, offset, _]) => Some(ask(Op::Write, begin + offset, *length)),
        ("write", [length, _]) => Some(ask(Op::Write, begin, *length)),
        _ => None,
    }
}

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        let name = format!("trueline-postgresql-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// True if a program is here, and succeeds.
fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|ran| ran.status.success())
}

/// Fails where a program did.
fn ended(ran: &Output) {
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
