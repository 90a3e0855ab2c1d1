//! The Python side: classes, options, errors.

pub mod arrow;
pub mod converter;
pub mod dataset;
pub mod decoders;
pub mod encoders;
pub mod hashes;
pub mod intake;
pub mod known_quads;
pub mod objects;
pub mod rdflib;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyType};

use crate::decode::reader::Reading;
use crate::fault::{Fault, Kind, Result, usage_error};
use crate::options::{Limits, PatchOptions, RdfOptions, TermOptions};

impl Fault {
    /// The exception of `patchlog.errors` that says this.
    pub fn into_py(self, py: Python<'_>) -> PyErr {
        if let Some(error) = self.python {
            return error;
        }
        let class = py
            .import("patchlog.errors")
            .and_then(|errors| errors.getattr(self.kind.class_name()));
        match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) if self.kind == Kind::UsageError => PyErr::from_type(class, (self.reason,)),
            Ok(class) => PyErr::from_type(class, (self.reason, self.frame, self.row, self.line)),
            Err(error) => error,
        }
    }
}

/// Turn a result of ours into one of Python's.
pub trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|fault| fault.into_py(py))
    }
}

/// Lock what a Python object holds, or say why that cannot be.
///
/// Never wait for it: the thread that holds the lock may be waiting for the interpreter that we hold.
pub fn try_locked<T>(state: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    state.try_lock().map_err(|error| {
        usage_error(match error {
            TryLockError::WouldBlock => {
                "this object is in use, by another thread or by a call that has not returned: use it by one call at a time"
            }
            TryLockError::Poisoned(_) => "this object broke in an earlier call, which a defect ended: make a new one",
        })
    })
}

/// State behind a Python object: usable by one call at a time, and after an error only to be looked at.
pub struct Guarded<T> {
    state: Mutex<T>,
    is_spent: AtomicBool,
}

impl<T> Guarded<T> {
    pub fn new(state: T) -> Self {
        Guarded {
            state: Mutex::new(state),
            is_spent: AtomicBool::new(false),
        }
    }

    /// Run `action` on the state. An error spends the object: what it had read so far is in no useful state.
    pub fn with<R>(&self, py: Python<'_>, action: impl FnOnce(&mut T) -> Result<R>) -> PyResult<R> {
        let mut state = try_locked(&self.state).or_raise(py)?;
        if self.is_spent.load(Ordering::Relaxed) {
            return Err(
                usage_error("this object met an error before and cannot go on: make a new one").into_py(py),
            );
        }
        action(&mut state).map_err(|fault| {
            self.is_spent.store(true, Ordering::Relaxed);
            fault.into_py(py)
        })
    }

    /// A look at the state, also after an error.
    pub fn peek<R>(&self, py: Python<'_>, look: impl FnOnce(&T) -> R) -> PyResult<R> {
        Ok(look(&*try_locked(&self.state).or_raise(py)?))
    }
}

/// Bytes that Python hands over: `bytes` as they lie there, and a copy of what may change while we read.
pub struct Data<'py>(Bound<'py, PyBytes>);

impl<'py> FromPyObject<'_, 'py> for Data<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Data(bytes.to_owned()));
        }
        if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
            let copy = object.py().get_type::<PyBytes>().call1((object,))?;
            return Ok(Data(copy.cast_into::<PyBytes>()?));
        }
        let class = object.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "a bytes-like object is needed, not {class}"
        )))
    }
}

impl std::ops::Deref for Data<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// A number from 0 on that a caller chose: how many rows a frame has, the index of a frame.
#[derive(Clone, Copy)]
pub struct Count(pub u64);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u64>() {
            Ok(count) => Ok(Count(count)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                let reason = format!(
                    "{} is not a number of rows or frames: those begin with 0",
                    *object
                );
                Err(usage_error(reason).into_py(object.py()))
            }
            Err(error) => Err(error),
        }
    }
}

fn number<N: for<'a, 'py> FromPyObject<'a, 'py, Error: Into<PyErr>>>(
    object: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<N> {
    object.getattr(name)?.extract::<N>().map_err(Into::into)
}

pub fn limits_from(object: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    let Some(object) = object else {
        return Ok(Limits::default());
    };
    Ok(Limits {
        max_name_table: number(object, "max_name_table_size")?,
        max_prefix_table: number(object, "max_prefix_table_size")?,
        max_datatype_table: number(object, "max_datatype_table_size")?,
        max_frame_bytes: number(object, "max_frame_bytes")?,
        max_rows_per_frame: number(object, "max_rows_per_frame")?,
        max_nesting_depth: number(object, "max_nesting_depth")?,
        max_decoded_frame_bytes: number(object, "max_decoded_frame_bytes")?,
    })
}

pub fn reading_from(
    limits: Option<&Bound<'_, PyAny>>,
    strict: bool,
    concatenated: bool,
    delimited: Option<bool>,
) -> PyResult<Reading> {
    Ok(Reading {
        limits: limits_from(limits)?,
        strict,
        concatenated,
        delimited,
    })
}

fn term_options_from(object: &Bound<'_, PyAny>) -> PyResult<TermOptions> {
    Ok(TermOptions {
        generalized: object.getattr("generalized_statements")?.is_truthy()?,
        rdf_star: object.getattr("rdf_star")?.is_truthy()?,
        names: number(object, "max_name_table_size")?,
        prefixes: number(object, "max_prefix_table_size")?,
        datatypes: number(object, "max_datatype_table_size")?,
    })
}

pub fn rdf_options_from(object: &Bound<'_, PyAny>) -> PyResult<RdfOptions> {
    Ok(RdfOptions {
        stream_name: object.getattr("stream_name")?.extract()?,
        physical_number: number(object, "physical_type")?,
        logical_number: number(object, "logical_type")?,
        terms: term_options_from(object)?,
        version: number(object, "version")?,
    })
}

pub fn patch_options_from(object: &Bound<'_, PyAny>) -> PyResult<PatchOptions> {
    Ok(PatchOptions {
        statement_number: number(object, "statement_type")?,
        stream_number: number(object, "stream_type")?,
        terms: term_options_from(object)?,
        version: number(object, "version")?,
    })
}

fn set_term_options(arguments: &Bound<'_, PyDict>, terms: &TermOptions, version: u32) -> PyResult<()> {
    arguments.set_item("generalized_statements", terms.generalized)?;
    arguments.set_item("rdf_star", terms.rdf_star)?;
    arguments.set_item("max_name_table_size", terms.names)?;
    arguments.set_item("max_prefix_table_size", terms.prefixes)?;
    arguments.set_item("max_datatype_table_size", terms.datatypes)?;
    arguments.set_item("version", version)
}

pub fn rdf_options_into<'py>(py: Python<'py>, options: &RdfOptions) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("patchlog.codec.options")?;
    let arguments = PyDict::new(py);
    arguments.set_item("stream_name", &options.stream_name)?;
    arguments.set_item(
        "physical_type",
        module
            .getattr("PhysicalType")?
            .call1((options.physical_number,))?,
    )?;
    let logical = if options.has_known_logical_type() {
        options.logical_number
    } else {
        0
    };
    arguments.set_item("logical_type", module.getattr("LogicalType")?.call1((logical,))?)?;
    set_term_options(&arguments, &options.terms, options.version)?;
    module.getattr("RdfOptions")?.call((), Some(&arguments))
}

pub fn patch_options_into<'py>(py: Python<'py>, options: &PatchOptions) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("patchlog.codec.options")?;
    let arguments = PyDict::new(py);
    arguments.set_item(
        "statement_type",
        module
            .getattr("StatementType")?
            .call1((options.statement_number,))?,
    )?;
    arguments.set_item(
        "stream_type",
        module.getattr("StreamType")?.call1((options.stream_number,))?,
    )?;
    set_term_options(&arguments, &options.terms, options.version)?;
    module.getattr("PatchOptions")?.call((), Some(&arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_and_what_broke_have_errors_of_their_own() {
        let state = Mutex::new(1);
        let reason = |state| try_locked(state).map(|_| ()).map_err(|fault| fault.reason);
        assert_eq!(reason(&state), Ok(()));

        let held = state.lock();
        assert!(reason(&state).is_err_and(|reason| reason.contains("in use")));
        drop(held);

        let broken = std::thread::scope(|scope| {
            let panics = || {
                let _held = state.lock();
                panic!("as a defect would");
            };
            scope.spawn(panics).join()
        });
        assert!(broken.is_err());
        assert!(reason(&state).is_err_and(|reason| reason.contains("broke")));
    }
}
