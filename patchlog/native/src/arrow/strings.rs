//! Columns of strings in record batches of others, by the Arrow C data interface.

use std::ffi::{CStr, c_void};

use crate::arrow::abi::{ArrowArray, ArrowSchema};
use crate::fault::{Result, invalid_term, usage_error};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Utf8,
    LargeUtf8,
    Utf8View,
    Null,
}

#[derive(Clone, Copy)]
enum IndexType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

/// A column of strings as it lies in foreign memory.
pub struct StringColumn<'a> {
    array: &'a ArrowArray,
    layout: Layout,
    dictionary: Option<(IndexType, &'a ArrowArray, Layout)>,
}

fn layout_of(schema: &ArrowSchema) -> Option<Layout> {
    if schema.format.is_null() {
        return None;
    }
    // SAFETY: the format of a schema that is not released is a string that ends in zero.
    match unsafe { CStr::from_ptr(schema.format) }.to_bytes() {
        b"u" => Some(Layout::Utf8),
        b"U" => Some(Layout::LargeUtf8),
        b"vu" => Some(Layout::Utf8View),
        b"n" => Some(Layout::Null),
        _ => None,
    }
}

fn index_type_of(schema: &ArrowSchema) -> Option<IndexType> {
    // SAFETY: as above.
    Some(match unsafe { CStr::from_ptr(schema.format) }.to_bytes() {
        b"c" => IndexType::I8,
        b"C" => IndexType::U8,
        b"s" => IndexType::I16,
        b"S" => IndexType::U16,
        b"i" => IndexType::I32,
        b"I" => IndexType::U32,
        b"l" => IndexType::I64,
        b"L" => IndexType::U64,
        _ => return None,
    })
}

/// The element at `index` of buffer `number`, read as a `T`.
///
/// # Safety
/// The array follows the C data interface, and its buffer holds an element of this type at that index.
unsafe fn element<T: Copy>(array: &ArrowArray, number: usize, index: usize) -> T {
    unsafe {
        (*array.buffers.add(number))
            .cast::<T>()
            .add(index)
            .read_unaligned()
    }
}

fn is_null(array: &ArrowArray, row: usize) -> bool {
    if array.null_count == 0 || array.n_buffers == 0 {
        return false;
    }
    // SAFETY: buffer 0 is the validity bitmap, or null where all rows are valid.
    unsafe {
        let bitmap: *const c_void = *array.buffers;
        !bitmap.is_null() && {
            let at = row + array.offset as usize;
            *bitmap.cast::<u8>().add(at / 8) >> (at % 8) & 1 == 0
        }
    }
}

/// The bytes at a row of an array that is not dictionary-encoded.
#[inline]
fn bytes_at(array: &ArrowArray, layout: Layout, row: usize) -> Option<&[u8]> {
    if layout == Layout::Null || is_null(array, row) {
        return None;
    }
    let at = row + array.offset as usize;
    // SAFETY: the layout was read from the schema that came with the array.
    Some(unsafe {
        match layout {
            Layout::Utf8 => {
                let (start, end): (i32, i32) = (element(array, 1, at), element(array, 1, at + 1));
                slice(array, 2, start as usize, (end - start) as usize)
            }
            Layout::LargeUtf8 => {
                let (start, end): (i64, i64) = (element(array, 1, at), element(array, 1, at + 1));
                slice(array, 2, start as usize, (end - start) as usize)
            }
            Layout::Utf8View => {
                let view = (*array.buffers.add(1)).cast::<u8>().add(at * 16);
                let length = view.cast::<i32>().read_unaligned() as usize;
                if length <= 12 {
                    std::slice::from_raw_parts(view.add(4), length)
                } else {
                    let buffer = view.add(8).cast::<i32>().read_unaligned() as usize;
                    let start = view.add(12).cast::<i32>().read_unaligned() as usize;
                    slice(array, 2 + buffer, start, length)
                }
            }
            Layout::Null => &[],
        }
    })
}

/// # Safety
/// The buffer holds that many bytes from there on.
unsafe fn slice(array: &ArrowArray, number: usize, start: usize, length: usize) -> &[u8] {
    if length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts((*array.buffers.add(number)).cast::<u8>().add(start), length) }
}

impl<'a> StringColumn<'a> {
    /// The column of a name of a record batch, which is a struct array; None where there is none.
    ///
    /// # Safety
    /// Schema and array belong together, follow the C data interface and are not released.
    pub unsafe fn named(
        schema: &'a ArrowSchema,
        array: &'a ArrowArray,
        wanted: &str,
    ) -> Result<Option<Self>> {
        // SAFETY: as in `layout_of`. Other arrays with children, lists and unions, have other rows than these.
        if schema.format.is_null() || unsafe { CStr::from_ptr(schema.format) }.to_bytes() != b"+s" {
            return Err(usage_error("this Arrow data is not made of record batches"));
        }
        for i in 0..schema.n_children as usize {
            // SAFETY: a struct schema has as many children as it says, and so has its array.
            let (child, values) = unsafe { (&**schema.children.add(i), &**array.children.add(i)) };
            // SAFETY: the name of a child is null or a string that ends in zero.
            let name = if child.name.is_null() {
                c""
            } else {
                unsafe { CStr::from_ptr(child.name) }
            };
            if name.to_bytes() == wanted.as_bytes() {
                if values.length < array.offset + array.length {
                    return Err(usage_error(format!(
                        "the Arrow column {wanted:?} has fewer rows than its batch"
                    )));
                }
                return StringColumn::new(child, values, wanted).map(Some);
            }
        }
        Ok(None)
    }

    fn new(schema: &'a ArrowSchema, array: &'a ArrowArray, name: &str) -> Result<Self> {
        let no_strings = || usage_error(format!("the Arrow column {name:?} does not hold strings"));
        if schema.dictionary.is_null() {
            return Ok(StringColumn {
                array,
                layout: layout_of(schema).ok_or_else(no_strings)?,
                dictionary: None,
            });
        }
        let index_type = index_type_of(schema).ok_or_else(no_strings)?;
        // SAFETY: a schema with a dictionary has one that is not released, and so has its array.
        let (values_schema, values) = unsafe { (&*schema.dictionary, &*array.dictionary) };
        let layout = layout_of(values_schema).ok_or_else(no_strings)?;
        Ok(StringColumn {
            array,
            layout: Layout::Null,
            dictionary: Some((index_type, values, layout)),
        })
    }

    /// How many values its dictionary has; None where it has none.
    pub fn dictionary_values(&self) -> Option<usize> {
        self.dictionary.map(|(_, values, _)| values.length as usize)
    }

    /// The index into the dictionary at a row; None where the row is null, or there is no dictionary.
    #[inline(always)]
    pub fn index_at(&self, row: usize) -> Option<usize> {
        let (index_type, _, _) = self.dictionary?;
        if is_null(self.array, row) {
            return None;
        }
        let at = row + self.array.offset as usize;
        // SAFETY: the type was read from the schema that came with the array.
        Some(unsafe {
            match index_type {
                IndexType::I8 => element::<i8>(self.array, 1, at) as usize,
                IndexType::U8 => element::<u8>(self.array, 1, at) as usize,
                IndexType::I16 => element::<i16>(self.array, 1, at) as usize,
                IndexType::U16 => element::<u16>(self.array, 1, at) as usize,
                IndexType::I32 => element::<i32>(self.array, 1, at) as usize,
                IndexType::U32 => element::<u32>(self.array, 1, at) as usize,
                IndexType::I64 => element::<i64>(self.array, 1, at) as usize,
                IndexType::U64 => element::<u64>(self.array, 1, at) as usize,
            }
        })
    }

    /// The bytes of the string at a row; None where the row is null.
    #[inline]
    pub fn bytes_at(&self, row: usize) -> Result<Option<&'a [u8]>> {
        let Some((_, values, layout)) = self.dictionary else {
            return Ok(bytes_at(self.array, self.layout, row));
        };
        match self.index_at(row) {
            None => Ok(None),
            Some(index) if index < values.length as usize => Ok(bytes_at(values, layout, index)),
            Some(index) => Err(usage_error(format!(
                "row {row} of an Arrow column points to value {index}, which is not there"
            ))),
        }
    }

    /// The string at a row; None where the row is null.
    pub fn at(&self, row: usize) -> Result<Option<&'a str>> {
        let Some(bytes) = self.bytes_at(row)? else {
            return Ok(None);
        };
        std::str::from_utf8(bytes).map(Some).map_err(|_| {
            invalid_term(format!(
                "row {row} of an Arrow column holds a string that is not UTF-8"
            ))
        })
    }
}
