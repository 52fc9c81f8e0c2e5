//! How long and how much a client may keep.

use super::client::{Client, hello, option};
use super::{LONG, MIB, PATIENT, SHORT, Server};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{Headers, command};
use trueline_serve::front::nbd::limits::Limits;

/// A header of a write of 100 000 bytes.
fn head() -> [u8; 28] {
    Request { flags: 0, command: command::WRITE, cookie: 1, offset: 0, length: 100_000 }
        .compact()
        .unwrap()
}

#[test]
fn a_handshake_ends_or_is_ended() {
    let server = Server::new(Limits { handshake: SHORT, ..PATIENT });
    let mut silent = server.connect();
    let (mut trickle, hello) = (server.connect(), hello());
    let begun = Instant::now();
    // A byte at a time, and every one within any patience for a single byte.
    for byte in hello.iter().cycle() {
        if trickle.write_all(&[*byte]).is_err() {
            break;
        }
        assert!(begun.elapsed() < LONG, "it is never hung up on");
        std::thread::sleep(Duration::from_millis(2));
    }
    for stream in [&mut silent, &mut trickle] {
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(said.starts_with(b"NBDMAGIC"));
    }
    assert_eq!(server.end(), ["a client was cut off: no request within 0.15 s of connecting"; 2]);
}

/// A client that is cut off is reported, one that leaves is not: every needless line hides another.
#[test]
fn a_client_that_leaves_is_not_reported() {
    let server = Server::new(PATIENT);
    drop(server.connect());
    let mut half = Client::new(server.connect());
    half.stream.write_all(&head()).unwrap();
    drop(half);
    let mut polite = Client::new(server.connect());
    assert_eq!(polite.read(0, 1), [0]);
    assert_eq!(server.end(), [""; 0]);
}

#[test]
fn silence_is_allowed_and_half_a_request_is_not() {
    let server = Server::new(Limits { request: SHORT, ..PATIENT });
    let mut idle = Client::new(server.connect());
    let mut half = Client::new(server.connect());
    half.stream.write_all(&head()[..20]).unwrap();
    assert!(half.is_hung_up());
    // The server may hang up before all of what was to come is sent, where this program is slow.
    let mut payload = Client::new(server.connect());
    let _ = payload.stream.write_all(&[&head()[..], &[7; 50_000]].concat());
    assert!(payload.is_hung_up());
    // Longer than fits into what is received at once.
    let mut large = Client::new(server.connect());
    let request = Request { length: 900_000, ..Request::read(&head(), Headers::Simple).unwrap() };
    let _ = large.stream.write_all(&[&request.compact().unwrap()[..], &[7; 300_000]].concat());
    assert!(large.is_hung_up());
    // One that trickles it is never silent for long.
    let mut trickle = Client::new(server.connect());
    let _ = trickle.stream.write_all(&head());
    let begun = Instant::now();
    while trickle.stream.write_all(&[7]).is_ok() {
        assert!(begun.elapsed() < LONG, "it is never hung up on");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(
        idle.read(0, 512),
        [0; 512],
        "it asked nothing for all that time, and nothing of theirs was written"
    );
    let said = server.end();
    assert!(
        said.len() == 4
            && said
                .iter()
                .all(|line| line.contains(" for 0.15 s a request was not sent to its end")),
        "{said:?}"
    );
}

#[test]
fn a_client_that_takes_no_replies_is_hung_up_on_and_delays_no_other() {
    let server = Server::new(Limits { reply: SHORT, ..PATIENT });
    let mut greedy = server.connect();
    greedy.write_all(&hello()).unwrap();
    let mut polite = Client::new(server.connect());
    let request =
        Request { flags: 0, command: command::READ, cookie: 1, offset: 0, length: 1 << 20 }
            .compact()
            .unwrap();
    let begun = Instant::now();
    // Far more than any socket holds.
    while greedy.write_all(&request).is_ok() {
        assert_eq!(polite.read(MIB - 8, 8), [0; 8]);
        assert!(begun.elapsed() < LONG, "it is never hung up on");
    }
    assert_eq!(polite.read(0, 8), [0; 8]);
    let said = server.end();
    assert!(
        said.len() == 1 && said[0].ends_with(" or for 0.15 s no byte of a reply was taken"),
        "{said:?}"
    );
}

/// A client that breaks the protocol is answered where there is an answer, hung up on, and
/// reported.
#[test]
fn what_no_client_may_send_ends_it_and_is_said() {
    let server = Server::new(PATIENT);
    let mut talker = server.connect();
    std::thread::scope(|scope| {
        let mut hears = talker.try_clone().unwrap();
        scope.spawn(move || hears.read_to_end(&mut Vec::new()));
        let options = option(0, &[]).repeat(10_001);
        // It may be hung up on before it has sent the last of them.
        let _ = talker.write_all(&[vec![0, 0, 0, 3], options].concat());
    });
    let mut long = server.connect();
    let _ = long.write_all(&[vec![0, 0, 0, 3], option(3, &[0; 65_537])].concat());
    let _ = long.read_to_end(&mut Vec::new());
    let mut large = Client::new(server.connect());
    large.ask_exactly(command::WRITE, 0, 0, (32 << 20) + 1, &[]);
    assert_eq!(large.reply().data[..4], [0, 0, 0, 22]);
    assert!(large.is_hung_up());
    let mut lost = Client::new(server.connect());
    lost.stream.write_all(&[b'X'; 28]).unwrap();
    assert!(lost.is_hung_up());
    let mut said = server.end();
    said.sort();
    let why = [
        "a request with 33554433 bytes behind it, where 33554432 are the most",
        "an option of more than 65536 bytes",
        "more than 10000 options, and no request",
        "what it sent is no request",
    ];
    assert_eq!(said, why.map(|why| format!("a client was cut off: {why}")));
}

#[test]
fn further_clients_wait_until_one_has_gone() {
    let server = Server::new(Limits { connections: 2, ..PATIENT });
    let first = Client::new(server.connect());
    let mut second = Client::new(server.connect());
    let mut third = server.connect();
    third.set_read_timeout(Some(SHORT)).unwrap();
    assert!(third.read(&mut [0; 18]).is_err(), "a third client was greeted");
    drop(first);
    third.set_read_timeout(Some(LONG)).unwrap();
    let mut third = Client::new(third);
    assert_eq!((third.read(0, 1), second.read(0, 1)), (vec![0], vec![0]));
}

/// What was asked before is answered before the rest of a payload comes that is thrown away,
/// however long that takes.
#[test]
fn a_payload_that_is_thrown_away_delays_no_reply() {
    let server = Server::new(PATIENT);
    let mut client = Client::new(server.connect());
    let read = Request { flags: 0, command: command::READ, cookie: 1, offset: 0, length: 8 }
        .compact()
        .unwrap();
    let write =
        Request { flags: 0, command: command::WRITE, cookie: 2, offset: MIB, length: 100_000 }
            .compact()
            .unwrap();
    // All at once, so that it is received at once.
    client.stream.write_all(&[&read[..], &write, &[7]].concat()).unwrap();
    assert_eq!(client.reply().cookie, 1);
    client.stream.write_all(&[7; 99_999]).unwrap();
    assert_eq!((client.reply().cookie, client.read(0, 8)), (2, vec![0; 8]));
}
