//! (see the crate's own text)
