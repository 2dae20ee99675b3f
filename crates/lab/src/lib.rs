//! The lab: virtual volumes with known behaviour, and a machine that uses them.
//!
//! A volume of the lab behaves like those of clouds (caps, credits, cold blocks, faults) and reports afterwards what
//! it did, so that users can try commands and tests have a reference. [`spec`] is the specification of a volume,
//! [`model`] computes when and how each request is answered, [`store`] holds the data, `nbd` serves the clients, and
//! [`server`] combines them.

pub mod args;
pub mod command;
mod cut_times;
mod disk;
pub mod machine;
pub mod model;
mod nbd;
pub mod server;
pub mod spec;
pub mod store;

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![DocumentType::of::<command::TruthBody>("lab")]
}
