//! Frames out of a byte stream: delimited or one bare frame, within a limit, whatever the chunks.

use crate::fault::{Fault, Result, limit_exceeded, malformed};

/// Holds what was fed and not yet taken. Only bytes of frames within the limit are ever stored.
pub struct FrameSplitter {
    buffer: Vec<u8>,
    taken: usize,
    delimited: Option<bool>,
    max_frame_bytes: u64,
    strict: bool,
    ended: bool,
    /// The index of the next frame.
    pub next_frame: u64,
}

pub enum Split {
    /// The frame's bytes are `buffer[start..end]`.
    Frame {
        start: usize,
        end: usize,
    },
    NeedMore,
    Done,
}

impl FrameSplitter {
    pub fn new(max_frame_bytes: u64, strict: bool, delimited: Option<bool>) -> Self {
        FrameSplitter {
            buffer: Vec::new(),
            taken: 0,
            delimited,
            max_frame_bytes,
            strict,
            ended: false,
            next_frame: 0,
        }
    }

    pub fn delimited(&self) -> Option<bool> {
        self.delimited
    }

    /// Forget what was taken and add `data`.
    pub fn feed(&mut self, data: &[u8]) {
        if self.taken == self.buffer.len() {
            self.buffer.clear();
        } else if self.taken > 0 {
            self.buffer.drain(..self.taken);
        }
        self.taken = 0;
        self.buffer.extend_from_slice(data);
    }

    pub fn end(&mut self) {
        self.ended = true;
    }

    pub fn bytes(&self, start: usize, end: usize) -> &[u8] {
        &self.buffer[start..end]
    }

    fn detect(&mut self) -> Option<bool> {
        if self.delimited.is_none() {
            let rest = &self.buffer[self.taken..];
            self.delimited = match rest {
                [] => None,
                [first, ..] if *first != 0x0A => Some(true),
                [_, second, third, ..] => Some(*second == 0x0A && *third != 0x0A),
                _ if self.ended => Some(false),
                _ => None,
            };
        }
        self.delimited
    }

    /// The next frame, if it is all there.
    pub fn split(&mut self) -> Result<Split> {
        let frame = self.next_frame;
        self.split_unplaced().map_err(|fault| fault.at_frame(frame))
    }

    fn split_unplaced(&mut self) -> Result<Split> {
        let Some(delimited) = self.detect() else {
            return Ok(if self.ended { Split::Done } else { Split::NeedMore });
        };
        if delimited {
            self.split_delimited()
        } else {
            self.split_bare()
        }
    }

    fn split_bare(&mut self) -> Result<Split> {
        let size = self.buffer.len() - self.taken;
        if size as u64 > self.max_frame_bytes {
            return Err(self.too_large(size as u64));
        }
        if !self.ended {
            return Ok(Split::NeedMore);
        }
        if size == 0 {
            return Ok(Split::Done);
        }
        Ok(self.take(self.taken, self.buffer.len()))
    }

    fn split_delimited(&mut self) -> Result<Split> {
        let rest = &self.buffer[self.taken..];
        let mut length = 0u64;
        let mut header = 0;
        loop {
            if header == 10 {
                return Err(malformed("a frame length is longer than ten bytes"));
            }
            let Some(&byte) = rest.get(header) else {
                if !self.ended {
                    return Ok(Split::NeedMore);
                }
                return if header == 0 {
                    Ok(Split::Done)
                } else {
                    Err(malformed("the stream ends inside a frame length"))
                };
            };
            length |= u64::from(byte & 0x7F) << (7 * header).min(63);
            header += 1;
            if byte < 0x80 {
                break;
            }
        }
        if length > self.max_frame_bytes {
            return Err(self.too_large(length));
        }
        let start = self.taken + header;
        let end = start + length as usize;
        if end <= self.buffer.len() {
            return Ok(self.take(start, end));
        }
        if !self.ended {
            // What follows belongs to this frame: one allocation instead of many.
            let missing = end - self.buffer.len();
            if missing < 1 << 20 {
                self.buffer.reserve(missing);
            }
            return Ok(Split::NeedMore);
        }
        if self.strict {
            return Err(malformed(format!(
                "the stream ends inside a frame: {} of {length} bytes are there",
                self.buffer.len() - start
            )));
        }
        Ok(self.take(start, self.buffer.len()))
    }

    fn take(&mut self, start: usize, end: usize) -> Split {
        self.taken = end;
        self.next_frame += 1;
        Split::Frame { start, end }
    }

    fn too_large(&self, size: u64) -> Box<Fault> {
        limit_exceeded(format!(
            "a frame of {size} bytes is larger than the limit of {} (Limits.max_frame_bytes)",
            self.max_frame_bytes
        ))
    }
}
