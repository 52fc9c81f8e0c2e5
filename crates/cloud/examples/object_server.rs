//! `object_server DIRECTORY MILLISECONDS`: serves the files of a directory as objects, with so much
//! latency, until standard input ends; the address is printed first.

use std::io::{Read, stdin};
use std::time::Duration;

#[path = "../tests/cloud/server.rs"]
#[allow(dead_code, reason = "a test asks for more")]
mod server;

fn main() {
    let mut words = std::env::args().skip(1);
    let (directory, latency) = (words.next(), words.next().and_then(|text| text.parse().ok()));
    let (Some(directory), Some(latency)) = (directory, latency) else {
        eprintln!("object_server DIRECTORY MILLISECONDS");
        std::process::exit(2);
    };
    let faults = server::Faults { latency: Duration::from_millis(latency), ..Default::default() };
    let server = server::Server::start(server::Contents::Directory(directory.into()), faults);
    println!("{}", server.url);
    let _ = stdin().read(&mut [0; 1]);
    if std::env::var_os("OBJECT_SERVER_COUNT").is_some() {
        eprintln!("{} requests", server.requests().len());
    }
}
