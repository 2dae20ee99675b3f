//! disksmith: database-grade I/O from cloud disks, with a verdict on every figure.

mod bench;
mod render;

fn main() {}
