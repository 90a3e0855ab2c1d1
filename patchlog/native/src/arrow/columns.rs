//! Columns of a record batch while its rows come: dictionaries, indexes, strings, and where there are nulls.

use crate::arrow::batch::{Column, Pool, Strings, Values};
use crate::term_hash::{hash_of_word, short};
use crate::text::same;

/// Distinct strings of a column and how to find them.
pub struct Table {
    pub strings: Strings,
    /// The hash of a string in the upper half, its index plus one in the lower; 0 is free. To look a string up that is new
    /// then touches one cache line.
    buckets: Vec<u64>,
}

impl Table {
    fn new() -> Self {
        Table {
            strings: Strings::new(),
            buckets: vec![0; 256],
        }
    }

    pub fn intern(&mut self, text: &[u8], hash: u32) -> i32 {
        self.strings.data.extend_from_slice(text);
        self.intern_tail(hash)
    }

    /// Where to write a string that `intern_tail` then takes.
    #[inline(always)]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.strings.data
    }

    /// The index of the string at the end of the data, which is removed where it was there before. The hash is the same
    /// whenever the string is.
    #[inline(always)]
    pub fn intern_tail(&mut self, hash: u32) -> i32 {
        let start = self.strings.offsets.last().map_or(0, |&offset| offset as usize);
        let text = &self.strings.data[start..];
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let entry = self.buckets[bucket];
            if entry == 0 {
                break;
            }
            let index = (entry as u32 - 1) as usize;
            if (entry >> 32) as u32 == hash && same(self.strings.get(index), text) {
                self.strings.data.truncate(start);
                return index as i32;
            }
            bucket = (bucket + 1) & mask;
        }
        let index = self.strings.len();
        self.strings.offsets.push(self.strings.data.len() as i32);
        self.buckets[bucket] = u64::from(hash) << 32 | (index as u64 + 1);
        if self.strings.len() * 3 > self.buckets.len() * 2 {
            self.grow();
        }
        index as i32
    }

    #[inline(never)]
    fn grow(&mut self) {
        let size = self.buckets.len() * 2;
        for entry in std::mem::replace(&mut self.buckets, vec![0; size]) {
            if entry != 0 {
                let mut bucket = (entry >> 32) as usize & (size - 1);
                while self.buckets[bucket] != 0 {
                    bucket = (bucket + 1) & (size - 1);
                }
                self.buckets[bucket] = entry;
            }
        }
    }

    fn take_strings(&mut self, pool: &Pool) -> Strings {
        self.buckets.fill(0);
        std::mem::replace(&mut self.strings, pool.strings())
    }
}

/// A row has a value once one is pushed for it; rows that were left out are null.
pub struct ColumnBuilder {
    /// None: the column is plain.
    pub table: Option<Table>,
    indexes: Vec<i32>,
    strings: Strings,
    /// Runs of rows without a value: first and behind the last. Found when the next value comes, so a null costs nothing.
    nulls: Vec<(usize, usize)>,
}

impl ColumnBuilder {
    pub fn new(is_dictionary: bool) -> Self {
        ColumnBuilder {
            table: is_dictionary.then(Table::new),
            indexes: Vec::new(),
            strings: Strings::new(),
            nulls: Vec::new(),
        }
    }

    /// Rows that have a value or are known to have none.
    #[inline(always)]
    fn rows(&self) -> usize {
        match self.table {
            Some(_) => self.indexes.len(),
            None => self.strings.len(),
        }
    }

    #[inline(never)]
    fn skip_to(&mut self, row: usize) {
        self.nulls.push((self.rows(), row));
        match self.table {
            Some(_) => self.indexes.resize(row, 0),
            None => self
                .strings
                .offsets
                .resize(row + 1, self.strings.data.len() as i32),
        }
    }

    #[inline(always)]
    pub fn push_index(&mut self, row: usize, index: i32) {
        if self.indexes.len() != row {
            self.skip_to(row);
        }
        self.indexes.push(index);
    }

    #[inline(always)]
    pub fn push_string(&mut self, row: usize, text: &[u8]) {
        if self.strings.len() != row {
            self.skip_to(row);
        }
        self.strings.push(text);
    }

    /// Push a word, which is not a term; its index, where the column has a dictionary.
    pub fn push_word(&mut self, row: usize, word: &[u8]) -> Option<i32> {
        self.push_text(row, word, short(hash_of_word(word)))
    }

    /// Push a text with its hash; its index, where the column has a dictionary.
    pub fn push_text(&mut self, row: usize, text: &[u8], hash: u32) -> Option<i32> {
        let Some(table) = &mut self.table else {
            self.push_string(row, text);
            return None;
        };
        let index = table.intern(text, hash);
        self.push_index(row, index);
        Some(index)
    }

    pub fn bytes(&self) -> usize {
        match &self.table {
            Some(table) => table.strings.data.len(),
            None => self.strings.data.len(),
        }
    }

    /// The column of a batch of `rows`; an empty one is left.
    pub fn finish(&mut self, rows: usize, pool: &Pool) -> Column {
        if self.rows() != rows {
            self.skip_to(rows);
        }
        let validity = (!self.nulls.is_empty()).then(|| validity_of(rows, &self.nulls));
        let null_count = self.nulls.drain(..).map(|(begin, end)| end - begin).sum();
        let values = match &mut self.table {
            Some(table) => {
                let mut strings = table.take_strings(pool);
                if strings.len() == 0 && null_count > 0 {
                    strings.push(b""); // the index of a null row must still be in range for some readers
                }
                Values::Dictionary {
                    indexes: std::mem::replace(&mut self.indexes, pool.indexes()),
                    strings,
                }
            }
            None => Values::Plain(std::mem::replace(&mut self.strings, pool.strings())),
        };
        Column {
            values,
            validity,
            null_count,
        }
    }
}

/// A bit for each row, set where no run of nulls holds it.
fn validity_of(rows: usize, nulls: &[(usize, usize)]) -> Vec<u8> {
    let mut bits = vec![0xFF; rows.div_ceil(8)];
    if rows % 8 != 0 {
        bits[rows / 8] = (1 << (rows % 8)) - 1;
    }
    for &(begin, end) in nulls {
        let mut row = begin;
        while row < end {
            if row % 8 == 0 && row + 8 <= end {
                bits[row / 8] = 0;
                row += 8;
            } else {
                bits[row / 8] &= !(1 << (row % 8));
                row += 1;
            }
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_left_out_are_null() {
        for has_dictionary in [false, true] {
            let mut column = ColumnBuilder::new(has_dictionary);
            for row in [3, 4, 20] {
                column.push_word(row, b"x");
            }

            let column = column.finish(23, &Pool::default());

            assert_eq!(column.null_count, 20);
            assert_eq!(column.validity, Some(vec![0b0001_1000, 0, 0b0001_0000]));
        }
    }

    #[test]
    fn a_column_without_nulls_has_no_bits() {
        let mut column = ColumnBuilder::new(true);
        column.push_word(0, b"x");

        assert_eq!(column.finish(1, &Pool::default()).validity, None);
    }
}
