//! The list of a tarball: names and sizes from the headers of POSIX ustar and pax archives and GNU
//! tar's long names; contents are skipped. Compressed archives are refused.
//!
//! POSIX.1-2017, pax: "ustar Interchange Format", "pax Header Block". GNU tar manual, "The Standard
//! Format".

use super::plan::TreeEntry;
use crate::error::Error;
use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom};
use trueline_geom::base::topology::round_up;

const RECORD: usize = 512;
/// Bounds on memory: entries; bytes of all names (a short archive may imply thousands of
/// directories, each with a long name); bytes of one name; bytes of an extended header.
const MOST_ENTRIES: usize = 4 << 20;
const MOST_NAMES: usize = 256 << 20;
const LONGEST_NAME: usize = 4096;
const LONGEST_HEADER: u64 = 1 << 20;

/// Attributes of the next file from extended headers.
#[derive(Default)]
struct PaxRecords {
    path: Option<String>,
    size: Option<u64>,
}

/// Reads the list of directories and plain files. A directory that is not in the archive but has
/// content is added.
pub fn list(archive: &mut (impl Read + Seek)) -> Result<Vec<TreeEntry>, Error> {
    let mut found = Found::default();
    let (mut said, mut at) = (PaxRecords::default(), 0);
    loop {
        let mut record = [0; RECORD];
        match archive.read_exact(&mut record) {
            Ok(()) => {}
            // Archives of some writers end without their two empty records.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && at > 0 => {
                return Ok(found.entries);
            }
            Err(error) => return Err(wrong(at, &format!("{error}"))),
        }
        if record.iter().all(|&byte| byte == 0) {
            return Ok(found.entries);
        }
        check(&record, at)?;
        let size =
            number(&record[124..136]).ok_or_else(|| wrong(at, "a size that is not a number"))?;
        let data = Some(size)
            .filter(|&size| size < 1 << 56)
            .ok_or_else(|| wrong(at, "a size past 2^56"))?;
        let mut next = data;
        match record[156] {
            b'x' => extended(&text(archive, data, at)?, &mut said, at)?,
            b'L' => {
                said.path =
                    Some(String::from_utf8_lossy(trim(&text(archive, data, at)?)).into_owned())
            }
            kind => {
                let PaxRecords { path, size } = std::mem::take(&mut said);
                let name = path.unwrap_or_else(|| name_of(&record));
                next = size.unwrap_or(data);
                let size = match kind {
                    b'0' | 0 | b'7' if !name.ends_with('/') => Some(Some(next)),
                    b'5' | b'0' | 0 => Some(None),
                    _ => None,
                };
                if let Some(size) = size {
                    found.enter(&name, size, at)?;
                }
                // Links, devices and directories have no data whatever their size says.
                if matches!(kind, b'1'..=b'6') {
                    next = 0;
                }
            }
        }
        at = round_up(next, RECORD as u64)
            .and_then(|data| at.checked_add(RECORD as u64)?.checked_add(data))
            .ok_or_else(|| wrong(at, "a size past 2^64"))?;
        archive.seek(SeekFrom::Start(at)).map_err(|error| wrong(at, &error.to_string()))?;
    }
}

/// Checks a header: its checksum is the sum of its bytes, with the checksum itself taken as blanks.
fn check(record: &[u8; RECORD], at: u64) -> Result<(), Error> {
    let sum = |own: &dyn Fn(u8) -> u64| {
        record
            .iter()
            .enumerate()
            .map(|(n, &b)| if (148..156).contains(&n) { 32 } else { own(b) })
            .sum()
    };
    let unsigned: u64 = sum(&u64::from);
    if number(&record[148..156]) == Some(unsigned) {
        return Ok(());
    }
    let hint = match record {
        [0x1f, 0x8b, ..] => "it is compressed with gzip: unpack it first",
        [0xfd, b'7', b'z', ..] => "it is compressed with xz: unpack it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed with zstd: unpack it first",
        [b'B', b'Z', b'h', ..] => "it is compressed with bzip2: unpack it first",
        _ => "not a tar header: its checksum is wrong",
    };
    Err(wrong(at, hint))
}

fn wrong(at: u64, what: &str) -> Error {
    Error::new(format!("read the tar archive at {at}: {what}"))
}

/// A number in octal, or, if its first bit is set, in base 256 (GNU). `None` if it is neither.
fn number(field: &[u8]) -> Option<u64> {
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        return rest.iter().try_fold(u64::from(first & 0x7f), |sum, &byte| {
            sum.checked_mul(256)?.checked_add(u64::from(byte))
        });
    }
    let digits = trim(field);
    let digits = std::str::from_utf8(digits).ok()?.trim();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// The bytes before the first NUL.
fn trim(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or(field)
}

/// The name in a header, with its prefix in ustar.
fn name_of(record: &[u8; RECORD]) -> String {
    let own = String::from_utf8_lossy(trim(&record[..100]));
    let prefix = String::from_utf8_lossy(trim(&record[345..500]));
    if &record[257..263] == b"ustar\0" && !prefix.is_empty() {
        format!("{prefix}/{own}")
    } else {
        own.into_owned()
    }
}

/// The content of an extended header or a long name.
fn text(archive: &mut impl Read, size: u64, at: u64) -> Result<Vec<u8>, Error> {
    if size > LONGEST_HEADER {
        return Err(wrong(
            at,
            &format!("an extended header of {size} bytes: at most {LONGEST_HEADER}"),
        ));
    }
    let mut bytes = Vec::new();
    archive.take(size).read_to_end(&mut bytes).map_err(|error| wrong(at, &error.to_string()))?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(wrong(at, "an extended header that is cut short"))
    }
}

/// Reads the pax records `LENGTH KEY=VALUE\ ` of an extended header.
fn extended(bytes: &[u8], said: &mut PaxRecords, at: u64) -> Result<(), Error> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let record = record_of(rest)
            .ok_or_else(|| wrong(at, "an extended header of another format than pax"))?;
        let (length, key, value) = record;
        match key {
            b"path" => said.path = Some(String::from_utf8_lossy(value).into_owned()),
            b"size" => {
                let size = std::str::from_utf8(value)
                    .ok()
                    .and_then(|size| size.parse::<u64>().ok())
                    .filter(|&size| size < 1 << 56);
                said.size = Some(size.ok_or_else(|| {
                    wrong(at, "an extended header with a size that is not a number")
                })?);
            }
            _ => {}
        }
        rest = &rest[length..];
    }
    Ok(())
}

/// The first record: its length, key and value. `None` if it is malformed.
fn record_of(bytes: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let blank = bytes.iter().take(20).position(|&byte| byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..blank]).ok()?.parse().ok()?;
    let line = bytes.get(blank + 1..length)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|&byte| byte == b'=')?;
    Some((length, &line[..equals], &line[equals + 1..]))
}

/// The entries found so far.
#[derive(Default)]
struct Found {
    entries: Vec<TreeEntry>,
    there: HashSet<String>,
    /// The bytes of all names.
    names: usize,
}

impl Found {
    /// Adds a name relative to the tree's root, without `.`; missing parent directories are added
    /// before it. `..` is an error.
    fn enter(&mut self, name: &str, size: Option<u64>, at: u64) -> Result<(), Error> {
        let parts: Vec<&str> =
            name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") || name.len() > LONGEST_NAME || name.contains('\0') {
            return Err(wrong(at, "a name that leads outside, or is longer than 4096 bytes"));
        }
        let mut own = String::new();
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                own.push('/');
            }
            own.push_str(part);
            let last = n + 1 == parts.len();
            // An archive may hold a file twice; the tree has it once.
            if self.there.insert(own.clone()) {
                self.names += own.len();
                self.entries
                    .push(TreeEntry { name: own.clone(), size: if last { size } else { None } });
            }
        }
        if self.entries.len() > MOST_ENTRIES {
            return Err(wrong(at, "more than 4194304 files"));
        }
        if self.names > MOST_NAMES {
            Err(wrong(at, "names of more than 268435456 bytes"))
        } else {
            Ok(())
        }
    }
}
