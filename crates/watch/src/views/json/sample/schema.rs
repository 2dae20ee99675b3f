//! The schema of a sample: the type of each value that is written, without a sample.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// The fields of a document, each with the schema of its value.
pub(super) struct Fields<'a> {
    generator: &'a mut SchemaGenerator,
    properties: Map<String, Value>,
}

impl Fields<'_> {
    pub(super) fn new(generator: &mut SchemaGenerator) -> Fields<'_> {
        let properties = Map::new();
        Fields {
            generator,
            properties,
        }
    }

    /// Adds a field by the type of what is written for it; nothing is.
    pub(super) fn add<'of, P: 'of, T: JsonSchema>(
        &mut self,
        key: &str,
        _: impl Fn(&'of P) -> PhantomData<T>,
    ) {
        let schema = self.generator.subschema_for::<T>();
        self.properties.insert(key.to_owned(), schema.to_value());
    }

    pub(super) fn schema(self) -> Schema {
        let required: Vec<&String> = self.properties.keys().collect();
        json_schema!({ "type": "object", "required": required, "properties": self.properties })
    }
}

/// The type of a value.
pub(super) fn type_of<T>(_: &T) -> PhantomData<T> {
    PhantomData
}
