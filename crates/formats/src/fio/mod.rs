//! fio's JSON, as `--output-format=json` and `json+` write it (fio's HOWTO, "JSON output" and
//! "JSON+ output"; the keys and units are those of its stat.c).
//!
//! | | fio 2 | fio 3 |
//! | --- | --- | --- |
//! | latencies | `clat`, `lat` in µs | `clat_ns`, `lat_ns` |
//! | `io_bytes` | KiB | bytes, with `io_kbytes` next to it |
//! | `bw` | KiB/s | KiB/s, with `bw_bytes` next to it |
//! | buckets | by index, with `FIO_IO_U_PLAT_BITS` next to them | by the value of their middle |

pub(crate) mod buckets;
mod details;
mod group;
mod json;
mod node;
mod options;
pub(crate) mod read;
mod work;
pub(crate) mod write;
mod written_options;
