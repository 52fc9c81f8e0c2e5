//! Members of a tar archive, and the disk among them.

use super::super::container::NotFollowed;
use crate::base::ondisk::on_disk;
use crate::base::topology::round_up;
use crate::mapping::pieces::{Pieces, Stored};
use crate::probe::Probe;
use zerocopy::{FromBytes, IntoBytes};

/// Size of a block and of a header in bytes.
const BLOCK: u64 = 512;
/// Headers that are looked at: a member may have several.
const MOST_MEMBERS: usize = 256;
/// Bytes of a name and of a pax header that are read; a pax header that is longer ends the archive.
const MOST_TEXT: u64 = 64 << 10;
/// Bytes of a sparse map that are read at first, and at most.
const MAPS: [u64; 2] = [64 << 10, 1 << 20];
/// Runs of a sparse member that are looked at.
const MOST_RUNS: usize = 16384;
/// Names that are kept of further disks.
const MOST_OTHERS: usize = 8;
/// Endings of the names of disk images.
const ENDINGS: [&str; 10] =
    ["raw", "img", "vmdk", "qcow2", "qcow", "vhd", "vhdx", "vdi", "hds", "wic"];

on_disk! {
    /// Header of a member, as ustar has it.
    struct Header of 512 bytes {
          0 => name: [u8; 100],
        100 => mode: [u8; 8],
        108 => uid: [u8; 8],
        116 => gid: [u8; 8],
        124 => size: [u8; 12],
        136 => mtime: [u8; 12],
        148 => chksum: [u8; 8],
        156 => typeflag: u8,
        157 => linkname: [u8; 100],
        257 => magic: [u8; 6],
        263 => version: [u8; 2],
        265 => uname: [u8; 32],
        297 => gname: [u8; 32],
        329 => devmajor: [u8; 8],
        337 => devminor: [u8; 8],
        345 => prefix: [u8; 155],
        500 => pad: [u8; 12],
    }

    /// Fields of `oldgnu_header`, from the end of [`Header::devminor`] on.
    struct Sparse of 155 bytes {
          0 => times: [u8; 41],
         41 => runs: [u8; 96],
        137 => isextended: u8,
        138 => realsize: [u8; 12],
        150 => pad: [u8; 5],
    }

    /// Runs of `sparse_header`: a block with further runs.
    struct More of 512 bytes {
          0 => runs: [u8; 504],
        504 => isextended: u8,
        505 => pad: [u8; 7],
    }
}

/// Types of a file: `REGTYPE`, `AREGTYPE`, `CONTTYPE`.
const REGULAR: [u8; 3] = [b'0', 0, b'7'];
/// Types of links, devices, directories and pipes, which have no contents whatever their size says.
const WITHOUT_CONTENTS: std::ops::RangeInclusive<u8> = b'1'..=b'6';
/// Type of a header that names the next member, `GNUTYPE_LONGNAME`.
const LONG_NAME: u8 = b'L';
/// Types of a header with attributes of the next member, `XHDTYPE` and Solaris' own.
const EXTENDED: [u8; 2] = *b"xX";
/// Type of a sparse file of old GNU tar, `GNUTYPE_SPARSE`.
const GNU_SPARSE: u8 = b'S';

impl Header {
    /// The header at `at`; `None` for one whose checksum is wrong, and for the zeros of the end.
    fn at(probe: &Probe<'_>, at: u64) -> Option<Header> {
        let mut bytes = [0; size_of::<Header>()];
        probe.map(at, &mut bytes).ok()?;
        Header::of(&bytes)
    }

    /// The header that these bytes begin with.
    fn of(bytes: &[u8]) -> Option<Header> {
        let (header, _) = Header::read_from_prefix(bytes).ok()?;
        let sum: u64 = bytes[..size_of::<Header>()].iter().map(|&byte| u64::from(byte)).sum();
        let own: u64 = header.chksum.iter().map(|&byte| u64::from(byte)).sum();
        // The field counts as blanks.
        let expected = sum - own + 8 * u64::from(b' ');
        // Archives of before ustar, and labels of GNU tar, have the sum alone.
        let is_known = header.magic.starts_with(b"ustar") || header.magic == [0; 6];
        (is_known && number(&header.chksum) == Some(expected)).then_some(header)
    }

    fn name(&self) -> String {
        let name = text(&self.name);
        // Old GNU tar has times where others have the front of the name.
        let prefix = if self.magic == *b"ustar\0" { text(&self.prefix) } else { String::new() };
        if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
    }
}

/// A number in octal digits, or in base 256 where the first bit says so.
fn number(field: &[u8]) -> Option<u64> {
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        let (high, low) = rest.split_at(rest.len().checked_sub(8)?);
        let fits = first & 0x7f == 0 && high.iter().all(|&byte| byte == 0);
        return fits.then_some(u64::from_be_bytes(low.try_into().ok()?));
    }
    let digits = text(field);
    // A field that a member has no use for may be blank.
    if digits.trim().is_empty() { Some(0) } else { u64::from_str_radix(digits.trim(), 8).ok() }
}

/// The text before the first zero; what is no UTF-8 is marked so.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// Attributes of the next member, which a header of its own has.
#[derive(Default)]
struct Attributes {
    path: Option<String>,
    /// Name of a sparse member, whose path is made up.
    name: Option<String>,
    size: Option<u64>,
    /// Form of a sparse member: `GNU.sparse.major` and `GNU.sparse.minor`.
    version: (Option<u64>, Option<u64>),
    realsize: Option<u64>,
    is_sparse: bool,
}

impl Attributes {
    /// Reads the records of a pax header: `LENGTH KEY=VALUE\n`.
    fn read(&mut self, mut records: &[u8]) {
        while let Some(blank) = records.iter().position(|&byte| byte == b' ') {
            let length = std::str::from_utf8(&records[..blank]).ok().and_then(|l| l.parse().ok());
            let Some((record, rest)) = length.and_then(|l: usize| records.split_at_checked(l))
            else {
                return;
            };
            records = rest;
            let record = record.get(blank + 1..record.len().saturating_sub(1));
            let record = String::from_utf8_lossy(record.unwrap_or_default());
            let Some((key, value)) = record.split_once('=') else { return };
            match key {
                "path" => self.path = Some(value.into()),
                "GNU.sparse.name" => self.name = Some(value.into()),
                "size" => self.size = value.parse().ok(),
                "GNU.sparse.major" => self.version.0 = value.parse().ok(),
                "GNU.sparse.minor" => self.version.1 = value.parse().ok(),
                "GNU.sparse.realsize" => self.realsize = value.parse().ok(),
                _ => {}
            }
            self.is_sparse |= key.starts_with("GNU.sparse.");
        }
    }
}

/// The disk in an archive.
pub(super) struct Disk {
    pub(super) name: String,
    /// Its pieces, or the reason for which it is not looked into.
    pub(super) pieces: Result<Pieces, NotFollowed>,
}

/// Contents of an archive, as far as disks go.
pub(super) struct Archive {
    /// The first disk image; `None` if there is none.
    pub(super) disk: Option<Disk>,
    /// Names of others, of which the first few are kept.
    pub(super) others: Vec<String>,
}

impl Archive {
    /// The archive on a provider; `None` if it begins with no header.
    pub(super) fn read(probe: &Probe<'_>) -> Option<Archive> {
        let mut archive = Archive { disk: None, others: Vec::new() };
        let (mut at, mut next) = (0, Attributes::default());
        let mut header = Header::at(probe, at)?;
        for _ in 0..MOST_MEMBERS {
            let Some(size) = number(&header.size) else { return Some(archive) };
            let data = at + BLOCK;
            let mut end = data.checked_add(size);
            match header.typeflag {
                LONG_NAME => next.path = contents(probe, data, size).map(|bytes| text(&bytes)),
                kind if EXTENDED.contains(&kind) => {
                    let records = contents(probe, data, size).filter(|_| size <= MOST_TEXT);
                    // What it says of the next member is not known, nor then where that ends.
                    let Some(records) = records else { return Some(archive) };
                    next.read(&records);
                }
                kind if REGULAR.contains(&kind) || kind == GNU_SPARSE => {
                    let own = std::mem::take(&mut next);
                    let size = own.size.unwrap_or(size);
                    end = data.checked_add(size);
                    let gnu = (kind == GNU_SPARSE).then(|| old_gnu(probe, &header, data));
                    if let Some(Ok((_, more))) = &gnu {
                        end = end.and_then(|end| end.checked_add(more * BLOCK));
                    }
                    // Where the next member begins is not known.
                    let is_lost = matches!(gnu, Some(Err(_)));
                    let name = own.name.as_ref().or(own.path.as_ref()).cloned();
                    archive.add(name.unwrap_or_else(|| header.name()), || match gnu {
                        Some(pieces) => pieces.map(|(pieces, _)| pieces),
                        None if own.is_sparse => own.sparse(probe, data),
                        None => plain(probe, data, size),
                    });
                    if is_lost {
                        return Some(archive);
                    }
                }
                b'g' => {}
                kind => {
                    next = Attributes::default();
                    if WITHOUT_CONTENTS.contains(&kind) {
                        end = Some(data);
                    }
                }
            }
            let Some(after) = end.and_then(|end| round_up(end, BLOCK)) else {
                return Some(archive);
            };
            at = after;
            match Header::at(probe, at) {
                Some(found) => header = found,
                None => return Some(archive),
            }
        }
        Some(archive)
    }

    /// Notes a member, if it is a disk image. What is unpacked last of one name is what is left.
    fn add(&mut self, name: String, pieces: impl FnOnce() -> Result<Pieces, NotFollowed>) {
        let base = name.rsplit('/').next().unwrap_or_default();
        let ending = base.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
        let is_image = ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending));
        // macOS keeps attributes of a file in another whose name begins so.
        if !is_image || base.starts_with("._") {
            return;
        }
        // A name goes to a terminal.
        let name = name.escape_debug().to_string();
        match &self.disk {
            Some(disk) if disk.name != name => {
                if self.others.len() < MOST_OTHERS && !self.others.contains(&name) {
                    self.others.push(name);
                }
            }
            _ => self.disk = Some(Disk { name, pieces: pieces() }),
        }
    }
}

/// The least length of an archive that begins so: the end of its last member that begins there.
pub(in super::super) fn length_of(begin: &[u8]) -> Option<u64> {
    let mut end = None;
    let mut at = 0;
    // A size of 8 GiB or more, which only a pax header or base 256 can say, is seen of the latter.
    while let Some(header) = begin.get(at..).and_then(Header::of) {
        let size = number(&header.size)?;
        let next = round_up((at as u64).checked_add(BLOCK)?.checked_add(size)?, BLOCK)?;
        end = Some(next);
        at = usize::try_from(next).ok()?;
    }
    end
}

/// The text of a member that describes the next one.
fn contents(probe: &Probe<'_>, at: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size.min(MOST_TEXT)).ok()?];
    probe.map(at, &mut bytes).ok()?;
    Some(bytes)
}

const UNTRUE: NotFollowed = NotFollowed("its sparse map cannot be true");
const LONG: NotFollowed = NotFollowed("its sparse map is longer than is read");

fn plain(probe: &Probe<'_>, data: u64, size: u64) -> Result<Pieces, NotFollowed> {
    let mut pieces = Pieces::new(probe.length(), BLOCK);
    pieces.push(size, Stored::At(data)).ok_or(NotFollowed("it is longer than a disk"))?;
    Ok(pieces)
}

/// A disk of `length` bytes by its runs: first byte on the disk and length of each, whose contents
/// lie one after another from byte `data` on.
fn sparse(
    probe: &Probe<'_>,
    data: u64,
    length: u64,
    runs: &[(u64, u64)],
) -> Result<Pieces, NotFollowed> {
    const ZEROS: Stored = Stored::Fill([0; 4]);
    let mut pieces = Pieces::new(probe.length(), BLOCK);
    let mut at = data;
    for &(first, size) in runs {
        let gap = first.checked_sub(pieces.length()).ok_or(UNTRUE)?;
        pieces.push(gap, ZEROS).ok_or(UNTRUE)?;
        pieces.push(size, Stored::At(at)).ok_or(UNTRUE)?;
        at = at.checked_add(size).ok_or(UNTRUE)?;
    }
    let rest = length.checked_sub(pieces.length()).ok_or(UNTRUE)?;
    pieces.push(rest, ZEROS).ok_or(UNTRUE)?;
    Ok(pieces)
}

/// The runs that are named in a header of old GNU tar; the first without a place ends them.
fn add_runs(list: &mut Vec<(u64, u64)>, fields: &[u8]) -> Result<(), NotFollowed> {
    for run in fields.chunks_exact(24) {
        let (first, size) = run.split_at(12);
        if first[0] == 0 || size[0] == 0 {
            return Ok(());
        }
        if list.len() == MOST_RUNS {
            return Err(LONG);
        }
        list.push((number(first).ok_or(UNTRUE)?, number(size).ok_or(UNTRUE)?));
    }
    Ok(())
}

/// A sparse member of old GNU tar whose first further block is at `data`, and how many of these
/// there are.
fn old_gnu(probe: &Probe<'_>, header: &Header, data: u64) -> Result<(Pieces, u64), NotFollowed> {
    let own = Sparse::read_from_bytes(header.prefix.as_bytes()).map_err(|_| UNTRUE)?;
    let (mut runs, mut more, mut goes_on) = (Vec::new(), 0, own.isextended != 0);
    add_runs(&mut runs, &own.runs)?;
    while goes_on {
        let mut bytes = [0; size_of::<More>()];
        probe.map(data + more * BLOCK, &mut bytes).map_err(|_| UNTRUE)?;
        let block = More::read_from_bytes(&bytes).map_err(|_| UNTRUE)?;
        let before = runs.len();
        add_runs(&mut runs, &block.runs)?;
        more += 1;
        // A block that names nothing leads nowhere.
        goes_on = block.isextended != 0 && runs.len() > before;
    }
    let length = number(&own.realsize).ok_or(UNTRUE)?;
    Ok((sparse(probe, data + more * BLOCK, length, &runs)?, more))
}

impl Attributes {
    /// A sparse member of POSIX form 1.0, whose contents begin with its map: decimal numbers, each
    /// in a line; how many runs there are, then first byte and length of each.
    fn sparse(&self, probe: &Probe<'_>, data: u64) -> Result<Pieces, NotFollowed> {
        let Self { version: (Some(1), Some(0)), realsize: Some(length), .. } = *self else {
            return Err(NotFollowed("its sparse map is of a form that is not known here"));
        };
        let room = probe.length().saturating_sub(data);
        let found = MAPS.into_iter().find_map(|most| {
            let mut bytes = vec![0; usize::try_from(room.min(most)).ok()?];
            probe.map(data, &mut bytes).ok()?;
            let is_last = room <= most || most == MAPS[1];
            map(&bytes).or_else(|| is_last.then_some(Err(UNTRUE)))
        });
        let (runs, used) = found.ok_or(UNTRUE)??;
        let padded = round_up(used, BLOCK).and_then(|used| data.checked_add(used));
        sparse(probe, padded.ok_or(UNTRUE)?, length, &runs)
    }
}

/// Runs of a disk, first byte and length of each, and the bytes of the text that names them.
type Map = (Vec<(u64, u64)>, u64);

/// The map in text that begins so; `None` where the text ends before the map does.
fn map(text: &[u8]) -> Option<Result<Map, NotFollowed>> {
    let mut used = 0;
    let mut line = || {
        let rest = &text[used..];
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        used += end + 1;
        Some(std::str::from_utf8(&rest[..end]).ok().and_then(|line| line.parse::<u64>().ok()))
    };
    let Some(count) = line()? else { return Some(Err(UNTRUE)) };
    if count > MOST_RUNS as u64 {
        return Some(Err(LONG));
    }
    let mut runs = Vec::new();
    for _ in 0..count {
        let (Some(first), Some(size)) = (line()?, line()?) else { return Some(Err(UNTRUE)) };
        runs.push((first, size));
    }
    Some(Ok((runs, used as u64)))
}
