//! Frames out of a byte stream: delimited or one bare frame, within a limit, whatever the chunks. Frames that come whole are
//! taken from where they lie, and only those that are cut are put together here.

use crate::fault::{Fault, Result, limit_exceeded, malformed};

/// Holds what was fed and not yet taken. Only bytes of frames within the limit are ever stored.
pub struct FrameSplitter {
    buffer: Vec<u8>,
    taken: usize,
    delimited: Option<bool>,
    max_frame_bytes: u64,
    strict: bool,
    ended: bool,
    /// How many bytes the frame that has begun wants, as far as that is known.
    missing: usize,
    /// The index of the next frame.
    pub next_frame: u64,
}

pub enum Split {
    /// The frame's bytes are those from `start` to `end`, and what follows begins there.
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
            missing: 1,
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

    /// Whether nothing is held that was not taken.
    pub fn is_empty(&self) -> bool {
        self.taken == self.buffer.len()
    }

    /// How many bytes to feed next, so that none are held of the frame behind the one that has begun.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// The next frame of what is held, if it is all there.
    pub fn split(&mut self) -> Result<Split> {
        let buffer = std::mem::take(&mut self.buffer);
        let split = self.split_in(&buffer[self.taken..]);
        self.buffer = buffer;
        match split? {
            Split::Frame { start, end } => {
                let begin = self.taken;
                self.taken += end;
                Ok(Split::Frame {
                    start: begin + start,
                    end: begin + end,
                })
            }
            Split::NeedMore => {
                // What follows belongs to this frame: one allocation instead of many.
                if self.missing < 1 << 20 {
                    self.buffer.reserve(self.missing);
                }
                Ok(Split::NeedMore)
            }
            Split::Done => Ok(Split::Done),
        }
    }

    /// The first frame of bytes that are not held, while nothing is.
    pub fn split_in(&mut self, data: &[u8]) -> Result<Split> {
        let split = self.split_unplaced(data);
        if let Ok(Split::Frame { .. }) = split {
            self.next_frame += 1;
        }
        split.map_err(|fault| fault.at_frame(self.next_frame))
    }

    fn detect(&mut self, data: &[u8]) -> Option<bool> {
        if self.delimited.is_none() {
            self.delimited = match data {
                [] => None,
                [first, ..] if *first != 0x0A => Some(true),
                [_, second, third, ..] => Some(*second == 0x0A && *third != 0x0A),
                _ if self.ended => Some(false),
                _ => None,
            };
        }
        self.delimited
    }

    fn split_unplaced(&mut self, data: &[u8]) -> Result<Split> {
        // As long as nothing else is known.
        self.missing = 1;
        match self.detect(data) {
            Some(true) => self.split_delimited(data),
            Some(false) => self.split_bare(data),
            None if self.ended => Ok(Split::Done),
            None => Ok(Split::NeedMore),
        }
    }

    fn split_bare(&mut self, data: &[u8]) -> Result<Split> {
        if data.len() as u64 > self.max_frame_bytes {
            return Err(self.too_large(data.len() as u64));
        }
        if !self.ended {
            // No more than shows that it is too large.
            let room = self.max_frame_bytes - data.len() as u64;
            self.missing = usize::try_from(room).unwrap_or(usize::MAX).saturating_add(1);
            return Ok(Split::NeedMore);
        }
        if data.is_empty() {
            return Ok(Split::Done);
        }
        Ok(Split::Frame {
            start: 0,
            end: data.len(),
        })
    }

    fn split_delimited(&mut self, data: &[u8]) -> Result<Split> {
        let mut length = 0u64;
        let mut header = 0;
        loop {
            if header == 10 {
                return Err(malformed("a frame length is longer than ten bytes"));
            }
            let Some(&byte) = data.get(header) else {
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
        let (start, end) = (header, header.saturating_add(length as usize));
        if end <= data.len() {
            return Ok(Split::Frame { start, end });
        }
        if !self.ended {
            self.missing = end - data.len();
            return Ok(Split::NeedMore);
        }
        if self.strict {
            return Err(malformed(format!(
                "the stream ends inside a frame: {} of {length} bytes are there",
                data.len() - start
            )));
        }
        Ok(Split::Frame {
            start,
            end: data.len(),
        })
    }

    fn too_large(&self, size: u64) -> Box<Fault> {
        limit_exceeded(format!(
            "a frame of {size} bytes is larger than the limit of {} (Limits.max_frame_bytes)",
            self.max_frame_bytes
        ))
    }
}
