//! Network block devices: the protocol's messages, and a client.
//!
//! [`wire`] has the protocol's numbers and the forms of its messages, [`request`] requests,
//! [`block_sizes`] the largest of them, [`contexts`] what block status tells: none of them does
//! I/O.
//! [`listener`] and [`activation`] have sockets, [`tls`] hides what goes through them, [`client`]
//! is a store that a server has.
//!
//! # Sources
//! The NBD protocol, `doc/proto.md` of NetworkBlockDevice/nbd; its sections are named where they
//! matter. `doc/uri.md` for URIs.

pub mod activation;
pub mod block_sizes;
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
