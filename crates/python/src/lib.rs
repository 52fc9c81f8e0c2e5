//! The Python module `trueline._native`: the checker of [`trueline::checker`] and threads that work
//! for it, and nothing else. What Python's users see is in `trueline/__init__.py`.

mod crew;

use pyo3::prelude::*;

/// Module of the classes that Python's side of the package wraps.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::crew::{Crew, Pending};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use std::ffi::OsString;
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    /// Checker of targets with one set of options, which threads may share.
    #[pyclass(frozen, module = "trueline._native")]
    struct Checker(Arc<trueline::checker::Checker>);

    #[pymethods]
    impl Checker {
        /// Checker with options as words of a command line. Errors: `ValueError`, in one line.
        #[new]
        fn new(words: Vec<OsString>) -> PyResult<Checker> {
            trueline::checker::Checker::new(words)
                .map(|checker| Checker(Arc::new(checker)))
                .map_err(|wrong| PyValueError::new_err(wrong.to_string()))
        }

        /// Threads that check for this one, at most `threads` at a time.
        fn crew(&self, threads: NonZeroUsize) -> Crew {
            Crew::new(Arc::clone(&self.0), threads)
        }
    }
}
