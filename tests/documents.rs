//! The catalogues of JSON documents: their check can fail, and they are written again here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use support::documents::{Catalogue, KEEP_IN, folder};

fn catalogue() -> Catalogue {
    Catalogue::parse(
        "command: string\ndisks: object\ndisks.*: object\ndisks.*.iops: number\nnote?: string\nruns: array\n\
         runs[]: object\nruns[].run: string\nserial: null\n",
    )
}

#[test]
fn a_document_as_pinned_passes() {
    for document in [
        json!({ "command": "x", "disks": { "sda": { "iops": 1 } }, "runs": [{ "run": "a" }], "serial": null }),
        json!({ "command": "x", "disks": {}, "runs": [], "serial": { "known": "here" }, "note": null }),
    ] {
        assert_eq!(catalogue().differences(&document), [""; 0], "{document}");
    }
}

#[test]
fn a_key_that_is_missing_or_of_another_type_is_named() {
    for (document, difference) in [
        (
            json!({ "disks": {}, "runs": [], "serial": null }),
            "- command is missing",
        ),
        (
            json!({ "command": "x", "disks": {}, "runs": [{ "id": "a" }], "serial": null }),
            "- runs[].run is missing",
        ),
        (
            json!({ "command": "x", "disks": {}, "runs": [{}], "serial": null }),
            "- runs[].run is missing",
        ),
        (
            json!({ "command": "x", "disks": { "sdb": { "iops": "1" } }, "runs": [], "serial": null }),
            "- disks.*.iops is string, not number",
        ),
    ] {
        let differences = catalogue().differences(&document);
        assert!(
            differences.iter().any(|line| line == difference),
            "{differences:?}"
        );
    }
}

#[test]
fn a_catalogue_of_documents_takes_each_of_them() {
    let documents = [
        json!({ "a": 1, "list": [{ "x": 1 }, { "x": 2, "y": null }], "o": { "p": true } }),
        json!({ "a": 1.5, "list": [], "late": "z", "o": null }),
        json!({ "list": [{ "y": "text" }], "o": { "q": 1 } }),
    ];
    let mut made = Catalogue::default();
    for (index, document) in documents.iter().enumerate() {
        made.add(document, index == 0);
    }
    for document in &documents {
        assert_eq!(made.differences(document), [""; 0], "{document}");
    }
    assert_eq!(Catalogue::parse(&made.text()), made);
    let all_optional = [
        "a?: number",
        "list: array",
        "late?: string",
        "list[].x?: number",
        "list[].y?: string",
    ];
    for line in all_optional {
        assert!(
            made.text().lines().any(|found| found == line),
            "{line} in\n{}",
            made.text()
        );
    }
}

/// Maps, whose keys are names of things and not part of the format, are marked by hand: a line with `*` in
/// the file stays.
#[test]
#[ignore = "writes tests/documents anew from kept documents; see tests/support/documents.rs"]
fn the_catalogues_are_written_again() {
    let kept = std::env::var_os(KEEP_IN).expect("a folder of documents");
    let mut documents: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .split('.')
            .next()
            .unwrap()
            .to_owned();
        let document = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        documents.entry(name).or_default().push(document);
    }
    for (name, documents) in documents {
        let path = folder().join(format!("{name}.keys"));
        let known = fs::read_to_string(&path).ok();
        let mut catalogue = Catalogue::parse(known.as_deref().unwrap_or_default());
        for (index, document) in documents.iter().enumerate() {
            catalogue.add(document, known.is_none() && index == 0);
        }
        fs::write(path, catalogue.text()).unwrap();
    }
}
