//! The schemas of `docs/schema`: every document that a test here is shown is held to its own.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Keywords of JSON Schema that [`fits`] knows; another one fails every test.
const KEYWORDS: [&str; 14] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "oneOf",
    "pattern",
];

/// Schemas by the names of their files, without `.schema.json`.
fn all() -> &'static BTreeMap<String, Value> {
    static ALL: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
        let files = fs::read_dir(folder).expect("docs/schema").map(|file| file.expect("a file"));
        let read = |file: fs::DirEntry| {
            let name = file.file_name().into_string().expect("a name");
            let name = name.strip_suffix(".schema.json").expect("a schema").to_owned();
            let text = fs::read_to_string(file.path()).expect("a schema");
            (name, serde_json::from_str(&text).expect("JSON"))
        };
        files.map(read).collect()
    })
}

/// The schema in the file `NAME.schema.json`.
pub(crate) fn schema(name: &str) -> &'static Value {
    all().get(name).unwrap_or_else(|| panic!("docs/schema has no {name}.schema.json"))
}

/// Checks standard output of the program: whatever in it names a format of ours fits its schema,
/// and has no key that is not in there.
#[track_caller]
pub(crate) fn hold(stdout: &[u8]) {
    if !stdout.starts_with(b"{") {
        return;
    }
    let whole = serde_json::from_slice(stdout).map(|document| vec![document]);
    let lines = || stdout.split(|&byte| byte == b'\n').flat_map(serde_json::from_slice).collect();
    let documents: Vec<Value> = whole.unwrap_or_else(|_| lines());
    for document in documents {
        let Some(name) = document["format"].as_str().and_then(|format| file_of(format, &document))
        else {
            continue;
        };
        fits(&document, schema(&name)).unwrap_or_else(|why| panic!("{name}.schema.json: {why}"));
    }
}

/// The name of the file that has the schema of a document in a format of ours.
fn file_of(format: &str, document: &Value) -> Option<String> {
    let (name, version) = format.strip_prefix("trueline/")?.split_once('/')?;
    Some(match name {
        "check" if document.get("targets").is_none() => "jsonl".to_owned(),
        "mirror" | "concat" => format!("stripe-{version}"),
        _ => format!("{name}-{version}"),
    })
}

/// Checks that a value is as a schema says, and that no key of it is left out of the schema.
pub(crate) fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    fits_within(value, schema, schema)
}

fn fits_within(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{why}: {value} by {schema}"));
    for keyword in schema.as_object().into_iter().flatten().map(|(keyword, _)| keyword) {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{keyword} is not known here");
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").expect("a definition");
        return fits_within(value, &root["$defs"][name], root);
    }
    if let Some(any) = schema["oneOf"].as_array() {
        let tried: Vec<_> = any.iter().map(|one| fits_within(value, one, root)).collect();
        let reasons = || tried.iter().filter_map(|one| one.clone().err()).collect::<Vec<_>>();
        return match tried.iter().filter(|one| one.is_ok()).count() {
            1 => Ok(()),
            _ => Err(format!("fits none, or several: {}", reasons().join("\n"))),
        };
    }
    if !is_of(value, &schema["type"]) {
        return wrong("another type");
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return wrong("another word");
    }
    if schema.get("const").is_some_and(|constant| constant != value) {
        return wrong("another constant");
    }
    // The one pattern that there is, that of a rule's id.
    if let Some(pattern) = schema["pattern"].as_str() {
        assert_eq!(pattern, "^TL[0-9]{4}$");
        let digits = value.as_str().and_then(|id| id.strip_prefix("TL"));
        if !digits.is_some_and(|id| id.len() == 4 && id.bytes().all(|b| b.is_ascii_digit())) {
            return wrong("no rule's id");
        }
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        if value.get(key.as_str().expect("a key")).is_none() {
            return wrong(&format!("no {key}"));
        }
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(known), _) => fits_within(inner, known, root)?,
            (None, more @ Value::Object(_)) => fits_within(inner, more, root)?,
            (None, _) => return wrong(&format!("{key} is not in the schema")),
        }
    }
    match schema.get("items") {
        Some(items) => value
            .as_array()
            .into_iter()
            .flatten()
            .try_for_each(|item| fits_within(item, items, root)),
        None => Ok(()),
    }
}

/// True if the value is of the type, or of one of the types; of any where none is named.
fn is_of(value: &Value, types: &Value) -> bool {
    let is = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => panic!("{name} is no type"),
    };
    match types {
        Value::Array(types) => types.iter().filter_map(Value::as_str).any(is),
        Value::String(name) => is(name),
        _ => true,
    }
}

/// Definitions by their names, with each file that has one.
fn definitions() -> BTreeMap<&'static str, Vec<(&'static str, &'static Value)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (file, schema) in all() {
        for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
            found.entry(name.as_str()).or_default().push((file.as_str(), definition));
        }
    }
    found
}

#[test]
fn documents_of_checks_share_their_definitions() {
    let definitions = definitions();
    for name in ["provider", "finding", "grain", "table", "container", "arrangement"] {
        let all = &definitions[name];
        assert!(all.len() >= 2, "{name}");
        for (file, definition) in &all[1..] {
            assert_eq!(*definition, all[0].1, "{name} of {file} and {}", all[0].0);
        }
    }
}

#[test]
fn every_key_is_described_and_every_definition_used() {
    fn keys(schema: &Value, file: &str, wrong: &mut Vec<String>) {
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            if inner.get("description").is_none() && inner.get("const").is_none() {
                wrong.push(format!("{file}: {key} has no description"));
            }
        }
        let inner = schema.as_object().into_iter().flatten().map(|(_, inner)| inner);
        let list = schema.as_array().into_iter().flatten();
        inner.chain(list).for_each(|inner| keys(inner, file, wrong));
    }
    let mut wrong = Vec::new();
    for (file, schema) in all().iter().filter(|(file, _)| !file.starts_with("sweep")) {
        keys(schema, file, &mut wrong);
        let text = schema.to_string();
        for name in schema["$defs"].as_object().into_iter().flatten().map(|(name, _)| name) {
            if !text.contains(&format!("#/$defs/{name}\"")) {
                wrong.push(format!("{file}: {name} is not used"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every format that the sources name has a schema, and every schema a format or a kind of line.
#[test]
fn every_format_has_a_schema() {
    let mut named = BTreeSet::from(["jsonl", "log", "rows", "sweep", "stripe-1"].map(String::from));
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file")) {
            let path = entry.path();
            if entry.file_type().expect("a type").is_dir() && !path.ends_with("tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                named.extend(
                    text.split("format: \"trueline/")
                        .skip(1)
                        .filter_map(|rest| Some(rest.split_once('"')?.0.replace('/', "-"))),
                );
                let constants = text.split("&str = \"trueline/").skip(1);
                named.extend(
                    constants.filter_map(|rest| Some(rest.split_once('"')?.0.replace('/', "-"))),
                );
            }
        }
    }
    // The beginning of a name, which other versions have too.
    named.retain(|name| !name.ends_with('-'));
    named.insert("show-1".to_owned());
    let files: BTreeSet<String> = all().keys().cloned().collect();
    assert_eq!(named, files);
}

#[test]
fn what_differs_from_a_schema_is_seen() {
    let schema = serde_json::json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": { "type": ["integer", "null"] },
            "b": { "oneOf": [{ "type": "null" }, { "$ref": "#/$defs/b" }] },
            "rule": { "type": "string", "pattern": "^TL[0-9]{4}$" }
        },
        "$defs": { "b": { "type": "array", "items": { "enum": ["x", "y"] } } }
    });
    let fits = |text: &str| fits(&serde_json::from_str(text).expect("JSON"), &schema).is_ok();
    for good in [r#"{"a":1}"#, r#"{"a":null,"b":null}"#, r#"{"a":1,"b":["x"],"rule":"TL0001"}"#] {
        assert!(fits(good), "{good}");
    }
    let bad = [
        "[]",
        "{}",
        r#"{"a":1.5}"#,
        r#"{"a":1,"c":2}"#,
        r#"{"a":1,"b":["z"]}"#,
        r#"{"a":1,"b":"x"}"#,
        r#"{"a":1,"rule":"TL1"}"#,
    ];
    for bad in bad {
        assert!(!fits(bad), "{bad}");
    }
}
