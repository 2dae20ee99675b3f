//! The catalogues and schemas of JSON documents: their checks can fail, and they are written again here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use support::documents::{Catalogue, KEEP_IN, all, folder};
use support::schema::{self, Schema};
use support::{Place, SHORT, skipped};

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
fn the_catalogues_are_written_anew() {
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

/// Name and text of each schema, from the types of the documents.
fn schemas_of_types() -> BTreeMap<String, String> {
    let mut types = fleet::document_types();
    types.extend(serve::document_types());
    let schemas = ui::schema::schemas(&types).into_iter();
    schemas
        .map(|(name, schema)| (name, format!("{schema:#}\n")))
        .collect()
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    let wanted = schemas_of_types();
    for (name, text) in &wanted {
        let path = schema::folder().join(format!("{name}.json"));
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == *text,
            "{}: write it anew, see tests/support/documents.rs",
            path.display()
        );
    }
    let published = fs::read_dir(schema::folder()).unwrap();
    assert_eq!(published.count(), wanted.len());
}

#[test]
#[ignore = "writes docs/schema anew; see tests/support/documents.rs"]
fn the_schemas_are_written_anew() {
    for (name, text) in schemas_of_types() {
        fs::write(schema::folder().join(format!("{name}.json")), text).unwrap();
    }
}

#[test]
fn the_schemas_have_all_pinned_keys() {
    let mut differences = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let catalogue = Catalogue::parse(&fs::read_to_string(&path).unwrap());
        let found = catalogue.differences_of_schema(&Schema::read(name));
        differences.extend(found.into_iter().map(|line| format!("{name} {line}")));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn each_key_of_a_schema_has_a_description() {
    let mut undescribed = Vec::new();
    for entry in fs::read_dir(schema::folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let found = Schema::read(name).undescribed();
        undescribed.extend(found.into_iter().map(|key| format!("{name} {key}")));
    }
    assert!(
        undescribed.is_empty(),
        "describe these in the comments of their fields, and write the schemas anew:\n{}",
        undescribed.join("\n")
    );
}

/// Another program's validator reads the schema and the document.
const VALIDATE: &str = "import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
errors = [e.message for e in validator.iter_errors(json.loads(sys.argv[2]))]
print('\\n'.join(errors))
sys.exit(bool(errors))";

/// A Python that has the validator: the one on the path may be another than the distribution's.
fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let mut command = Command::new(python);
        command.args(["-c", "from jsonschema import Draft202012Validator"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has)
}

fn validated(python: &str, name: &str, document: &Value) -> bool {
    let schema = schema::folder().join(format!("{name}.json"));
    let mut command = Command::new(python);
    command
        .args(["-c", VALIDATE])
        .arg(schema)
        .arg(document.to_string());
    let is_valid = command.output().unwrap().status.success();
    let errors = Schema::read(name).errors(document);
    assert_eq!(errors.is_empty(), is_valid, "{name}: {errors:?}");
    is_valid
}

#[test]
fn real_documents_are_valid_by_the_published_schemas() {
    let Some(python) = python() else {
        return skipped("python3-jsonschema is not installed");
    };
    let place = Place::new();
    let mut run = place.document(&SHORT);
    assert!(validated(python, "bench", &run));
    run["phases"] = json!(5);
    assert!(
        !validated(python, "bench", &run),
        "a wrong document is valid"
    );
    for (name, words) in [
        ("runs", &["runs", "--json"][..]),
        ("devices", &["devices", "--json"]),
        ("ledger-check", &["ledger", "check", "--json"]),
        ("ledger-compact", &["ledger", "compact", "--json"]),
    ] {
        let document = place.run(words).ends_with(0).json();
        assert!(validated(python, name, &document), "{name}: {document}");
    }
    let sample = "watch --json --count 1 --interval 100ms";
    for line in all(&place.run(sample).ends_with(0).out) {
        assert!(
            validated(python, "watch-sample", &line) || line["kind"] != "sample",
            "{line}"
        );
    }
}
