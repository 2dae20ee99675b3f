//! The parts of a document that is written field by field: its types, and the schema of each, without a value.

use record::sample::DeviceNumber;
use serde::{Serialize, Serializer};
#[cfg(feature = "schema")]
use {
    schemars::{JsonSchema, Schema, SchemaGenerator, json_schema},
    serde_json::{Map, Value},
    std::marker::PhantomData,
};

/// Makes a type that is written as a document: the keys, and the value of each. Comments are the descriptions in its
/// schema.
macro_rules! document {
    ($(#[doc = $about:literal])+ $part:ident of $of:ty as $one:ident {
        $($(#[doc = $text:literal])+ $key:literal: $value:expr,)*
    }) => {
        $(#[doc = $about])+
        pub(super) struct $part<'a>(pub(super) &'a $of);

        impl serde::Serialize for $part<'_> {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;

                let $one = self.0;
                let mut document = to.serialize_map(None)?;
                $(document.serialize_entry($key, &$value)?;)*
                document.end()
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $part<'_> {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($part).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut fields = super::fields::Fields::new(generator);
                $(fields.add($key, concat!($($text),+), |$one: &$of| {
                    let _ = $one;
                    super::fields::type_of(&$value)
                });)*
                fields.schema(concat!($($about),+))
            }
        }
    };
}

pub(super) use document;

/// A list whose items are written as documents.
pub(super) struct Each<'a, T, U>(pub(super) &'a [T], pub(super) fn(&'a T) -> U);

impl<T, U: Serialize> Serialize for Each<'_, T, U> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(self.1))
    }
}

/// Major and minor number as text: `259:0`.
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(into = "String")
)]
pub(super) struct Number(pub(super) DeviceNumber);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// The fields of a document, each with the schema of its value.
#[cfg(feature = "schema")]
pub(super) struct Fields<'a> {
    generator: &'a mut SchemaGenerator,
    properties: Map<String, Value>,
}

#[cfg(feature = "schema")]
impl Fields<'_> {
    pub(super) fn new(generator: &mut SchemaGenerator) -> Fields<'_> {
        let properties = Map::new();
        Fields {
            generator,
            properties,
        }
    }

    /// Adds a field with its description and the schema of its value's type; no value is created.
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
#[cfg(feature = "schema")]
pub(super) fn type_of<T>(_: &T) -> PhantomData<T> {
    PhantomData
}

#[cfg(feature = "schema")]
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
