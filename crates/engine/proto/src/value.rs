//! Free-form values: `google.protobuf.Struct`, `Value` and `ListValue`.
//!
//! They are written by hand because of one number. The decoder refuses messages that are nested
//! more than a hundred deep, and the derived code spends three of those on every object inside an
//! object, so that it gives up at 33 levels; schemas inside Kubernetes resources come close. Here
//! a value inside a value costs one, and the limit still keeps hostile input off the stack. Bytes
//! on the wire are the same.

use std::collections::BTreeMap;

use prost::bytes::{Buf, BufMut};
use prost::encoding::wire_type::{WireType, check_wire_type};
use prost::encoding::{DecodeContext, btree_map, decode_key, merge_loop, message, skip_field};
use prost::encoding::{bool, double, int32, string};
use prost::{DecodeError, Message};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Struct {
    pub fields: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Value {
    /// A peer that leaves it out means null.
    pub kind: Option<Kind>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    NullValue(i32),
    NumberValue(f64),
    StringValue(String),
    BoolValue(bool),
    StructValue(Struct),
    ListValue(ListValue),
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListValue {
    pub values: Vec<Value>,
}

impl From<Kind> for Value {
    fn from(kind: Kind) -> Self {
        Self { kind: Some(kind) }
    }
}

impl Message for Struct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        btree_map::encode(
            string::encode,
            string::encoded_len,
            message::encode,
            message::encoded_len,
            1,
            &self.fields,
            buf,
        );
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return skip_field(wire_type, tag, buf, ctx);
        }
        check_wire_type(WireType::LengthDelimited, wire_type)?;
        let mut entry = (String::new(), Value::default());
        merge_loop(&mut entry, buf, ctx, |(key, value), buf, ctx| {
            let (tag, wire_type) = decode_key(buf)?;
            match tag {
                1 => string::merge(wire_type, key, buf, ctx),
                2 => merge_inline(wire_type, value, buf, ctx),
                _ => skip_field(wire_type, tag, buf, ctx),
            }
        })?;
        self.fields.insert(entry.0, entry.1);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        btree_map::encoded_len(string::encoded_len, message::encoded_len, 1, &self.fields)
    }

    fn clear(&mut self) {
        self.fields.clear();
    }
}

impl Message for Value {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        match &self.kind {
            None => {}
            Some(Kind::NullValue(value)) => int32::encode(1, value, buf),
            Some(Kind::NumberValue(value)) => double::encode(2, value, buf),
            Some(Kind::StringValue(value)) => string::encode(3, value, buf),
            Some(Kind::BoolValue(value)) => bool::encode(4, value, buf),
            Some(Kind::StructValue(value)) => message::encode(5, value, buf),
            Some(Kind::ListValue(value)) => message::encode(6, value, buf),
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.kind = Some(match tag {
            1 => {
                let mut value = 0;
                int32::merge(wire_type, &mut value, buf, ctx)?;
                Kind::NullValue(value)
            }
            2 => {
                let mut value = 0.0;
                double::merge(wire_type, &mut value, buf, ctx)?;
                Kind::NumberValue(value)
            }
            3 => {
                let mut value = String::new();
                string::merge(wire_type, &mut value, buf, ctx)?;
                Kind::StringValue(value)
            }
            4 => {
                let mut value = false;
                bool::merge(wire_type, &mut value, buf, ctx)?;
                Kind::BoolValue(value)
            }
            // The only places that count against the limit of nesting. A message that is sent in
            // two parts is put together, as the format asks.
            5 => {
                let mut value = match self.kind.take() {
                    Some(Kind::StructValue(begun)) => begun,
                    _ => Struct::default(),
                };
                message::merge(wire_type, &mut value, buf, ctx)?;
                Kind::StructValue(value)
            }
            6 => {
                let mut value = match self.kind.take() {
                    Some(Kind::ListValue(begun)) => begun,
                    _ => ListValue::default(),
                };
                message::merge(wire_type, &mut value, buf, ctx)?;
                Kind::ListValue(value)
            }
            _ => return skip_field(wire_type, tag, buf, ctx),
        });
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        match &self.kind {
            None => 0,
            Some(Kind::NullValue(value)) => int32::encoded_len(1, value),
            Some(Kind::NumberValue(value)) => double::encoded_len(2, value),
            Some(Kind::StringValue(value)) => string::encoded_len(3, value),
            Some(Kind::BoolValue(value)) => bool::encoded_len(4, value),
            Some(Kind::StructValue(value)) => message::encoded_len(5, value),
            Some(Kind::ListValue(value)) => message::encoded_len(6, value),
        }
    }

    fn clear(&mut self) {
        self.kind = None;
    }
}

impl Message for ListValue {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        message::encode_repeated(1, &self.values, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return skip_field(wire_type, tag, buf, ctx);
        }
        let mut value = Value::default();
        merge_inline(wire_type, &mut value, buf, ctx)?;
        self.values.push(value);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        message::encoded_len_repeated(1, &self.values)
    }

    fn clear(&mut self) {
        self.values.clear();
    }
}

/// Reads a nested `Value` without counting it as a level of its own.
fn merge_inline(
    wire_type: WireType,
    value: &mut Value,
    buf: &mut impl Buf,
    ctx: DecodeContext,
) -> Result<(), DecodeError> {
    check_wire_type(WireType::LengthDelimited, wire_type)?;
    merge_loop(value, buf, ctx, |value, buf, ctx| {
        let (tag, wire_type) = decode_key(buf)?;
        value.merge_field(tag, wire_type, buf, ctx)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_reference(value: &Value) -> prost_types::Value {
        use prost_types::value::Kind as Reference;
        let kind = value.kind.as_ref().map(|kind| match kind {
            Kind::NullValue(value) => Reference::NullValue(*value),
            Kind::NumberValue(value) => Reference::NumberValue(*value),
            Kind::StringValue(value) => Reference::StringValue(value.clone()),
            Kind::BoolValue(value) => Reference::BoolValue(*value),
            Kind::StructValue(value) => Reference::StructValue(prost_types::Struct {
                fields: value
                    .fields
                    .iter()
                    .map(|(k, v)| (k.clone(), to_reference(v)))
                    .collect(),
            }),
            Kind::ListValue(value) => Reference::ListValue(prost_types::ListValue {
                values: value.values.iter().map(to_reference).collect(),
            }),
        });
        prost_types::Value { kind }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::default()),
            Just(Kind::NullValue(0).into()),
            any::<f64>()
                .prop_filter("NaN is not equal to itself", |n| !n.is_nan())
                .prop_map(|n| Kind::NumberValue(n).into()),
            ".{0,8}".prop_map(|s| Kind::StringValue(s).into()),
            any::<bool>().prop_map(|b| Kind::BoolValue(b).into()),
        ];
        leaf.prop_recursive(5, 64, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5)
                    .prop_map(|values| Kind::ListValue(ListValue { values }).into()),
                prop::collection::btree_map(".{0,6}", inner, 0..5)
                    .prop_map(|fields| Kind::StructValue(Struct { fields }).into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_the_derived_types_and_decode_again(value in any_value()) {
            let bytes = value.encode_to_vec();
            prop_assert_eq!(&bytes, &to_reference(&value).encode_to_vec());
            prop_assert_eq!(Value::decode(bytes.as_slice()), Ok(value));
        }

        #[test]
        fn arbitrary_bytes_are_read_as_the_derived_types_read_them(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let reference = prost_types::Value::decode(bytes.as_slice());
            match Value::decode(bytes.as_slice()) {
                Ok(value) => prop_assert_eq!(to_reference(&value).encode_to_vec(),
                    reference.expect("both read it").encode_to_vec()),
                Err(_) => prop_assert!(reference.is_err()),
            }
        }
    }

    fn nested(depth: usize) -> Vec<u8> {
        let mut value = Value::from(Kind::BoolValue(true));
        for level in 0..depth {
            value = if level % 2 == 0 {
                Kind::StructValue(Struct {
                    fields: [("k".to_owned(), value)].into(),
                })
                .into()
            } else {
                Kind::ListValue(ListValue {
                    values: vec![value],
                })
                .into()
            };
        }
        value.encode_to_vec()
    }

    #[test]
    fn a_value_sent_in_two_parts_is_put_together() {
        let part = |key: &str| {
            let value = Kind::BoolValue(true).into();
            Value::from(Kind::StructValue(Struct {
                fields: [(key.to_owned(), value)].into(),
            }))
        };
        let bytes = [part("a").encode_to_vec(), part("b").encode_to_vec()].concat();
        let decoded = Value::decode(bytes.as_slice()).expect("two valid parts");
        let Some(Kind::StructValue(object)) = decoded.kind else {
            unreachable!("an object")
        };
        assert_eq!(object.fields.keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn ninety_levels_are_read_and_a_thousand_are_refused() {
        assert!(Value::decode(nested(90).as_slice()).is_ok());
        assert!(
            prost_types::Value::decode(nested(90).as_slice()).is_err(),
            "why this module exists"
        );
        assert!(Value::decode(nested(1000).as_slice()).is_err());
    }
}
