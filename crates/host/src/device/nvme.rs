//! The output of `nvme id-ns -o json`.
//!
//! # Limits
//! One document, an array of them, or several one after another, as a loop over drives prints them.
//! Numbers may be strings; a missing field is 0, which claims nothing. The LBA formats are under
//! `lbafs`, their data size under `ds` (as nvme-cli names it) or `lbads` (as the specification
//! does).
//!
//! # Sources
//! nvme-cli `nvme-print-json.c`; the fields as in [`trueline_geom::audit::limits::nvme`].

use crate::error::{Cause, Error};
use serde_json::Value;
use std::fmt;
use trueline_geom::audit::limits::nvme::Namespace;

/// The namespaces in the output, at least one. `place` names the output in an error.
pub fn parse(text: &str, place: &str) -> Result<Vec<Namespace>, Error> {
    const ATTEMPT: &str = "read nvme id-ns from";
    const ADVICE: &str = "save what nvme id-ns -o json prints";
    let mut found = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let document = document.map_err(|e| Error {
            attempt: ATTEMPT,
            place: place.to_owned(),
            source: Cause::Json(e),
            remedy: ADVICE.into(),
        })?;
        let list = if let Value::Array(list) = document { list } else { vec![document] };
        for entry in &list {
            found.push(
                namespace(entry)
                    .map_err(|why| Error::not(ATTEMPT, place, why.to_string(), ADVICE))?,
            );
        }
    }
    if found.is_empty() {
        Err(Error::not(ATTEMPT, place, "no namespace", ADVICE))
    } else {
        Ok(found)
    }
}

/// A namespace whose fields cannot be.
enum NamespaceError {
    /// The size is missing.
    NoSize,
    /// The format in use, from `flbas`, is not among those listed.
    NoFormat { flbas: u8, index: usize, formats: usize },
    /// The value exceeds the field of the specification.
    TooLarge { field: String, value: u64 },
    /// The blocks are smaller than 512 bytes, or their sum exceeds 2^64 bytes.
    ImpossibleSize { blocks: u64, lbads: u8 },
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamespaceError::NoSize => f.write_str("no \"nsze\""),
            NamespaceError::NoFormat { flbas, index, formats } => {
                write!(f, "flbas {flbas} selects format {index}, but \"lbafs\" has {formats}")
            }
            NamespaceError::TooLarge { field, value } => {
                write!(f, "\"{field}\" is {value}, more than the field holds")
            }
            NamespaceError::ImpossibleSize { blocks, lbads } => {
                write!(f, "{blocks} blocks of 2^{lbads} bytes are not a possible size")
            }
        }
    }
}

fn namespace(entry: &Value) -> Result<Namespace, NamespaceError> {
    let nsze = number(entry, "nsze").ok_or(NamespaceError::NoSize)?;
    let flbas = field::<u8>(entry, "flbas")?;
    let index = Namespace::format(flbas);
    let formats =
        entry.get("lbafs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(format) = formats.get(index) else {
        return Err(NamespaceError::NoFormat { flbas, index, formats: formats.len() });
    };
    let lbads = if format.get("ds").is_some() { "ds" } else { "lbads" };
    let namespace = Namespace {
        nsze,
        flbas,
        nsfeat: field(entry, "nsfeat")?,
        lbads: field(format, lbads)?,
        ms: field(format, "ms")?,
        npwg: field(entry, "npwg")?,
        npwa: field(entry, "npwa")?,
        npdg: field(entry, "npdg")?,
        npda: field(entry, "npda")?,
        nows: field(entry, "nows")?,
        noiob: field(entry, "noiob")?,
        nawupf: field(entry, "nawupf")?,
        nabo: field(entry, "nabo")?,
        nabspf: field(entry, "nabspf")?,
    };
    match namespace.length() {
        Some(_) => Ok(namespace),
        None => Err(NamespaceError::ImpossibleSize { blocks: nsze, lbads: namespace.lbads }),
    }
}

fn number(entry: &Value, name: &str) -> Option<u64> {
    match entry.get(name)? {
        Value::Number(n) => n.as_u64(),
        Value::String(s) => {
            let s = s.trim();
            s.strip_prefix("0x")
                .map_or_else(|| s.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
        }
        _ => None,
    }
}

/// The value of a field; 0 if it is missing. It is an error if the value exceeds the field's type.
fn field<T: TryFrom<u64>>(entry: &Value, name: &str) -> Result<T, NamespaceError> {
    let value = number(entry, name).unwrap_or_default();
    T::try_from(value).map_err(|_| NamespaceError::TooLarge { field: name.to_owned(), value })
}
