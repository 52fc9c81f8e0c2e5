//! `check` for other programs: what it says of one target after another.
//!
//! ```
//! use trueline::checker::{Checker, LineForm};
//!
//! let checker = Checker::new(["--for", "ssd-16k"])?;
//! let line = checker.lines("/no/such.img", LineForm::Report);
//! assert!(line.starts_with(b"{") && line.ends_with(b"\n"));
//! # Ok::<(), trueline::checker::WrongOptions>(())
//! ```

pub use crate::command::check::checker::{Checker, LineForm, WrongOptions};
