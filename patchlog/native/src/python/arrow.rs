//! Record batches to and from Python, by PyCapsules.

use std::ffi::CStr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use crate::arrow::abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::arrow::batch::{Batch, schema_of};
use crate::arrow::reader::read_batch;
use crate::arrow::sink::ArrowSink;
use crate::decode::nquads::Datatypes;
use crate::decode::reader::Reading;
use crate::encode::patch::PatchWriter;
use crate::encode::rdf::RdfWriter;
use crate::encode::text::{TextFormat, TextSink};
use crate::fault::{Result, usage_error};
use crate::python::converter::{ALL_FRAMES, Output, SinkArguments, Source, SourceFormat};
use crate::python::encoders::take_bytes;
use crate::python::{Count, Data, Guarded, OrRaise, patch_options_from, rdf_options_from, reading_from};
use crate::with_sink;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A record batch, read without a copy by whatever knows the Arrow PyCapsule interface.
#[pyclass(frozen, module = "patchlog._native")]
pub struct RecordBatch {
    batch: Arc<Batch>,
    columns: &'static [&'static str],
    is_dictionary: bool,
}

#[pymethods]
impl RecordBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.rows
    }

    fn __len__(&self) -> usize {
        self.batch.rows
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, schema_of(self.columns, self.is_dictionary), SCHEMA)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The interface lets a producer answer with the schema that it has.
        let _ = requested_schema;
        let array = PyCapsule::new_with_value(py, self.batch.export(), ARRAY)?;
        PyTuple::new(py, [self.__arrow_c_schema__(py)?.into_any(), array.into_any()])
    }
}

struct DecoderState {
    source: Box<dyn Source<ArrowSink> + Send>,
    sink: ArrowSink,
}

/// Bytes to record batches. Its face: `patchlog.codec.faces.ArrowDecoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct ArrowDecoder {
    state: Guarded<DecoderState>,
    columns: &'static [&'static str],
    is_dictionary: bool,
}

impl ArrowDecoder {
    fn batches(&self, state: &mut DecoderState) -> Vec<RecordBatch> {
        let (columns, is_dictionary) = (self.columns, self.is_dictionary);
        state
            .sink
            .batches
            .drain(..)
            .map(|batch| RecordBatch {
                batch,
                columns,
                is_dictionary,
            })
            .collect()
    }
}

#[pymethods]
impl ArrowDecoder {
    #[new]
    #[pyo3(signature = (
        source, *, limits=None, strict=true, concatenated=false, delimited=None, batch_rows=Count(8192), dictionary=true,
    ))]
    #[allow(clippy::too_many_arguments)] // keywords, each with its own name
    fn new(
        py: Python<'_>,
        source: &str,
        limits: Option<&Bound<'_, PyAny>>,
        strict: bool,
        concatenated: bool,
        delimited: Option<bool>,
        batch_rows: Count,
        dictionary: bool,
    ) -> PyResult<Self> {
        let format = SourceFormat::of(source).or_raise(py)?;
        let reading: Reading = reading_from(limits, strict, concatenated, delimited)?;
        let sink = ArrowSink::new(
            format.is_patch(),
            dictionary,
            usize::try_from(batch_rows.0).unwrap_or(usize::MAX),
        );
        let columns = sink.columns();
        Ok(ArrowDecoder {
            state: Guarded::new(DecoderState {
                source: format.open(reading),
                sink,
            }),
            columns,
            is_dictionary: dictionary,
        })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, schema_of(self.columns, self.is_dictionary), SCHEMA)
    }

    #[pyo3(signature = (data, /))]
    fn feed(&self, py: Python<'_>, data: Data<'_>) -> PyResult<Vec<RecordBatch>> {
        let data: &[u8] = &data;
        self.state.with(py, |state| {
            py.detach(|| state.source.feed(data, &mut state.sink, &ALL_FRAMES))?;
            Ok(self.batches(state))
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        self.state.with(py, |state| {
            py.detach(|| state.source.finish(&mut state.sink, &ALL_FRAMES))?;
            state.sink.close_batch()?;
            Ok(self.batches(state))
        })
    }
}

/// What encodes batches, whatever the sink.
trait BatchEncoder {
    /// # Safety
    /// As of `read_batch`.
    unsafe fn encode(&mut self, schema: &ArrowSchema, array: &ArrowArray) -> Result<()>;
    fn finish(&mut self) -> Result<()>;
    fn out(&mut self) -> &mut Vec<u8>;
}

struct BatchesToSink<S: Output> {
    sink: S,
    datatypes: Datatypes<S>,
}

impl<S: Output> BatchEncoder for BatchesToSink<S> {
    unsafe fn encode(&mut self, schema: &ArrowSchema, array: &ArrowArray) -> Result<()> {
        // SAFETY: passed on.
        unsafe { read_batch(schema, array, &mut self.datatypes, &mut self.sink) }
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish_output()
    }

    fn out(&mut self) -> &mut Vec<u8> {
        self.sink.out()
    }
}

fn boxed<S: Output + Send + 'static>(sink: S) -> Box<dyn BatchEncoder + Send>
where
    S::Datatype: Send,
{
    Box::new(BatchesToSink {
        sink,
        datatypes: Datatypes::new(),
    })
}

/// Record batches to bytes. Its face: `patchlog.codec.faces.ArrowEncoderFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct ArrowEncoder(Guarded<Box<dyn BatchEncoder + Send>>);

#[pymethods]
impl ArrowEncoder {
    #[new]
    #[pyo3(signature = (sink, *, rdf_options=None, patch_options=None, rows_per_frame=None, delimited=true))]
    fn new(
        py: Python<'_>,
        sink: &str,
        rdf_options: Option<&Bound<'_, PyAny>>,
        patch_options: Option<&Bound<'_, PyAny>>,
        rows_per_frame: Option<Count>,
        delimited: bool,
    ) -> PyResult<Self> {
        let arguments = SinkArguments {
            rdf_options,
            patch_options,
            rows_per_frame: rows_per_frame.map(|rows| rows.0),
            delimited,
            namespace_declarations: false,
            keep_frames: false,
        };
        Ok(ArrowEncoder(Guarded::new(with_sink!(
            py,
            sink,
            arguments,
            |sink| boxed(sink)
        ))))
    }

    #[pyo3(signature = (batch, /))]
    fn encode<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let input = ArrowInput::of(batch)?;
        self.0.with(py, |encoder| {
            // SAFETY: schema and array came together.
            py.detach(|| input.read(&mut |schema, array| unsafe { encoder.encode(schema, array) }))?;
            Ok(take_bytes(py, encoder.out()))
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |encoder| {
            encoder.finish()?;
            Ok(take_bytes(py, encoder.out()))
        })
    }
}

/// Structs that were moved out of their capsules: they are ours to release.
pub enum ArrowInput {
    Batch(ArrowSchema, ArrowArray),
    Stream(ArrowArrayStream),
}

/// Move a struct out of its capsule, leaving a released one behind, as the interface wants it.
///
/// # Safety
/// A capsule of that name holds a `T`, which is a struct of the C data interface, and `empty` is a released one.
unsafe fn take_struct<T>(capsule: &Bound<'_, PyAny>, name: &CStr, empty: T) -> PyResult<T> {
    let pointer = capsule.cast::<PyCapsule>().ok();
    let pointer = pointer.and_then(|capsule| capsule.pointer_checked(Some(name)).ok());
    let Some(pointer) = pointer else {
        let reason = format!("this Arrow data comes in no capsule {:?}", name.to_string_lossy());
        return Err(usage_error(reason).into_py(capsule.py()));
    };
    // SAFETY: promised by the caller.
    Ok(unsafe { std::ptr::replace(pointer.as_ptr().cast::<T>(), empty) })
}

impl ArrowInput {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<ArrowInput> {
        if object.hasattr("__arrow_c_array__")? {
            let pair = object.call_method0("__arrow_c_array__")?;
            let Ok((schema, array)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
                let reason = "this Arrow data does not come as a pair of capsules";
                return Err(usage_error(reason).into_py(object.py()));
            };
            // SAFETY: the names of the capsules say what they hold.
            return unsafe {
                Ok(ArrowInput::Batch(
                    take_struct(&schema, SCHEMA, ArrowSchema::empty())?,
                    take_struct(&array, ARRAY, ArrowArray::empty())?,
                ))
            };
        }
        if object.hasattr("__arrow_c_stream__")? {
            let stream = object.call_method0("__arrow_c_stream__")?;
            // SAFETY: as above.
            return unsafe {
                Ok(ArrowInput::Stream(take_struct(
                    &stream,
                    STREAM,
                    ArrowArrayStream::empty(),
                )?))
            };
        }
        let reason = format!(
            "a {} does not offer the Arrow PyCapsule interface",
            object.get_type().name()?
        );
        Err(usage_error(reason).into_py(object.py()))
    }

    /// Hand over each batch, with the schema that it came with.
    pub fn read(mut self, take: &mut dyn FnMut(&ArrowSchema, &ArrowArray) -> Result<()>) -> Result<()> {
        match &mut self {
            ArrowInput::Batch(schema, array) => take(schema, array),
            ArrowInput::Stream(stream) => {
                let mut schema = ArrowSchema::empty();
                let (Some(get_schema), Some(get_next), true) =
                    (stream.get_schema, stream.get_next, stream.release.is_some())
                else {
                    return Err(usage_error("the Arrow stream is released"));
                };
                // SAFETY: a stream that is not released fills the structs that its functions are given.
                unsafe {
                    let code = get_schema(stream, &mut schema);
                    check(stream, code)?;
                    loop {
                        let mut array = ArrowArray::empty();
                        let code = get_next(stream, &mut array);
                        check(stream, code)?;
                        if array.release.is_none() {
                            return Ok(());
                        }
                        take(&schema, &array)?;
                    }
                }
            }
        }
    }
}

/// # Safety
/// The stream is not released.
unsafe fn check(stream: &mut ArrowArrayStream, code: i32) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = stream
        .get_last_error
        .map(|get| unsafe { get(stream) })
        .filter(|text| !text.is_null());
    // SAFETY: the stream's error is a string that ends in zero.
    let reason = text.map_or("no reason given".into(), |text| {
        unsafe { CStr::from_ptr(text) }.to_string_lossy()
    });
    Err(usage_error(format!("the Arrow stream failed: {reason}")))
}
