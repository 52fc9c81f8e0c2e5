//! The command line of virt-alignment-scan, for a program that is called by that name.
//!
//! # Sources
//! virt-alignment-scan(1) of guestfs-tools 1.48: options. Of those, the ones that ask libvirt are
//! refused, and those that are about the program's own appliance change nothing.

use crate::failure::complain;
use crate::render::report::alignment_scan::FAILED;
use clap::Parser;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// The name of that program.
const NAME: &str = "virt-alignment-scan";

/// Checks the alignment of partitions in disk images, as virt-alignment-scan of guestfs-tools does.
#[derive(Parser)]
#[command(name = NAME, version, disable_version_flag = true)]
struct Scan {
    /// Add a disk image of the guest
    #[arg(short = 'a', long = "add", value_name = "FILE")]
    images: Vec<OsString>,
    /// Set the logical sector of the images
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        require_equals = true,
        value_parser = ["512", "4096"],
    )]
    blocksize: Option<Option<String>>,
    /// Refused: libvirt is not asked
    #[arg(short, long, value_name = "GUEST")]
    domain: Vec<OsString>,
    /// Refused: libvirt is not asked
    #[arg(short, long, value_name = "URI")]
    connect: Option<OsString>,
    /// Refused: libvirt is not asked
    #[arg(long)]
    uuid: bool,
    /// Take images as they are if it is raw; other formats are recognised by their contents
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    format: Option<Option<String>>,
    /// Print nothing; the exit status gives the worst alignment
    #[arg(short, long)]
    quiet: bool,
    /// Taken, and without effect
    #[arg(short = 'P', value_name = "THREADS")]
    threads: Option<u32>,
    /// Taken, and without effect
    #[arg(short, long)]
    verbose: bool,
    /// Taken, and without effect
    #[arg(short = 'x')]
    trace: bool,
    /// Print the version of trueline
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// The words of `trueline check` for a command line of virt-alignment-scan; those of any other name
/// as they are. An exit status if there is nothing to check: help, or a usage error.
pub(crate) fn translated(words: Vec<OsString>) -> Result<Vec<OsString>, ExitCode> {
    let name = words.first().and_then(|word| Path::new(word).file_name());
    if name != Some(OsStr::new(NAME)) {
        return Ok(words);
    }
    match Scan::try_parse_from(words) {
        Ok(scan) => scan.translated(),
        Err(answer) if answer.use_stderr() => {
            let text = answer.to_string();
            let first = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
            Err(refuse(&format!("{first}; see {NAME} --help")))
        }
        Err(page) => {
            // A reader that has gone needs no page.
            let _ = page.print();
            Err(ExitCode::SUCCESS)
        }
    }
}

impl Scan {
    fn translated(self) -> Result<Vec<OsString>, ExitCode> {
        if !self.domain.is_empty() || self.connect.is_some() || self.uuid || self.images.is_empty()
        {
            let why = "libvirt is not asked for guests: name disk images with -a";
            return Err(refuse(why));
        }
        let logical = self.blocksize.flatten().map(|size| format!("--logical={size}").into());
        let raw = self.format.flatten().filter(|name| name == "raw");
        let raw = raw.map(|_| "--format=raw".into());
        let quiet = self.quiet.then(|| "--quiet".into());
        let fixed = ["trueline", "check", "--compat", NAME].map(OsString::from);
        let words = fixed.into_iter().chain(logical).chain(raw).chain(quiet).chain(["--".into()]);
        Ok(words.chain(self.images).collect())
    }
}

fn refuse(why: &str) -> ExitCode {
    complain(why);
    ExitCode::from(FAILED)
}
