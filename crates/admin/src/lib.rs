//! Upkeep of what is installed: the ledger, and the configuration of services.

pub mod args;
pub mod config;
mod export;
mod ledger_file;

pub use ledger_file::ledger;

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::of::<config::CheckBody>("config check"),
        DocumentType::of::<ledger_file::CheckBody>("ledger check"),
        DocumentType::of::<ledger_file::CompactBody>("ledger compact"),
        DocumentType::of::<ledger_file::BackupBody>("ledger backup"),
        DocumentType::of_kind::<export::RunLine<record::Run>>("ledger export", "run"),
        DocumentType::of_kind::<export::RunLine<record::ImportedRun>>("ledger export", "import"),
        DocumentType::of_kind::<export::MarkLine>("ledger export", "mark"),
        DocumentType::of_kind::<export::RecordingLine>("ledger export", "recording"),
        DocumentType::of_kind::<export::EventLine>("ledger export", "event"),
        DocumentType::of_kind::<export::WorkLine>("ledger export", "work"),
    ]
}
