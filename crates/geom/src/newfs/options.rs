//! Options of newfs(8), parsed from its own words.

use super::error::Error;
use super::invalid::InvalidOption;
use super::shape::MAXCONTIG;
use crate::format::ufs::fs::BLOCK;

/// Release of FreeBSD whose newfs is imitated, for the check hashes that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// FreeBSD 5 to 11: no check hashes.
    FreeBsd9,
    /// FreeBSD 12: check hashes of cylinder groups.
    FreeBsd12,
    /// FreeBSD 13: check hashes of superblocks, cylinder groups and inodes.
    FreeBsd13,
    /// FreeBSD 14 and later: as 13, and directories hold their depth.
    FreeBsd14,
}

/// Resource that the kernel saves when it places data (`-o`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimization {
    /// Time that is spent on allocating blocks.
    Time,
    /// Space that fragmentation would waste.
    Space,
}

/// Options of newfs. [`Options::default`] is newfs without any. Sizes are bytes, whatever newfs
/// counts them in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `-b`; by default 32 KiB, 64 KiB where fragments are raised to the read-modify-write unit.
    pub block_size: Option<u64>,
    /// `-f`; by default 4 KiB, a sector, or the read-modify-write unit, whichever is largest.
    pub fragment_size: Option<u64>,
    /// `-i`: bytes of data for one inode; by default two fragments.
    pub density: Option<u64>,
    /// `-m`: percent of the space that only root may fill, 0 to 99.
    pub minfree: u64,
    /// `-o`: resource that is saved.
    pub optimization: Optimization,
    /// `-U`: soft updates are enabled.
    pub soft_updates: bool,
    /// `-J`: journaled by gjournal(8).
    pub gjournal: bool,
    /// `-l`: MAC labels are enabled.
    pub multilabel: bool,
    /// `-t`: discards freed blocks.
    pub trim: bool,
    /// `-L`: volume label, empty for none.
    pub label: String,
    /// True for a `.snap` directory; false with `-n`.
    pub snap: bool,
    /// `-E`: the old contents are discarded first.
    pub erase: bool,
    /// `-N`: only print; the caller's part.
    pub only_print: bool,
    /// `-R`: a fixed time, and numbers that count instead of random ones.
    pub reproducible: bool,
    /// `-s`: bytes of the file system.
    pub size: Option<u64>,
    /// `-r`: bytes left free at the end.
    pub reserved: u64,
    /// `-S`: bytes of a sector, instead of the provider's.
    pub sector: Option<u64>,
    /// `-a`: blocks laid out in one run; by default as many as a transfer takes.
    pub maxcontig: Option<u64>,
    /// `-c`: groups grow until they have so many fragments (newfs says blocks).
    pub max_blocks_per_group: u64,
    /// `-d`: bytes of the largest extent.
    pub max_extent: Option<u64>,
    /// `-e`: blocks of one file in one group; by default an eighth of the bytes of a block.
    pub maxbpg: Option<u64>,
    /// `-g`: expected size of a file in bytes.
    pub average_file_size: u64,
    /// `-h`: expected number of files in a directory.
    pub average_files_per_directory: u64,
    /// `-k`: fragments kept for metadata in each group.
    pub metaspace: Option<u64>,
    /// Largest transfer in bytes of the system that newfs was compiled for: 1 MiB, before FreeBSD
    /// 13 128 KiB. It decides how long the runs are that a group counts, and so how large a group
    /// can be.
    pub maxphys: u64,
    /// Release whose check hashes are written.
    pub flavour: Flavour,
    /// Number of the group `operator`, which owns `.snap`.
    pub operator_gid: u32,
}

/// Largest signed 32-bit number, the limit of on-disk fields.
const INT_MAX: u64 = 0x7fff_ffff;
/// `MINFREE` in percent: below it, newfs optimises for space.
const MINFREE: u64 = 8;
/// Letters of options that take a value.
const WITH_VALUE: &str = "LOSabcdefghikmors";
/// `MAXVOLLEN`: bytes of a volume label with its NUL.
const MAXVOLLEN: usize = 32;

impl Default for Options {
    fn default() -> Options {
        Options {
            block_size: None,
            fragment_size: None,
            density: None,
            minfree: MINFREE,
            optimization: Optimization::Time,
            soft_updates: false,
            gjournal: false,
            multilabel: false,
            trim: false,
            label: String::new(),
            snap: true,
            erase: false,
            only_print: false,
            reproducible: false,
            size: None,
            reserved: 0,
            sector: None,
            maxcontig: None,
            max_blocks_per_group: INT_MAX,
            max_extent: None,
            maxbpg: None,
            average_file_size: 16384,
            average_files_per_directory: 64,
            metaspace: None,
            maxphys: 1 << 20,
            flavour: Flavour::FreeBsd13,
            operator_gid: 5,
        }
    }
}

impl Options {
    /// Parses newfs's own options, for a provider in sectors of `sector` bytes; and `--maxphys
    /// BYTES`, `--flavour RELEASE`. Letters may be joined (`-UL data`), numbers may have a binary
    /// suffix (`-b 64k`).
    pub fn parse(words: &[String], sector: u64) -> Result<Options, InvalidOption> {
        let mut options = Options::default();
        // `-s` and `-r` count sectors, of a size that may come after them.
        let (mut size, mut reserved) = (None, 0);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = |letter: &str, rest: &str| match rest {
                "" => words.next().cloned().ok_or_else(|| InvalidOption::NoValue(letter.into())),
                rest => Ok(rest.to_string()),
            };
            if let Some(long) = word.strip_prefix("--") {
                let (name, given) = long.split_once('=').unwrap_or((long, ""));
                match name {
                    "maxphys" => {
                        options.maxphys = number("largest transfer", &value(word, given)?)?
                    }
                    "flavour" => options.flavour = flavour(&value(word, given)?)?,
                    _ => return Err(InvalidOption::Long(word.clone())),
                }
                continue;
            }
            let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                return Err(InvalidOption::Word(word.clone()));
            };
            for (at, letter) in letters.char_indices() {
                if options.set(letter)? {
                    continue;
                }
                let (dash, rest) = (format!("-{letter}"), &letters[at + letter.len_utf8()..]);
                let given = value(&dash, rest)?;
                match letter {
                    's' => size = Some(number("file system size", &given)?),
                    'r' => reserved = number("reserved size", &given)?,
                    _ => options.set_value(letter, &given)?,
                }
                break;
            }
        }
        let sector = options.sector.unwrap_or(sector);
        // newfs: a size of 0 is the default.
        options.size = size.filter(|&n| n != 0).map(|n: u64| n.saturating_mul(sector));
        options.reserved = reserved.saturating_mul(sector);
        Ok(options)
    }

    /// Sets an option that takes no value; `Ok(false)` if it takes one.
    fn set(&mut self, letter: char) -> Result<bool, InvalidOption> {
        match letter {
            'E' => self.erase = true,
            'J' => self.gjournal = true,
            'N' => self.only_print = true,
            'R' => self.reproducible = true,
            'U' => self.soft_updates = true,
            'l' => self.multilabel = true,
            'n' => self.snap = false,
            't' => self.trim = true,
            'j' | 'X' | 'T' | 'p' => {
                let why = match letter {
                    'j' => "make the file system with -U, then `tunefs -j enable` on FreeBSD",
                    'X' => "it leaves a file system unfinished to test fsck",
                    'T' => "there is no disktab(5) here",
                    _ => "name the partition with the device, as in disk.img#s1a",
                };
                return Err(InvalidOption::Unsupported(letter, why));
            }
            _ if WITH_VALUE.contains(letter) => return Ok(false),
            _ => return Err(InvalidOption::Letter(letter)),
        }
        Ok(true)
    }

    /// Sets an option that takes a value, and checks the limits.
    fn set_value(&mut self, letter: char, text: &str) -> Result<(), InvalidOption> {
        let positive = |what| {
            number(what, text).and_then(|n| if n == 0 { Err(bad(what, text)) } else { Ok(n) })
        };
        match letter {
            'L' => self.label = text.to_string(),
            'O' if text == "2" => {}
            'O' => return Err(InvalidOption::Version(text.into())),
            'S' => self.sector = Some(positive("sector size")?),
            'a' => self.maxcontig = Some(positive("maximum contiguous blocks")?),
            'b' => self.block_size = Some(positive("block size")?),
            'c' => self.max_blocks_per_group = positive("blocks per cylinder group")?,
            'd' => self.max_extent = Some(positive("extent block size")?),
            'e' => self.maxbpg = Some(positive("blocks per file in a cylinder group")?),
            'f' => self.fragment_size = Some(positive("fragment size")?),
            'g' => self.average_file_size = positive("average file size")?,
            'h' => self.average_files_per_directory = positive("average files per dir")?,
            'i' => self.density = Some(positive("bytes per inode")?),
            'k' => self.metaspace = Some(number("metadata space", text)?),
            'm' => self.minfree = number("free space %", text)?,
            'o' => {
                self.optimization = match text {
                    "time" => Optimization::Time,
                    "space" => Optimization::Space,
                    _ => return Err(InvalidOption::Preference(text.into())),
                }
            }
            _ => return Err(InvalidOption::Letter(letter)),
        }
        Ok(self.check()?)
    }

    /// Checks every number against the limits of the file system.
    pub(super) fn check(&self) -> Result<(), Error> {
        let within = |what, n: u64, range: std::ops::RangeInclusive<u64>| match range.contains(&n) {
            true => Ok(()),
            false => Err(Error::Number(what, n)),
        };
        let positive = 1..=INT_MAX;
        within("block size, from 4096 to 65536", self.block_size.unwrap_or(*BLOCK.end()), BLOCK)?;
        within("fragment size", self.fragment_size.unwrap_or(1), positive.clone())?;
        within("bytes per inode", self.density.unwrap_or(1), positive.clone())?;
        within("free space %", self.minfree, 0..=99)?;
        within(
            "maximum contiguous blocks, at most 256",
            self.maxcontig.unwrap_or(1),
            1..=MAXCONTIG,
        )?;
        within("blocks per cylinder group", self.max_blocks_per_group, positive.clone())?;
        within("extent block size", self.max_extent.unwrap_or(4096), 4096..=INT_MAX)?;
        within("blocks per file in a cylinder group", self.maxbpg.unwrap_or(1), positive.clone())?;
        within("average file size", self.average_file_size, positive.clone())?;
        within("average files per dir", self.average_files_per_directory, positive.clone())?;
        within("metadata space", self.metaspace.unwrap_or(0), 0..=INT_MAX)?;
        within("largest transfer", self.maxphys, positive)?;
        let letters =
            self.label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if letters && self.label.len() < MAXVOLLEN {
            Ok(())
        } else {
            Err(Error::Label(self.label.clone()))
        }
    }

    /// Changes the optimization to space where little is kept free, as newfs does, with a warning.
    pub(super) fn settle(&mut self, warnings: &mut Vec<String>) {
        if self.minfree < MINFREE && self.optimization == Optimization::Time {
            warnings.push(format!(
                "Warning: changing optimization to space because minfree is less than {MINFREE}%"
            ));
            self.optimization = Optimization::Space;
        }
    }
}

fn bad(what: &'static str, text: &str) -> InvalidOption {
    InvalidOption::Number(what, text.into())
}

/// A number as expand_number(3) takes it: decimal or `0x`, and a binary suffix.
fn number(what: &'static str, text: &str) -> Result<u64, InvalidOption> {
    let end = text.len()
        - usize::from(
            text.ends_with(|c: char| "bkmgtpeBKMGTPE".contains(c) && !text.starts_with("0x")),
        );
    let (digits, suffix) = text.split_at(end);
    let value = digits
        .strip_prefix("0x")
        .map_or_else(|| digits.parse(), |hex| u64::from_str_radix(hex, 16));
    let power = "bkmgtpe"
        .find(&suffix.to_lowercase())
        .and_then(|power| u32::try_from(power).ok())
        .unwrap_or(0);
    // The standard parser takes a plus sign; expand_number(3) does not.
    let value = value
        .ok()
        .filter(|_| !digits.contains('+'))
        .and_then(|value: u64| value.checked_mul(1024_u64.pow(power)));
    value.ok_or_else(|| bad(what, text))
}

/// The flavour of a release of FreeBSD, 5 to 99.
fn flavour(text: &str) -> Result<Flavour, InvalidOption> {
    match text.parse() {
        Ok(5..=11) => Ok(Flavour::FreeBsd9),
        Ok(12) => Ok(Flavour::FreeBsd12),
        Ok(13) => Ok(Flavour::FreeBsd13),
        Ok(14..=99) => Ok(Flavour::FreeBsd14),
        _ => Err(InvalidOption::Flavour(text.into())),
    }
}
