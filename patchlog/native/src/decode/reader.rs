//! What reads frames, whatever kind of stream they are of: one after another, and row by row.

use crate::decode::frames::{FrameSplitter, Split};
use crate::fault::{Fault, Result, limit_exceeded, unexpected_row, unsupported};
use crate::options::Limits;
use crate::sink::Sink;
use crate::wire::{Fields, LENGTH, Message};

/// How a stream is read.
#[derive(Clone, Copy)]
pub struct Reading {
    pub limits: Limits,
    pub strict: bool,
    pub concatenated: bool,
    pub delimited: Option<bool>,
}

impl Reading {
    /// Whether a frame may have a row of this number, which are counted from 0.
    #[inline(always)]
    fn check_rows(&self, row: u64) -> Result<()> {
        if row < self.limits.max_rows_per_frame {
            Ok(())
        } else {
            Err(too_many_rows(self.limits.max_rows_per_frame).at_row(row))
        }
    }
}

/// What is known of a stream, and what its rows do to a sink.
pub trait Rows {
    type Sink: Sink;
    /// The kinds of row that are known, which are field numbers: a bit for each.
    const KINDS: u32;

    fn reading(&self) -> &Reading;
    /// Whether there was an options row.
    fn has_options(&self) -> bool;
    fn start_frame(&mut self);
    fn row(&mut self, kind: u32, message: Message<'_>, is_first: bool, sink: &mut Self::Sink) -> Result<()>;
    /// What a frame holds beside its rows.
    fn metadata(&mut self, _entry: &[u8]) -> Result<()> {
        Ok(())
    }
    fn end_frame(&mut self, sink: &mut Self::Sink) -> Result<()>;
}

pub struct FrameReader<R: Rows> {
    splitter: FrameSplitter,
    pub(super) rows: R,
}

/// The fields of a frame.
const ROW: u32 = 1;
const METADATA: u32 = 15;

const ROW_TAG: u8 = (ROW as u8) << 3 | LENGTH;

impl<R: Rows> FrameReader<R> {
    pub fn of(rows: R) -> Self {
        let Reading {
            limits,
            strict,
            delimited,
            ..
        } = *rows.reading();
        FrameReader {
            splitter: FrameSplitter::new(limits.max_frame_bytes, strict, delimited),
            rows,
        }
    }

    pub fn delimited(&self) -> Option<bool> {
        self.splitter.delimited()
    }

    pub fn feed(&mut self, data: &[u8]) {
        self.splitter.feed(data);
    }

    pub fn end(&mut self) {
        self.splitter.end();
    }

    /// The index of the frame that `next_frame` reads next.
    pub fn next_index(&self) -> u64 {
        self.splitter.next_frame
    }

    /// Read one frame of what was fed into the sink and return its index; None when more bytes are needed, or none will come.
    pub fn next_frame(&mut self, sink: &mut R::Sink) -> Result<Option<u64>> {
        match self.splitter.split()? {
            Split::Frame { start, end } => {
                let index = self.splitter.next_frame - 1;
                read_frame(&mut self.rows, self.splitter.bytes(start, end), index, sink)?;
                Ok(Some(index))
            }
            Split::Done if !self.rows.has_options() && self.rows.reading().strict => Err(no_options()),
            Split::Done | Split::NeedMore => Ok(None),
        }
    }

    /// Read the first frame of bytes that are not fed, while `is_empty`; how many bytes it took, or None where it is not whole.
    pub fn frame_in(&mut self, data: &[u8], sink: &mut R::Sink) -> Result<Option<usize>> {
        let Split::Frame { start, end } = self.splitter.split_in(data)? else {
            return Ok(None);
        };
        let index = self.splitter.next_frame - 1;
        read_frame(&mut self.rows, &data[start..end], index, sink)?;
        Ok(Some(end))
    }

    /// Whether nothing that was fed waits to be read.
    pub fn is_empty(&self) -> bool {
        self.splitter.is_empty()
    }

    /// How many bytes the frame that has begun wants, as far as that is known.
    pub fn missing(&self) -> usize {
        self.splitter.missing()
    }
}

fn read_frame<R: Rows>(rows: &mut R, data: &[u8], index: u64, sink: &mut R::Sink) -> Result<()> {
    sink.frame_start();
    rows.start_frame();
    let outcome = read_rows(rows, data, sink).and_then(|()| rows.end_frame(sink));
    outcome.map_err(|fault| {
        sink.frame_failed();
        fault.at_frame(index)
    })
}

#[inline(always)]
fn read_rows<R: Rows>(rows: &mut R, data: &[u8], sink: &mut R::Sink) -> Result<()> {
    let mut row = 0;
    let mut fields = Fields::new(data);
    while !fields.is_done() {
        let outcome = if let Some((kind, message)) = fields.short_row(ROW_TAG, R::KINDS) {
            rows.reading().check_rows(row)?;
            rows.row(kind, message, row == 0, sink)
        } else {
            match fields.tag()? {
                (ROW, LENGTH) => {
                    let data = fields.bytes()?;
                    rows.reading().check_rows(row)?;
                    long_row(rows, data, row == 0, sink)
                }
                (METADATA, LENGTH) => {
                    rows.metadata(fields.bytes()?)?;
                    continue;
                }
                (_, wire_type) => {
                    fields.skip(wire_type)?;
                    continue;
                }
            }
        };
        outcome.map_err(|fault| fault.at_row(row))?;
        row += 1;
    }
    Ok(())
}

/// A row that is too long for the short way, or odd.
#[inline(never)]
fn long_row<R: Rows>(rows: &mut R, data: &[u8], is_first: bool, sink: &mut R::Sink) -> Result<()> {
    match split_row(data, R::KINDS)? {
        Some((kind, content)) => rows.row(kind, Message::whole(content), is_first, sink),
        None => Err(empty_row()),
    }
}

/// The kind of a row and its content, where one of the known fields is set.
#[inline(never)]
fn split_row(data: &[u8], known: u32) -> Result<Option<(u32, &[u8])>> {
    let mut row = None;
    let mut fields = Fields::new(data);
    while !fields.is_done() {
        let (field, wire_type) = fields.tag()?;
        if wire_type == LENGTH && field < 32 && known & (1 << field) != 0 {
            row = Some((field, fields.bytes()?));
        } else {
            fields.skip(wire_type)?;
        }
    }
    Ok(row)
}

#[cold]
fn too_many_rows(limit: u64) -> Box<Fault> {
    limit_exceeded(format!(
        "the frame has more than {limit} rows (Limits.max_rows_per_frame)"
    ))
}

#[cold]
fn empty_row() -> Box<Fault> {
    unexpected_row("the row is empty, or of a kind that is not known")
}

#[cold]
pub fn before_options() -> Box<Fault> {
    unexpected_row("a row stands before the options row, which must be the first of the stream")
}

#[cold]
fn no_options() -> Box<Fault> {
    unexpected_row("the stream has no options row")
}

#[cold]
pub fn changed_options() -> Box<Fault> {
    unsupported(
        "a later options row differs from the first: in one stream they must be identical; \
         concatenated files are read with concatenated=True (--concatenated)",
    )
}
