//! Quads of which the hashes are known, for Python.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::known_quads::KnownQuads as Known;
use crate::python::arrow::ArrowInput;
use crate::python::hashes::hashes;
use crate::python::{Data, OrRaise};

/// The quads of batches that may be known. Its face: `patchlog.codec.faces.KnownQuadsFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct KnownQuads(Known);

#[pymethods]
impl KnownQuads {
    #[new]
    #[pyo3(signature = (hashes_, /))]
    fn new(py: Python<'_>, hashes_: Data<'_>) -> PyResult<Self> {
        let hashes = hashes(&hashes_).or_raise(py)?;
        Ok(KnownQuads(Known::new(hashes.collect())))
    }

    #[pyo3(signature = (batch, /))]
    fn rows<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let input = ArrowInput::of(batch)?;
        let mut found = Vec::new();
        py.detach(|| {
            let mut first = 0;
            // SAFETY: schema and array came together.
            input.read(&mut |schema, array| unsafe {
                first += self.0.find(schema, array, first, &mut found)?;
                Ok(())
            })
        })
        .or_raise(py)?;
        let bytes: Vec<u8> = found.iter().flat_map(|row| row.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }
}
