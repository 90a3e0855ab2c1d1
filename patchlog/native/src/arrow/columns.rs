//! Columns of a record batch while its rows come: indexes or strings, and where there are nulls.

use crate::arrow::batch::{Column, Pool, Strings, Values};
use crate::arrow::table::Table;
use crate::term_hash::{hash_of_word, short};

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

    /// Push the indexes of a block of rows. What is negative is null.
    #[inline(always)]
    pub fn push_indexes(&mut self, first_row: usize, indexes: &[i32]) {
        if indexes.iter().fold(0, |all, index| all | index) < 0 {
            for (row, &index) in (first_row..).zip(indexes) {
                if index >= 0 {
                    self.push_index(row, index);
                }
            }
        } else {
            if self.indexes.len() != first_row {
                self.skip_to(first_row);
            }
            self.indexes.extend_from_slice(indexes);
        }
    }

    #[inline(always)]
    pub fn push_string(&mut self, row: usize, text: &[u8]) {
        if self.strings.len() != row {
            self.skip_to(row);
        }
        self.strings.push(text);
    }

    /// Push a word, which is not a term.
    pub fn push_word(&mut self, row: usize, word: &[u8]) {
        match &mut self.table {
            Some(table) => {
                let index = table.intern(word, short(hash_of_word(word)));
                self.push_index(row, index);
            }
            None => self.push_string(row, word),
        }
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
