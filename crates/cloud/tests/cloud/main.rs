//! Objects against a server of our own, with every fault that a network has.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[allow(dead_code, reason = "the tests of the command line serve directories")]
mod server;

use server::{Contents, Faults, Server};
use std::collections::BTreeMap;
use std::sync::Arc;
use trueline_cloud::{Counts, ErrorClass, Listed, Object, ObjectError, list};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;

const LENGTH: usize = 8 << 20;

fn bytes() -> Vec<u8> {
    (0..LENGTH as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13).to_le_bytes()[0]).collect()
}

fn start(faults: Faults) -> Server {
    let objects = [("disk.img".to_owned(), bytes()), ("empty.img".to_owned(), Vec::new())];
    Server::start(Contents::Memory(objects.into()), faults)
}

fn object(server: &Server) -> Arc<Object> {
    Arc::new(Object::new(&format!("{}/b/disk.img", server.url), None))
}

/// Reads ranges as tasting does, until none is missing.
fn taste(object: &Arc<Object>, ranges: &[(u64, usize)]) -> Result<(), ObjectError> {
    let all = bytes();
    let store = object.store()?;
    for _ in 0..20 {
        for &(offset, length) in ranges {
            let mut buffer = vec![0; length];
            if store.read_at(&mut buffer, offset).is_ok() {
                let at = usize::try_from(offset).unwrap();
                assert!(buffer == all[at..at + length], "{offset}");
            }
        }
        if !object.fetch_missing()? {
            return Ok(());
        }
    }
    panic!("reads go on missing");
}

#[test]
fn what_is_missing_comes_in_one_round() {
    let server = start(Faults::default());
    let object = object(&server);
    let wanted = [
        (0, 4096),
        (LENGTH as u64 - 512, 512),
        (1 << 20, 4096),
        (3 << 20, 4096),
        (3 << 20 | 8192, 512),
    ];
    taste(&object, &wanted).unwrap();
    // Those of one round come in any order.
    let mut asked = server.requests();
    asked[..2].sort();
    asked[2..].sort();
    assert_eq!(
        asked,
        [
            "GET /b/disk.img bytes=-40960",
            "GET /b/disk.img bytes=0-69631",
            "GET /b/disk.img bytes=1048576-1052671 if-match",
            "GET /b/disk.img bytes=3145728-3154431 if-match",
        ]
    );
    let counts = object.counts();
    assert_eq!((counts.requests, counts.rounds), (4, 2));
    assert_eq!(counts.bytes, 69632 + 40960 + 4096 + 8192 + 512);
}

/// Much is not fetched at once, however much is asked for: it goes through a few units.
#[test]
fn what_is_missing_is_bounded() {
    let server = start(Faults::default());
    let object = object(&server);
    let (store, all) = (object.store().unwrap(), bytes());
    assert_eq!(store.read_at(&mut [0; 4096], 1 << 20), Err(Errno::Awaited));
    let mut large = vec![0; 4 << 20];
    store.read_at(&mut large, 2 << 20).unwrap();
    assert!(large == all[2 << 20..6 << 20]);
    // What was missed before is read as it is asked for, too, and tasting begins anew for it.
    assert_eq!(object.fetch_missing(), Ok(true));
    assert_eq!(object.fetch_missing(), Ok(false));
    let mut small = [0; 4096];
    store.read_at(&mut small, 1 << 20).unwrap();
    assert!(small == all[1 << 20..(1 << 20) + 4096]);
    let asked = server.requests();
    let longest = asked.iter().filter_map(|line| {
        let (from, to) = line.split_once("bytes=")?.1.split_once('-')?;
        Some(to.split(' ').next()?.parse::<u64>().ok()? - from.parse::<u64>().ok()?)
    });
    assert!(longest.max().unwrap() < 256 << 10);
}

/// An object cannot have itself read without end.
#[test]
fn requests_are_bounded() {
    let server = start(Faults::default());
    let hostile = object(&server);
    let mut outcome = Ok(());
    for step in 0..40 {
        let some: Vec<_> = (0..50).map(|n| (n * 139_264 + 65536 + step * 1536, 512)).collect();
        outcome = outcome.and(taste(&hostile, &some));
    }
    assert_eq!(outcome.map_err(|e| e.class), Err(ErrorClass::Refused));
    assert!(server.requests().len() <= 256);
}

/// A signature behind the name of an object is in every request.
#[test]
fn a_url_keeps_its_query() {
    let server = start(Faults::default());
    let uri = format!("{}/b/disk.img?sig=a%2Fb&expires=1", server.url);
    taste(&Arc::new(Object::new(&uri, None)), &[(1 << 20, 4096)]).unwrap();
    let asked = server.requests();
    let wanted = "GET /b/disk.img?sig=a%2Fb&expires=1 ";
    assert!(asked.len() == 3 && asked.iter().all(|line| line.starts_with(wanted)), "{asked:?}");
}

/// A listing says length and ETag: every request demands that state.
#[test]
fn an_object_that_was_listed_is_asked_for_as_it_was() {
    let server = start(Faults::default());
    let listed = Listed { size: LENGTH as u64, etag: format!("\"{LENGTH}-0\"") };
    let uri = format!("{}/b/disk.img", server.url);
    let known = Arc::new(Object::new(&uri, Some(listed.clone())));
    taste(&known, &[(1 << 20, 4096)]).unwrap();
    let asked = server.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|line| line.ends_with("if-match")), "{asked:?}");
    assert_eq!(known.counts().rounds, 2);
    let other = Listed { etag: "\"other\"".into(), ..listed };
    let error = Object::new(&uri, Some(other)).connect().map(|_| ()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Changed);
}

#[test]
fn reads_behind_tasting_are_fetched_as_they_come() {
    let server = start(Faults::default());
    let (object, all) = (object(&server), bytes());
    object.read_as_asked().unwrap();
    let store = object.store().unwrap();
    for (offset, length) in [(2 << 20, 4096), (2 << 20, 1 << 20), (5 << 20 | 123, 300_000)] {
        let mut buffer = vec![0; length];
        store.read_at(&mut buffer, offset as u64).unwrap();
        assert!(buffer == all[offset..offset + length]);
    }
    let length = LENGTH as u64;
    assert_eq!(store.read_at(&mut [0; 2], length - 1), Err(Errno::Range));
    assert_eq!(store.write_at(&[0], 0), Err(Errno::ReadOnly));
}

#[test]
fn faults_have_classes() {
    let wanted: &[(u64, usize)] = &[(1 << 20, 4096)];
    let outcome = |faults: Faults| {
        let server = start(faults);
        let result = taste(&object(&server), wanted);
        (result.map_err(|e| e.class), server.requests().len())
    };
    // A server that is busy for a while is asked again.
    assert_eq!(outcome(Faults { busy: 3, ..Faults::default() }), (Ok(()), 6));
    assert_eq!(outcome(Faults { has_no_suffixes: true, ..Faults::default() }).0, Ok(()));
    let denied = Faults { denied: "disk.img".into(), ..Faults::default() };
    assert_eq!(outcome(denied).0, Err(ErrorClass::Denied));
    let written = Faults { written_after: Some(2), ..Faults::default() };
    assert_eq!(outcome(written).0, Err(ErrorClass::Changed));
    let long = Faults { is_long: true, ..Faults::default() };
    assert_eq!(outcome(long).0, Err(ErrorClass::Truncated));
    // Of a reply that goes on and on, no more is taken than was asked for and one part.
    let server = start(Faults { is_long: true, ..Faults::default() });
    let endless = object(&server);
    assert!(endless.connect().is_err());
    assert!(endless.counts().bytes < 2 << 20, "{:?}", endless.counts());
    // The tail is of another state than the head.
    let server = start(Faults { written_after: Some(1), ..Faults::default() });
    let torn = object(&server).connect().map(|opened| opened.length).map_err(|e| e.class);
    assert_eq!(torn, Err(ErrorClass::Changed));
    let no_ranges = Faults { has_no_ranges: true, ..Faults::default() };
    assert_eq!(outcome(no_ranges).0, Err(ErrorClass::Refused));
}

#[test]
fn what_is_not_there_or_empty_is_said() {
    let server = start(Faults::default());
    let open = |name: &str| {
        let object = Object::new(&format!("{}/b/{name}", server.url), None);
        object.connect().map(|opened| opened.length).map_err(|e| (e.class, e.to_string()))
    };
    let uri = format!("{}/b/none.img", server.url);
    let absent = format!("open {uri}: it is not there");
    assert_eq!(open("none.img"), Err((ErrorClass::NotFound, absent)));
    assert_eq!(open("empty.img"), Ok(0));
    let name = Object::new("s3://", None).connect().map(|_| ()).unwrap_err();
    assert_eq!(name.class, ErrorClass::Name);
}

/// A reply that is cut short is asked for again, and is an error in the end.
#[test]
fn a_reply_that_is_cut_is_no_bytes() {
    let server = start(Faults { cut_after: Some(2), ..Faults::default() });
    let error = taste(&object(&server), &[(1 << 20, 4096)]).unwrap_err();
    assert!(matches!(error.class, ErrorClass::Truncated | ErrorClass::Unreadable), "{error:?}");
}

#[test]
fn a_bucket_is_listed_while_it_is_read() {
    let names = ["a.img", "b/c d.qcow2", "b/e&f.img", "b/g%20h.img", "ü.img"];
    if std::env::var_os("AWS_ENDPOINT").is_none() {
        // A process of its own has S3's settings in its environment from the begin.
        let objects: BTreeMap<String, Vec<u8>> =
            names.iter().map(|name| ((*name).to_owned(), vec![7; 600])).collect();
        let faults = Faults { page: 2, ..Faults::default() };
        let server = Server::start(Contents::Memory(objects), faults);
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["a_bucket_is_listed_while_it_is_read", "--exact"])
            .envs([("AWS_ENDPOINT", server.url.as_str()), ("AWS_ALLOW_HTTP", "true")])
            .envs([("AWS_SKIP_SIGNATURE", "true"), ("AWS_REGION", "us-east-1")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let found: Vec<_> = list("s3://bucket").map(Result::unwrap).collect();
    let uris: Vec<&str> = found.iter().map(|entry| entry.uri.as_str()).collect();
    let wanted: Vec<String> = names.iter().map(|name| format!("s3://bucket/{name}")).collect();
    assert_eq!(uris, wanted);
    for entry in found {
        let listed = entry.listed.clone();
        assert_eq!(listed.size, 600);
        let object = Object::new(&entry.uri, Some(entry.listed));
        assert_eq!(object.connect().unwrap().length, 600, "{}", entry.uri);
        assert_eq!(Object::new(&entry.uri, None).connect().unwrap().etag, listed.etag);
    }
    let beneath: Vec<String> = list("s3://bucket/b").map(|entry| entry.unwrap().uri).collect();
    assert_eq!(beneath, wanted[1..4]);
}

/// What its bounds leave out fails at once, and is there for a program that reads all of it.
#[test]
fn bounds_end_with_tasting() {
    let server = start(Faults::default());
    let (object, all) = (object(&server), bytes());
    object.bound(Counts { requests: 3, bytes: 256 << 10, rounds: 2 });
    let store = object.store().unwrap();
    let mut read = [0; 4096];
    for at in [1 << 20, 3 << 20] {
        assert_eq!(store.read_at(&mut read, at), Err(Errno::Awaited));
    }
    // One request is left for the two.
    assert_eq!(object.fetch_missing(), Ok(true));
    store.read_at(&mut read, 1 << 20).unwrap();
    assert!(read == all[1 << 20..(1 << 20) + 4096]);
    assert_eq!(store.read_at(&mut read, 3 << 20), Err(Errno::Unfetched));
    assert_eq!((object.fetch_missing(), object.counts().requests), (Ok(false), 3));
    assert_eq!(store.read_at(&mut read, 3 << 20), Err(Errno::Unfetched));
    object.read_as_asked().unwrap();
    store.read_at(&mut read, 3 << 20).unwrap();
    assert!(read == all[3 << 20..(3 << 20) + 4096]);
}
