//! Names of the keys that a structure is read from.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Names of a structure's keys as a file has them, in their order; none of a type that is no
/// structure, and of one with flattened parts. They are those that the structure itself asks for.
pub fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut asked = Asked(&[]);
    // It ends with the error that stands for "asked enough".
    let _ = T::deserialize(&mut asked);
    asked.0
}

/// A source without values, which keeps what it is asked for.
struct Asked(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Asked {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("asked enough"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_has_names_and_a_number_has_none() {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(dead_code, reason = "names alone are asked for")]
        struct Keys {
            cluster_size: u64,
            size: Option<u64>,
        }
        assert_eq!(names::<Keys>(), ["cluster-size", "size"]);
        assert_eq!(names::<u64>(), [] as [&str; 0]);
    }
}
