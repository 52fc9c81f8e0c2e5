//! Faults of lines in a script.

use std::fmt;

/// Fault of a line that does not belong to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Script without a partition and without a label.
    Empty,
    /// Header after the first partition.
    LateHeader,
    /// More partitions than any table has room for; so many are read.
    Partitions(usize),
    /// Header that is not known.
    Header(String),
    /// Value that a header cannot have.
    HeaderValue {
        /// Name of the header.
        name: String,
        /// Value as it was given.
        value: String,
    },
    /// Label of a script that cannot be applied.
    Label(String),
    /// Unit of numbers other than sectors.
    Unit(String),
    /// Name of a node without a partition's number.
    Node(String),
    /// Field that is not known.
    Field(String),
    /// Value that a field cannot have.
    FieldValue {
        /// Name of the field.
        name: String,
        /// Value as it was given.
        value: String,
    },
    /// Value in the place of the bootable mark, or behind it.
    Mark {
        /// Name of the place.
        place: &'static str,
        /// Value as it was given.
        value: String,
    },
    /// Value without a name before it.
    NoName,
    /// Field without a value.
    NoValue(String),
    /// Quotation mark that is not closed.
    Quotation,
    /// Attribute that is not known.
    Attribute(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty => {
                f.write_str("there is no partition, and no label: line for an empty table")
            }
            Fault::LateHeader => f.write_str("a header after the first partition"),
            Fault::Partitions(most) => write!(f, "more than {most} partitions"),
            Fault::Header(name) => write!(f, "header '{name}' is not known"),
            Fault::HeaderValue { name, value } => write!(f, "{name}: '{value}' is none"),
            Fault::Label(label) => {
                write!(f, "label '{label}': scripts for gpt and dos can be applied")
            }
            Fault::Unit(unit) => write!(f, "unit '{unit}': only sectors are known"),
            Fault::Node(node) => write!(f, "'{node}' does not end in a partition's number"),
            Fault::Field(name) => write!(f, "field '{name}' is not known"),
            Fault::FieldValue { name, value } => write!(f, "{name} '{value}' is none"),
            Fault::Mark { place, value } => write!(f, "{place} '{value}': write * or -"),
            Fault::NoName => f.write_str("a name is missing before the ="),
            Fault::NoValue(name) => write!(f, "'{name}' has no value"),
            Fault::Quotation => f.write_str("a quotation mark is not closed"),
            Fault::Attribute(name) => write!(f, "attribute '{name}' is not known"),
        }
    }
}

impl std::error::Error for Fault {}
