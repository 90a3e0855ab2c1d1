//! rdflib's terms, built and read without its constructors.
//!
//! What a term must look like is decided in `patchlog.rdflib_hook.terms`, which also says why the constructors are not used; its
//! parity test covers this module too.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};

use crate::decode::nquads::Datatypes;
use crate::encode::rdf::RdfWriter;
use crate::fault::{Result, invalid_term, usage_error};
use crate::python::converter::{ALL_FRAMES, Source, SourceFormat};
use crate::python::encoders::{name_text, take_bytes};
use crate::python::objects::Attached;
use crate::python::{Count, Data, Guarded, OrRaise, rdf_options_from, reading_from};
use crate::sink::{
    Action, LiteralKind, PLACES, Part, Place, QuotedTriple, STATEMENT_PLACES, Sink, Transaction,
};
use crate::text::XSD_STRING;

/// What all literals of one datatype have in common: the object that `patchlog.rdflib_hook.terms` made for it, taken apart.
pub struct DatatypeOfLiterals {
    datatype: Py<PyAny>,
    /// None: there is no value but the text itself, or none at all.
    cast: Option<Py<PyAny>>,
    is_known: bool,
    check: Check,
}

enum Check {
    /// `ill_typed` stays None.
    None,
    /// Well-formed means that there is a value.
    ByValue,
    Function(Py<PyAny>),
}

pub struct RdflibSink {
    attached: Attached,
    uri_class: Py<PyType>,
    node_class: Py<PyType>,
    literal_class: Py<PyType>,
    string_new: ffi::newfunc,
    kind_class: Py<PyAny>,
    by_value: Py<PyAny>,
    default_graph: Py<PyAny>,
    registers: [Option<Py<PyAny>>; PLACES],
    pub output: Vec<Py<PyAny>>,
    pub namespaces: Vec<Py<PyAny>>,
    frame_begin: usize,
}

impl RdflibSink {
    /// # Safety
    /// The sink is used by no thread that is not attached to the interpreter.
    unsafe fn new(py: Python<'_>) -> PyResult<Self> {
        let term = py.import("rdflib.term")?;
        let class =
            |name: &str| -> PyResult<Py<PyType>> { Ok(term.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        // SAFETY: `str` is a type object, and its slot of that number is a `newfunc`.
        let string_new = unsafe {
            let slot = ffi::PyType_GetSlot(&raw mut ffi::PyUnicode_Type, ffi::Py_tp_new);
            std::mem::transmute::<*mut std::ffi::c_void, Option<ffi::newfunc>>(slot)
        };
        Ok(RdflibSink {
            // SAFETY: promised by the caller.
            attached: unsafe { Attached::promised() },
            uri_class: class("URIRef")?,
            node_class: class("BNode")?,
            literal_class: class("Literal")?,
            string_new: string_new
                .ok_or_else(|| pyo3::exceptions::PySystemError::new_err("str has no __new__"))?,
            kind_class: py
                .import("patchlog.rdflib_hook.terms")?
                .getattr("LiteralKind")?
                .unbind(),
            by_value: term.getattr("_well_formed_by_value")?.unbind(),
            default_graph: py
                .import("rdflib.graph")?
                .getattr("DATASET_DEFAULT_GRAPH_ID")?
                .unbind(),
            registers: Default::default(),
            output: Vec::new(),
            namespaces: Vec::new(),
            frame_begin: 0,
        })
    }

    /// `str.__new__(class, text)`.
    #[inline(always)]
    fn make<'py>(&self, py: Python<'py>, class: &Py<PyType>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let text = PyString::new(py, text);
        // SAFETY: the tuple takes a reference of its own to the text; the class derives from str, the arguments are a tuple,
        // and there are no keywords.
        unsafe {
            let arguments = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_Pack(1, text.as_ptr()))?;
            let made = (self.string_new)(class.as_ptr().cast(), arguments.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(py, made)
        }
    }

    #[inline(always)]
    fn make_literal<'py>(
        &self,
        py: Python<'py>,
        lexical: &str,
        kind: &LiteralKind<'_, DatatypeOfLiterals>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let literal = self.make(py, &self.literal_class, lexical)?;
        let none = py.None().into_bound(py);
        // The text itself, as a plain string: the value where there is no cast.
        let text = || PyString::new(py, lexical).into_any();
        let (language, datatype, value, ill_typed) = match kind {
            LiteralKind::Plain => (none.clone(), none.clone(), text(), none),
            LiteralKind::Language(language) => {
                (PyString::new(py, language).into_any(), none.clone(), text(), none)
            }
            LiteralKind::Typed(kind) => {
                let value = match &kind.cast {
                    Some(cast) => match cast.bind(py).call1((text(),)) {
                        Ok(value) => value,
                        // rdflib and users bind any function to a datatype; its failure means that there is no value.
                        Err(error) if error.is_instance_of::<pyo3::exceptions::PyException>(py) => {
                            none.clone()
                        }
                        Err(error) => return Err(error),
                    },
                    None if kind.is_known => text(),
                    None => none.clone(),
                };
                let ill_typed = match &kind.check {
                    Check::None => none.clone(),
                    Check::ByValue => value.is_none().into_pyobject(py)?.to_owned().into_any(),
                    Check::Function(check) => {
                        let is_well_formed = check.bind(py).call1((text(), &value))?.is_truthy()?;
                        (!is_well_formed).into_pyobject(py)?.to_owned().into_any()
                    }
                };
                (none, kind.datatype.bind(py).clone(), value, ill_typed)
            }
        };
        literal.setattr(intern!(py, "_language"), language)?;
        literal.setattr(intern!(py, "_datatype"), datatype)?;
        literal.setattr(intern!(py, "_value"), value)?;
        literal.setattr(intern!(py, "_ill_typed"), ill_typed)?;
        Ok(literal)
    }

    #[inline(always)]
    fn register(&self, place: Place) -> &Py<PyAny> {
        self.registers[place as usize]
            .as_ref()
            .unwrap_or(&self.default_graph)
    }
}

#[cold]
fn is_patch() -> Box<crate::fault::Fault> {
    usage_error("rdflib's graphs hold statements; parse a patch into one to apply it")
}

impl Sink for RdflibSink {
    type Iri = Py<PyAny>;
    type Datatype = DatatypeOfLiterals;
    type Facts = ();

    fn facts_of(_part: &str) {}

    fn new_iri(&mut self, place: Place, prefix: Part<'_, ()>, name: Part<'_, ()>) -> Result<Py<PyAny>> {
        let py = self.attached.python();
        let iri = if prefix.text.is_empty() {
            self.make(py, &self.uri_class, name.text)?
        } else {
            self.make(py, &self.uri_class, &[prefix.text, name.text].concat())?
        };
        let iri = iri.unbind();
        self.iri(place, &iri)?;
        Ok(iri)
    }

    fn make_datatype(&mut self, iri: &str) -> Result<DatatypeOfLiterals> {
        let py = self.attached.python();
        let mut suffix = b"^^".to_vec();
        crate::text::push_iri(&mut suffix, crate::text::Style::Canonical, "", iri);
        let suffix = String::from_utf8(suffix).unwrap_or_default();
        let kind = self.kind_class.bind(py).call1((suffix,))?;
        let cast = kind.getattr("cast")?;
        let check = kind.getattr("is_well_formed")?;
        let check = if check.is_none() {
            Check::None
        } else if check.is(&self.by_value) {
            Check::ByValue
        } else {
            Check::Function(check.unbind())
        };
        Ok(DatatypeOfLiterals {
            datatype: kind.getattr("datatype")?.unbind(),
            cast: (!cast.is_none()).then(|| cast.unbind()),
            is_known: kind.getattr("is_known")?.is_truthy()?,
            check,
        })
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &Py<PyAny>) -> Result<()> {
        self.registers[place as usize] = Some(iri.clone_ref(self.attached.python()));
        Ok(())
    }

    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        let node = self.make(self.attached.python(), &self.node_class, label)?;
        self.registers[place as usize] = Some(node.unbind());
        Ok(())
    }

    fn literal(
        &mut self,
        place: Place,
        lexical: &str,
        kind: LiteralKind<'_, DatatypeOfLiterals>,
    ) -> Result<()> {
        let literal = self.make_literal(self.attached.python(), lexical, &kind)?;
        self.registers[place as usize] = Some(literal.unbind());
        Ok(())
    }

    fn quoted_triple(&mut self, _place: Place, _triple: &QuotedTriple) -> Result<()> {
        let text = self
            .attached
            .python()
            .import("patchlog.rdflib_hook.terms")?
            .getattr("NO_QUOTED_TRIPLES")?
            .extract::<String>()?;
        Err(usage_error(text))
    }

    fn default_graph(&mut self) -> Result<()> {
        self.registers[Place::Graph as usize] = None;
        Ok(())
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        if action == Action::Delete {
            return Err(is_patch());
        }
        let py = self.attached.python();
        let [subject, predicate, object, graph] = STATEMENT_PLACES.map(|place| self.register(place).as_ptr());
        // SAFETY: the registers keep the terms alive, and the tuple takes references of its own to them.
        let tuple = unsafe {
            let tuple = if has_graph {
                ffi::PyTuple_Pack(4, subject, predicate, object, graph)
            } else {
                ffi::PyTuple_Pack(3, subject, predicate, object)
            };
            Bound::from_owned_ptr_or_err(py, tuple)?
        };
        self.output.push(tuple.unbind());
        Ok(())
    }

    fn namespace(&mut self, _action: Action, name: &str, _has_iri: bool, _has_graph: bool) -> Result<()> {
        let py = self.attached.python();
        let pair = (name, self.register(Place::Value)).into_pyobject(py)?;
        self.namespaces.push(pair.into_any().unbind());
        Ok(())
    }

    fn header(&mut self, _key: &str) -> Result<()> {
        Err(is_patch())
    }

    fn transaction(&mut self, _transaction: Transaction) -> Result<()> {
        Err(is_patch())
    }

    fn punctuation(&mut self) -> Result<()> {
        Err(is_patch())
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.output.len();
    }

    fn frame_failed(&mut self) {
        self.output.truncate(self.frame_begin);
    }
}

/// Python's garbage collector, paused: it would look through all terms again and again while they are made.
struct PausedCollector(bool);

impl PausedCollector {
    fn new(_py: Python<'_>) -> Self {
        // SAFETY: the interpreter is held.
        PausedCollector(unsafe { ffi::PyGC_Disable() } == 1)
    }
}

impl Drop for PausedCollector {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: the interpreter is still held: the value does not leave the method that made it.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

struct DecoderState {
    source: Box<dyn Source<RdflibSink> + Send>,
    sink: RdflibSink,
}

// SAFETY: the sink's one pointer, `str`'s constructor, never changes.
unsafe impl Send for RdflibSink {}

/// Bytes to tuples of rdflib terms: three, or four with a graph. `namespaces` are those read so far.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdflibDecoder(Guarded<DecoderState>);

#[pymethods]
impl RdflibDecoder {
    #[new]
    #[pyo3(signature = (source, *, limits=None, strict=true, concatenated=false, delimited=None))]
    fn new(
        py: Python<'_>,
        source: &str,
        limits: Option<&Bound<'_, PyAny>>,
        strict: bool,
        concatenated: bool,
        delimited: Option<bool>,
    ) -> PyResult<Self> {
        let format = match SourceFormat::of(source) {
            Ok(format) if !format.is_patch() => format,
            _ => {
                let reason =
                    format!("rdflib statements are read from 'jelly' or 'nquads', not from '{source}'");
                return Err(usage_error(reason).into_py(py));
            }
        };
        let reading = reading_from(limits, strict, concatenated, delimited)?;
        Ok(RdflibDecoder(Guarded::new(DecoderState {
            source: format.open(reading),
            // SAFETY: the methods of this class never detach while they use it.
            sink: unsafe { RdflibSink::new(py) }?,
        })))
    }

    /// Take the namespaces that were declared since the last call, as pairs of name and IRI.
    fn take_namespaces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.0
            .with(py, |state| Ok(PyList::new(py, state.sink.namespaces.drain(..))?))
    }

    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: Data<'py>) -> PyResult<Bound<'py, PyList>> {
        let _paused = PausedCollector::new(py);
        self.0.with(py, |state| {
            state.source.feed(&data, &mut state.sink, &ALL_FRAMES)?;
            Ok(PyList::new(py, state.sink.output.drain(..))?)
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let _paused = PausedCollector::new(py);
        self.0.with(py, |state| {
            state.source.finish(&mut state.sink, &ALL_FRAMES)?;
            Ok(PyList::new(py, state.sink.output.drain(..))?)
        })
    }
}

struct EncoderState {
    writer: RdfWriter,
    datatypes: Datatypes<RdfWriter>,
    uri_class: Py<PyAny>,
    node_class: Py<PyAny>,
    literal_class: Py<PyAny>,
    default_graph: Py<PyAny>,
    /// The objects set last: the same object again is the same term.
    last: [Option<Py<PyAny>>; 4],
}

/// The text of an object that derives from `str`.
#[inline(always)]
fn text_of<'a>(object: &'a Bound<'_, PyAny>) -> Result<&'a str> {
    match object.cast::<PyString>() {
        Ok(text) => text
            .to_str()
            .map_err(|_| invalid_term("a term holds a lone surrogate")),
        Err(_) => Err(invalid_term("a term is not a string")),
    }
}

impl EncoderState {
    fn set(&mut self, term: &Bound<'_, PyAny>, place: Place) -> Result<()> {
        let last = &mut self.last[place as usize];
        if last.as_ref().is_some_and(|last| last.as_ptr() == term.as_ptr()) {
            return Ok(());
        }
        *last = Some(term.clone().unbind());
        let py = term.py();
        let class = term.get_type();
        let is = |other: &Py<PyAny>| class.as_ptr() == other.as_ptr();
        if place == Place::Graph && (term.is_none() || term.eq(self.default_graph.bind(py))?) {
            return self.writer.default_graph();
        }
        if is(&self.uri_class) || (!is(&self.literal_class) && term.is_instance(self.uri_class.bind(py))?) {
            return self.writer.plain_iri(place, text_of(term)?);
        }
        if is(&self.literal_class) || term.is_instance(self.literal_class.bind(py))? {
            return self.literal(term, place);
        }
        if term.is_instance(self.node_class.bind(py))? {
            return self.writer.blank_node(place, text_of(term)?);
        }
        Err(invalid_term(format!(
            "{} ({}) is not an IRI, a blank node or a literal",
            term.repr()?,
            class.name()?
        )))
    }

    fn literal(&mut self, literal: &Bound<'_, PyAny>, place: Place) -> Result<()> {
        let py = literal.py();
        let lexical = text_of(literal)?;
        let language = literal.getattr(intern!(py, "_language"))?;
        if language.is_truthy()? {
            return self
                .writer
                .literal(place, lexical, LiteralKind::Language(text_of(&language)?));
        }
        let datatype = literal.getattr(intern!(py, "_datatype"))?;
        if datatype.is_none() {
            return self.writer.literal(place, lexical, LiteralKind::Plain);
        }
        match text_of(&datatype)? {
            XSD_STRING => self.writer.literal(place, lexical, LiteralKind::Plain),
            iri => self.datatypes.literal(&mut self.writer, place, lexical, iri),
        }
    }

    fn statement(&mut self, statement: &Bound<'_, PyTuple>) -> Result<()> {
        let count = statement.len();
        if !(3..=4).contains(&count) {
            return Err(usage_error(format!(
                "a statement has three or four terms, not {count}"
            )));
        }
        for (place, term) in STATEMENT_PLACES.into_iter().zip(statement.iter_borrowed()) {
            self.set(&term, place)?;
        }
        self.writer.statement(Action::Add, count == 4)
    }
}

/// Tuples of rdflib terms to Jelly-RDF bytes.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RdflibEncoder(Guarded<EncoderState>);

#[pymethods]
impl RdflibEncoder {
    #[new]
    #[pyo3(signature = (options, *, rows_per_frame=Count(256), delimited=true, namespace_declarations=false))]
    fn new(
        py: Python<'_>,
        options: &Bound<'_, PyAny>,
        rows_per_frame: Count,
        delimited: bool,
        namespace_declarations: bool,
    ) -> PyResult<Self> {
        let term = py.import("rdflib.term")?;
        let options = rdf_options_from(options)?;
        let mut writer = RdfWriter::new(
            Some(options),
            rows_per_frame.0,
            delimited,
            namespace_declarations,
            false,
        );
        writer.begin().or_raise(py)?;
        Ok(RdflibEncoder(Guarded::new(EncoderState {
            writer,
            datatypes: Datatypes::new(),
            uri_class: term.getattr("URIRef")?.unbind(),
            node_class: term.getattr("BNode")?.unbind(),
            literal_class: term.getattr("Literal")?.unbind(),
            default_graph: py
                .import("rdflib.graph")?
                .getattr("DATASET_DEFAULT_GRAPH_ID")?
                .unbind(),
            last: Default::default(),
        })))
    }

    #[pyo3(signature = (statements, /))]
    fn statements(&self, py: Python<'_>, statements: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(py, |state| {
            for statement in statements.try_iter()? {
                match statement?.cast::<PyTuple>() {
                    Ok(tuple) => state.statement(tuple)?,
                    Err(_) => return Err(usage_error("a statement is a tuple of three or four terms")),
                }
            }
            Ok(())
        })
    }

    #[pyo3(signature = (name, iri, /))]
    fn namespace(&self, py: Python<'_>, name: &Bound<'_, PyAny>, iri: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.with(py, |state| {
            state.writer.plain_iri(Place::Value, text_of(iri)?)?;
            state.writer.namespace_declaration(name_text(name)?)
        })
    }

    #[pyo3(signature = (metadata=None, /))]
    fn end_frame(
        &self,
        py: Python<'_>,
        metadata: Option<std::collections::BTreeMap<String, Vec<u8>>>,
    ) -> PyResult<()> {
        let entries: Vec<_> = metadata.unwrap_or_default().into_iter().collect();
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
