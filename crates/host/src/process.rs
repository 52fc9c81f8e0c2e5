//! Processes: programs that are run, their trees, signals, and files without a name.

pub mod background;
pub mod command;
pub mod signal;
pub mod tmpfile;
pub mod tree;

/// True if this process acts as root.
pub fn is_root() -> bool {
    user() == 0
}

/// Number of the user as whom this process acts.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
