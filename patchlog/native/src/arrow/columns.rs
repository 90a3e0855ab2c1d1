//! Columns of a record batch while its rows come: dictionaries, indexes, strings, and where there are nulls.

use crate::arrow::batch::{Column, Pool, Strings, Values};
use crate::term_hash::{hash_of_word, short};
use crate::text::{append, same};

/// Distinct strings of a column and how to find them.
pub struct Table {
    pub strings: Strings,
    /// The hash of each string.
    hashes: Vec<u32>,
    /// The index of a string plus one in the lower bits, as many as number the buckets, and in the others those of its hash;
    /// 0 is free. Small, as all of it is in use all the time.
    buckets: Vec<u32>,
    /// So many strings are too many for so many buckets.
    grow_at: usize,
}

const FIRST_BUCKETS: usize = 256;

/// A third of the buckets may be taken: the first that is looked at is then nearly always free where a string is new, which
/// the processor can foretell. With two thirds its wrong guesses took a tenth of the time.
const fn grow_at(buckets: usize) -> usize {
    buckets / 3
}

impl Table {
    fn new() -> Self {
        Table {
            strings: Strings::new(),
            hashes: Vec::new(),
            buckets: vec![0; FIRST_BUCKETS],
            grow_at: grow_at(FIRST_BUCKETS),
        }
    }

    /// The hash that the string was interned with.
    pub fn hash(&self, index: i32) -> u32 {
        self.hashes[index as usize]
    }

    /// The index of a string. The hash is the same whenever the string is.
    pub fn intern(&mut self, text: &[u8], hash: u32) -> i32 {
        append(self.tail(), text);
        self.intern_tail(hash)
    }

    /// What to append the next string to.
    #[inline(always)]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.strings.data
    }

    /// The index of a string that was appended, which is removed where it was there before.
    #[inline(always)]
    pub fn intern_tail(&mut self, hash: u32) -> i32 {
        let bucket = hash as usize & (self.buckets.len() - 1);
        if self.buckets[bucket] == 0 {
            self.add_tail(bucket, hash)
        } else {
            self.search_tail(bucket, hash)
        }
    }

    /// The string at the end of the data is new, and this bucket is free.
    #[inline(always)]
    fn add_tail(&mut self, bucket: usize, hash: u32) -> i32 {
        let mask = self.buckets.len() as u32 - 1;
        self.hashes.push(hash);
        let count = self.hashes.len();
        self.buckets[bucket] = hash & !mask | count as u32;
        self.strings.end();
        if count >= self.grow_at {
            self.grow();
        }
        count as i32 - 1
    }

    #[inline(never)]
    fn search_tail(&mut self, mut bucket: usize, hash: u32) -> i32 {
        let mask = self.buckets.len() - 1;
        let tag = hash & !(mask as u32);
        loop {
            let entry = self.buckets[bucket];
            if entry == 0 {
                return self.add_tail(bucket, hash);
            }
            if entry & !(mask as u32) == tag {
                let index = (entry as usize & mask) - 1;
                let start = self.strings.offsets.last().map_or(0, |&offset| offset as usize);
                if same(self.strings.get(index), &self.strings.data[start..]) {
                    self.strings.data.truncate(start);
                    return index as i32;
                }
            }
            bucket = (bucket + 1) & mask;
        }
    }

    #[inline(never)]
    fn grow(&mut self) {
        let mask = self.buckets.len() * 2 - 1;
        self.buckets.clear();
        self.buckets.resize(mask + 1, 0);
        self.grow_at = grow_at(mask + 1);
        for (count, &hash) in (1..).zip(&self.hashes) {
            let mut bucket = hash as usize & mask;
            while self.buckets[bucket] != 0 {
                bucket = (bucket + 1) & mask;
            }
            self.buckets[bucket] = hash & !(mask as u32) | count;
        }
    }

    fn take_strings(&mut self, pool: &Pool) -> Strings {
        self.buckets.fill(0);
        self.hashes.clear();
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
