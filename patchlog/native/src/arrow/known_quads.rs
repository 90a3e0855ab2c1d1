//! Which rows of a batch hold quads of which only the hashes are known.

use crate::arrow::abi::{ArrowArray, ArrowSchema};
use crate::arrow::strings::ForeignBatch;
use crate::fault::{Result, usage_error};
use crate::xxh64::xxh64;

const COLUMNS: [&str; 4] = ["graph", "subject", "predicate", "object"];
/// What Spark's `xxhash64` begins with.
const SEED: u64 = 42;
/// Of so many hashes that are not known, one is taken for known until it is looked up.
const BITS_PER_HASH: usize = 16;

pub struct KnownQuads {
    hashes: Vec<u64>,
    /// Whether there is a hash that begins with these bits: most rows are done with after one look at this.
    beginnings: Vec<u64>,
    shift: u32,
}

impl KnownQuads {
    pub fn new(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        let bits = (hashes.len() * BITS_PER_HASH).next_power_of_two().max(64);
        let shift = u64::BITS - bits.trailing_zeros();
        let mut beginnings = vec![0; bits / 64];
        for hash in &hashes {
            let at = hash >> shift;
            beginnings[(at / 64) as usize] |= 1 << (at % 64);
        }
        KnownQuads {
            hashes,
            beginnings,
            shift,
        }
    }

    fn has(&self, hash: u64) -> bool {
        let at = hash >> self.shift;
        self.beginnings[(at / 64) as usize] >> (at % 64) & 1 == 1 && self.hashes.binary_search(&hash).is_ok()
    }

    /// Add the numbers of the rows of a struct array whose quads may be known, from `first` on; returns how many rows it has.
    ///
    /// # Safety
    /// Schema and array belong together, follow the C data interface and are not released.
    pub unsafe fn find(
        &self,
        schema: &ArrowSchema,
        array: &ArrowArray,
        first: usize,
        found: &mut Vec<u32>,
    ) -> Result<usize> {
        // SAFETY: promised by the caller.
        let batch = unsafe { ForeignBatch::of(schema, array) }?;
        let columns = COLUMNS.map(|name| {
            let column = batch.column(name)?;
            column.ok_or_else(|| usage_error(format!("an Arrow batch of quads needs the column {name}")))
        });
        // Each column has as many rows as the batch says.
        let mut hashes = Vec::new();
        for column in columns {
            let column = column?;
            hashes.resize(batch.rows(), SEED);
            for (row, hash) in hashes.iter_mut().enumerate() {
                // As in Spark, nothing is made of what is null.
                if let Some(bytes) = column.bytes_at(row)? {
                    *hash = xxh64(bytes, *hash);
                }
            }
        }
        let numbered = hashes.iter().enumerate();
        found.extend(
            numbered
                .filter(|&(_, &hash)| self.has(hash))
                .map(|(row, _)| (first + row) as u32),
        );
        Ok(batch.rows())
    }
}
