//! Errors in one line: the attempt, its place, the finding, and a remedy.

use rustix::io::Errno;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// An attempt that failed.
#[derive(Debug)]
pub struct Error {
    /// The attempt as a verb: "open".
    pub attempt: &'static str,
    /// The path, device or URI it concerned.
    pub place: String,
    /// The finding that ended it.
    pub source: Cause,
    /// The remedy for it.
    pub remedy: Remedy,
}

/// A remedy for an error. A program that has an option for it says which, in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// No remedy is known for the error.
    None,
    /// A remedy as a phrase: "check the name".
    Text(&'static str),
    /// Release of a device or file that is in use.
    Release,
    /// The end of a program that writes a file.
    EndWriter,
    /// A change of a device that is set read-only.
    SetWritable,
    /// A change of an export that its server has made read-only.
    ExportWritable,
    /// Transfers through the page cache, as there is no direct I/O.
    UsePageCache,
    /// The kernel's ublk driver, which is not there.
    LoadUblk,
}

impl From<&'static str> for Remedy {
    fn from(text: &'static str) -> Remedy {
        if text.is_empty() { Remedy::None } else { Remedy::Text(text) }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remedy::None => "",
            Remedy::Text(text) => text,
            Remedy::Release => "release it first",
            Remedy::EndWriter => "end that program first",
            Remedy::SetWritable => "blockdev --setrw may change that",
            Remedy::ExportWritable => "let the server export it for writing",
            Remedy::UsePageCache => "read and write it through the page cache",
            Remedy::LoadUblk => "load ublk_drv (CONFIG_BLK_DEV_UBLK, since Linux 6.0)",
        })
    }
}

/// The finding that ended an attempt.
#[derive(Debug)]
pub enum Cause {
    /// The error of the operating system.
    Os(std::io::Error),
    /// The error of the JSON parser.
    Json(serde_json::Error),
    /// The input is not what it should be.
    Not(String),
}

impl Error {
    /// An error of the operating system. The advice depends on it and on the user's rights.
    pub fn os(attempt: &'static str, place: &Path, source: impl Into<std::io::Error>) -> Error {
        let source = source.into();
        let advice = advice(attempt, place, &source, rustix::process::geteuid().is_root());
        Error {
            attempt,
            place: place.display().to_string(),
            source: Cause::Os(source),
            remedy: advice.into(),
        }
    }

    /// An input that is not what it should be.
    pub fn not(
        attempt: &'static str,
        place: &str,
        found: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> Error {
        let source = Cause::Not(found.into());
        Error { attempt, place: place.to_owned(), source, remedy: remedy.into() }
    }

    /// The line with `remedy` in place of its own.
    pub fn with_remedy(&self, remedy: &str) -> String {
        format!("{}: {remedy}", Finding(self))
    }
}

/// The advice for an error of the operating system; `root`: the program runs as root.
fn advice(attempt: &str, place: &Path, source: &std::io::Error, root: bool) -> &'static str {
    match source.kind() {
        ErrorKind::PermissionDenied if root => {
            "a container or security policy forbids it even to root"
        }
        ErrorKind::PermissionDenied if place.starts_with("/dev") => {
            "run as root or be in the group disk"
        }
        ErrorKind::PermissionDenied if attempt == "write" => "you may not write it",
        ErrorKind::PermissionDenied => "you may not read it",
        ErrorKind::NotFound => "check the name",
        ErrorKind::ConnectionRefused => "start the server, or check the address",
        _ if source.raw_os_error() == Some(Errno::NOMEDIUM.raw_os_error()) => "insert a medium",
        _ => "",
    }
}

/// An error's line without its remedy.
struct Finding<'a>(&'a Error);

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding(error) = self;
        // Names come from the command line and may contain control characters; an error is one
        // line.
        let place: String = error
            .place
            .chars()
            .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
            .collect();
        write!(f, "{} {place}: ", error.attempt)?;
        match &error.source {
            Cause::Os(source) => match source.kind() {
                ErrorKind::NotFound => f.write_str("no such file or device"),
                ErrorKind::ReadOnlyFilesystem => f.write_str("its file system is read-only"),
                ErrorKind::ConnectionRefused => f.write_str("no server listens there"),
                kind @ ErrorKind::PermissionDenied => write!(f, "{kind}"),
                _ => write!(f, "{source}"),
            },
            Cause::Json(source) => write!(f, "{source}"),
            Cause::Not(found) => f.write_str(found),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Finding(self))?;
        match self.remedy {
            Remedy::None => Ok(()),
            remedy => write!(f, ": {remedy}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.source {
            Cause::Os(source) => Some(source),
            Cause::Json(source) => Some(source),
            Cause::Not(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_with_what_to_do() {
        let line = |place, errno| Error::os("open", Path::new(place), errno).to_string();
        assert!(line("/dev/sdb", Errno::ACCESS).starts_with("open /dev/sdb: permission denied: "));
        assert!(line("/dev/sr0", Errno::NOMEDIUM).ends_with(": insert a medium"));
        assert_eq!(line("a.img", Errno::ROFS), "open a.img: its file system is read-only");
        assert_eq!(
            line("nbd://a/", Errno::CONNREFUSED),
            "open nbd://a/: no server listens there: start the server, or check the address"
        );
        assert_eq!(line("a.img", Errno::IO), "open a.img: Input/output error (os error 5)");
    }

    #[test]
    fn advice_does_not_ask_for_rights_that_are_there() {
        let told = |place, root| advice("open", Path::new(place), &Errno::PERM.into(), root);
        assert_eq!(
            (told("/dev/sdb", false), told("a.img", false)),
            ("run as root or be in the group disk", "you may not read it")
        );
        assert_eq!(
            advice("write", Path::new("a.img"), &Errno::PERM.into(), false),
            "you may not write it"
        );
        assert_eq!(
            told("/dev/sdb", true),
            "a container or security policy forbids it even to root"
        );
    }
}
