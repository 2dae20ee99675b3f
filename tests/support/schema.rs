//! A validator of documents by the schemas of `docs/schema/`: of JSON Schema, the keywords that these have.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// The folder of the schemas.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// A schema with its definitions.
pub(crate) struct Schema(Value);

impl Schema {
    /// The schema of a document, by the document's name.
    pub(crate) fn read(name: &str) -> Schema {
        let path = folder().join(format!("{name}.json"));
        let text = fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Schema(serde_json::from_str(&text).unwrap())
    }

    /// Everything in a document that is against the schema, a line each.
    pub(crate) fn errors(&self, document: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.compare(&self.0, document, "", &mut errors);
        errors
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let mut errors = Vec::new();
        self.compare(schema, value, "", &mut errors);
        errors.is_empty()
    }

    fn compare(&self, schema: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
        // A schema that is no object is `true`.
        for (keyword, wanted) in schema.as_object().into_iter().flatten() {
            let is_met = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
                "$ref" => {
                    self.compare(self.definition(wanted), value, path, errors);
                    true
                }
                "type" => each(wanted).any(|word| is_of(word, value)),
                "const" => value == wanted,
                "enum" => each(wanted).any(|one| one == value),
                "minimum" => value.as_f64().is_none_or(|it| Some(it) >= wanted.as_f64()),
                "maximum" => value.as_f64().is_none_or(|it| Some(it) <= wanted.as_f64()),
                "minItems" => length(value).is_none_or(|it| Some(it) >= wanted.as_u64()),
                "maxItems" => length(value).is_none_or(|it| Some(it) <= wanted.as_u64()),
                "allOf" => each(wanted).all(|one| self.fits(one, value)),
                "anyOf" => each(wanted).any(|one| self.fits(one, value)),
                "oneOf" => each(wanted).filter(|one| self.fits(one, value)).count() == 1,
                "required" => each(wanted).all(|key| {
                    let fields = value.as_object();
                    fields.is_none_or(|fields| fields.contains_key(key.as_str().unwrap()))
                }),
                "properties" => {
                    for (key, field) in value.as_object().into_iter().flatten() {
                        self.compare(&wanted[key], field, &format!("{path}.{key}"), errors);
                    }
                    true
                }
                "additionalProperties" => {
                    let named = schema["properties"].as_object();
                    for (key, field) in value.as_object().into_iter().flatten() {
                        if !named.is_some_and(|named| named.contains_key(key)) {
                            self.compare(wanted, field, &format!("{path}.{key}"), errors);
                        }
                    }
                    true
                }
                "prefixItems" => {
                    let items = value.as_array().into_iter().flatten();
                    for (item, wanted) in items.zip(each(wanted)) {
                        self.compare(wanted, item, &format!("{path}[]"), errors);
                    }
                    true
                }
                "items" => {
                    let first = schema["prefixItems"].as_array().map_or(0, Vec::len);
                    for item in value.as_array().into_iter().flatten().skip(first) {
                        self.compare(wanted, item, &format!("{path}[]"), errors);
                    }
                    true
                }
                other => panic!("the keyword {other} is not known here"),
            };
            if !is_met {
                errors.push(format!("{path}: {keyword} {wanted} is not met by {value}"));
            }
        }
    }

    /// The keys without a description, of their own or of what they refer to, as paths into the schema.
    pub(crate) fn undescribed(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.find_undescribed(&self.0, "", &mut found);
        found
    }

    fn find_undescribed(&self, part: &Value, path: &str, found: &mut Vec<String>) {
        for (key, field) in part["properties"].as_object().into_iter().flatten() {
            if !self.is_described(field) {
                found.push(format!("{path}/{key}"));
            }
        }
        match part {
            Value::Object(keywords) => {
                for (keyword, below) in keywords {
                    self.find_undescribed(below, &format!("{path}/{keyword}"), found);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.find_undescribed(item, path, found);
                }
            }
            _ => {}
        }
    }

    fn is_described(&self, schema: &Value) -> bool {
        let lists = ["allOf", "anyOf", "oneOf"].map(|keyword| schema[keyword].as_array());
        let mut parts = lists.into_iter().flatten().flatten();
        let named = schema.get("$ref").map(|name| self.definition(name));
        schema.get("description").is_some()
            || named.is_some_and(|named| self.is_described(named))
            || parts.any(|part| self.is_described(part))
    }

    fn definition(&self, reference: &Value) -> &Value {
        let name = reference
            .as_str()
            .and_then(|it| it.strip_prefix("#/$defs/"));
        let found = name.and_then(|name| self.0["$defs"].get(name));
        found.unwrap_or_else(|| panic!("{reference} is not defined"))
    }

    /// The types by which a key of a catalogue may be valid, such as `runs[].run`; `None` where the schema leaves them
    /// open. Empty where the schema does not have the key.
    pub(crate) fn types(&self, path: &str) -> Option<Vec<&'static str>> {
        let mut at = self.alternatives(&self.0);
        for step in path.replace("[]", ".[]").split('.') {
            let below = at.iter().flat_map(|schema| below(schema, step));
            at = below.flat_map(|schema| self.alternatives(schema)).collect();
        }
        let mut types = Vec::new();
        for schema in at {
            match schema {
                schema if schema.get("type").is_some() => {
                    types.extend(each(&schema["type"]).map(word))
                }
                schema if schema.get("enum").is_some() => {
                    types.extend(each(&schema["enum"]).map(type_of))
                }
                schema if schema.get("const").is_some() => types.push(type_of(&schema["const"])),
                _ => return None,
            }
        }
        Some(types)
    }

    /// A schema, and the parts of which it says that one or all must fit.
    fn alternatives<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let mut parts = Vec::new();
        for keyword in ["allOf", "anyOf", "oneOf"] {
            parts.extend(schema[keyword].as_array().into_iter().flatten());
        }
        parts.extend(schema.get("$ref").map(|name| self.definition(name)));
        let is_only_that = !parts.is_empty() && schema.get("type").is_none();
        let mut all: Vec<&Value> = Vec::new();
        if !is_only_that || schema.get("properties").is_some() {
            all.push(schema);
        }
        all.extend(parts.into_iter().flat_map(|part| self.alternatives(part)));
        all
    }
}

/// Schemas of a key or of the items of what a schema is of.
fn below<'a>(schema: &'a Value, step: &str) -> Vec<&'a Value> {
    let mut found = Vec::new();
    if step == "[]" {
        found.extend(schema.get("items"));
        found.extend(schema["prefixItems"].as_array().into_iter().flatten());
    } else if let Some(field) = schema["properties"].get(step) {
        found.push(field);
    } else if let Some(value) = schema.get("additionalProperties") {
        // The keys of a map may have dots, such as "replay.p99": what follows may be the rest of one.
        found.extend([value, schema]);
    }
    // Of anything everything may be below.
    if is_anything(schema) {
        found.push(schema);
    }
    found
}

/// True of a schema that says nothing of a value.
fn is_anything(schema: &Value) -> bool {
    let says_nothing =
        |keyword: &String| ["title", "description", "default"].contains(&keyword.as_str());
    let keywords = schema.as_object().map(Map::keys);
    keywords.is_none_or(|mut keywords| keywords.all(says_nothing))
}

/// The values of a list, or the one that stands for a list of one.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(values) => values.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn is_of(word: &Value, value: &Value) -> bool {
    match word.as_str().unwrap() {
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        word => type_of(value) == word,
    }
}

/// A type of a schema as catalogues name it.
fn word(of_schema: &Value) -> &'static str {
    match of_schema.as_str().unwrap() {
        "integer" | "number" => "number",
        "boolean" => "bool",
        "string" => "string",
        "array" => "array",
        "object" => "object",
        _ => "null",
    }
}

/// A value's type as catalogues name it.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
