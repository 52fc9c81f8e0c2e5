//! Descriptors: text that names the extents of a disk, in a file of its own or in an extent.

use super::super::container::{NotFollowed, from_somewhere};
use super::{Body, Image, KIND, SECTOR};
use crate::base::ondisk;
use crate::format::Reference;
use crate::mapping::extents::{Extents, Run};
use crate::mapping::geom::Part;
use crate::probe::Probe;

const FIRST_LINE: &[u8] = b"# Disk DescriptorFile";
/// Bytes that are read of a descriptor.
const MOST: u64 = 64 << 10;
/// Names of extents that are shown.
const SHOWN: usize = 4;
/// Parent's content ID of a disk without a parent.
const NO_PARENT: &str = "ffffffff";

/// Facts of a descriptor.
#[derive(Default)]
pub(super) struct Descriptor {
    version: Option<String>,
    pub(super) create_type: Option<String>,
    /// Content ID of this disk, and of its parent if it has one.
    pub(super) content: Option<String>,
    parent_content: Option<String>,
    /// Name of the parent's file.
    parent: Option<String>,
    /// Extents in their order; `None` if a line of one is none.
    extents: Option<Vec<Line>>,
}

/// Line of an extent, such as `RW 20480 FLAT "disk-flat.vmdk" 0`.
struct Line {
    /// Length of the extent in bytes.
    bytes: u64,
    /// Type of the extent, such as `SPARSE`.
    kind: String,
    /// Name of its file; none for zeros.
    name: Option<String>,
    /// Byte of the file at which it begins.
    start: u64,
}

impl Line {
    /// The extent of a line; `None` if its numbers are none.
    fn of(line: &str) -> Option<Line> {
        let mut words = line.split_whitespace().skip(1);
        let bytes = words.next()?.parse::<u64>().ok()?.checked_mul(SECTOR)?;
        let kind = words.next()?.to_string();
        let mut quoted = line.splitn(3, '"').skip(1);
        let name = quoted.next().and_then(|name| ondisk::text(name.as_bytes()));
        let start = match quoted.next().and_then(|rest| rest.split_whitespace().next()) {
            Some(sector) => sector.parse::<u64>().ok()?.checked_mul(SECTOR)?,
            None => 0,
        };
        Some(Line { bytes, kind, name, start })
    }

    /// True for an extent whose file has the bytes as they are.
    fn is_plain(&self) -> bool {
        matches!(self.kind.as_str(), "FLAT" | "VMFS")
    }

    /// Its file, as a reference out of the descriptor; `None` for zeros.
    ///
    /// Errors: the reason for which a type is not followed.
    fn reference(&self) -> Result<Option<Reference>, NotFollowed> {
        let format = match self.kind.as_str() {
            "ZERO" => return Ok(None),
            "FLAT" | "VMFS" => "raw",
            "SPARSE" | "VMFSSPARSE" | "SESPARSE" => KIND.name,
            _ => return Err(NotFollowed("the descriptor of a device of the host that ran it")),
        };
        let name =
            self.name.clone().ok_or(NotFollowed("the descriptor of an extent without a name"))?;
        let format = Some(format.into());
        Ok(Some(Reference { role: "extent", name, format, identity: None }))
    }
}

impl Descriptor {
    /// Reads `version=`, `createType=`, `parentCID=` and lines of extents.
    fn of(text: &str) -> Descriptor {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|value| ondisk::text(value.trim_matches('"').as_bytes()))
        };
        let access = |line: &&str| {
            matches!(line.split_whitespace().next(), Some("RW" | "RDONLY" | "NOACCESS"))
        };
        Descriptor {
            version: value("version="),
            create_type: value("createType="),
            content: value("CID=").map(|id| id.trim().to_ascii_lowercase()),
            parent_content: value("parentCID=")
                .map(|id| id.trim().to_ascii_lowercase())
                .filter(|id| id != NO_PARENT),
            parent: value("parentFileNameHint="),
            extents: text.lines().filter(access).map(Line::of).collect(),
        }
    }

    /// True for a snapshot.
    pub(super) fn has_parent(&self) -> bool {
        self.parent_content.is_some()
    }

    /// The parent, where it has the name of its file.
    pub(super) fn parent(&self) -> Option<Reference> {
        Some(Reference {
            role: "parent",
            // ESX has all of its path; the content ID tells if the last part of that is the parent.
            name: from_somewhere(self.parent.as_deref().filter(|_| self.has_parent())?),
            format: Some(KIND.name.into()),
            identity: self.parent_content.clone(),
        })
    }

    fn extents(&self) -> &[Line] {
        self.extents.as_deref().unwrap_or_default()
    }

    /// Sum of the extents in bytes.
    fn size(&self) -> Option<u64> {
        self.extents().iter().try_fold(0u64, |sum, line| sum.checked_add(line.bytes))
    }

    /// Names of the files of its extents, the first few; `None` where it names none.
    pub(super) fn others(&self) -> Option<String> {
        let mut names: Vec<&str> =
            self.extents().iter().filter_map(|line| line.name.as_deref()).take(SHOWN + 1).collect();
        if names.len() > SHOWN {
            names[SHOWN] = "...";
        }
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The disk of its extents, and their files; behind these the parent of a snapshot.
    ///
    /// Errors: the reason for which the disk that it describes is not followed.
    fn disk(&self) -> Result<(Extents, Vec<Reference>), NotFollowed> {
        let lines =
            self.extents.as_ref().ok_or(NotFollowed("a descriptor with an extent of no size"))?;
        let parent = self.parent();
        if self.has_parent() && parent.is_none() {
            return Err(NotFollowed("the descriptor of a snapshot that does not name its parent"));
        }
        let files: Result<Vec<Option<Reference>>, _> = lines.iter().map(Line::reference).collect();
        let files: Vec<Option<Reference>> = files?;
        let count = files.iter().flatten().count();
        let (mut runs, mut parts, mut at) = (Vec::new(), Vec::new(), 0);
        for (line, file) in lines.iter().zip(&files) {
            // Where an extent begins in a file of VMware's own format, its tables say.
            let within = if line.is_plain() { line.start } else { 0 };
            let place = file.is_some().then_some((parts.len(), within));
            runs.push(Run { bytes: line.bytes, place });
            if place.is_some() {
                let parent = parent.is_some().then_some((count, at));
                let (length, is_sparse) = (line.bytes, !line.is_plain());
                parts.push(Part { length, within, is_sparse, parent });
            }
            // Too large a sum is refused below.
            at = at.saturating_add(line.bytes);
        }
        let disk = Extents::new(runs, parts).ok_or(NotFollowed("a descriptor without extents"))?;
        if disk.has_too_many_tables() {
            return Err(NotFollowed("a descriptor with more sparse extents than are joined"));
        }
        Ok((disk, files.into_iter().flatten().chain(parent).collect()))
    }
}

/// The descriptor in an extent, at `offset` and of `size` sectors; `None` where there is none.
pub(super) fn inside(probe: &Probe<'_>, offset: u64, size: u64) -> Option<Descriptor> {
    let at = offset.checked_mul(SECTOR).filter(|&at| at > 0)?;
    let room = probe.length().checked_sub(at)?;
    let length = size.saturating_mul(SECTOR).min(room).min(MOST);
    let bytes = probe.bytes(at, usize::try_from(length).ok().filter(|&length| length > 0)?)?;
    let text = bytes.split(|&byte| byte == 0).next()?;
    text.starts_with(FIRST_LINE).then(|| Descriptor::of(&String::from_utf8_lossy(text)))
}

/// The image that is a descriptor alone.
pub(super) fn image(probe: &Probe<'_>) -> Option<Image> {
    if !probe.has(0, FIRST_LINE) {
        return None;
    }
    if probe.length() > MOST {
        let reason = "a descriptor that is longer than is read of one";
        return Some(Image { refused: Some(reason), ..Image::default() });
    }
    let length = usize::try_from(probe.length()).ok()?;
    let found = Descriptor::of(&String::from_utf8_lossy(&probe.bytes(0, length)?));
    let image = Image {
        size: found.size(),
        extents: found.others(),
        content: found.content.clone(),
        version: found.version.clone(),
        create_type: found.create_type.clone(),
        ..Image::default()
    };
    Some(match found.disk() {
        Ok((disk, references)) => Image { body: Some(Body::Joined(disk)), references, ..image },
        Err(NotFollowed(reason)) => Image { refused: Some(reason), ..image },
    })
}
