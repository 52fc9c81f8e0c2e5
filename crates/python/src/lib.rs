//! The Python module `trueline._native`: the checker of [`trueline::checker`], and nothing else.
//! What Python's users see is in `trueline/__init__.py`.

use pyo3::prelude::*;

/// Module of one class, which Python's side of the package wraps.
#[pymodule]
mod _native {
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;
    use std::path::PathBuf;
    use trueline::checker::{Checker as Rust, LineForm};

    /// Checker of targets with one set of options. Threads may share it; none of them has the
    /// interpreter's lock while it checks.
    #[pyclass(frozen, module = "trueline._native")]
    struct Checker(Rust);

    #[pymethods]
    impl Checker {
        /// Checker with options as words of a command line. Errors: `ValueError`, in one line.
        #[new]
        fn new(words: Vec<String>) -> PyResult<Checker> {
            Rust::new(words).map(Checker).map_err(|wrong| PyValueError::new_err(wrong.to_string()))
        }

        /// Line of `check --jsonl` about a target, with its end.
        fn line<'py>(&self, python: Python<'py>, target: PathBuf) -> Bound<'py, PyBytes> {
            self.lines(python, target, LineForm::Report)
        }

        /// Lines of `check --rows` about a target, each with its end.
        fn rows<'py>(&self, python: Python<'py>, target: PathBuf) -> Bound<'py, PyBytes> {
            self.lines(python, target, LineForm::Rows)
        }
    }

    impl Checker {
        fn lines<'py>(
            &self,
            python: Python<'py>,
            target: PathBuf,
            form: LineForm,
        ) -> Bound<'py, PyBytes> {
            let lines = python.detach(|| self.0.lines(target, form));
            PyBytes::new(python, &lines)
        }
    }
}
