//! The volumes' own server for the NBD protocol.
//!
//! Spoken is what QEMU, libnbd, fio and the kernel's client use, of the NBD protocol's
//! specification (`doc/proto.md` of the NetworkBlockDevice project): the fixed newstyle handshake
//! with `EXPORT_NAME`, `GO`, `INFO`, `LIST` and `ABORT`; simple replies; `READ`, `WRITE`, `FLUSH`,
//! `TRIM`, `WRITE_ZEROES` and `DISC`; FUA; several connections to one volume. TLS, structured
//! replies and block status are declined, as the protocol provides. A client that breaks the
//! protocol loses its connection and nothing else.
//!
//! The queue depth is the client's choice: the kernel's client and fio keep as many requests in flight
//! as they are told, QEMU's keeps 16 on its one connection (`MAX_NBD_REQUESTS` in its
//! `block/nbd.c`), so that a deeper queue of a guest waits in QEMU.
//!
//! # Why not nbdkit
//!
//! nbdkit would serve with a plugin or with its filters, and was weighed first:
//!
//! - A request that is delayed holds one of its threads (16 for a connection unless told
//!   otherwise), and filters that keep blocks hold a lock while they fetch one. Cold reads then
//!   queue behind each other, and the lab's must not: 128 in flight take about as long as one.
//! - Its rate filter counts bits, not operations, and knows no credits, no merging and no cap over
//!   several volumes.
//! - The truth (credits left, cold blocks left, what was corrupted) would have to come out of
//!   another process.
//!
//! Here a request that waits is an entry in a heap and holds no thread. One thread a connection
//! reads requests and asks the model when each is due; another one sends answers as they fall due,
//! in that order and not in the order in which they came. [`limits`] says what clients may make it hold.

mod connection;
mod handshake;
mod limits;
mod stream;
mod wire;

pub(crate) use connection::serve;
pub(crate) use limits::Limits;
pub(crate) use stream::Stream;

use crate::disk::Disk;
use std::sync::Arc;

/// The volumes of an address. The first is the default, which has the empty name.
pub(crate) type Exports = Arc<[Arc<Disk>]>;
