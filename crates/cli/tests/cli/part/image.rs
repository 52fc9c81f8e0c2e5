//! An image that `part` edits; whatever a test is about, every edit of one also keeps what all
//! edits promise.

use crate::recipe::Scratch;
use crate::{Ran, run_with, scratch, zeroes};
use serde_json::Value;
use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use trueline_geom::base::store::{Sparse, Store};

pub(super) const MIB: u64 = 1 << 20;

/// One write of `--dry-run`.
pub(super) struct Write {
    /// The provider's name after the `#`.
    pub(super) provider: String,
    /// Byte of the provider.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// True if earlier writes must be on the medium first.
    pub(super) after_flush: bool,
}

/// An image in a directory of its own.
pub(super) struct Image {
    pub(super) scratch: Scratch,
    /// Options that describe the disk, for every command: `--logical 4096`.
    pub(super) options: String,
    saved: Cell<u32>,
}

impl Image {
    pub(super) fn new(length: u64, options: &str) -> Image {
        let image = Image { scratch: scratch(), options: options.into(), saved: Cell::new(0) };
        zeroes(image.scratch.path(), "disk", length);
        image
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("the image can be read")
    }

    /// `trueline part` with words separated by spaces.
    pub(super) fn part(&self, words: &str) -> Ran {
        let all = format!("part {words} {}", self.options);
        run_with(self.scratch.path(), &all.split_whitespace().collect::<Vec<_>>())
    }

    /// That the verb is refused in one line with `why` in it, and nothing was written.
    #[track_caller]
    pub(super) fn refused(&self, words: &str, why: &str) {
        let before = self.bytes("disk");
        let ran = self.part(words);
        assert!(ran.code == Some(2), "{words}: {:?} {}{}", ran.code, ran.stdout, ran.stderr);
        let line = ran.refused();
        assert!(line.contains(why) && line.ends_with(": nothing was written"), "{words}: {line}");
        assert!(before == self.bytes("disk"), "{words}: refused, and yet the disk is another");
    }

    /// Does it, silently, on the disk as a whole and on nothing else; gives what it prints.
    #[track_caller]
    pub(super) fn done(&self, words: &str) -> String {
        let ran = self.edited(words);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words}: {}", ran.stdout);
        ran.stdout
    }

    /// Does it, after looking at `--dry-run`: that writes nothing and lists exactly what is then
    /// written. What `--save` kept brings the first bytes back. The verb must leave nothing to
    /// chance.
    #[track_caller]
    pub(super) fn edited(&self, words: &str) -> Ran {
        let before = self.bytes("disk");
        let writes = self.writes(words);
        assert!(before == self.bytes("disk"), "{words}: --dry-run wrote");
        fs::copy(self.path("disk"), self.path("listed")).expect("a copy");
        writes.iter().for_each(|write| self.write("listed", write, write.bytes.len()));
        self.saved.set(self.saved.get() + 1);
        let saved = format!("saved-{}", self.saved.get());
        let ran = self.part(&format!("{words} --save {saved}"));
        let after = self.bytes("disk");
        assert!(
            after == self.bytes("listed"),
            "{words}: it writes something else than --dry-run lists: {}",
            ran.stderr
        );
        assert!(
            ran.code != Some(0) || self.path(&saved).exists(),
            "{words}: --save makes its file, also of nothing"
        );
        if before == after && ran.code == Some(0) {
            self.part(&format!("undo {saved} disk")).ended(0);
            assert!(before == self.bytes("disk"), "{words}: undo of nothing writes");
        }
        if before != after {
            fs::rename(self.path("disk"), self.path("kept")).expect("a rename");
            fs::rename(self.path("listed"), self.path("disk")).expect("a rename");
            self.part(&format!("undo {saved} disk")).ended(0);
            assert!(
                before == self.bytes("disk"),
                "{words}: undo does not bring the first bytes back"
            );
            fs::rename(self.path("kept"), self.path("disk")).expect("a rename");
        }
        ran
    }

    /// The writes that `--dry-run` lists.
    #[track_caller]
    pub(super) fn writes(&self, words: &str) -> Vec<Write> {
        let ran = self.part(&format!("{words} --dry-run"));
        assert!(ran.code == Some(0), "{words} --dry-run: {}", ran.stderr);
        // Beside a document they are on stderr.
        writes(if words.contains("--json") { &ran.stderr } else { &ran.stdout })
    }

    /// Carries out the first `length` bytes of a write on the file `name`.
    pub(super) fn write(&self, name: &str, write: &Write, length: usize) {
        let base = if write.provider.is_empty() { 0 } else { self.base(&write.provider) };
        let file =
            File::options().write(true).open(self.path(name)).expect("the image can be opened");
        file.write_all_at(&write.bytes[..length], base + write.offset)
            .expect("the image can be written");
    }

    /// Byte 0 of a provider on the disk.
    fn base(&self, provider: &str) -> u64 {
        let show = run_with(
            self.scratch.path(),
            &[&["check", "--json", "disk"], &*self.options.split_whitespace().collect::<Vec<_>>()]
                .concat(),
        );
        let providers =
            show.json()["targets"][0]["providers"].as_array().cloned().expect("providers");
        let own = providers
            .iter()
            .find(|p| p["provider"] == provider)
            .unwrap_or_else(|| panic!("no {provider}"));
        own["start"].as_u64().expect("a start")
    }

    /// The table as `show --json` has it.
    #[track_caller]
    pub(super) fn table(&self, provider: &str) -> Value {
        self.part(&format!("show --json disk{provider}")).json()["tables"][0].clone()
    }

    /// Index, first byte and length of every partition.
    #[track_caller]
    pub(super) fn places(&self, provider: &str) -> Vec<(u64, u64, u64)> {
        let table = self.table(provider);
        let number = |e: &Value, key: &str| e[key].as_u64().expect("bytes as an integer");
        let entries = table["entries"].as_array().expect("entries");
        entries
            .iter()
            .map(|e| (number(e, "index"), number(e, "start"), number(e, "length")))
            .collect()
    }
}

/// The writes in what `--dry-run` prints.
pub(super) fn writes(text: &str) -> Vec<Write> {
    let (mut writes, mut after_flush) = (Vec::new(), false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# flush" {
            after_flush = true;
            continue;
        }
        if line.starts_with("# interrupted, ") || line.starts_with("#   ") {
            continue;
        }
        let (head, length) = line
            .strip_suffix(')')
            .and_then(|l| l.split_once(" bytes at byte "))
            .expect("what a write begins with");
        let offset: u64 = length.split(' ').next().and_then(|n| n.parse().ok()).expect("where");
        let (head, length) = head.rsplit_once(": ").expect("how much");
        let provider = head.rsplit_once('#').expect("a provider").1.to_string();
        let mut dump = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            dump = dump + line + "\n";
        }
        let mut bytes = vec![0; length.parse().expect("a length")];
        let disk = Sparse::from_hexdump(&dump).expect("a dump");
        assert_eq!(disk.length(), offset + bytes.len() as u64);
        disk.read_at(&mut bytes, offset).expect("the dump's bytes");
        writes.push(Write {
            provider,
            offset,
            bytes,
            after_flush: std::mem::take(&mut after_flush),
        });
    }
    writes
}
