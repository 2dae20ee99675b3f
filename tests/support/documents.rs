//! The keys and types of every JSON document that the program prints, pinned.
//!
//! Scripts read these documents, so that a key is never renamed, retyped or dropped unless `schema` is
//! raised. `tests/documents/` has a file for each command, a line for each key:
//!
//! ```text
//! runs[].run: string
//! runs[].note?: string
//! ```
//!
//! `?` marks a key that is not in each such object, or in one of which fewer than five were seen. `*` stands for the
//! keys of a map, such as the tags of a host. `null` goes with every type, and of what was only ever null or empty
//! nothing is known. Each document that a test reads is compared with its file and with its schema, so every test of a
//! command is a test of its document. A key may be added: its line is added by hand, or by writing the catalogues again, which
//! keeps the marks that are there:
//!
//! ```text
//! DISKSMITH_DOCUMENTS=/tmp/documents cargo test      # or the tests of the command; keeps what was printed
//! DISKSMITH_DOCUMENTS=/tmp/documents cargo test --test documents -- --ignored the_catalogues
//! ```
//!
//! The JSON Schemas in `docs/schema/` follow from the types of the documents (`document_types` of each crate, with its
//! feature `schema`):
//!
//! ```text
//! cargo test --test documents -- --ignored the_schemas
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::schema::{Schema, type_of};

/// The environment variable that names the folder in which documents are kept, for [`Catalogue::add`].
pub(crate) const KEEP_IN: &str = "DISKSMITH_DOCUMENTS";

/// One key of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    /// Its types, without null: `string`, `number`, `bool`, `object`, `array`. Empty where only null was seen.
    types: Vec<String>,
    /// Some objects do not have it.
    optional: bool,
}

/// The pinned keys of one command's document, by their path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalogue {
    keys: BTreeMap<String, Key>,
}

/// The folder of the catalogues.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/documents")
}

/// The name of a document's catalogue: its command, and the kind of a line of a stream. `None` for JSON
/// that is no document of ours.
pub(crate) fn name_of(document: &Value) -> Option<String> {
    document.get("schema")?;
    let [command, kind] = ["command", "kind"].map(|key| document.get(key).and_then(Value::as_str));
    let name = match (command, kind) {
        (Some(command), None) => command.to_owned(),
        (Some(command), Some(kind)) => format!("{command}-{kind}"),
        // Only the first line of a watch names its command.
        (None, Some(kind)) => format!("watch-{kind}"),
        (None, None) => return None,
    };
    Some(name.replace(' ', "-"))
}

/// The documents in a text, such as lines of JSON, each checked.
#[track_caller]
pub(crate) fn all(text: &str) -> Vec<Value> {
    let documents = serde_json::Deserializer::from_str(text).into_iter();
    let documents: Result<Vec<Value>, _> = documents.collect();
    let documents = documents.unwrap_or_else(|error| panic!("{error} in {text}"));
    documents.iter().for_each(check);
    documents
}

/// Panics where a document is not valid by its schema, a key has another type than the pinned one, or a key is missing
/// that all documents of the catalogue have. A key that is not pinned yet is passed over. Keeps the document instead
/// where [`KEEP_IN`] says so.
#[track_caller]
pub(crate) fn check(document: &Value) {
    let Some(name) = name_of(document) else {
        return;
    };
    if let Some(kept) = std::env::var_os(KEEP_IN) {
        return keep(Path::new(&kept), &name, document);
    }
    let path = folder().join(format!("{name}.keys"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let differences = Catalogue::parse(&text).differences(document);
    assert!(
        differences.is_empty(),
        "the document '{name}' differs from {}:\n{}\nKeys are never renamed, retyped or dropped; tests/support/documents.rs \
         says how to add one.",
        path.display(),
        differences.join("\n"),
    );
    let errors = Schema::read(&name).errors(document);
    assert!(
        errors.is_empty(),
        "the document '{name}' is not valid by docs/schema/{name}.json:\n{}",
        errors.join("\n")
    );
}

fn keep(folder: &Path, name: &str, document: &Value) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    fs::create_dir_all(folder).unwrap();
    let file = folder.join(format!("{name}.{}.{number}.json", std::process::id()));
    fs::write(file, document.to_string()).unwrap();
}

impl Catalogue {
    /// Reads a file of keys.
    pub(crate) fn parse(text: &str) -> Catalogue {
        let keys = text.lines().filter(|line| !line.is_empty()).map(|line| {
            let (path, types) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("no type: {line}"));
            let key = Key {
                types: types
                    .split('|')
                    .filter(|word| *word != "null")
                    .map(str::to_owned)
                    .collect(),
                optional: path.ends_with('?'),
            };
            (path.trim_end_matches('?').to_owned(), key)
        });
        Catalogue {
            keys: keys.collect(),
        }
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        let line = |(path, key): (&String, &Key)| {
            let mark = if key.optional { "?" } else { "" };
            let types = if key.types.is_empty() {
                "null".to_owned()
            } else {
                key.types.join("|")
            };
            format!("{path}{mark}: {types}\n")
        };
        self.keys.iter().map(line).collect()
    }

    /// Everything that is pinned and not in a schema, a line each.
    pub(crate) fn differences_of_schema(&self, schema: &Schema) -> Vec<String> {
        let mut differences = Vec::new();
        for (path, key) in &self.keys {
            let Some(types) = schema.types(path) else {
                continue;
            };
            if types.is_empty() {
                differences.push(format!("- {path} is missing"));
            }
            for wanted in key.types.iter().filter(|it| !types.contains(&it.as_str())) {
                differences.push(format!(
                    "- {path} may be {wanted}, not only {}",
                    types.join("|")
                ));
            }
        }
        differences
    }

    /// Everything in a document that is not as pinned, a line each.
    pub(crate) fn differences(&self, document: &Value) -> Vec<String> {
        let mut differences = Vec::new();
        self.compare("", document, &mut differences);
        differences.sort();
        differences.dedup();
        differences
    }

    fn compare(&self, path: &str, value: &Value, differences: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                let path = format!("{path}[]");
                for item in items.iter().filter(|_| self.keys.contains_key(&path)) {
                    self.compare_type(&path, item, differences);
                }
            }
            Value::Object(fields) if self.keys_of(path).next().is_some() => {
                for (name, field) in fields {
                    self.compare_type(&self.below(path, name), field, differences);
                }
                for (key, _) in self.keys_of(path).filter(|(_, key)| !key.optional) {
                    let name = key.rsplit('.').next().unwrap_or(key);
                    if name != "*" && !fields.contains_key(name) {
                        differences.push(format!("- {key} is missing"));
                    }
                }
            }
            _ => {}
        }
    }

    fn compare_type(&self, path: &str, value: &Value, differences: &mut Vec<String>) {
        match (self.keys.get(path), type_of(value)) {
            // A key may be added: it is pinned when the catalogue is written again.
            (None, _) => return,
            // Only null was seen so far: nothing is known of its type, nor of what is in it.
            (Some(key), _) if key.types.is_empty() => return,
            (Some(key), found)
                if found != "null" && !key.types.iter().any(|known| known == found) =>
            {
                differences.push(format!("- {path} is {found}, not {}", key.types.join("|")));
            }
            _ => {}
        }
        self.compare(path, value, differences);
    }

    /// The path of a field of the object at a path: with `*` for its name where the object is a map.
    fn below(&self, path: &str, name: &str) -> String {
        let join = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        let any = join("*");
        if self.keys.contains_key(&any) {
            any
        } else {
            join(name)
        }
    }

    /// The keys of the object at a path.
    fn keys_of<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a str, &'a Key)> {
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("{path}.")
        };
        self.keys.iter().filter_map(move |(key, value)| {
            let name = key.strip_prefix(&prefix)?;
            let direct = !name.contains('.') && !name.contains("[]");
            (direct && !name.is_empty()).then_some((key.as_str(), value))
        })
    }

    /// Takes in what a document has. Keys that it lacks become optional, and so do new ones where `first` is
    /// not set: documents before it did not have them.
    pub(crate) fn add(&mut self, document: &Value, first: bool) {
        let mut seen = Vec::new();
        self.take("", document, first, &mut seen);
    }

    fn take(&mut self, path: &str, value: &Value, first: bool, seen: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.take_type(&format!("{path}[]"), item, false, seen);
                }
            }
            Value::Object(fields) => {
                let fresh = first || self.keys_of(path).next().is_none();
                let lacking: Vec<String> = self
                    .keys_of(path)
                    .map(|(key, _)| key.to_owned())
                    .filter(|key| !fields.contains_key(key.rsplit('.').next().unwrap_or(key)))
                    .collect();
                for key in lacking {
                    if let Some(key) = self.keys.get_mut(&key) {
                        key.optional = true;
                    }
                }
                for (name, field) in fields {
                    let path = self.below(path, name);
                    self.take_type(&path, field, !fresh, seen);
                }
            }
            _ => {}
        }
    }

    fn take_type(&mut self, path: &str, value: &Value, optional: bool, seen: &mut Vec<String>) {
        let key = self.keys.entry(path.to_owned()).or_insert(Key {
            types: Vec::new(),
            optional,
        });
        let found = type_of(value);
        if found != "null" && !key.types.iter().any(|known| known == found) {
            key.types.push(found.to_owned());
            key.types.sort();
        }
        seen.push(path.to_owned());
        self.take(path, value, false, seen);
    }
}
