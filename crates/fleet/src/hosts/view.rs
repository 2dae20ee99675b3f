//! Output of `fleet hosts`: a table, or one JSON document.

use serde::Serialize;
use ui::table::{Column, layout};

use super::host::{Host, HostList};
use ui::json::Document;

const COLUMNS: [Column; 6] = [
    Column::text("host"),
    Column::text("address").ranked(3),
    Column::text("zone").ranked(1),
    Column::text("type").ranked(1),
    Column::text("id").ranked(2),
    Column::text("comment").ranked(4),
];

/// The hosts as a table.
pub(crate) fn table(hosts: &[Host], columns: usize) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let row = |host: &Host| {
        let user = host
            .user
            .as_ref()
            .map_or_else(String::new, |user| format!("{user}@"));
        let port = host
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        vec![
            host.name.clone(),
            format!("{user}{}{port}", host.address),
            word(&host.zone),
            word(&host.kind),
            word(&host.id),
            word(&host.comment),
        ]
    };
    let rows: Vec<Vec<String>> = hosts.iter().map(row).collect();
    layout(&COLUMNS, &rows, columns)
}

/// Body of the document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostListBody<'a> {
    /// The hosts, in the order of their source.
    hosts: &'a [Host],
    /// Reasons why hosts were left out, as sentences.
    left_out: &'a [String],
}

/// The hosts as one JSON document.
pub(crate) fn json(found: &HostList) -> String {
    let body = HostListBody {
        hosts: &found.hosts,
        left_out: &found.left_out,
    };
    format!("{:#}", Document::of("fleet hosts", body))
}
