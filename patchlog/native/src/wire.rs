//! Protobuf's wire format, by hand: varints, tags, fields. Knows no message.

use crate::bytes::{append, append_all};
use crate::fault::{Result, malformed};

pub const VARINT: u8 = 0;
pub const FIXED64: u8 = 1;
pub const LENGTH: u8 = 2;
pub const FIXED32: u8 = 5;

/// Reads the fields of one message.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    pub fn new(data: &'a [u8]) -> Self {
        Fields { data, at: 0 }
    }

    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.at >= self.data.len()
    }

    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64> {
        match self.data.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for i in 0..10 {
            let Some(&byte) = self.data.get(self.at + i) else {
                return Err(malformed("a varint is cut short"));
            };
            value |= u64::from(byte & 0x7F) << (7 * i).min(63);
            if byte < 0x80 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        Err(malformed("a varint is longer than ten bytes"))
    }

    /// The next field's number and wire type.
    #[inline(always)]
    pub fn tag(&mut self) -> Result<(u32, u8)> {
        let tag = self.varint()?;
        if tag > u64::from(u32::MAX) {
            return Err(malformed("a field tag is longer than 32 bits"));
        }
        let field = (tag >> 3) as u32;
        if field == 0 {
            return Err(malformed("field number 0 is not allowed"));
        }
        Ok((field, (tag & 7) as u8))
    }

    #[inline(always)]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        let rest = self.data.len() - self.at;
        if length > rest as u64 {
            return Err(malformed(format!(
                "a field of {length} bytes reaches beyond the end of its message ({rest} bytes are left)"
            )));
        }
        let start = self.at;
        self.at += length as usize;
        Ok(&self.data[start..self.at])
    }

    /// The number of the one field of the next row, and its message, if that row is what nearly all are: its own tag and length,
    /// and those of the field, which is one of the `known`, have a byte each.
    #[inline(always)]
    pub fn short_row(&mut self, row_tag: u8, known: u32) -> Option<(u32, Message<'a>)> {
        let rest = self.data.get(self.at..)?;
        let head = u32::from_le_bytes(*rest.first_chunk()?);
        let [_, row_length, field_tag, length] = head.to_le_bytes().map(u32::from);
        let (field, length) = (field_tag >> 3, length as usize);
        // The row's tag and length, and the tag of its field: high bits say that they are longer.
        let is_short = head & 0x87_80FF == u32::from(LENGTH) << 16 | u32::from(row_tag);
        if !is_short
            || row_length != length as u32 + 2
            || known & (1 << field) == 0
            || length + 4 > rest.len()
        {
            return None;
        }
        self.at += length + 4;
        Some((field, Message::in_front_of(&rest[4..], length)))
    }

    #[inline(never)]
    pub fn skip(&mut self, wire_type: u8) -> Result<()> {
        match wire_type {
            VARINT => {
                self.varint()?;
            }
            LENGTH => {
                self.bytes()?;
            }
            FIXED64 | FIXED32 => {
                let size = if wire_type == FIXED64 { 8 } else { 4 };
                if self.data.len() - self.at < size {
                    return Err(malformed("a fixed-size field is cut short"));
                }
                self.at += size;
            }
            _ => return Err(malformed(format!("wire type {wire_type} is not allowed"))),
        }
        Ok(())
    }
}

/// A message, and what lies behind it: with that, eight bytes can nearly always be read at once.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    data: &'a [u8],
    length: usize,
    /// At how many places a word can be read.
    words: usize,
}

impl<'a> Message<'a> {
    /// The message that the data begins with, which has that many bytes.
    #[inline(always)]
    pub fn in_front_of(data: &'a [u8], length: usize) -> Self {
        Message {
            data,
            length,
            words: data.len().saturating_sub(7),
        }
    }

    #[inline(always)]
    pub fn whole(data: &'a [u8]) -> Self {
        Message::in_front_of(data, data.len())
    }

    /// The message in pieces, as which functions that are not inlined should take it: what is written to memory in pieces
    /// takes the processor long to read as a whole.
    #[inline(always)]
    pub fn pieces(self) -> (&'a [u8], usize) {
        (self.data, self.length)
    }

    #[inline(always)]
    pub fn content(self) -> &'a [u8] {
        &self.data[..self.length]
    }

    #[inline(always)]
    pub fn ends_at(self, at: usize) -> bool {
        at == self.length
    }

    /// Eight bytes from there on, with what lies behind the message; none where there are not as many.
    #[inline(always)]
    pub fn word(self, at: usize) -> Option<u64> {
        if at >= self.words {
            return None;
        }
        // SAFETY: eight bytes or more of the data begin at each place below `words`.
        let bytes = unsafe { self.data.as_ptr().add(at).cast::<[u8; 8]>().read_unaligned() };
        Some(u64::from_le_bytes(bytes))
    }
}

#[inline(always)]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline(always)]
pub fn varint_size(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

#[inline(always)]
pub fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u8) {
    put_varint(out, u64::from(field << 3 | u32::from(wire_type)));
}

#[inline(always)]
pub fn put_bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    if field < 16 && value.len() < 0x80 {
        return append_all(out, [&[(field << 3) as u8 | LENGTH, value.len() as u8], value]);
    }
    put_tag(out, field, LENGTH);
    put_varint(out, value.len() as u64);
    append(out, value);
}

/// A varint field, left out when it is zero as proto3 does.
pub fn put_uint(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        put_tag(out, field, VARINT);
        put_varint(out, value);
    }
}

/// A string or bytes field, left out when it is empty as proto3 does.
pub fn put_string(out: &mut Vec<u8>, field: u32, value: &str) {
    if !value.is_empty() {
        put_bytes(out, field, value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_read_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();

            put_varint(&mut out, value);

            assert_eq!(out.len(), varint_size(value));
            assert_eq!(Fields::new(&out).varint().unwrap(), value);
        }
    }

    #[test]
    fn a_varint_of_eleven_bytes_is_refused() {
        assert!(Fields::new(&[0xFF; 11]).varint().is_err());
    }
}
