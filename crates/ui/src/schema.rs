//! JSON Schemas (draft 2020-12) of the documents that `--json` prints, from their types: for `docs/schema/`.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::json::{Document, Kind};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The type of a document. A command may have several.
pub struct DocumentType {
    command: &'static str,
    kind: Option<&'static str>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl DocumentType {
    /// A command's document, by the type of its fields.
    pub fn of<B: JsonSchema>(command: &'static str) -> DocumentType {
        DocumentType::whole::<Document<B>>(command, None)
    }

    /// A command's document of a kind.
    pub fn of_kind<B: JsonSchema>(command: &'static str, kind: &'static str) -> DocumentType {
        DocumentType::whole::<Document<Kind<B>>>(command, Some(kind))
    }

    /// A document whose type has the frame as well.
    pub fn whole<D: JsonSchema>(command: &'static str, kind: Option<&'static str>) -> DocumentType {
        DocumentType {
            command,
            kind,
            schema: D::json_schema,
        }
    }

    /// The name of its schema: its command and kind.
    fn name(&self) -> String {
        let kind = self.kind.map(|kind| format!("-{kind}"));
        self.command.replace(' ', "-") + &kind.unwrap_or_default()
    }
}

/// The schema of each name.
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
        .map(|one| framed(one, &mut generator))
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

/// The schema of a type, with the words that tell its documents from others.
fn framed(of: &DocumentType, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = (of.schema)(generator);
    let constants = [("command", Some(of.command)), ("kind", of.kind)];
    for (key, word) in constants {
        let property = schema.pointer_mut(&format!("/properties/{key}"));
        if let (Some(property), Some(word)) = (property, word) {
            *property = json!({ "const": word });
        }
    }
    schema
}

/// Of a type becomes what is printed: `null` for a figure that is not finite. Keys may be added. Links of the source are
/// words elsewhere.
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
    transform_subschemas(&mut as_printed, schema);
}
