//! Faults of a group's metadata, in one copy of its text or in one volume.

use super::text::Malformed;
use crate::base::error::Errno;
use crate::mapping::raid;
use std::fmt;

/// Fault of LVM's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Metadata area without a header.
    NoHeader,
    /// Header with a wrong checksum.
    HeaderSum,
    /// Text that does not lie within its area, or cannot be read.
    NoText,
    /// Checksums of a text: computed, and as its header has it.
    TextSum(u32, u32),
    /// Text that breaks the syntax.
    Malformed(Malformed),
    /// Text without a volume group.
    NoGroup,
    /// Group without a number that every group has.
    NoNumber {
        /// Name of the group.
        group: String,
        /// Key of the number.
        key: &'static str,
    },
    /// Group with extents of no possible size.
    ExtentSize(String),
    /// Fault within a part that has a name: a volume, or a segment of it.
    In(String, Box<Fault>),
    /// Segment that begins elsewhere than the one before ends.
    Gap {
        /// First extent of the segment.
        first: u64,
        /// Extent after the last one before it.
        end: u64,
    },
    /// Volume of so many extents of so many bytes.
    Size(u64, u64),
    /// Segment without a value or list that it needs.
    Without(&'static str),
    /// Extents that the stripes cannot share evenly.
    Uneven {
        /// Number of extents of the segment.
        extents: u64,
        /// Number of stripes over which they lie.
        stripes: u64,
    },
    /// Extents that a reshape keeps for itself, all of a segment or more.
    Room {
        /// Extents of the reshape.
        room: u64,
        /// Extents of the segment.
        of: u64,
    },
    /// Stripe size in bytes that is none on extents of so many bytes.
    Stripe {
        /// Bytes of a stripe.
        size: u64,
        /// Bytes of an extent.
        extent: u64,
    },
    /// Volume that the group does not have.
    NoVolume(String),
    /// Number of an extent on a volume that can be none.
    Extent(i64, String),
    /// List of places that is no list of names and extents.
    Places,
    /// Metadata of an image without the image.
    NoImage,
    /// Image without a name.
    Image,
    /// Number of images that no volume can have.
    Images(usize),
    /// Images of which no level makes a volume.
    Raid(raid::fault::Fault),
    /// Image that is one of another place as well.
    Twice(String),
    /// Volume that stands on itself.
    Loop(String),
    /// Volume whose segments are of no possible size.
    Segments(String),
}

impl Fault {
    /// The fault as one of the part called `name`.
    pub(super) fn within(self, name: &str) -> Fault {
        Fault::In(name.to_owned(), Box::new(self))
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault::Malformed(malformed)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoHeader => f.write_str("it has no header"),
            Fault::HeaderSum => f.write_str("the checksum of its header is wrong"),
            Fault::NoText => f.write_str("its text does not lie within it, or cannot be read"),
            Fault::TextSum(computed, stored) => {
                write!(f, "the checksum of its text is {computed:08x}, its header has {stored:08x}")
            }
            Fault::Malformed(Malformed { at, why }) => write!(f, "byte {at} of its text: {why}"),
            Fault::NoGroup => f.write_str("its text has no volume group"),
            Fault::NoNumber { group, key } => write!(f, "volume group {group} has no {key}"),
            Fault::ExtentSize(group) => {
                write!(f, "volume group {group} has extents of no possible size")
            }
            Fault::In(name, fault) => write!(f, "{name}: {fault}"),
            Fault::Gap { first, end } => {
                write!(f, "a segment begins at extent {first}, where the one before ends at {end}")
            }
            Fault::Size(extents, size) => {
                write!(f, "{extents} extents of {size} bytes are no possible size")
            }
            Fault::Without(what) => write!(f, "no {what}"),
            Fault::Uneven { extents, stripes } => {
                write!(f, "{extents} extents on {stripes} stripes")
            }
            Fault::Room { room, of } => {
                write!(f, "{room} extents for a reshape, of {of} extents in all")
            }
            Fault::Stripe { size, extent } => {
                write!(f, "a stripe size of {size} bytes, on extents of {extent}")
            }
            Fault::NoVolume(name) => write!(f, "there is no volume {name}"),
            Fault::Extent(extent, name) => write!(f, "extent {extent} of {name}"),
            Fault::Places => f.write_str("a list of places is no list of names and extents"),
            Fault::NoImage => f.write_str("metadata without an image"),
            Fault::Image => f.write_str("an image is no name"),
            Fault::Images(count) => write!(f, "{count} images"),
            Fault::Raid(fault) => fault.fmt(f),
            Fault::Twice(image) => write!(f, "its image {image} is one of another place as well"),
            Fault::Loop(name) => {
                write!(f, "{name} stands on itself: its segments go round in a loop")
            }
            Fault::Segments(name) => write!(f, "{name}: its segments are of no possible size"),
        }
    }
}

/// Contradiction between the superblocks of a RAID volume's images and its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Differs {
    /// Reshape that is under way.
    Reshapes,
    /// Shapes that are not the same.
    Shape {
        /// Shape that the images have: level, layout, bytes of a stripe, images.
        images: (u32, u32, u64, u32),
        /// Shape that the group has.
        group: (u32, u32, u64, u32),
    },
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Differs::Reshapes => f.write_str("a reshape of it is under way, which is not followed"),
            Differs::Shape { images, group } => write!(
                f,
                "the metadata of its images say level {}, layout {:#x}, stripes of {} bytes on {} images; those of the group level {}, layout {:#x}, {} bytes on {}",
                images.0, images.1, images.2, images.3, group.0, group.1, group.2, group.3
            ),
        }
    }
}

/// Reason for which an image is left out of its RAID volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// Image of which a part has no place; its own layer says which.
    Torn,
    /// Superblock that cannot be read.
    Unreadable,
    /// Image without a superblock, where others have one.
    New,
    /// Superblock that says it is of another place.
    Number(u32),
    /// Superblock with features that are not known.
    Features,
    /// Image that md would leave out as well.
    Md(raid::fault::Exclusion),
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::Torn => f.write_str("parts of it are missing, or not followed"),
            LeftOut::Unreadable => f.write_str("its metadata cannot be read"),
            LeftOut::New => f.write_str("it is new, and not rebuilt yet"),
            LeftOut::Number(number) => {
                write!(f, "its metadata say that it is number {number}")
            }
            LeftOut::Features => f.write_str("its metadata have features that are not known here"),
            LeftOut::Md(why) => why.fmt(f),
        }
    }
}

/// Fault of the metadata in which a volume has the addresses of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MapFault {
    /// Volume with the metadata that cannot be read.
    Lost,
    /// Volume that it stands on and that is not made.
    NotMade,
    /// Volume of a pool that is none.
    NoPool,
    /// Metadata of a pool, of whose fault the pool says more.
    Pool,
    /// Fault of the metadata of a pool, of this device.
    Device(u64, Box<MapFault>),
    /// Fault of the metadata of a cache.
    Cache(Box<MapFault>),
    /// Map larger than what is read of maps.
    TooLarge,
    /// Map of more pieces than are followed.
    Pieces,
    /// Trees of more nodes than are followed.
    Nodes,
    /// Tree that goes round in a circle, or is too deep.
    Circle,
    /// Byte of the map that cannot be read.
    Unreadable(u64, Errno),
    /// Block that cannot be read.
    Block(u64, Errno),
    /// Block past the end of the metadata.
    Past(u64),
    /// Block with a wrong checksum.
    Sum(u64),
    /// Block that says it is another.
    Elsewhere(u64),
    /// Block whose keys are out of order.
    Order(u64),
    /// Block whose numbers contradict each other.
    Contradiction(u64),
    /// Metadata of no known version.
    Version,
    /// Chunks in bytes: of the metadata, and of the group.
    Chunks(u64, u64),
    /// Metadata without a device.
    NoDevice,
    /// Chunk that is mapped twice.
    Twice(u64),
    /// Snapshot whose store was full.
    Full,
    /// Cache that is too small for its own entries.
    Entries,
}

impl MapFault {
    /// True for what is not fetched, by the bounds of an object: nothing is wrong with it.
    pub(super) fn is_unfetched(&self) -> bool {
        match self {
            MapFault::Unreadable(_, errno) | MapFault::Block(_, errno) => {
                *errno == Errno::Unfetched
            }
            MapFault::Device(_, fault) | MapFault::Cache(fault) => fault.is_unfetched(),
            _ => false,
        }
    }
}

impl fmt::Display for MapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapFault::Lost => f.write_str("the volume with its map cannot be read"),
            MapFault::NotMade => f.write_str("a volume that it stands on is not made"),
            MapFault::NoPool => f.write_str("its pool is none"),
            MapFault::Pool => f.write_str("the metadata of its pool cannot be used"),
            MapFault::Device(number, fault) => {
                write!(f, "the metadata of its pool, of device {number}: {fault}")
            }
            MapFault::Cache(fault) => {
                write!(f, "the metadata of its cache cannot be used: {fault}")
            }
            MapFault::TooLarge => f.write_str("the map is larger than what is read of maps"),
            MapFault::Pieces => f.write_str("the map has more pieces than are followed"),
            MapFault::Nodes => f.write_str("the trees have more nodes than are followed"),
            MapFault::Circle => f.write_str("the tree goes round in a circle, or is too deep"),
            MapFault::Unreadable(at, errno) => write!(f, "byte {at} of the map: {errno}"),
            MapFault::Block(at, errno) => write!(f, "block {at} cannot be read: {errno}"),
            MapFault::Past(at) => write!(f, "block {at} is pointed to, past the end"),
            MapFault::Sum(at) => write!(f, "the checksum of block {at} is wrong"),
            MapFault::Elsewhere(at) => write!(f, "block {at} is one of another place"),
            MapFault::Order(at) => write!(f, "the keys are out of order in block {at}"),
            MapFault::Contradiction(at) => write!(f, "block {at} contradicts itself"),
            MapFault::Version => f.write_str("it is of no known version"),
            MapFault::Chunks(own, group) => {
                write!(f, "its chunks are of {own} bytes, those of the group of {group}")
            }
            MapFault::NoDevice => f.write_str("there is no such device"),
            MapFault::Twice(chunk) => write!(f, "chunk {chunk} is mapped twice"),
            MapFault::Full => {
                f.write_str("it is not valid any more: its store was full, and what it had is lost")
            }
            MapFault::Entries => f.write_str("the entries of the cache do not fit into it"),
        }
    }
}
