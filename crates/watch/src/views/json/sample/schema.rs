//! The schema of a sample: the type of each value that is written, without a sample.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use ui::schema::DocumentType;

use super::{BinPart, BinsPart, Each, SampleLine};

/// The type of a sample's line.
pub(crate) fn sample_type() -> DocumentType {
    DocumentType::whole::<SampleLine>("watch", Some("sample"))
}

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

impl<T, U: JsonSchema> JsonSchema for Each<'_, T, U> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
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

    fn schema_name() -> Cow<'static, str> {
        Vec::<BinPart<'_>>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<BinPart<'_>>::json_schema(generator)
    }
}
