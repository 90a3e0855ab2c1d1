//! Bytes to bytes, from any format to any format, without Python in between.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::decode::nquads::NQuadsReader;
use crate::decode::patch::PatchReader;
use crate::decode::rdf::RdfReader;
use crate::decode::rdf_patch::RdfPatchReader;
use crate::decode::reader::{FrameReader, Reading, Rows};
use crate::encode::dataset::DatasetWriter;
use crate::encode::patch::PatchWriter;
use crate::encode::rdf::RdfWriter;
use crate::encode::text::{TextFormat, TextSink};
use crate::fault::{Result, usage_error};
use crate::python::encoders::take_bytes;
use crate::python::{Count, Data, Guarded, OrRaise, patch_options_from, rdf_options_from, reading_from};
use crate::sink::Sink;

/// What reads one format, whatever the sink.
pub trait Source<S: Sink> {
    fn feed(&mut self, data: &[u8], sink: &mut S, frames: &FrameRange) -> Result<()>;
    fn finish(&mut self, sink: &mut S, frames: &FrameRange) -> Result<()>;
}

/// The frames of the input that are written: from `first` to `last`, both included.
#[derive(Clone, Copy)]
pub struct FrameRange {
    first: u64,
    last: Option<u64>,
}

pub const ALL_FRAMES: FrameRange = FrameRange { first: 0, last: None };

impl FrameRange {
    fn contains(&self, frame: u64) -> bool {
        frame >= self.first && self.last.is_none_or(|last| frame <= last)
    }
}

/// Input is taken in pieces of this size: what is copied and checked is then still in the processor's cache when it is read.
const PIECE_BYTES: usize = 1 << 16;

impl<R: Rows> Source<R::Sink> for FrameReader<R> {
    fn feed(&mut self, data: &[u8], sink: &mut R::Sink, frames: &FrameRange) -> Result<()> {
        let mut rest = data;
        // The frame that has begun is completed, and no more of what follows it is copied.
        while !rest.is_empty() && !self.is_empty() {
            let (piece, behind) = rest.split_at(self.missing().min(rest.len()));
            FrameReader::feed(self, piece);
            rest = behind;
            take_frames(self, sink, frames)?;
        }
        // Those that are here whole are read where they lie.
        while !rest.is_empty() {
            sink.mute(!frames.contains(self.next_index()));
            match self.frame_in(rest, sink)? {
                Some(size) => rest = &rest[size..],
                None => break,
            }
        }
        FrameReader::feed(self, rest);
        Ok(())
    }

    fn finish(&mut self, sink: &mut R::Sink, frames: &FrameRange) -> Result<()> {
        self.end();
        take_frames(self, sink, frames)
    }
}

fn take_frames<R: Rows>(reader: &mut FrameReader<R>, sink: &mut R::Sink, frames: &FrameRange) -> Result<()> {
    loop {
        sink.mute(!frames.contains(reader.next_index()));
        if reader.next_frame(sink)?.is_none() {
            return Ok(());
        }
    }
}

macro_rules! source_of_lines {
    ($reader:ident) => {
        impl<S: Sink> Source<S> for $reader<S> {
            fn feed(&mut self, data: &[u8], sink: &mut S, _frames: &FrameRange) -> Result<()> {
                data.chunks(PIECE_BYTES)
                    .try_for_each(|piece| $reader::feed(self, piece, sink))
            }

            fn finish(&mut self, sink: &mut S, _frames: &FrameRange) -> Result<()> {
                $reader::finish(self, sink)
            }
        }
    };
}

source_of_lines!(NQuadsReader);
source_of_lines!(RdfPatchReader);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    Jelly,
    JellyPatch,
    NQuads,
    RdfPatch,
}

impl SourceFormat {
    pub fn of(name: &str) -> Result<Self> {
        Ok(match name {
            "jelly" => SourceFormat::Jelly,
            "jelly-patch" => SourceFormat::JellyPatch,
            "nquads" => SourceFormat::NQuads,
            "rdf-patch" => SourceFormat::RdfPatch,
            _ => {
                return Err(usage_error(format!(
                    "unknown source format '{name}'; there are jelly, jelly-patch, nquads, rdf-patch"
                )));
            }
        })
    }

    pub fn is_patch(self) -> bool {
        matches!(self, SourceFormat::JellyPatch | SourceFormat::RdfPatch)
    }

    pub fn open<S: Sink + Send + 'static>(self, reading: Reading) -> Box<dyn Source<S> + Send>
    where
        S::Iri: Send,
        S::Datatype: Send,
    {
        match self {
            SourceFormat::Jelly => Box::new(RdfReader::<S>::new(reading)),
            SourceFormat::JellyPatch => Box::new(PatchReader::<S>::new(reading)),
            SourceFormat::NQuads => Box::new(NQuadsReader::<S>::new()),
            SourceFormat::RdfPatch => Box::new(RdfPatchReader::<S>::new(reading.strict)),
        }
    }
}

/// What writes one format.
pub trait Output: Sink {
    fn out(&mut self) -> &mut Vec<u8>;
    fn finish_output(&mut self) -> Result<()> {
        Ok(())
    }
    fn end_output_frame(&mut self) -> Result<()> {
        Ok(())
    }
    /// An input of operations ended: what comes next is another patch.
    fn end_input_patch(&mut self) {}
    fn written(&self) -> u64;
}

impl Output for TextSink {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn end_input_patch(&mut self) {
        self.owes_punctuation = self.is_in_patch;
    }

    fn written(&self) -> u64 {
        self.statements
    }
}

impl Output for RdfWriter {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.frames.out
    }

    fn finish_output(&mut self) -> Result<()> {
        self.finish()
    }

    fn end_output_frame(&mut self) -> Result<()> {
        self.end_frame(&[])
    }

    fn written(&self) -> u64 {
        self.statements
    }
}

impl Output for DatasetWriter {
    fn out(&mut self) -> &mut Vec<u8> {
        self.writer.out()
    }

    fn finish_output(&mut self) -> Result<()> {
        self.writer.finish_output()
    }

    fn written(&self) -> u64 {
        self.writer.written()
    }
}

impl Output for PatchWriter {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.frames.out
    }

    fn finish_output(&mut self) -> Result<()> {
        self.finish()?;
        if self.frames.ended == 0 {
            // Only a canonical one writes no frame for no operations: they are an empty patch.
            self.punctuation()?;
        }
        Ok(())
    }

    fn end_input_patch(&mut self) {
        self.owes_punctuation = self.is_in_patch();
    }

    fn written(&self) -> u64 {
        self.statements
    }
}

/// A source and a sink, whatever their types.
pub trait Pipe {
    fn feed(&mut self, data: &[u8]) -> Result<()>;
    fn end_input(&mut self) -> Result<()>;
    fn end_frame(&mut self) -> Result<()>;
    fn finish(&mut self) -> Result<()>;
    fn out(&mut self) -> &mut Vec<u8>;
    fn written(&self) -> u64;
}

pub struct SourceToSink<S: Output> {
    format: SourceFormat,
    reading: Reading,
    frames: FrameRange,
    /// None between two inputs.
    source: Option<Box<dyn Source<S> + Send>>,
    pub has_begun: bool,
    pub sink: S,
}

impl<S: Output> SourceToSink<S> {
    pub fn new(format: SourceFormat, reading: Reading, frames: FrameRange, sink: S) -> Self {
        SourceToSink {
            format,
            reading,
            frames,
            source: None,
            has_begun: false,
            sink,
        }
    }
}

impl<S: Output + Send + 'static> Pipe for SourceToSink<S>
where
    S::Iri: Send,
    S::Datatype: Send,
{
    fn feed(&mut self, data: &[u8]) -> Result<()> {
        self.has_begun = true;
        let source = self.source.get_or_insert_with(|| self.format.open(self.reading));
        source.feed(data, &mut self.sink, &self.frames)
    }

    fn end_input(&mut self) -> Result<()> {
        self.has_begun = true;
        let mut source = self
            .source
            .take()
            .unwrap_or_else(|| self.format.open(self.reading));
        source.finish(&mut self.sink, &self.frames)?;
        if self.format.is_patch() {
            self.sink.end_input_patch();
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<()> {
        self.sink.end_output_frame()
    }

    fn finish(&mut self) -> Result<()> {
        // After `end_input` nothing may come: that is not an empty input.
        if self.source.is_some() || !self.has_begun {
            self.end_input()?;
        }
        // The frame that would come next may not be one of those that are written; the end always is.
        self.sink.mute(false);
        self.sink.finish_output()
    }

    fn out(&mut self) -> &mut Vec<u8> {
        self.sink.out()
    }

    fn written(&self) -> u64 {
        self.sink.written()
    }
}

fn pipe<S: Output + Send + 'static>(
    format: SourceFormat,
    reading: Reading,
    frames: FrameRange,
    sink: S,
) -> Box<dyn Pipe + Send>
where
    S::Iri: Send,
    S::Datatype: Send,
{
    Box::new(SourceToSink::new(format, reading, frames, sink))
}

/// Make the sink of a format and do `$use` with it.
#[macro_export]
macro_rules! with_sink {
    ($py:expr, $name:expr, $arguments:expr, |$sink:ident| $use:expr) => {{
        let arguments = $arguments;
        match $name {
            "jelly" => {
                let options = arguments.rdf_options.map(rdf_options_from).transpose()?;
                let $sink = RdfWriter::new(
                    options,
                    arguments.rows_per_frame.unwrap_or(256),
                    arguments.delimited,
                    arguments.namespace_declarations,
                    arguments.keep_frames,
                );
                $use
            }
            "jelly-patch" => {
                let options = arguments.patch_options.map(patch_options_from).transpose()?;
                let rows_per_frame = arguments.rows_per_frame.unwrap_or(512);
                let mut $sink = PatchWriter::new(options, rows_per_frame, arguments.delimited);
                $sink.takes_declarations = arguments.namespace_declarations;
                $use
            }
            "canonical-patch" => {
                let options = arguments.patch_options.map(patch_options_from).transpose()?;
                let (star, generalized) = options.map_or((true, true), |options| {
                    (options.terms.rdf_star, options.terms.generalized)
                });
                let mut $sink = PatchWriter::canonical(star, generalized);
                $sink.takes_declarations = arguments.namespace_declarations;
                $use
            }
            "nquads" => {
                let $sink = TextSink::new(TextFormat::NQuads);
                $use
            }
            "ntriples" => {
                let $sink = TextSink::new(TextFormat::NTriples);
                $use
            }
            "rdf-patch" => {
                let mut $sink = TextSink::new(TextFormat::RdfPatch);
                $sink.takes_declarations = arguments.namespace_declarations;
                $use
            }
            other => {
                return Err($crate::fault::usage_error(format!(
                    "unknown sink format '{other}'; there are jelly, jelly-patch, canonical-patch, nquads, \
                         ntriples, rdf-patch"
                ))
                .into_py($py));
            }
        }
    }};
}

/// What the sinks of `with_sink` are made from.
pub struct SinkArguments<'a, 'py> {
    pub rdf_options: Option<&'a Bound<'py, PyAny>>,
    pub patch_options: Option<&'a Bound<'py, PyAny>>,
    pub rows_per_frame: Option<u64>,
    pub delimited: bool,
    pub namespace_declarations: bool,
    pub keep_frames: bool,
}

/// A pipe from bytes to bytes. Its face: `patchlog.codec.faces.ConverterFace`.
#[pyclass(frozen, module = "patchlog._native")]
pub struct Converter(Guarded<Box<dyn Pipe + Send>>);

#[pymethods]
impl Converter {
    #[new]
    #[pyo3(signature = (
        source, sink, *, limits=None, strict=true, concatenated=false, delimited=None, rdf_options=None,
        patch_options=None, rows_per_frame=None, output_delimited=true, namespace_declarations=false,
        keep_frames=false, frames=None,
    ))]
    #[allow(clippy::too_many_arguments)] // keywords, each with its own name
    fn new(
        py: Python<'_>,
        source: &str,
        sink: &str,
        limits: Option<&Bound<'_, PyAny>>,
        strict: bool,
        concatenated: bool,
        delimited: Option<bool>,
        rdf_options: Option<&Bound<'_, PyAny>>,
        patch_options: Option<&Bound<'_, PyAny>>,
        rows_per_frame: Option<Count>,
        output_delimited: bool,
        namespace_declarations: bool,
        keep_frames: bool,
        frames: Option<(Count, Option<Count>)>,
    ) -> PyResult<Self> {
        let format = SourceFormat::of(source).or_raise(py)?;
        if format.is_patch() && matches!(sink, "jelly" | "nquads" | "ntriples") {
            return Err(usage_error(format!(
                "{sink} holds statements, and {source} holds changes of them: apply the patch to a dataset instead"
            ))
            .into_py(py));
        }
        if frames.is_some() && format != SourceFormat::Jelly {
            return Err(
                usage_error(format!("frames can be chosen from Jelly-RDF, not from {source}")).into_py(py),
            );
        }
        let reading = reading_from(limits, strict, concatenated, delimited)?;
        let range = frames.map_or(ALL_FRAMES, |(first, last)| FrameRange {
            first: first.0,
            last: last.map(|last| last.0),
        });
        let arguments = SinkArguments {
            rdf_options,
            patch_options,
            rows_per_frame: if keep_frames {
                Some(0)
            } else {
                rows_per_frame.map(|rows| rows.0)
            },
            delimited: output_delimited,
            namespace_declarations,
            keep_frames: keep_frames && format == SourceFormat::Jelly,
        };
        Ok(Converter(Guarded::new(with_sink!(py, sink, arguments, |sink| {
            pipe(format, reading, range, sink)
        }))))
    }

    #[getter]
    fn statements(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.peek(py, |pipe| pipe.written())
    }

    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: Data<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let data: &[u8] = &data;
        self.0.with(py, |pipe| {
            py.detach(|| pipe.feed(data))?;
            Ok(take_bytes(py, pipe.out()))
        })
    }

    fn end_frame(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |pipe| pipe.end_frame())
    }

    fn end_input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |pipe| {
            py.detach(|| pipe.end_input())?;
            Ok(take_bytes(py, pipe.out()))
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.with(py, |pipe| {
            py.detach(|| pipe.finish())?;
            Ok(take_bytes(py, pipe.out()))
        })
    }
}
