//! Datasets to bytes that are stored.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::reader::set_term;
use crate::decode::nquads::Datatypes;
use crate::encode::dataset::DatasetWriter;
use crate::encode::rdf::RdfWriter;
use crate::fault::usage_error;
use crate::python::converter::{ALL_FRAMES, Output, Pipe, SourceFormat, SourceToSink};
use crate::python::encoders::{metadata_of, name_text, take_bytes, term_text};
use crate::python::{Data, Guarded, OrRaise, rdf_options_from, reading_from};
use crate::sink::Place;

const ROWS_PER_FRAME: u64 = 256;

struct DatasetState {
    pipe: SourceToSink<DatasetWriter>,
    datatypes: Datatypes<DatasetWriter>,
}

/// A dataset to Jelly-RDF. Its face: `patchlog.codec.faces.DatasetEncoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct DatasetEncoder(Guarded<DatasetState>);

#[pymethods]
impl DatasetEncoder {
    #[new]
    #[pyo3(signature = (source, options, *, limits=None))]
    fn new(
        py: Python<'_>,
        source: &str,
        options: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let format = SourceFormat::of(source).or_raise(py)?;
        if format.is_patch() {
            return Err(
                usage_error(format!("{source} holds changes of a dataset, and not a dataset")).into_py(py),
            );
        }
        let mut writer = RdfWriter::new(
            Some(rdf_options_from(options)?),
            ROWS_PER_FRAME,
            true,
            true,
            false,
        );
        writer.begin().or_raise(py)?;
        let reading = reading_from(limits, true, false, None)?;
        Ok(DatasetEncoder(Guarded::new(DatasetState {
            pipe: SourceToSink::new(format, reading, ALL_FRAMES, DatasetWriter::new(writer)),
            datatypes: Datatypes::new(),
        })))
    }

    #[getter]
    fn statements(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.peek(py, |state| state.pipe.written())
    }

    #[pyo3(signature = (name, iri, /))]
    fn namespace(&self, py: Python<'_>, name: Bound<'_, PyAny>, iri: Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(py, |state| {
            let iri = term_text(&iri, Place::Value)?;
            set_term(iri, Place::Value, &mut state.datatypes, &mut state.pipe.sink)?;
            state.pipe.sink.writer.namespace_declaration(name_text(&name)?)
        })
    }

    #[pyo3(signature = (metadata=None, /))]
    fn end_frame(&self, py: Python<'_>, metadata: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let entries = metadata_of(metadata)?;
        self.0
            .with(py, |state| state.pipe.sink.writer.end_frame(&entries))
    }

    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: Data<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let data: &[u8] = &data;
        self.0.with(py, |state| {
            py.detach(|| state.pipe.feed(data))?;
            Ok(take_bytes(py, state.pipe.out()))
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |state| {
            if state.pipe.has_begun {
                py.detach(|| state.pipe.end_input())?;
            }
            state.pipe.sink.finish_output()?;
            Ok(take_bytes(py, state.pipe.out()))
        })
    }

    fn take_hashes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0
            .with(py, |state| Ok(take_bytes(py, &mut state.pipe.sink.hashes)))
    }
}
