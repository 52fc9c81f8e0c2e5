//! Clients under TLS, and those that only say so.

use super::client::{Client, hello, option};
use super::{LONG, MIB, PATIENT, SHORT, Server};
use crate::Scratch;
use crate::skip::skip;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use trueline_geom::base::store::Store;
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::client::Remote;
use trueline_host::nbd::tls::{Certificates, Encryption};
use trueline_host::nbd::wire::command;
use trueline_serve::front::nbd::limits::Limits;

/// A directory with certificates of an authority, a server and a client; [`None`], and says so,
/// without openssl.
fn directory() -> Option<Scratch> {
    let scratch = Scratch::new();
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let lines = format!(
        "openssl req -x509 {new} -keyout ca-key.pem -out ca-cert.pem -subj /CN=authority -days 2
         openssl req {new} -keyout server-key.pem -out server.csr -subj /CN=localhost
         echo subjectAltName=DNS:localhost > server.ext
         openssl x509 -req -in server.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -out \
            server-cert.pem -days 2 -extfile server.ext
         openssl req {new} -keyout client-key.pem -out client.csr -subj /CN=client
         openssl x509 -req -in client.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -out \
            client-cert.pem -days 2 -extfile server.ext"
    );
    let made = Command::new("sh")
        .args(["-ec", &lines])
        .current_dir(&scratch.0)
        .output()
        .is_ok_and(|ran| ran.status.success());
    if !made {
        skip("no openssl here");
    }
    made.then_some(scratch)
}

/// A server's certificate, and a client that trusts its maker.
fn certificates() -> Option<(Encryption, Arc<ClientConfig>)> {
    let scratch = directory()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(scratch.0.join("ca-cert.pem")).unwrap()).unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some((Encryption::Required(Certificates::load(&scratch.0, false).unwrap()), Arc::new(config)))
}

fn server(encryption: Encryption, limits: Limits) -> Server {
    Server::through(encryption, Arc::new(Memory::new(MIB).unwrap()), limits)
}

/// Has been told to begin with TLS.
fn begin(server: &Server) -> UnixStream {
    try_begin(server).unwrap()
}

/// The same where the server may have hung up before.
fn try_begin(server: &Server) -> io::Result<UnixStream> {
    let mut stream = server.connect();
    stream.read_exact(&mut [0; 18])?;
    stream.write_all(&[vec![0, 0, 0, 3], option(5, &[])].concat())?;
    let mut reply = [0; 20];
    stream.read_exact(&mut reply)?;
    assert_eq!(reply[8..], [0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0]);
    Ok(stream)
}

fn client(
    server: &Server,
    config: &Arc<ClientConfig>,
) -> Client<StreamOwned<ClientConnection, UnixStream>> {
    let session =
        ClientConnection::new(config.clone(), ServerName::try_from("localhost").unwrap()).unwrap();
    // The client's flags have been said.
    Client::after_greeting(StreamOwned::new(session, begin(server)), &hello()[4..])
}

/// Waits until nothing more comes, however it ends.
fn await_end(stream: &mut impl Read) {
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn bytes_come_back_through_tls() {
    let Some((encryption, config)) = certificates() else { return };
    let server = server(encryption, PATIENT);
    let (mut one, mut other) = (client(&server, &config), client(&server, &config));
    let bytes: Vec<u8> = (0..1 << 20)
        .map(|n: u32| n.to_le_bytes().iter().fold(0, |sum: u8, &byte| sum.wrapping_mul(31) ^ byte))
        .collect();
    assert_eq!(one.error(command::WRITE, 0, 0, 1 << 20, &bytes), 0);
    assert!(other.read(0, 1 << 20) == bytes);
    // Many at once, in records of any size; answers in between.
    let asked: Vec<u64> =
        (0..200).map(|n| other.ask(command::READ, 0, n * 5000, 4999, &[])).collect();
    for (n, cookie) in asked.into_iter().enumerate() {
        let reply = other.reply();
        assert!(reply.cookie == cookie && reply.data[8..] == bytes[n * 5000..][..4999]);
    }
    // Told to end, it says goodbye: what is cut off would be an error.
    server.stop();
    assert_eq!(one.stream.read(&mut [0; 1]).unwrap(), 0);
    server.join();
}

/// Where this program is slow, a client may be hung up on before it has begun; with more patience
/// it begins.
#[test]
fn a_session_that_does_not_come_is_not_waited_for() {
    let Some((encryption, _)) = certificates() else { return };
    for silence in [silent, trickle] {
        let said = |patience| {
            let server = server(encryption.clone(), Limits { handshake: patience, ..PATIENT });
            try_begin(&server).map(silence).is_ok().then(|| server.end())
        };
        let mut patience = SHORT;
        let said = loop {
            if let Some(said) = said(patience) {
                break said;
            }
            patience *= 2;
            assert!(patience < LONG, "it is always hung up on");
        };
        let late = format!(": no request within {} s of connecting", patience.as_secs_f64());
        assert!(matches!(&said[..], [line] if line.contains(&late)), "{said:?}");
    }
}

fn silent(mut stream: UnixStream) {
    await_end(&mut stream);
}

/// A record of 16 KiB, a byte at a time.
fn trickle(mut stream: UnixStream) {
    let begun = Instant::now();
    for byte in [22, 3, 1, 0x40, 0].into_iter().chain(std::iter::repeat(1)) {
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        assert!(begun.elapsed() < LONG, "it is never hung up on");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A client that trusts the certificate does not do the second.
#[test]
fn what_is_no_session_is_ended_and_said() {
    let Some((encryption, _)) = certificates() else { return };
    let server = server(encryption, PATIENT);
    let mut noise = begin(&server);
    noise.write_all(&[b'X'; 100]).unwrap();
    await_end(&mut noise);
    drop(begin(&server));
    let said = server.end();
    let of = |what: &str| said.iter().filter(|line| line.contains(what)).count();
    assert_eq!((of(": TLS: received corrupt message"), said.len()), (1, 2), "{said:?}");
    assert_eq!(
        of("a client was cut off: TLS: the other side hung up during the handshake"),
        1,
        "{said:?}"
    );
}

/// Bytes behind STARTTLS came before the client had proved anything: their sender is not
/// served.
#[test]
fn what_comes_before_tls_is_not_taken_for_what_comes_after() {
    let Some((encryption, _)) = certificates() else { return };
    let server = server(encryption, PATIENT);
    let mut stream = server.connect();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&[vec![0, 0, 0, 3], option(5, &[]), option(7, &[0; 6])].concat()).unwrap();
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(said.len() <= 20, "{said:?}");
}

#[test]
fn half_a_request_in_tls_is_ended() {
    let Some((encryption, config)) = certificates() else { return };
    let server = server(encryption, Limits { request: SHORT, ..PATIENT });
    let (mut idle, mut half) = (client(&server, &config), client(&server, &config));
    half.stream.write_all(&[0x25, 0x60, 0x95]).unwrap();
    assert_eq!(half.stream.read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(idle.read(0, 3), [0; 3]);
}

/// Opens the export of `server` as a client of this program, by a URI that says `more`.
fn remote(server: &Server, scheme: &str, more: &str) -> Result<Remote, String> {
    let uri = format!("{scheme}+unix:///?socket={}{more}", server.path().display());
    Remote::open(&uri, false).map_err(|e| e.to_string())
}

#[test]
fn the_client_comes_through_tls() {
    let Some(scratch) = directory() else { return };
    let server =
        server(Encryption::Required(Certificates::load(&scratch.0, true).unwrap()), PATIENT);
    let remote =
        remote(&server, "nbds", &format!("&tls-certificates={}", scratch.0.display())).unwrap();
    let bytes: Vec<u8> = (0..600_000)
        .map(|n: u32| n.to_le_bytes().iter().fold(0, |sum: u8, &byte| sum.wrapping_mul(31) ^ byte))
        .collect();
    std::thread::scope(|scope| {
        // Several connections, each with a session of its own.
        for part in bytes.chunks(100_000).zip(0..) {
            let remote = &remote;
            scope.spawn(move || remote.write_at(part.0, part.1 * 100_000).unwrap());
        }
    });
    let mut back = vec![0; bytes.len()];
    remote.read_at(&mut back, 0).unwrap();
    assert!(back == bytes);
    remote.flush().unwrap();
}

#[test]
fn the_client_speaks_with_its_server_alone() {
    let (Some(scratch), Some(others)) = (directory(), directory()) else { return };
    let said = |server: &Server, scheme, more: &str| remote(server, scheme, more).err().unwrap();
    let mine = format!("&tls-certificates={}", scratch.0.display());
    let required =
        server(Encryption::Required(Certificates::load(&scratch.0, true).unwrap()), PATIENT);
    let plain = said(&required, "nbd", "");
    assert!(plain.contains("the server requires TLS: write nbds: instead of nbd:"), "{plain}");
    let name = said(&required, "nbds", &format!("{mine}&tls-hostname=disks.example"));
    assert!(name.contains("TLS: ") && name.contains("disks.example"), "{name}");
    let unknown = said(&required, "nbds", &format!("&tls-certificates={}", others.0.display()));
    assert!(unknown.contains("TLS: ") && unknown.contains("invalid peer certificate"), "{unknown}");
    // A server without TLS, or one that says so on the way, is not spoken to without.
    let without = said(&server(Encryption::Off, PATIENT), "nbds", &mine);
    assert!(without.contains("the server refuses: "), "{without}");
    // The other way round: a server that wants a certificate, and a client that has none.
    std::fs::remove_file(scratch.0.join("client-cert.pem")).unwrap();
    assert!(remote(&required, "nbds", &mine).is_err());
    let nothing = said(&required, "nbds", "&tls-certificates=/none");
    assert_eq!(
        nothing.replace(&required.path().display().to_string(), ""),
        "read /none/ca-cert.pem: no such file or device: check the name"
    );
}
