//! Registers to Python objects: canonical strings in tuples, or operations.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::fault::Result;
use crate::sink::{Action, LiteralKind, PLACES, Part, Place, QuotedTriple, Sink, Transaction};
use crate::text::{Style, datatype_suffix, push_blank_node, push_iri, push_literal, push_quoted};

/// The interpreter for the methods of a sink, whose signatures have no room for it.
///
/// A sink that has one of these may be called only by threads that are attached to the interpreter.
pub struct Attached(());

impl Attached {
    /// # Safety
    /// What holds this is used by no thread that is not attached to the interpreter: never inside of `Python::detach`.
    pub unsafe fn promised() -> Self {
        Attached(())
    }

    #[inline(always)]
    pub fn python<'py>(&self) -> Python<'py> {
        // SAFETY: promised to `promised`.
        unsafe { Python::assume_attached() }
    }
}

/// The classes of operations.
struct Operations {
    header: Py<PyAny>,
    add: Py<PyAny>,
    delete: Py<PyAny>,
    namespace_add: Py<PyAny>,
    namespace_delete: Py<PyAny>,
    start: Py<PyAny>,
    commit: Py<PyAny>,
    abort: Py<PyAny>,
    punctuation: Py<PyAny>,
}

pub struct ObjectSink {
    attached: Attached,
    /// None: statements come out as tuples.
    operations: Option<Operations>,
    pub output: Vec<Py<PyAny>>,
    pub namespaces: Vec<Py<PyAny>>,
    registers: [Option<Py<PyAny>>; PLACES],
    empty: Py<PyAny>,
    scratch: Vec<u8>,
    frame_begin: usize,
    pub metadata: Vec<(String, Vec<u8>)>,
}

impl ObjectSink {
    /// # Safety
    /// As of `Attached::promised`.
    unsafe fn new(py: Python<'_>, operations: Option<Operations>) -> Self {
        ObjectSink {
            // SAFETY: promised by the caller.
            attached: unsafe { Attached::promised() },
            operations,
            output: Vec::new(),
            namespaces: Vec::new(),
            registers: Default::default(),
            empty: PyString::new(py, "").into_any().unbind(),
            scratch: Vec::new(),
            frame_begin: 0,
            metadata: Vec::new(),
        }
    }

    /// # Safety
    /// The sink is used by no thread that is not attached to the interpreter.
    pub unsafe fn of_statements(py: Python<'_>) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::new(py, None) }
    }

    /// # Safety
    /// The sink is used by no thread that is not attached to the interpreter.
    pub unsafe fn of_operations(py: Python<'_>) -> PyResult<Self> {
        let model = py.import("patchlog.model")?;
        let class = |name: &str| -> PyResult<Py<PyAny>> { Ok(model.getattr(name)?.unbind()) };
        let instance = |name: &str| -> PyResult<Py<PyAny>> { Ok(model.getattr(name)?.call0()?.unbind()) };
        let operations = Operations {
            header: class("Header")?,
            add: class("Add")?,
            delete: class("Delete")?,
            namespace_add: class("NamespaceAdd")?,
            namespace_delete: class("NamespaceDelete")?,
            // These have no fields and never change: one of each serves.
            start: instance("TransactionStart")?,
            commit: instance("TransactionCommit")?,
            abort: instance("TransactionAbort")?,
            punctuation: instance("Punctuation")?,
        };
        // SAFETY: promised by the caller.
        Ok(unsafe { Self::new(py, Some(operations)) })
    }

    /// The text in `scratch` as a Python string.
    #[inline(always)]
    fn scratch_string(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        match std::str::from_utf8(&self.scratch) {
            Ok(text) => Ok(PyString::new(py, text).into_any().unbind()),
            Err(_) => Err(crate::fault::malformed("a term is not valid UTF-8")),
        }
    }

    #[inline(always)]
    fn set_scratch(&mut self, place: Place) -> Result<()> {
        let text = self.scratch_string(self.attached.python())?;
        self.registers[place as usize] = Some(text);
        Ok(())
    }

    #[inline(always)]
    fn register<'py>(&self, py: Python<'py>, place: Place) -> Bound<'py, PyAny> {
        self.registers[place as usize]
            .as_ref()
            .unwrap_or(&self.empty)
            .bind(py)
            .clone()
    }

    fn graph<'py>(&self, py: Python<'py>, has_graph: bool) -> Option<Bound<'py, PyAny>> {
        has_graph.then(|| self.register(py, Place::Graph))
    }
}

impl Sink for ObjectSink {
    type Iri = Py<PyAny>;
    type Datatype = Vec<u8>;
    type Facts = ();

    fn facts_of(_part: &str) {}

    fn new_iri(&mut self, place: Place, prefix: Part<'_, ()>, name: Part<'_, ()>) -> Result<Py<PyAny>> {
        self.scratch.clear();
        push_iri(&mut self.scratch, Style::Canonical, prefix.text, name.text);
        let iri = self.scratch_string(self.attached.python())?;
        self.iri(place, &iri)?;
        Ok(iri)
    }

    fn make_datatype(&mut self, iri: &str) -> Result<Vec<u8>> {
        Ok(datatype_suffix(iri))
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &Py<PyAny>) -> Result<()> {
        self.registers[place as usize] = Some(iri.clone_ref(self.attached.python()));
        Ok(())
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        self.scratch.clear();
        push_blank_node(&mut self.scratch, Style::Canonical, label);
        self.set_scratch(place)
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Vec<u8>>) -> Result<()> {
        self.scratch.clear();
        push_literal(&mut self.scratch, lexical, &kind);
        self.set_scratch(place)
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        self.scratch.clear();
        push_quoted(&mut self.scratch, Style::Canonical, triple);
        self.set_scratch(place)
    }

    fn default_graph(&mut self) -> Result<()> {
        self.registers[Place::Graph as usize] = None;
        Ok(())
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        let py = self.attached.python();
        let subject = self.register(py, Place::Subject);
        let predicate = self.register(py, Place::Predicate);
        let object = self.register(py, Place::Object);
        let made = match &self.operations {
            None if has_graph => {
                PyTuple::new(py, [subject, predicate, object, self.register(py, Place::Graph)])?.into_any()
            }
            None => PyTuple::new(py, [subject, predicate, object])?.into_any(),
            Some(operations) => {
                let class = if action == Action::Add {
                    &operations.add
                } else {
                    &operations.delete
                };
                class
                    .bind(py)
                    .call1((subject, predicate, object, self.graph(py, has_graph)))?
            }
        };
        self.output.push(made.unbind());
        Ok(())
    }

    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()> {
        let py = self.attached.python();
        let iri = has_iri.then(|| self.register(py, Place::Value));
        match &self.operations {
            None => {
                let pair = (name, iri).into_pyobject(py)?;
                self.namespaces.push(pair.into_any().unbind());
            }
            Some(operations) => {
                let class = if action == Action::Add {
                    &operations.namespace_add
                } else {
                    &operations.namespace_delete
                };
                let made = class.bind(py).call1((name, iri, self.graph(py, has_graph)))?;
                self.output.push(made.unbind());
            }
        }
        Ok(())
    }

    fn header(&mut self, key: &str) -> Result<()> {
        let py = self.attached.python();
        if let Some(operations) = &self.operations {
            let made = operations
                .header
                .bind(py)
                .call1((key, self.register(py, Place::Value)))?;
            self.output.push(made.unbind());
        }
        Ok(())
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        if let Some(operations) = &self.operations {
            let instance = match transaction {
                Transaction::Start => &operations.start,
                Transaction::Commit => &operations.commit,
                Transaction::Abort => &operations.abort,
            };
            self.output.push(instance.clone_ref(self.attached.python()));
        }
        Ok(())
    }

    fn punctuation(&mut self) -> Result<()> {
        if let Some(operations) = &self.operations {
            self.output
                .push(operations.punctuation.clone_ref(self.attached.python()));
        }
        Ok(())
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.output.len();
    }

    fn frame_end(&mut self, metadata: &[(String, Vec<u8>)]) -> Result<()> {
        self.metadata = metadata.to_vec();
        Ok(())
    }

    fn frame_failed(&mut self) {
        self.output.truncate(self.frame_begin);
    }
}
