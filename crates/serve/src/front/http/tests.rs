use super::*;
use std::net::SocketAddr;

struct Fake;

impl Site for Fake {
    fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/" => Some(Answer::Page {
                kind: "text/html",
                policy: "default-src 'self'".into(),
                body: vec![b'x'; 100_000],
            }),
            "/events" => Some(Answer::Events),
            _ => None,
        }
    }

    fn event(&self) -> String {
        "one\ntwo".into()
    }
}

/// Runs `test` against a server of [`Fake`] with a very long time limit, which has to end once it
/// is told to.
fn with_server(test: impl FnOnce(SocketAddr)) {
    with_patience(Duration::from_secs(600), test);
}

fn with_patience(patience: Duration, test: impl FnOnce(SocketAddr)) {
    let mut http = Http::bind("127.0.0.1", 0, Arc::new(Fake)).unwrap();
    http.patience = patience;
    let address = http.listener.local_addr().unwrap();
    assert_eq!(http.place(), format!("http://{address}/"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| http.run(&stop));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(address)));
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap();
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The complete answer to `request`.
fn ask_for(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    String::from_utf8(all).unwrap()
}

fn status(answer: &str) -> &str {
    answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or(answer)
}

#[test]
fn a_page_comes_whole_with_its_policy() {
    with_server(|address| {
        let answer = ask_for(address, b"GET /?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!((status(&answer), body.len()), ("200", 100_000));
        for field in [
            "Content-Length: 100000",
            "Content-Security-Policy: default-src 'self'",
            "X-Content-Type-Options: nosniff",
        ] {
            assert!(head.contains(field), "{head}");
        }
    });
}

#[test]
fn what_is_no_get_of_a_page_is_refused() {
    with_server(|address| {
        for (request, want) in [
            ("GET /no HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "405"),
            ("GET / HTTP/1.1\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400"),
            ("GET / HTTP/9\r\n\r\n", "400"),
            ("\0\u{1}\u{2}\r\n\r\n", "400"),
        ] {
            assert_eq!(status(&ask_for(address, request.as_bytes())), want, "{request:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(HEAD));
        assert_eq!(status(&ask_for(address, &long.as_bytes()[..HEAD])), "431");
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(request::FIELDS + 1));
        assert_eq!(status(&ask_for(address, many.as_bytes())), "431");
        // In pieces it is the same request.
        let mut stream = TcpStream::connect(address).unwrap();
        for byte in b"GET /no HTTP/1.1\r\nHost: localhost\r\n\r\n" {
            stream.write_all(&[*byte]).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(status(&answer), "404");
        // A request cut in the middle gets no answer.
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HT").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        answer.clear();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "");
    });
}

/// A page of another site whose name resolves to this machine's address asks by that name.
#[test]
fn a_request_by_a_strange_name_is_refused() {
    with_server(|address| {
        for path in ["/", "/events", "/no"] {
            let answer = ask_for(
                address,
                format!("GET {path} HTTP/1.1\r\nHost: evil.example:{}\r\n\r\n", address.port())
                    .as_bytes(),
            );
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            assert_eq!(
                (
                    status(&answer),
                    body.lines().count(),
                    body.starts_with("421 Misdirected Request: ask by ")
                ),
                ("421", 1, true),
                "{answer}"
            );
        }
        for head in [
            format!("HTTP/1.1\r\nHost: {address}"),
            "HTTP/1.1\r\nhost: [::1]".into(),
            "HTTP/1.0".into(),
        ] {
            assert_eq!(
                status(&ask_for(address, format!("GET / {head}\r\n\r\n").as_bytes())),
                "200",
                "{head}"
            );
        }
    });
}

#[test]
fn head_is_answered_as_get_without_a_body() {
    with_server(|address| {
        let both = |path: &str| {
            ["GET", "HEAD"].map(|method| {
                ask_for(
                    address,
                    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes(),
                )
            })
        };
        for path in ["/", "/no"] {
            let [got, head] = both(path);
            assert_eq!(head, got.split_inclusive("\r\n\r\n").next().unwrap(), "{path}");
        }
        let head = ask_for(address, b"HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(status(&head) == "200" && head.ends_with("\r\n\r\n"), "{head}");
    });
}

#[test]
fn events_come_again_until_the_page_is_closed() {
    with_server(|address| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut all = String::new();
        let mut bytes = [0; 1000];
        while all.matches("data: one two\n\n").count() < 2 {
            let got = stream.read(&mut bytes).unwrap();
            assert!(got > 0, "{all}");
            all.push_str(std::str::from_utf8(&bytes[..got]).unwrap());
        }
        assert!(
            all.contains("Content-Type: text/event-stream\r\n") && !all.contains("Content-Length"),
            "{all}"
        );
    });
}

/// A request that does not come is not waited for.
#[test]
fn a_client_that_sends_no_request_is_told_that_its_time_is_over() {
    with_patience(TICK, |address| assert_eq!(status(&ask_for(address, b"GET / HT")), "408"));
}

/// A connection on which `request` was sent, and the beginning of the answer. A client told to come
/// again may find the connection reset, because its request was not read; then it asks again.
fn answered(address: SocketAddr, request: &[u8]) -> (TcpStream, [u8; 12]) {
    loop {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut said = [0; 12];
        if stream.write_all(request).and_then(|()| stream.read_exact(&mut said)).is_ok() {
            return (stream, said);
        }
    }
}

/// As [`answered`], once there is room: clients that have gone make room one after another.
fn once_there_is_room(address: SocketAddr, request: &[u8]) -> (TcpStream, [u8; 12]) {
    std::iter::repeat_with(|| answered(address, request))
        .find(|(_, said)| said != b"HTTP/1.1 503")
        .unwrap()
}

/// Clients that connect and send nothing keep others out until their time is over, and no longer;
/// watching clients do not.
#[test]
fn further_clients_are_told_to_come_again() {
    with_server(|address| {
        let idle: Vec<TcpStream> =
            (0..CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
        // They are accepted in order, so all of these are before the next.
        assert_eq!(status(&ask_for(address, b"")), "503");
        drop(idle);
        let (page, watch) = (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
        );
        let watching: Vec<_> = (0..LOOKERS).map(|_| once_there_is_room(address, watch)).collect();
        assert!(watching.iter().all(|(_, said)| said == b"HTTP/1.1 200"));
        assert_eq!(&once_there_is_room(address, page).1, b"HTTP/1.1 200");
        assert_eq!(&answered(address, watch).1, b"HTTP/1.1 503");
        assert_eq!(&once_there_is_room(address, page).1, b"HTTP/1.1 200");
    });
}
