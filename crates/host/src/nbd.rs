//! Network block devices: the protocol, a server and a client.
//!
//! [`wire`] has the protocol's numbers and the forms of its messages, [`haggle`] the server's side of what comes before the first
//! request, [`request`] what a request may ask: none of them does I/O. [`server`] and [`connection`] move the bytes, [`tls`] hides them,
//! [`activation`] finds sockets that are open already, [`limits`] says how long and how much a client may keep of all that, [`room`] how
//! much all of them together, and [`notices`] who kept more.
//!
//! # Sources
//! The NBD protocol, `doc/proto.md` of NetworkBlockDevice/nbd; its sections are named where they matter. `doc/uri.md` for URIs.

pub mod activation;
pub mod client;
pub mod contexts;
pub mod listener;
pub mod request;
pub mod scatter;
pub mod socket;
pub mod stream;
pub mod tls;
pub mod uri;
pub mod wire;
