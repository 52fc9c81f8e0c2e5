//! A small server of objects for tests and benchmarks: ranges, ETags, conditions, S3's listing, and
//! faults on demand.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Contents of a bucket.
pub(crate) enum Contents {
    /// Objects by their keys.
    Memory(BTreeMap<String, Vec<u8>>),
    /// Files of one directory.
    Directory(PathBuf),
}

/// Faults, and what the server lacks; by default there are none.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    /// Time before each reply.
    pub(crate) latency: Duration,
    /// Requests that are answered with 503 before any other.
    pub(crate) busy: usize,
    /// Replies to ranges that are cut in the middle: all behind so many.
    pub(crate) cut_after: Option<usize>,
    /// Replies after which objects have another ETag.
    pub(crate) written_after: Option<usize>,
    /// Replies that have more bytes than were asked for.
    pub(crate) is_long: bool,
    /// A server without ranges.
    pub(crate) has_no_ranges: bool,
    /// A server without ranges of the last bytes.
    pub(crate) has_no_suffixes: bool,
    /// Key that is denied.
    pub(crate) denied: String,
    /// Most keys in a page of a listing; 0 for 1000.
    pub(crate) page: usize,
}

/// A server under way; it ends with the process.
pub(crate) struct Server {
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    contents: Contents,
    faults: Faults,
    replies: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl Server {
    /// A server of `contents` on a port of its own.
    pub(crate) fn start(contents: Contents, faults: Faults) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (replies, requests) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let state = Arc::new(State { contents, faults, replies, requests });
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                // A client that goes away ends its thread.
                thread::spawn(move || while state.answer(&stream).is_some() {});
            }
        });
        Server { url, state }
    }

    /// Requests so far, a line each: method, target, range, and `if-match` where it has one.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().expect("the requests").clone()
    }
}

/// An object as it is served: its length, its ETag, and its bytes at a place.
struct Found {
    length: u64,
    etag: String,
    bytes: Box<dyn Fn(u64, usize) -> Vec<u8>>,
}

impl State {
    /// Answers one request; `None` when the client has gone.
    fn answer(&self, mut stream: &TcpStream) -> Option<()> {
        let mut lines = BufReader::with_capacity(8 << 10, stream);
        let mut head = String::new();
        loop {
            let before = head.len();
            if lines.read_line(&mut head).ok()? == 0 {
                return None;
            }
            if head[before..].trim().is_empty() {
                break;
            }
        }
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let body = header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
        lines.by_ref().take(body).read_to_end(&mut Vec::new()).ok()?;
        let mut words = head.split_whitespace();
        let (method, target) = (words.next()?, words.next()?);
        let range = header("range").unwrap_or_default();
        let condition = header("if-match");
        let mut line = format!("{method} {target} {range}");
        line.push_str(if condition.is_some() { " if-match" } else { "" });
        self.requests.lock().expect("the requests").push(line.trim_end().to_owned());
        thread::sleep(self.faults.latency);
        let number = self.replies.fetch_add(1, Ordering::Relaxed);
        let mut send = |status: &str, headers: &str, length: u64, bytes: &[u8]| {
            let date = "last-modified: Tue, 24 Nov 2026 00:00:00 GMT";
            let length_line = format!("content-length: {length}");
            let text = format!("HTTP/1.1 {status}\r\n{date}\r\n{headers}{length_line}\r\n\r\n");
            stream.write_all(text.as_bytes()).ok()?;
            stream.write_all(bytes).ok()?;
            (length == bytes.len() as u64 || method == "HEAD").then_some(())
        };
        if number < self.faults.busy {
            return send("503 Slow Down", "", 0, &[]);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if query.contains("list-type=2") {
            let text = self.listing(query);
            return send(
                "200 OK",
                "content-type: application/xml\r\n",
                text.len() as u64,
                text.as_bytes(),
            );
        }
        // The first part of a path is the bucket.
        let key = decoded(path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key));
        if key == self.faults.denied {
            return send("403 Forbidden", "", 0, &[]);
        }
        let Some(found) = self.find(&key, number) else {
            return send("404 Not Found", "", 0, &[]);
        };
        if condition.is_some_and(|wanted| wanted != found.etag) {
            return send("412 Precondition Failed", "", 0, &[]);
        }
        let etag = format!("etag: {}\r\n", found.etag);
        let wanted = range.strip_prefix("bytes=").and_then(|range| {
            let (from, to) = range.split_once('-')?;
            Some(match (from.parse::<u64>(), to.parse::<u64>()) {
                (Ok(from), Ok(to)) => (from, (to + 1).min(found.length)),
                (Ok(from), Err(_)) => (from, found.length),
                (Err(_), Ok(last)) => (found.length.saturating_sub(last), found.length),
                _ => return None,
            })
        });
        match wanted.filter(|_| !self.faults.has_no_ranges) {
            Some(_) if self.faults.has_no_suffixes && range.starts_with("bytes=-") => {
                send("400 Bad Request", "", 0, &[])
            }
            Some((from, to)) if from < to => {
                let extra = if self.faults.is_long { 8 << 20 } else { 0 };
                let bytes = (found.bytes)(from, usize::try_from(to - from).ok()? + extra);
                let is_cut = self.faults.cut_after.is_some_and(|after| number >= after);
                let sent = if is_cut { &bytes[..bytes.len() / 2] } else { &bytes[..] };
                let headers =
                    format!("{etag}content-range: bytes {from}-{}/{}\r\n", to - 1, found.length);
                send("206 Partial Content", &headers, bytes.len() as u64, sent)
            }
            Some(_) => send("416 Range Not Satisfiable", "", 0, &[]),
            None if method == "HEAD" => send("200 OK", &etag, found.length, &[]),
            None => {
                let bytes = (found.bytes)(0, usize::try_from(found.length).ok()?);
                send("200 OK", &etag, found.length, &bytes)
            }
        }
    }

    fn find(&self, key: &str, number: usize) -> Option<Found> {
        let is_written = self.faults.written_after.is_some_and(|after| number >= after);
        let version = u8::from(is_written);
        match &self.contents {
            Contents::Memory(objects) => {
                let object = objects.get(key)?.clone();
                Some(Found {
                    length: object.len() as u64,
                    etag: format!("\"{}-{version}\"", object.len()),
                    bytes: Box::new(move |at, length| {
                        let at = usize::try_from(at).expect("a place");
                        let mut bytes = object[at..object.len().min(at + length)].to_vec();
                        bytes.resize(length, 0);
                        bytes
                    }),
                })
            }
            Contents::Directory(directory) => {
                let file = File::open(directory.join(key)).ok()?;
                let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
                Some(Found {
                    length: meta.len(),
                    etag: format!("\"{}-{}-{version}\"", meta.ino(), meta.mtime()),
                    bytes: Box::new(move |at, length| {
                        let mut bytes = vec![0; length];
                        file.read_exact_at(&mut bytes, at).expect("bytes of a file");
                        bytes
                    }),
                })
            }
        }
    }

    /// A page of the keys behind the last one of the page before.
    fn listing(&self, query: &str) -> String {
        let value = |name: &str| {
            let find = |pair: &str| {
                let (key, value) = pair.split_once('=')?;
                (key == name).then(|| decoded(value))
            };
            query.split('&').find_map(find).unwrap_or_default()
        };
        let (prefix, after) = (value("prefix"), value("continuation-token"));
        let all: Vec<(String, u64, String)> = match &self.contents {
            Contents::Memory(objects) => objects
                .iter()
                .map(|(key, bytes)| {
                    (key.clone(), bytes.len() as u64, format!("\"{}-0\"", bytes.len()))
                })
                .collect(),
            Contents::Directory(directory) => {
                let mut names: Vec<String> = fs::read_dir(directory)
                    .expect("a directory")
                    .flatten()
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .collect();
                names.sort_unstable();
                let from = names.partition_point(|name| *name <= after);
                let meta = |name: &String| {
                    let meta = fs::metadata(directory.join(name)).ok()?;
                    Some((
                        name.clone(),
                        meta.len(),
                        format!("\"{}-{}-0\"", meta.ino(), meta.mtime()),
                    ))
                };
                let page = names[from..].iter().filter(|name| name.starts_with(&prefix));
                page.take(1001).filter_map(meta).collect()
            }
        };
        let most = if self.faults.page == 0 { 1000 } else { self.faults.page };
        let mut left = all
            .into_iter()
            .filter(|(key, ..)| key.starts_with(&prefix) && (after.is_empty() || *key > after));
        let page: Vec<(String, u64, String)> = left.by_ref().take(most).collect();
        let next = left.next().and(page.last()).map(|(key, ..)| key.clone());
        let mut text = String::from("<?xml version=\"1.0\"?><ListBucketResult>");
        for (key, size, etag) in page {
            let (key, etag) = (escaped(&key), escaped(&etag));
            let date = "<LastModified>2026-11-24T00:00:00.000Z</LastModified>";
            let own = format!("<Key>{key}</Key><Size>{size}</Size>{date}<ETag>{etag}</ETag>");
            text.push_str(&format!("<Contents>{own}</Contents>"));
        }
        if let Some(next) = next {
            let next = escaped(&next);
            text.push_str(&format!("<NextContinuationToken>{next}</NextContinuationToken>"));
        }
        text.push_str("</ListBucketResult>");
        text
    }
}

/// A text as XML has it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A part of a URL without its percent signs.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
