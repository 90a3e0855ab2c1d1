//! A finished record batch and its schema.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use crate::arrow::abi::{ArrowArray, ArrowSchema, NULLABLE, export_array, export_schema};

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

    #[inline(always)]
    pub fn push(&mut self, text: &[u8]) {
        self.data.extend_from_slice(text);
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
