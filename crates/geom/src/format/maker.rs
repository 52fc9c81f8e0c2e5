//! Makers: the system's own tool that makes a format, and what it is told beside what the
//! boundaries beneath come to.
//!
//! What the boundaries come to are the `Parameters` of [`crate::plan`], which gives a reason for
//! each.

/// Options of a tool, each with its value, for a volume behind so many sectors of its medium.
pub type SectorsBefore = fn(u64) -> Vec<(&'static str, String)>;

/// A tool that makes a format.
pub struct Maker {
    /// Name of the program.
    pub program: &'static str,
    /// Debian package that it is in.
    pub package: &'static str,
    /// FreeBSD package that it is in; `None` where there is none.
    pub freebsd: Option<&'static str>,
    /// Flags without which it refuses a file.
    pub file: &'static [&'static str],
    /// Flags without which it refuses a device that is whole or was in use before.
    pub device: &'static [&'static str],
    /// Flags that come first, unless the user types them too.
    pub always: &'static [&'static str],
    /// Option of which the tool takes only the last, so that ours and the user's are joined.
    pub joined: Option<char>,
    /// Options that name the sectors of the medium before the volume, for a boot sector that
    /// records them; `None` for a format without.
    pub sectors_before: Option<SectorsBefore>,
    /// True if the user's words leave no room for our option.
    pub gives_way: fn(&str, &Words) -> bool,
    /// True if clusters begin where the tables end, and not at a multiple of them from the start.
    pub clusters_follow: bool,
    /// True if the tool takes the sector from the device and cannot be told another.
    pub sector_is_the_devices: bool,
}

impl Maker {
    /// A tool that needs no flag, of which every option gives way to the same one of the user.
    pub const fn new(program: &'static str, package: &'static str) -> Maker {
        Maker {
            program,
            package,
            freebsd: None,
            file: &[],
            device: &[],
            always: &[],
            joined: None,
            sectors_before: None,
            gives_way: |option, words| words.have(option),
            clusters_follow: false,
            sector_is_the_devices: false,
        }
    }
}

/// The options with one letter that a user types for a tool, in order.
pub struct Words(Vec<Word>);

/// An option with one letter.
pub struct Word {
    /// Index of the word that has its value.
    pub at: usize,
    /// Letter of the option, without its dash.
    pub letter: char,
    /// Its value, or what may be one.
    pub value: String,
}

impl Words {
    /// The options in a tool's command line.
    pub fn parse(words: &[String]) -> Words {
        let options = words.iter().enumerate().filter(|(_, word)| !word.starts_with("--"));
        let option = options.filter_map(|(at, word)| {
            let mut rest = word.strip_prefix('-')?.chars();
            let letter = rest.next()?;
            Some(match rest.as_str() {
                "" => Word {
                    at: at + 1,
                    letter,
                    value: words.get(at + 1).cloned().unwrap_or_default(),
                },
                joined => Word { at, letter, value: joined.to_owned() },
            })
        });
        Words(option.collect())
    }

    /// True if one of `letters` is among them.
    pub fn have_any(&self, letters: &str) -> bool {
        self.0.iter().any(|word| letters.contains(word.letter))
    }

    /// True if the option `-x` is among them, by its letter.
    pub fn have(&self, option: &str) -> bool {
        option.strip_prefix('-').is_some_and(|letter| self.have_any(letter))
    }

    /// True if one of `names` is set in the values of the option `letter`: `-d su=64k,sw=3`.
    pub fn have_named(&self, letter: char, names: &[&str]) -> bool {
        let values = self
            .0
            .iter()
            .filter(|word| word.letter == letter)
            .flat_map(|word| word.value.split(','));
        values
            .map(|value| value.split('=').next().unwrap_or(value))
            .any(|name| names.contains(&name))
    }

    /// The last option `letter`.
    pub fn last(&self, letter: char) -> Option<&Word> {
        self.0.iter().rfind(|word| word.letter == letter)
    }
}
