//! JSON Schemas (draft 2020-12) of the documents that `--json` prints, from their types: for `docs/schema/`.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::json::{Document, Kind};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Type of a document, with the command that prints it. A command may have several.
pub struct DocumentType {
    command: &'static str,
    kind: Option<&'static str>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl DocumentType {
    /// Document of a command, by the type of its fields.
    pub fn of<B: JsonSchema>(command: &'static str) -> DocumentType {
        DocumentType {
            command,
            kind: None,
            schema: described_as::<Document<B>, B>,
        }
    }

    /// Document of a command that prints several kinds, by the type of its fields.
    pub fn of_kind<B: JsonSchema>(command: &'static str, kind: &'static str) -> DocumentType {
        DocumentType {
            command,
            kind: Some(kind),
            schema: described_as::<Document<Kind<B>>, B>,
        }
    }

    /// Document whose type has the header as well.
    pub fn whole<D: JsonSchema>(command: &'static str, kind: Option<&'static str>) -> DocumentType {
        DocumentType {
            command,
            kind,
            schema: D::json_schema,
        }
    }

    /// Name of its schema: its command and kind.
    fn name(&self) -> String {
        let kind = self.kind.map(|kind| format!("-{kind}"));
        self.command.replace(' ', "-") + &kind.unwrap_or_default()
    }
}

/// Schema of each document, by name.
pub fn schemas(types: &[DocumentType]) -> BTreeMap<String, Value> {
    let mut by_name: BTreeMap<String, Vec<&DocumentType>> = BTreeMap::new();
    for one in types {
        by_name.entry(one.name()).or_default().push(one);
    }
    let schema = |(name, types): (String, Vec<&DocumentType>)| {
        let schema = schema(&name, &types);
        (name, schema.to_value())
    };
    by_name.into_iter().map(schema).collect()
}

fn schema(name: &str, types: &[&DocumentType]) -> Schema {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut parts: Vec<Schema> = types
        .iter()
        .map(|one| with_constants(one, &mut generator))
        .collect();
    let mut schema = match parts.len() {
        1 => parts.remove(0),
        _ => json_schema!({ "anyOf": parts }),
    };
    schema.insert("$schema".to_owned(), DIALECT.into());
    schema.insert("title".to_owned(), format!("disksmith {name}").into());
    let definitions = generator.take_definitions(false);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    as_printed(&mut schema);
    schema
}

/// Schema of a document with the description of its fields' type, where that has one.
fn described_as<D: JsonSchema, B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = D::json_schema(generator);
    if let Some(description) = B::json_schema(generator).get("description") {
        schema.insert("description".to_owned(), description.clone());
    }
    schema
}

/// Schema of a type, with the values of `command` and `kind` that tell its documents from others.
fn with_constants(of: &DocumentType, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = (of.schema)(generator);
    let constants = [("command", Some(of.command)), ("kind", of.kind)];
    for (key, word) in constants {
        let property = schema.pointer_mut(&format!("/properties/{key}"));
        if let (Some(Value::Object(property)), Some(word)) = (property, word) {
            property.retain(|keyword, _| keyword == "description");
            property.insert("const".to_owned(), word.into());
        }
    }
    schema
}

/// Changes the schema of a type into that of the printed document: a figure may be `null` where it is not finite, keys
/// may be added in later versions, and links in descriptions become words.
fn as_printed(schema: &mut Schema) {
    if schema.get("type") == Some(&json!("number")) {
        schema.insert("type".to_owned(), json!(["number", "null"]));
    }
    if schema.get("additionalProperties") == Some(&json!(false)) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("[`", "`").replace("`]", "`");
    }
    describe_variant_keys(schema);
    transform_subschemas(&mut as_printed, schema);
}

/// Copies the description of an enum's variant to the key that names the variant.
fn describe_variant_keys(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get_mut("oneOf") else {
        return;
    };
    for variant in variants {
        let description = variant.get("description").cloned();
        let keys = variant.get_mut("properties").and_then(Value::as_object_mut);
        let (Some(description), Some(keys)) = (description, keys) else {
            continue;
        };
        let is_alone = keys.len() == 1;
        for key in keys.values_mut().filter_map(Value::as_object_mut) {
            if is_alone || key.contains_key("const") {
                key.entry("description")
                    .or_insert_with(|| description.clone());
            }
        }
    }
}
