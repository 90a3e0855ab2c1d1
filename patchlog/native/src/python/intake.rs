//! Patches on their way into a log.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};

use crate::decode::reader::Reading;
use crate::encode::body::{BodySink, Piece};
use crate::fault::{Result, usage_error};
use crate::options::PatchOptions;
use crate::python::converter::{ALL_FRAMES, Source, SourceFormat};
use crate::python::{Data, Guarded, OrRaise, patch_options_from, reading_from};

/// Of input that is taken without letting other threads run: about a tenth of a millisecond.
const SMALL_BYTES: usize = 16 << 10;

static INGESTED_PATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What an intake was asked for.
struct Wanted {
    format: SourceFormat,
    reading: Reading,
    options: PatchOptions,
    ended_class: Py<PyAny>,
}

impl Wanted {
    fn new(
        py: Python<'_>,
        source: &str,
        options: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let format = match SourceFormat::of(source) {
            Ok(format) if format.is_patch() => format,
            _ => {
                let reason =
                    format!("'{source}' is not a format of patches; there are jelly-patch and rdf-patch");
                return Err(usage_error(reason).into_py(py));
            }
        };
        let options = patch_options_from(options)?;
        options.check_writable().or_raise(py)?;
        Ok(Wanted {
            format,
            reading: reading_from(limits, true, false, None)?,
            options,
            ended_class: INGESTED_PATCH
                .import(py, "patchlog.codec.ingest", "IngestedPatch")?
                .clone()
                .unbind(),
        })
    }

    fn begin(&self, py: Python<'_>, sink: Option<BodySink>) -> IntakeState {
        IntakeState {
            source: self.format.open(self.reading),
            sink: sink.unwrap_or_else(|| BodySink::new(self.options.clone())),
            taken_bytes: 0,
            ended_class: self.ended_class.clone_ref(py),
        }
    }
}

struct IntakeState {
    source: Box<dyn Source<BodySink> + Send>,
    sink: BodySink,
    taken_bytes: usize,
    ended_class: Py<PyAny>,
}

impl IntakeState {
    fn is_small(&self) -> bool {
        self.taken_bytes <= SMALL_BYTES
    }

    fn feed(&mut self, data: &[u8]) -> Result<()> {
        self.source.feed(data, &mut self.sink, &ALL_FRAMES)
    }

    fn finish(&mut self) -> Result<()> {
        self.source.finish(&mut self.sink, &ALL_FRAMES)?;
        self.sink.finish()
    }

    fn pieces<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.sink.flush();
        let pieces = PyList::empty(py);
        for piece in self.sink.pieces.drain(..) {
            match piece {
                Piece::Frames(frames) => pieces.append(PyBytes::new(py, &frames))?,
                Piece::Ended(patch) => pieces.append(self.ended_class.bind(py).call1((
                    patch.id,
                    patch.prev,
                    patch.operations,
                    patch.adds,
                    patch.deletes,
                    patch.namespaces,
                    patch.transactions,
                ))?)?,
            }
        }
        Ok(pieces)
    }
}

/// Bytes of any patch format to what a log stores of them. Its face: `patchlog.codec.faces.PatchIntakeFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct PatchIntake(Guarded<IntakeState>);

#[pymethods]
impl PatchIntake {
    #[new]
    #[pyo3(signature = (source, options, *, limits=None))]
    fn new(
        py: Python<'_>,
        source: &str,
        options: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let state = Wanted::new(py, source, options, limits)?.begin(py, None);
        Ok(PatchIntake(Guarded::new(state)))
    }

    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: Data<'py>) -> PyResult<Bound<'py, PyList>> {
        let data: &[u8] = &data;
        self.0.with(py, |state| {
            state.taken_bytes += data.len();
            let is_small = state.is_small();
            run(py, is_small, || state.feed(data))?;
            Ok(state.pieces(py)?)
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.0.with(py, |state| {
            let is_small = state.is_small();
            run(py, is_small, || state.finish())?;
            Ok(state.pieces(py)?)
        })
    }
}

/// An intake for input that is there whole, one after the other. Its face: `patchlog.codec.faces.WholeIntakeFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct WholeIntake {
    wanted: Wanted,
    /// Of the input before: its tables are allocated.
    sink: Mutex<Option<BodySink>>,
}

/// A sink with larger buffers than this is not kept: more was written than a small input does.
const MOST_KEPT_BYTES: usize = 64 << 10;

#[pymethods]
impl WholeIntake {
    #[new]
    #[pyo3(signature = (source, options, *, limits=None))]
    fn new(
        py: Python<'_>,
        source: &str,
        options: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(WholeIntake {
            wanted: Wanted::new(py, source, options, limits)?,
            sink: Mutex::new(None),
        })
    }

    #[pyo3(signature = (data, /))]
    fn take<'py>(&self, py: Python<'py>, data: Data<'py>) -> PyResult<Bound<'py, PyList>> {
        let data: &[u8] = &data;
        let kept = self.sink.try_lock().ok().and_then(|mut kept| kept.take());
        let mut state = self.wanted.begin(py, kept);
        state.taken_bytes = data.len();
        let is_small = state.is_small();
        run(py, is_small, || {
            state.feed(data)?;
            state.finish()
        })
        .or_raise(py)?;
        let pieces = state.pieces(py)?;
        if is_small && state.sink.kept_bytes() <= MOST_KEPT_BYTES {
            state.sink.begin_input();
            if let Ok(mut kept) = self.sink.try_lock() {
                *kept = Some(state.sink);
            }
        }
        Ok(pieces)
    }
}

/// To let other threads run, and to get the interpreter back from them, takes longer than a small patch.
fn run<R: Send>(py: Python<'_>, is_small: bool, work: impl FnOnce() -> R + Send) -> R {
    if is_small { work() } else { py.detach(work) }
}
