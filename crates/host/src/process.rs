//! Processes: programs that are run, their trees, signals, and files without a name.

pub mod command;
pub mod signal;
pub mod tmpfile;
pub mod tree;

/// True if this process acts as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
