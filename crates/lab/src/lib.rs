//! The lab: virtual volumes with known truth, and the machine around them.
//!
//! A volume of the lab behaves as the clouds sell theirs (caps, credits, cold blocks, troubles),
//! and says afterwards what it did, so that users can try commands out and tests have something to compare
//! with. [`spec`] says what a volume is to be, [`model`] when each request is answered and how,
//! [`store`] holds the data, `nbd` speaks to the clients, and [`server`] puts them together.

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
