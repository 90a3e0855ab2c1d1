//! A finished record batch and its schema.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use crate::arrow::abi::{ArrowArray, ArrowSchema, NULLABLE, export_array, export_schema};
use crate::bytes::append;

/// Strings one after another, as Arrow lays them out.
pub struct Strings {
    pub offsets: Vec<i32>,
    pub data: Vec<u8>,
}

impl Strings {
    pub fn new() -> Self {
        Strings {
            offsets: vec![0],
            data: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Forget all, and give back the memory of what is more than so many bytes.
    pub fn clear(&mut self, kept: usize) {
        self.offsets.truncate(1);
        self.data.clear();
        self.data.shrink_to(kept);
    }

    #[inline(always)]
    pub fn push(&mut self, text: &[u8]) {
        append(&mut self.data, text);
        self.end();
    }

    /// What was appended to the data is a string.
    #[inline(always)]
    pub fn end(&mut self) {
        // A batch is closed long before its strings outgrow 31 bits.
        self.offsets.push(self.data.len() as i32);
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.data[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

pub enum Values {
    Plain(Strings),
    Dictionary { indexes: Vec<i32>, strings: Strings },
}

pub struct Column {
    pub values: Values,
    /// A bit for each row, set where there is a value; None where all rows have one.
    pub validity: Option<Vec<u8>>,
    pub null_count: usize,
}

pub struct Batch {
    pub rows: usize,
    pub columns: Vec<Column>,
    /// Where the buffers go when nobody needs the batch any more.
    pub pool: Arc<Pool>,
}

/// Buffers of batches that are gone. To write into memory that was used before is several times faster than into
/// memory that the system has to find first.
#[derive(Default)]
pub struct Pool {
    numbers: Mutex<Vec<Vec<i32>>>,
    bytes: Mutex<Vec<Vec<u8>>>,
}

/// More than the buffers of one batch are not kept, nor any larger than this.
const POOLED_BUFFERS: usize = 16;
const POOLED_BYTES: usize = 16 << 20;

fn give<T>(pool: &Mutex<Vec<Vec<T>>>, mut buffer: Vec<T>) {
    if let Ok(mut pool) = pool.lock() {
        if pool.len() < POOLED_BUFFERS && buffer.capacity() * size_of::<T>() <= POOLED_BYTES {
            buffer.clear();
            pool.push(buffer);
        }
    }
}

fn take<T>(pool: &Mutex<Vec<Vec<T>>>) -> Vec<T> {
    pool.lock()
        .ok()
        .and_then(|mut pool| pool.pop())
        .unwrap_or_default()
}

impl Pool {
    pub fn indexes(&self) -> Vec<i32> {
        take(&self.numbers)
    }

    pub fn strings(&self) -> Strings {
        let mut offsets = take(&self.numbers);
        offsets.push(0);
        Strings {
            offsets,
            data: take(&self.bytes),
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for column in self.columns.drain(..) {
            let strings = match column.values {
                Values::Plain(strings) => strings,
                Values::Dictionary { indexes, strings } => {
                    give(&self.pool.numbers, indexes);
                    strings
                }
            };
            give(&self.pool.numbers, strings.offsets);
            give(&self.pool.bytes, strings.data);
        }
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The schema of batches with these columns.
pub fn schema_of(columns: &[&'static str], is_dictionary: bool) -> ArrowSchema {
    let children = columns
        .iter()
        .map(|name| {
            let name = c_string(name);
            if is_dictionary {
                let strings = export_schema(c"u", c"", NULLABLE, Vec::new(), None);
                export_schema(c"i", &name, NULLABLE, Vec::new(), Some(strings))
            } else {
                export_schema(c"u", &name, NULLABLE, Vec::new(), None)
            }
        })
        .collect();
    export_schema(c"+s", c"", 0, children, None)
}

fn pointer<T>(buffer: &[T]) -> *const c_void {
    buffer.as_ptr().cast()
}

impl Batch {
    /// Lend the batch: the array keeps it alive.
    pub fn export(self: &Arc<Batch>) -> ArrowArray {
        let children = self
            .columns
            .iter()
            .map(|column| {
                let validity = column.validity.as_ref().map_or(ptr::null(), |bits| pointer(bits));
                match &column.values {
                    Values::Plain(strings) => {
                        let buffers = vec![validity, pointer(&strings.offsets), pointer(&strings.data)];
                        export_array(
                            Arc::clone(self),
                            self.rows,
                            column.null_count,
                            buffers,
                            Vec::new(),
                            None,
                        )
                    }
                    Values::Dictionary { indexes, strings } => {
                        let buffers = vec![ptr::null(), pointer(&strings.offsets), pointer(&strings.data)];
                        let values =
                            export_array(Arc::clone(self), strings.len(), 0, buffers, Vec::new(), None);
                        let buffers = vec![validity, pointer(indexes)];
                        export_array(
                            Arc::clone(self),
                            self.rows,
                            column.null_count,
                            buffers,
                            Vec::new(),
                            Some(values),
                        )
                    }
                }
            })
            .collect();
        export_array(Arc::clone(self), self.rows, 0, vec![ptr::null()], children, None)
    }
}
