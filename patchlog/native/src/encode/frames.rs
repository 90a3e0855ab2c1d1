//! Frames of either kind of stream, filled row by row.

use crate::bytes::{append, append_all};
use crate::wire::{LENGTH, put_bytes, put_varint, varint_size};

/// Frames being written: rows are added to the last one, finished ones wait in `out`.
pub struct Frames {
    pub out: Vec<u8>,
    frame: Vec<u8>,
    pub rows: u64,
    /// Frames that were ended.
    pub ended: u64,
    delimited: bool,
    /// A row that would make its frame larger begins a new one.
    max_bytes: usize,
}

pub const CUT_BYTES: usize = 1 << 20;

impl Frames {
    pub fn new(delimited: bool, max_bytes: Option<usize>) -> Self {
        Frames {
            out: Vec::new(),
            frame: Vec::new(),
            rows: 0,
            ended: 0,
            delimited,
            max_bytes: max_bytes.unwrap_or(usize::MAX),
        }
    }

    /// Bytes of memory that the buffers have.
    pub fn kept_bytes(&self) -> usize {
        self.out.capacity() + self.frame.capacity()
    }

    /// Bytes of the frame being written.
    pub fn size(&self) -> usize {
        self.frame.len()
    }

    #[inline(always)]
    pub fn push_row(&mut self, kind: u32, content: &[u8]) {
        // Kinds are below 16, so their tag is one byte.
        let row_size = 1 + varint_size(content.len() as u64) + content.len();
        let size = 1 + varint_size(row_size as u64) + row_size;
        if self.frame.len() + size > self.max_bytes && self.rows > 0 {
            self.end();
        }
        self.rows += 1;
        let kind = (kind as u8) << 3 | LENGTH;
        if row_size < 0x80 {
            let head = [1 << 3 | LENGTH, row_size as u8, kind, content.len() as u8];
            append_all(&mut self.frame, [&head, content]);
            return;
        }
        self.frame.push(1 << 3 | LENGTH);
        put_varint(&mut self.frame, row_size as u64);
        self.frame.push(kind);
        put_varint(&mut self.frame, content.len() as u64);
        append(&mut self.frame, content);
    }

    pub fn push_metadata(&mut self, key: &str, value: &[u8]) {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, value);
        put_bytes(&mut self.frame, 15, &entry);
    }

    pub fn end(&mut self) {
        if self.delimited {
            put_varint(&mut self.out, self.frame.len() as u64);
        }
        self.out.extend_from_slice(&self.frame);
        self.frame.clear();
        self.rows = 0;
        self.ended += 1;
    }
}
