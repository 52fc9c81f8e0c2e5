//! Descriptors: text that names the extents of a disk, in a file of its own or in an extent.

use super::super::container::NotFollowed;
use super::{Image, SECTOR};
use crate::base::ondisk;
use crate::probe::Probe;

const FIRST_LINE: &[u8] = b"# Disk DescriptorFile";
/// Bytes that are read of a descriptor of its own, and of one in an extent.
const OWN: u64 = 4096;
const INNER: u64 = 64 << 10;
/// Names of extents that are shown.
const SHOWN: usize = 4;
/// Parent's content ID of a disk without a parent.
const NO_PARENT: &str = "ffffffff";

/// Facts of a descriptor.
#[derive(Default)]
pub(super) struct Descriptor {
    pub(super) version: Option<String>,
    pub(super) create_type: Option<String>,
    pub(super) has_parent: bool,
    /// Name of the parent's file.
    pub(super) parent: Option<String>,
    /// Sum of the extents in bytes.
    pub(super) size: Option<u64>,
    /// Type and name of each extent's file.
    extents: Vec<(String, String)>,
}

impl Descriptor {
    /// Reads `version=`, `createType=`, `parentCID=` and lines of extents, such as `RW 20480 FLAT
    /// "disk-flat.vmdk" 0`.
    fn of(text: &str) -> Descriptor {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|value| ondisk::text(value.trim_matches('"').as_bytes()))
        };
        let mut found = Descriptor {
            version: value("version="),
            create_type: value("createType="),
            has_parent: value("parentCID=")
                .is_some_and(|id| !id.trim().eq_ignore_ascii_case(NO_PARENT)),
            parent: value("parentFileNameHint="),
            size: Some(0),
            extents: Vec::new(),
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if !matches!(words.next(), Some("RW" | "RDONLY" | "NOACCESS")) {
                continue;
            }
            let sectors = words.next().and_then(|number| number.parse::<u64>().ok());
            found.size = found.size.zip(sectors).and_then(|(sum, sectors)| {
                sectors.checked_mul(SECTOR).and_then(|bytes| sum.checked_add(bytes))
            });
            let kind = words.next().unwrap_or_default().to_string();
            let name = line.split('"').nth(1).and_then(|name| ondisk::text(name.as_bytes()));
            found.extents.extend(name.map(|name| (kind, name)));
        }
        found
    }

    /// Names of the files of its extents, the first few; `None` where it names none.
    pub(super) fn others(&self) -> Option<String> {
        let mut names: Vec<&str> =
            self.extents.iter().take(SHOWN).map(|(_, name)| name.as_str()).collect();
        if self.extents.len() > SHOWN {
            names.push("...");
        }
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The reason for which the disk that it describes is not followed.
    fn reason(&self) -> &'static str {
        let is_plain = |kind: &str| matches!(kind, "FLAT" | "VMFS");
        match self.extents.as_slice() {
            [] => "a descriptor that names no file with data: it is a disk of zeros, or a device",
            _ if self.has_parent => {
                "the descriptor of a snapshot: its data are in its parent and in the extent that it names"
            }
            [(kind, _)] if is_plain(kind) => {
                "a descriptor without data: check the file that it names, which holds the bare disk"
            }
            [_] => "a descriptor without data: check the file that it names",
            _ => {
                "a descriptor of several files: qemu-img convert -O raw joins them, and check what comes out"
            }
        }
    }
}

/// The descriptor in an extent, at `offset` and of `size` sectors; `None` where there is none.
pub(super) fn inside(probe: &Probe<'_>, offset: u64, size: u64) -> Option<Descriptor> {
    let at = offset.checked_mul(SECTOR).filter(|&at| at > 0)?;
    let room = probe.length().checked_sub(at)?;
    let length = size.saturating_mul(SECTOR).min(room).min(INNER);
    let bytes = probe.bytes(at, usize::try_from(length).ok().filter(|&length| length > 0)?)?;
    let text = bytes.split(|&byte| byte == 0).next()?;
    text.starts_with(FIRST_LINE).then(|| Descriptor::of(&String::from_utf8_lossy(text)))
}

/// The image that is a descriptor alone.
pub(super) fn image(probe: &Probe<'_>) -> Option<Image> {
    if !probe.has(0, FIRST_LINE) {
        return None;
    }
    let length = usize::try_from(probe.length().min(OWN)).ok()?;
    let found = Descriptor::of(&String::from_utf8_lossy(&probe.bytes(0, length)?));
    let (reason, extents) = (found.reason(), found.others());
    Some(Image {
        version: found.version,
        size: found.size,
        create_type: found.create_type,
        extents,
        body: Some(Err(NotFollowed(reason))),
        ..Image::default()
    })
}
