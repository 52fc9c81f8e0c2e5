//! Cures that no command alone brings about, in sentences with the options of this command line.

use crate::move_journal::sought::Belonging;
use crate::move_journal::unreadable;
use crate::target::Target;
use crate::words::escape::shell;
use std::path::Path;
use trueline_geom::audit::members::Advice;
use trueline_geom::base::finding::Statement;
use trueline_geom::mapping::slices::place;

/// Advice for a container that names a file which is not here.
pub(super) const FOLLOW: &str =
    "--follow opens it, if it is in the image's directory; or name it too: IMAGE,FILE";

/// Advice for a GPT whose copies are both valid, and differ.
pub(super) const CHOOSE_COPY: &str = "find out which one is right (gdisk, r, then c or e, p): \
    trueline part recover writes both anew from the primary";

/// Advice for a table that counts sectors of `size` bytes, and has others.
pub(super) fn show_sectors(size: u64) -> String {
    format!(
        "attach the disk so that it shows {size}-byte sectors, or open the image with --logical {size}"
    )
}

/// As [`show_sectors`], for a table that may as well be made anew.
pub(super) fn show_or_remake(size: u64) -> String {
    format!(
        "attach the disk so that it shows {size}-byte sectors (losetup --sector-size {size}), or open the image with --logical {size}; to use it with the sectors it has here, make the table anew"
    )
}

/// Advice for an image or a disk that is to be used with its sectors of `here` bytes, and was
/// written for those of `written`; `target`: its name.
pub(super) fn convert(written: u64, here: u64, target: &str) -> String {
    format!(
        "to use what is on it in {here}-byte sectors, write a new image for those: trueline convert --logical {written} --sector-size {here} -o NEW {target}"
    )
}

/// Advice for an interrupted move without a journal; `is_of_disk`: for a conversion.
pub(super) fn no_journal(is_of_disk: bool) -> String {
    let (command, what) = if is_of_disk { ("convert", "conversion") } else { ("move", "move") };
    format!("trueline {command} --resume JOURNAL, the file that was named when the {what} began")
}

/// Advice for an interrupted move of `disks` without one journal that is surely its own.
pub(super) fn resume(disks: &Target, found: Belonging, is_of_disk: bool) -> String {
    let command = if is_of_disk { "convert" } else { "move" };
    let with = |path: &Path| {
        let (path, disk) = (shell(&path.to_string_lossy()), shell(disks.typed()));
        format!("trueline {command} --resume {path} {disk}")
    };
    match found {
        Belonging::One(its) => its.command(disks),
        Belonging::Several(paths) => {
            let all: Vec<String> = paths.iter().map(|path| with(path)).collect();
            format!(
                "several files are journals of it; with the one that the interruption left: {}",
                all.join(", or ")
            )
        }
        Belonging::Shared(its, other) => format!(
            "{} is the journal, and {} has the same mark: one of the two can be gone on with; if it is this one: {}",
            its.path.display(),
            other,
            with(&its.path)
        ),
        Belonging::Unusable(path, why) => {
            format!("{} is the journal: {}", path.display(), unreadable(why))
        }
        Belonging::Missing(..) => no_journal(is_of_disk),
    }
}

/// Advice for a set that lacks members; `class`: where a command prints their numbers.
pub(super) fn name_members(missing: usize, class: Option<&str>) -> String {
    let numbers = class.map_or_else(String::new, |class| {
        format!("; trueline {class} dump DISK says what number a member is")
    });
    match missing {
        1 => format!("name the other member too, separated by a comma{numbers}"),
        _ => format!("name the other {missing} members too, separated by commas{numbers}"),
    }
}

/// Options that state what the disk is; places are shown in sectors of `sector` bytes.
pub(super) fn state(statement: &Statement, sector: u64) -> String {
    match statement {
        Statement::Physical(size) => format!("if it is one: --physical {size}"),
        Statement::Drive => {
            "say what drive it is for: --for ssd-16k, --for sd-4m, --for raid64kx4".into()
        }
        Statement::Optimal => "if it is one, say so: --grain optimal=SIZE".into(),
        Statement::Chunk { size, starts } => {
            let starts: Vec<String> = starts.iter().map(|&start| place(start, sector)).collect();
            format!(
                "start it at {}; if there is no set beneath, nothing is lost; if there is one, say so: --grain chunk={size}",
                starts.join(" or ")
            )
        }
        Statement::Boundary => {
            "nothing is judged by it; say what the disk is with --physical or --grain if you know"
                .into()
        }
    }
}

/// An objection to a set that is made all the same, with its advice if there is any.
pub(crate) fn objection(found: &str, mends: &Advice) -> String {
    match advice(mends) {
        empty if empty.is_empty() => found.to_owned(),
        advice => format!("{found}: {advice}"),
    }
}

/// Advice for a set that is refused, or made with a warning.
pub(crate) fn advice(advice: &Advice) -> String {
    match advice {
        Advice::Words(text) => text.clone(),
        Advice::Clear(class) => format!("clear it first: trueline {class} clear"),
        Advice::StateDrives(text) => {
            format!("{text}; or say what the drives are: --physical 512")
        }
        Advice::Partition => "partition it: trueline part add finds the boundary".into(),
    }
}
