//! Protobuf's wire format, by hand: varints, tags, fields. Knows no message.

use crate::fault::{Result, malformed};
use crate::text::{append, append_all};

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

    /// The number and the content of the one field of the next row, if that row is what nearly all are: its own tag and length,
    /// and those of the field, which is one of the `known`, have a byte each.
    #[inline(always)]
    pub fn short_row(&mut self, row_tag: u8, known: u32) -> Option<(u32, &'a [u8])> {
        let rest = self.data.get(self.at..)?;
        let &[tag, row_length, field_tag, length] = rest.first_chunk()?;
        let end = usize::from(length) + 4;
        let field = u32::from(field_tag >> 3);
        if tag == row_tag
            && field_tag & 0x87 == LENGTH
            && known & (1 << field) != 0
            && row_length < 0x80
            && usize::from(row_length) + 2 == end
        {
            let content = rest.get(4..end)?;
            self.at += end;
            return Some((field, content));
        }
        None
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
