//! Bytes to Python objects: frames, operations, statements.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::decode::nquads::NQuadsReader as NQuads;
use crate::decode::patch::PatchReader;
use crate::decode::rdf::RdfReader;
use crate::decode::rdf_patch::RdfPatchReader as RdfPatch;
use crate::fault::Result;
use crate::python::objects::ObjectSink;
use crate::python::{Data, Guarded, OrRaise, patch_options_into, rdf_options_into, reading_from, try_locked};

fn list<'py>(py: Python<'py>, objects: &mut Vec<Py<PyAny>>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, objects.drain(..))
}

struct RdfState {
    reader: RdfReader<ObjectSink>,
    sink: ObjectSink,
    frame_class: Py<PyAny>,
}

impl RdfState {
    fn next_frame(&mut self, py: Python<'_>) -> Result<Option<Py<PyAny>>> {
        let Some(index) = self.reader.next_frame(&mut self.sink)? else {
            return Ok(None);
        };
        let metadata = PyDict::new(py);
        for (key, value) in self.sink.metadata.drain(..) {
            metadata.set_item(key, PyBytes::new(py, &value))?;
        }
        let statements = list(py, &mut self.sink.output)?;
        let namespaces = list(py, &mut self.sink.namespaces)?;
        Ok(Some(
            self.frame_class
                .bind(py)
                .call1((index, statements, namespaces, metadata))?
                .unbind(),
        ))
    }
}

/// Jelly-RDF bytes to frames. Its face: `patchlog.codec.faces.RdfDecoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdfDecoder(Guarded<RdfState>);

#[pymethods]
impl RdfDecoder {
    #[new]
    #[pyo3(signature = (*, limits=None, strict=true, concatenated=false, delimited=None))]
    fn new(
        py: Python<'_>,
        limits: Option<&Bound<'_, PyAny>>,
        strict: bool,
        concatenated: bool,
        delimited: Option<bool>,
    ) -> PyResult<Self> {
        Ok(RdfDecoder(Guarded::new(RdfState {
            reader: RdfReader::new(reading_from(limits, strict, concatenated, delimited)?),
            // SAFETY: the methods of this class never detach while they use it.
            sink: unsafe { ObjectSink::of_statements(py) },
            frame_class: py.import("patchlog.model")?.getattr("RdfFrame")?.unbind(),
        })))
    }

    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let options = self.0.peek(py, |state| state.reader.options().cloned())?;
        options.map(|options| rdf_options_into(py, &options)).transpose()
    }

    #[getter]
    fn delimited(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        self.0.peek(py, |state| state.reader.delimited())
    }

    fn feed(slf: Bound<'_, Self>, data: Data<'_>) -> PyResult<RdfFrames> {
        slf.get().0.with(slf.py(), |state| {
            state.reader.feed(&data);
            Ok(())
        })?;
        Ok(RdfFrames {
            decoder: slf.unbind(),
        })
    }

    fn finish(slf: Bound<'_, Self>) -> PyResult<RdfFrames> {
        slf.get().0.with(slf.py(), |state| {
            state.reader.end();
            Ok(())
        })?;
        Ok(RdfFrames {
            decoder: slf.unbind(),
        })
    }
}

/// The frames that are complete, decoded as they are asked for.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdfFrames {
    decoder: Py<RdfDecoder>,
}

#[pymethods]
impl RdfFrames {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.decoder.get().0.with(py, |state| state.next_frame(py))
    }
}

struct PatchState {
    reader: PatchReader<ObjectSink>,
    sink: ObjectSink,
}

/// Jelly-Patch bytes to operations. Its face: `patchlog.codec.faces.OperationDecoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct PatchDecoder(Guarded<PatchState>);

#[pymethods]
impl PatchDecoder {
    #[new]
    #[pyo3(signature = (*, limits=None, strict=true, concatenated=false, delimited=None))]
    fn new(
        py: Python<'_>,
        limits: Option<&Bound<'_, PyAny>>,
        strict: bool,
        concatenated: bool,
        delimited: Option<bool>,
    ) -> PyResult<Self> {
        Ok(PatchDecoder(Guarded::new(PatchState {
            reader: PatchReader::new(reading_from(limits, strict, concatenated, delimited)?),
            // SAFETY: the methods of this class never detach while they use it.
            sink: unsafe { ObjectSink::of_operations(py) }?,
        })))
    }

    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let options = self.0.peek(py, |state| state.reader.options().cloned())?;
        options
            .map(|options| patch_options_into(py, &options))
            .transpose()
    }

    #[getter]
    fn delimited(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        self.0.peek(py, |state| state.reader.delimited())
    }

    fn feed(slf: Bound<'_, Self>, data: Data<'_>) -> PyResult<PatchOperations> {
        slf.get().0.with(slf.py(), |state| {
            state.reader.feed(&data);
            Ok(())
        })?;
        Ok(PatchOperations {
            decoder: slf.unbind(),
            pending: std::sync::Mutex::default(),
        })
    }

    fn finish(slf: Bound<'_, Self>) -> PyResult<PatchOperations> {
        slf.get().0.with(slf.py(), |state| {
            state.reader.end();
            Ok(())
        })?;
        Ok(PatchOperations {
            decoder: slf.unbind(),
            pending: std::sync::Mutex::default(),
        })
    }
}

/// The operations of the frames that are complete, a frame decoded when its first one is asked for.
#[pyclass(frozen, module = "patchlog._native")]
pub struct PatchOperations {
    decoder: Py<PatchDecoder>,
    pending: std::sync::Mutex<std::vec::IntoIter<Py<PyAny>>>,
}

#[pymethods]
impl PatchOperations {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut pending = try_locked(&self.pending).or_raise(py)?;
        loop {
            if let Some(operation) = pending.next() {
                return Ok(Some(operation));
            }
            let decoded = self.decoder.get().0.with(py, |state| {
                let frame = state.reader.next_frame(&mut state.sink)?;
                Ok(frame.map(|_| std::mem::take(&mut state.sink.output)))
            })?;
            match decoded {
                Some(operations) => *pending = operations.into_iter(),
                None => return Ok(None),
            }
        }
    }
}

struct RdfPatchState {
    reader: RdfPatch<ObjectSink>,
    sink: ObjectSink,
}

/// RDF Patch text to operations. Its face: `patchlog.codec.faces.OperationDecoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdfPatchReader(Guarded<RdfPatchState>);

impl RdfPatchReader {
    /// Read, and hand over what came before an error together with it.
    fn read(&self, py: Python<'_>, read: impl FnOnce(&mut RdfPatchState) -> Result<()>) -> TextOperations {
        let mut operations = Vec::new();
        let outcome = self.0.with(py, |state| {
            let outcome = read(state);
            operations = std::mem::take(&mut state.sink.output);
            outcome
        });
        TextOperations(std::sync::Mutex::new((operations.into_iter(), outcome.err())))
    }
}

#[pymethods]
impl RdfPatchReader {
    #[new]
    #[pyo3(signature = (*, strict=true))]
    fn new(py: Python<'_>, strict: bool) -> PyResult<Self> {
        Ok(RdfPatchReader(Guarded::new(RdfPatchState {
            reader: RdfPatch::new(strict),
            // SAFETY: the methods of this class never detach while they use it.
            sink: unsafe { ObjectSink::of_operations(py) }?,
        })))
    }

    fn feed(&self, py: Python<'_>, data: Data<'_>) -> TextOperations {
        self.read(py, |state| state.reader.feed(&data, &mut state.sink))
    }

    fn finish(&self, py: Python<'_>) -> TextOperations {
        self.read(py, |state| state.reader.finish(&mut state.sink))
    }
}

/// Operations that were read, and the error that ended the reading.
#[pyclass(frozen, module = "patchlog._native")]
pub struct TextOperations(std::sync::Mutex<(std::vec::IntoIter<Py<PyAny>>, Option<PyErr>)>);

#[pymethods]
impl TextOperations {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut pending = try_locked(&self.0).or_raise(py)?;
        match pending.0.next() {
            Some(operation) => Ok(Some(operation)),
            None => pending.1.take().map_or(Ok(None), Err),
        }
    }
}

struct NQuadsState {
    reader: NQuads<ObjectSink>,
    sink: ObjectSink,
}

/// N-Triples and N-Quads text to statements. Its face: `patchlog.codec.faces.StatementDecoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct NQuadsReader(Guarded<NQuadsState>);

#[pymethods]
impl NQuadsReader {
    #[new]
    fn new(py: Python<'_>) -> Self {
        NQuadsReader(Guarded::new(NQuadsState {
            reader: NQuads::new(),
            // SAFETY: the methods of this class never detach while they use it.
            sink: unsafe { ObjectSink::of_statements(py) },
        }))
    }

    fn feed<'py>(&self, py: Python<'py>, data: Data<'_>) -> PyResult<Bound<'py, PyList>> {
        self.0.with(py, |state| {
            state.reader.feed(&data, &mut state.sink)?;
            Ok(list(py, &mut state.sink.output)?)
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.0.with(py, |state| {
            state.reader.finish(&mut state.sink)?;
            Ok(list(py, &mut state.sink.output)?)
        })
    }
}
