//! Python objects to bytes: statements, operations.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::arrow::reader::set_term;
use crate::decode::nquads::Datatypes;
use crate::encode::patch::PatchWriter;
use crate::encode::rdf::RdfWriter;
use crate::encode::text::{TextFormat, TextSink};
use crate::fault::{Result, invalid_term, usage_error};
use crate::python::converter::Output;
use crate::python::{Count, Guarded, OrRaise, patch_options_from, rdf_options_from};
use crate::sink::{Action, Place, STATEMENT_PLACES, Sink, Transaction};

pub fn take_bytes<'py>(py: Python<'py>, out: &mut Vec<u8>) -> Bound<'py, PyBytes> {
    let bytes = PyBytes::new(py, out);
    out.clear();
    bytes
}

/// The text of a term. A string that Python holds and UTF-8 cannot (a lone surrogate) is no term.
#[inline(always)]
pub fn term_text<'a>(term: &'a Bound<'_, PyAny>, place: Place) -> Result<&'a str> {
    let Ok(text) = term.cast::<PyString>() else {
        return Err(invalid_term(format!("the {} is not a string", place.word())));
    };
    text.to_str()
        .map_err(|_| invalid_term(format!("the {} holds a lone surrogate", place.word())))
}

/// The name of a namespace, the key of a header.
pub fn name_text<'a>(name: &'a Bound<'_, PyAny>) -> Result<&'a str> {
    let Ok(text) = name.cast::<PyString>() else {
        return Err(invalid_term("a name or a key is not a string"));
    };
    text.to_str()
        .map_err(|_| invalid_term("a name or a key holds a lone surrogate"))
}

/// The metadata of a frame.
pub fn metadata_of(metadata: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, Vec<u8>)>> {
    let Some(metadata) = metadata else {
        return Ok(Vec::new());
    };
    let items = metadata.call_method0("items")?;
    items.try_iter()?.map(|item| item?.extract()).collect()
}

/// Set the registers of a statement; whether it has a graph.
#[inline(always)]
fn set_statement<S: Sink>(
    terms: &[Bound<'_, PyAny>],
    datatypes: &mut Datatypes<S>,
    sink: &mut S,
) -> Result<bool> {
    for (term, place) in terms.iter().zip(STATEMENT_PLACES) {
        set_term(term_text(term, place)?, place, datatypes, sink)?;
    }
    Ok(terms.len() == 4)
}

struct RdfState {
    writer: RdfWriter,
    datatypes: Datatypes<RdfWriter>,
}

impl RdfState {
    fn statement(&mut self, terms: &[Bound<'_, PyAny>]) -> Result<()> {
        if !(3..=4).contains(&terms.len()) {
            return Err(usage_error(format!(
                "a statement has three or four terms, not {}",
                terms.len()
            )));
        }
        let has_graph = set_statement(terms, &mut self.datatypes, &mut self.writer)?;
        self.writer.statement(Action::Add, has_graph)
    }
}

/// Statements to Jelly-RDF bytes. Its face: `patchlog.codec.faces.RdfEncoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdfEncoder(Guarded<RdfState>);

#[pymethods]
impl RdfEncoder {
    #[new]
    #[pyo3(signature = (options, *, rows_per_frame=Count(256), delimited=true, namespace_declarations=false))]
    fn new(
        py: Python<'_>,
        options: &Bound<'_, PyAny>,
        rows_per_frame: Count,
        delimited: bool,
        namespace_declarations: bool,
    ) -> PyResult<Self> {
        let options = rdf_options_from(options)?;
        let mut writer = RdfWriter::new(
            Some(options),
            rows_per_frame.0,
            delimited,
            namespace_declarations,
            false,
        );
        writer.begin().or_raise(py)?;
        Ok(RdfEncoder(Guarded::new(RdfState {
            writer,
            datatypes: Datatypes::new(),
        })))
    }

    #[pyo3(signature = (subject, predicate, object, graph=None, /))]
    fn statement(
        &self,
        py: Python<'_>,
        subject: Bound<'_, PyAny>,
        predicate: Bound<'_, PyAny>,
        object: Bound<'_, PyAny>,
        graph: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.0.with(py, |state| match graph {
            Some(graph) => state.statement(&[subject, predicate, object, graph]),
            None => state.statement(&[subject, predicate, object]),
        })
    }

    #[pyo3(signature = (statements, /))]
    fn statements(&self, py: Python<'_>, statements: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(py, |state| {
            let mut terms = Vec::with_capacity(4);
            for statement in statements.try_iter()? {
                terms.clear();
                match statement?.cast_into::<PyTuple>() {
                    Ok(tuple) => terms.extend(tuple.iter()),
                    Err(_) => return Err(usage_error("a statement is a tuple of three or four terms")),
                }
                state.statement(&terms)?;
            }
            Ok(())
        })
    }

    #[pyo3(signature = (name, iri, /))]
    fn namespace(&self, py: Python<'_>, name: Bound<'_, PyAny>, iri: Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(py, |state| {
            set_term(
                term_text(&iri, Place::Value)?,
                Place::Value,
                &mut state.datatypes,
                &mut state.writer,
            )?;
            state.writer.namespace_declaration(name_text(&name)?)
        })
    }

    #[pyo3(signature = (metadata=None, /))]
    fn end_frame(&self, py: Python<'_>, metadata: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let entries = metadata_of(metadata)?;
        self.0.with(py, |state| state.writer.end_frame(&entries))
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0
            .with(py, |state| Ok(take_bytes(py, &mut state.writer.frames.out)))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |state| {
            state.writer.finish()?;
            Ok(take_bytes(py, &mut state.writer.frames.out))
        })
    }
}

/// Reads operations: their classes, compared by identity.
struct OperationReader<S: Sink> {
    header: Py<PyAny>,
    add: Py<PyAny>,
    delete: Py<PyAny>,
    namespace_add: Py<PyAny>,
    namespace_delete: Py<PyAny>,
    start: Py<PyAny>,
    commit: Py<PyAny>,
    abort: Py<PyAny>,
    punctuation: Py<PyAny>,
    datatypes: Datatypes<S>,
}

impl<S: Sink> OperationReader<S> {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let model = py.import("patchlog.model")?;
        let class = |name: &str| -> PyResult<Py<PyAny>> { Ok(model.getattr(name)?.unbind()) };
        Ok(OperationReader {
            header: class("Header")?,
            add: class("Add")?,
            delete: class("Delete")?,
            namespace_add: class("NamespaceAdd")?,
            namespace_delete: class("NamespaceDelete")?,
            start: class("TransactionStart")?,
            commit: class("TransactionCommit")?,
            abort: class("TransactionAbort")?,
            punctuation: class("Punctuation")?,
            datatypes: Datatypes::new(),
        })
    }

    fn set(&mut self, operation: &Bound<'_, PyAny>, field: &str, place: Place, sink: &mut S) -> Result<bool> {
        let term = operation.getattr(PyString::intern(operation.py(), field))?;
        if term.is_none() {
            return Ok(false);
        }
        set_term(term_text(&term, place)?, place, &mut self.datatypes, sink)?;
        Ok(true)
    }

    /// A term that may not be None: the sink would write the last one of its place again.
    fn set_needed(
        &mut self,
        operation: &Bound<'_, PyAny>,
        field: &str,
        place: Place,
        sink: &mut S,
    ) -> Result<()> {
        if self.set(operation, field, place, sink)? {
            return Ok(());
        }
        Err(invalid_term(format!("the {} is not a string", place.word())))
    }

    fn text(operation: &Bound<'_, PyAny>, field: &str) -> Result<String> {
        let text = operation.getattr(PyString::intern(operation.py(), field))?;
        Ok(name_text(&text)?.to_owned())
    }

    fn read(&mut self, operation: &Bound<'_, PyAny>, sink: &mut S) -> Result<()> {
        let class = operation.get_type();
        let is = |other: &Py<PyAny>| class.as_ptr() == other.as_ptr();
        let action = if is(&self.add) || is(&self.namespace_add) {
            Action::Add
        } else {
            Action::Delete
        };
        if is(&self.add) || is(&self.delete) {
            self.set_needed(operation, "subject", Place::Subject, sink)?;
            self.set_needed(operation, "predicate", Place::Predicate, sink)?;
            self.set_needed(operation, "object", Place::Object, sink)?;
            let has_graph = self.set(operation, "graph", Place::Graph, sink)?;
            sink.statement(action, has_graph)
        } else if is(&self.namespace_add) || is(&self.namespace_delete) {
            let name = Self::text(operation, "name")?;
            let has_iri = self.set(operation, "iri", Place::Value, sink)?;
            let has_graph = self.set(operation, "graph", Place::Graph, sink)?;
            sink.namespace(action, &name, has_iri, has_graph)
        } else if is(&self.header) {
            let key = Self::text(operation, "key")?;
            self.set_needed(operation, "value", Place::Value, sink)?;
            sink.header(&key)
        } else if is(&self.start) {
            sink.transaction(Transaction::Start)
        } else if is(&self.commit) {
            sink.transaction(Transaction::Commit)
        } else if is(&self.abort) {
            sink.transaction(Transaction::Abort)
        } else if is(&self.punctuation) {
            sink.punctuation()
        } else {
            Err(usage_error(format!("{operation} is not an operation")))
        }
    }
}

struct PatchState {
    writer: PatchWriter,
    reader: OperationReader<PatchWriter>,
}

impl PatchState {
    fn new(py: Python<'_>, writer: PatchWriter) -> PyResult<Guarded<Self>> {
        Ok(Guarded::new(PatchState {
            writer,
            reader: OperationReader::new(py)?,
        }))
    }

    fn accept(&mut self, operation: &Bound<'_, PyAny>) -> Result<()> {
        self.reader.read(operation, &mut self.writer)
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        self.writer.finish_output()?;
        Ok(take_bytes(py, &mut self.writer.frames.out))
    }
}

/// Operations to Jelly-Patch bytes. Its face: `patchlog.codec.faces.OperationEncoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct PatchEncoder(Guarded<PatchState>);

#[pymethods]
impl PatchEncoder {
    #[new]
    #[pyo3(signature = (options, *, rows_per_frame=Count(512), delimited=true))]
    fn new(
        py: Python<'_>,
        options: &Bound<'_, PyAny>,
        rows_per_frame: Count,
        delimited: bool,
    ) -> PyResult<Self> {
        let mut writer = PatchWriter::new(Some(patch_options_from(options)?), rows_per_frame.0, delimited);
        writer.begin().or_raise(py)?;
        Ok(PatchEncoder(PatchState::new(py, writer)?))
    }

    #[pyo3(signature = (operation, /))]
    fn accept(&self, operation: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(operation.py(), |state| state.accept(operation))
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0
            .with(py, |state| Ok(take_bytes(py, &mut state.writer.frames.out)))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |state| state.finish(py))
    }
}

/// Operations to canonical patches. Its face: `patchlog.codec.faces.OperationEncoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct CanonicalPatchEncoder(Guarded<PatchState>);

#[pymethods]
impl CanonicalPatchEncoder {
    #[new]
    #[pyo3(signature = (*, rdf_star=true, generalized_statements=true))]
    fn new(py: Python<'_>, rdf_star: bool, generalized_statements: bool) -> PyResult<Self> {
        Ok(CanonicalPatchEncoder(PatchState::new(
            py,
            PatchWriter::canonical(rdf_star, generalized_statements),
        )?))
    }

    #[pyo3(signature = (operation, /))]
    fn accept(&self, operation: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(operation.py(), |state| state.accept(operation))
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0
            .with(py, |state| Ok(take_bytes(py, &mut state.writer.frames.out)))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |state| state.finish(py))
    }
}

struct TextState {
    sink: TextSink,
    reader: OperationReader<TextSink>,
}

/// Operations to RDF Patch text. Its face: `patchlog.codec.faces.OperationEncoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdfPatchWriter(Guarded<TextState>);

#[pymethods]
impl RdfPatchWriter {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(RdfPatchWriter(Guarded::new(TextState {
            sink: TextSink::new(TextFormat::RdfPatch),
            reader: OperationReader::new(py)?,
        })))
    }

    #[pyo3(signature = (operation, /))]
    fn accept(&self, operation: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(operation.py(), |state| {
            state.reader.read(operation, &mut state.sink)
        })
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |state| Ok(take_bytes(py, &mut state.sink.out)))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.take(py)
    }
}
