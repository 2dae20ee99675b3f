//! The schema of a sample: the type and the description of each value that is written, without a sample.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{BinPart, BinsPart, Each};

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

    /// Adds a field with its description, by the type of the value that is written for it; no value is made.
    pub(super) fn add<'of, P: 'of, T: JsonSchema>(
        &mut self,
        key: &str,
        description: &str,
        _: impl Fn(&'of P) -> PhantomData<T>,
    ) {
        let mut schema = self.generator.subschema_for::<T>();
        schema.insert("description".to_owned(), description.trim().into());
        self.properties.insert(key.to_owned(), schema.to_value());
    }

    pub(super) fn schema(self, description: &str) -> Schema {
        let required: Vec<&String> = self.properties.keys().collect();
        json_schema!({
            "description": description.trim(), "type": "object", "required": required,
            "properties": self.properties,
        })
    }
}

/// The type of a value.
pub(super) fn type_of<T>(_: &T) -> PhantomData<T> {
    PhantomData
}

impl<T, U: JsonSchema> JsonSchema for Each<'_, T, U> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Vec::<U>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<U>::json_schema(generator)
    }
}

impl JsonSchema for BinsPart<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Vec::<BinPart<'_>>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<BinPart<'_>>::json_schema(generator)
    }
}
