//! Text in any chunks to whole lines. A line that is too long, or not UTF-8, is an error in its turn.

use crate::fault::{Fault, Result, invalid_syntax, limit_exceeded};

/// A line of text, its LF not counted.
pub const MAX_LINE_BYTES: usize = 64 << 20;

#[derive(Default)]
pub struct Lines {
    /// The begin of a line whose end was not fed yet.
    carry: Vec<u8>,
    /// The number of the last line that was handed over, from 1.
    pub number: u64,
}

#[cold]
fn too_long() -> Box<Fault> {
    limit_exceeded(format!("the line is longer than {MAX_LINE_BYTES} bytes"))
}

impl Lines {
    /// Hand over the lines that are complete, each with its number. Errors of `take` get the number of their line.
    #[inline(always)]
    pub fn feed(&mut self, mut data: &[u8], mut take: impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
        if !self.carry.is_empty() {
            let Some(end) = memchr::memchr(b'\n', data) else {
                return self.keep(data);
            };
            self.keep(&data[..end])?;
            data = &data[end + 1..];
            let line = std::mem::take(&mut self.carry);
            self.hand_over(&line, &mut take)?;
            self.carry = line;
            self.carry.clear();
        }
        let Some(end) = memchr::memrchr(b'\n', data) else {
            return self.keep(data);
        };
        let (block, rest) = (&data[..end], &data[end + 1..]);
        // Checked as a whole where possible: that is several times faster than line by line.
        match std::str::from_utf8(block) {
            Ok(text) => {
                let mut start = 0;
                loop {
                    let found = memchr::memchr(b'\n', &block[start..]);
                    let end = found.map_or(block.len(), |length| start + length);
                    self.hand_over_text(&text[start..end], &mut take)?;
                    if found.is_none() {
                        break;
                    }
                    start = end + 1;
                }
            }
            Err(_) => {
                for line in block.split(|&byte| byte == b'\n') {
                    self.hand_over(line, &mut take)?;
                }
            }
        }
        self.keep(rest)
    }

    /// Hand over a last line without an LF.
    pub fn finish(&mut self, mut take: impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
        let line = std::mem::take(&mut self.carry);
        if line.is_empty() {
            Ok(())
        } else {
            self.hand_over(&line, &mut take)
        }
    }

    fn hand_over(&mut self, line: &[u8], take: &mut impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
        match std::str::from_utf8(line) {
            Ok(text) => self.hand_over_text(text, take),
            Err(_) if line.len() > MAX_LINE_BYTES => Err(too_long().at_line(self.number + 1)),
            Err(error) => {
                let reason = format!("not valid UTF-8 at byte {} of the line", error.valid_up_to());
                Err(invalid_syntax(reason).at_line(self.number + 1))
            }
        }
    }

    #[inline(always)]
    fn hand_over_text(&mut self, line: &str, take: &mut impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
        self.number += 1;
        let number = self.number;
        if line.len() > MAX_LINE_BYTES {
            return Err(too_long().at_line(number));
        }
        let line = if number == 1 {
            line.strip_prefix('\u{FEFF}').unwrap_or(line)
        } else {
            line
        };
        take(number, line).map_err(|fault| fault.at_line(number))
    }

    fn keep(&mut self, data: &[u8]) -> Result<()> {
        if self.carry.len() + data.len() > MAX_LINE_BYTES {
            return Err(too_long().at_line(self.number + 1));
        }
        self.carry.extend_from_slice(data);
        Ok(())
    }
}
