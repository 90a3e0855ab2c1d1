//! Columns of strings in record batches of others, by the Arrow C data interface.

use std::ffi::{CStr, c_void};
use std::ptr;

use crate::arrow::abi::{ArrowArray, ArrowSchema};
use crate::fault::{Fault, Result, invalid_term, usage_error};
use crate::scan::is_ascii;

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

/// The element at `index` of a buffer of `T`.
///
/// # Safety
/// The buffer holds an element of this type at that index.
#[inline(always)]
unsafe fn element<T: Copy>(buffer: *const c_void, index: usize) -> T {
    unsafe { buffer.cast::<T>().add(index).read_unaligned() }
}

/// # Safety
/// The buffer holds that many bytes from there on.
#[inline(always)]
unsafe fn slice<'a>(buffer: *const c_void, start: usize, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(buffer.cast::<u8>().add(start), length) }
}

/// The buffers of an array, and where its rows begin in them.
struct Rows<'a> {
    /// The bitmap of rows that are not null; null where no row is.
    validity: *const c_void,
    buffers: &'a [*const c_void],
    offset: usize,
    length: usize,
}

impl<'a> Rows<'a> {
    fn of(array: &'a ArrowArray) -> Self {
        let buffers: &[*const c_void] = if array.n_buffers == 0 || array.buffers.is_null() {
            &[]
        } else {
            // SAFETY: an array has as many buffers as it says.
            unsafe { std::slice::from_raw_parts(array.buffers, array.n_buffers as usize) }
        };
        Rows {
            validity: match buffers.first() {
                Some(&bitmap) if array.null_count != 0 => bitmap,
                _ => ptr::null(),
            },
            buffers,
            offset: array.offset as usize,
            length: array.length as usize,
        }
    }

    #[inline(always)]
    fn is_null(&self, row: usize) -> bool {
        if self.validity.is_null() {
            return false;
        }
        let at = row + self.offset;
        // SAFETY: the bitmap has a bit for each row.
        let bits: u8 = unsafe { element(self.validity, at / 8) };
        bits >> (at % 8) & 1 == 0
    }
}

/// Strings as they lie in foreign memory: those of a column, or of its dictionary.
struct Values<'a> {
    rows: Rows<'a>,
    layout: Layout,
    /// All of them were seen to be UTF-8, which is to be had for less at once than one after the other.
    is_utf8: bool,
}

impl<'a> Values<'a> {
    fn new(rows: Rows<'a>, layout: Layout) -> Self {
        Values {
            rows,
            layout,
            is_utf8: false,
        }
    }

    /// The bytes at a row; None where it is null.
    #[inline(always)]
    fn bytes_at(&self, row: usize) -> Option<&'a [u8]> {
        if self.layout == Layout::Null || self.rows.is_null(row) {
            return None;
        }
        let at = row + self.rows.offset;
        let buffers = self.rows.buffers;
        // SAFETY: the layout was read from the schema that came with the array.
        Some(unsafe {
            match self.layout {
                Layout::Utf8 => {
                    let (start, end): (i32, i32) = (element(buffers[1], at), element(buffers[1], at + 1));
                    slice(buffers[2], start as usize, (end - start) as usize)
                }
                Layout::LargeUtf8 => {
                    let (start, end): (i64, i64) = (element(buffers[1], at), element(buffers[1], at + 1));
                    slice(buffers[2], start as usize, (end - start) as usize)
                }
                Layout::Utf8View => {
                    let view = buffers[1].cast::<u8>().add(at * 16);
                    let length = view.cast::<i32>().read_unaligned() as usize;
                    if length <= 12 {
                        std::slice::from_raw_parts(view.add(4), length)
                    } else {
                        let buffer = view.add(8).cast::<i32>().read_unaligned() as usize;
                        let start = view.add(12).cast::<i32>().read_unaligned() as usize;
                        slice(buffers[2 + buffer], start, length)
                    }
                }
                Layout::Null => &[],
            }
        })
    }

    /// Look whether all strings are UTF-8. What is not, or in another layout, is looked at string by string.
    fn check_utf8(&mut self) {
        let rows = &self.rows;
        if self.layout != Layout::Utf8 || !rows.validity.is_null() || rows.length == 0 {
            return;
        }
        let start = |row: usize| -> i32 {
            // SAFETY: the layout was read from the schema that came with the array: one more offset than rows.
            unsafe { element(rows.buffers[1], rows.offset + row) }
        };
        let (first, last) = (start(0), start(rows.length));
        if first < 0 || last < first {
            return;
        }
        // SAFETY: the strings of the rows lie between the first and the last offset.
        let text = unsafe { slice(rows.buffers[2], first as usize, (last - first) as usize) };
        let Ok(text) = std::str::from_utf8(text) else {
            return;
        };
        // Each string has to begin where a character begins.
        self.is_utf8 = (0..rows.length)
            .all(|row| start(row) <= start(row + 1) && text.is_char_boundary((start(row) - first) as usize));
    }
}

/// A column of strings as it lies in foreign memory.
pub struct StringColumn<'a> {
    /// Those of the dictionary, where there is one.
    values: Values<'a>,
    indexes: Option<(IndexType, Rows<'a>)>,
    /// The indexes of the rows, where they are as nearly all are: of 32 bits. Those of rows that are null say nothing.
    plain_indexes: &'a [i32],
}

/// The indexes of an array of them, where they are of 32 bits; else nothing.
fn plain_indexes<'a>(index_type: IndexType, rows: &Rows<'a>) -> &'a [i32] {
    match rows.buffers.get(1) {
        Some(buffer) if matches!(index_type, IndexType::I32) && rows.length > 0 => {
            let first = buffer.cast::<i32>();
            if first.is_null() || !first.is_aligned() {
                return &[];
            }
            // SAFETY: the type was read from the schema that came with the array, which has as many as it says.
            unsafe { std::slice::from_raw_parts(first.add(rows.offset), rows.length) }
        }
        _ => &[],
    }
}

/// A record batch as it lies in foreign memory: a struct array.
pub struct ForeignBatch<'a> {
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
}

impl<'a> ForeignBatch<'a> {
    /// # Safety
    /// Schema and array belong together, follow the C data interface and are not released.
    pub unsafe fn of(schema: &'a ArrowSchema, array: &'a ArrowArray) -> Result<Self> {
        // SAFETY: as in `layout_of`. Other arrays with children, lists and unions, have other rows than these.
        if schema.format.is_null() || unsafe { CStr::from_ptr(schema.format) }.to_bytes() != b"+s" {
            return Err(usage_error("this Arrow data is not made of record batches"));
        }
        let rows = Rows::of(array);
        // A struct may say of a row that it is null, whatever its columns hold there.
        if let Some(null) = (0..rows.length).find(|&row| rows.is_null(row)) {
            return Err(usage_error(format!(
                "this Arrow data is not made of record batches: row {null} is null as a whole"
            )));
        }
        Ok(ForeignBatch { schema, array })
    }

    pub fn rows(&self) -> usize {
        self.array.length as usize
    }

    /// The column of this name, with the rows of the batch; None where there is none.
    pub fn column(&self, wanted: &str) -> Result<Option<StringColumn<'a>>> {
        for i in 0..self.schema.n_children as usize {
            // SAFETY: a struct schema has as many children as it says, and so has its array.
            let (schema, array) = unsafe { (&**self.schema.children.add(i), &**self.array.children.add(i)) };
            // SAFETY: the name of a child is null or a string that ends in zero.
            let name = if schema.name.is_null() {
                c""
            } else {
                unsafe { CStr::from_ptr(schema.name) }
            };
            if name.to_bytes() == wanted.as_bytes() {
                let mut rows = Rows::of(array);
                let begin = self.array.offset as usize;
                if rows.length < begin + self.rows() {
                    return Err(usage_error(format!(
                        "the Arrow column {wanted:?} has fewer rows than its batch"
                    )));
                }
                rows.offset += begin;
                rows.length = self.rows();
                return StringColumn::new(schema, array, rows, wanted).map(Some);
            }
        }
        Ok(None)
    }
}

impl<'a> StringColumn<'a> {
    fn new(schema: &'a ArrowSchema, array: &'a ArrowArray, rows: Rows<'a>, name: &str) -> Result<Self> {
        let no_strings = || usage_error(format!("the Arrow column {name:?} does not hold strings"));
        if schema.dictionary.is_null() {
            return Ok(StringColumn {
                values: Values::new(rows, layout_of(schema).ok_or_else(no_strings)?),
                indexes: None,
                plain_indexes: &[],
            });
        }
        let index_type = index_type_of(schema).ok_or_else(no_strings)?;
        // SAFETY: a schema with a dictionary has one that is not released, and so has its array.
        let (values_schema, values) = unsafe { (&*schema.dictionary, &*array.dictionary) };
        Ok(StringColumn {
            values: Values::new(Rows::of(values), layout_of(values_schema).ok_or_else(no_strings)?),
            plain_indexes: plain_indexes(index_type, &rows),
            indexes: Some((index_type, rows)),
        })
    }

    /// Look whether all strings are UTF-8, for `rows` rows of which each will be asked for: less work than to look at each.
    pub fn check_utf8(&mut self, rows: usize) {
        // A dictionary may be that of a larger table, of which this batch uses a little.
        if self.values.rows.length <= 2 * rows {
            self.values.check_utf8();
        }
    }

    /// How many values its dictionary has; None where it has none.
    #[inline(always)]
    pub fn dictionary_values(&self) -> Option<usize> {
        self.indexes.as_ref().map(|_| self.values.rows.length)
    }

    /// The index into the dictionary at a row; None where the row is null, or there is no dictionary.
    #[inline(always)]
    pub fn index_at(&self, row: usize) -> Option<usize> {
        match (&self.indexes, self.plain_indexes.get(row)) {
            (Some((_, rows)), Some(&index)) => (!rows.is_null(row)).then_some(index as usize),
            _ => self.any_index_at(row),
        }
    }

    #[inline(never)]
    fn any_index_at(&self, row: usize) -> Option<usize> {
        let (index_type, rows) = self.indexes.as_ref()?;
        if rows.is_null(row) {
            return None;
        }
        let (indexes, at) = (rows.buffers[1], row + rows.offset);
        // SAFETY: the type was read from the schema that came with the array.
        Some(unsafe {
            match index_type {
                IndexType::I8 => element::<i8>(indexes, at) as usize,
                IndexType::U8 => element::<u8>(indexes, at) as usize,
                IndexType::I16 => element::<i16>(indexes, at) as usize,
                IndexType::U16 => element::<u16>(indexes, at) as usize,
                IndexType::I32 => element::<i32>(indexes, at) as usize,
                IndexType::U32 => element::<u32>(indexes, at) as usize,
                IndexType::I64 => element::<i64>(indexes, at) as usize,
                IndexType::U64 => element::<u64>(indexes, at) as usize,
            }
        })
    }

    /// The bytes of the string at a row; None where the row is null.
    #[inline(always)]
    pub fn bytes_at(&self, row: usize) -> Result<Option<&'a [u8]>> {
        if self.indexes.is_none() {
            return Ok(self.values.bytes_at(row));
        }
        match self.index_at(row) {
            None => Ok(None),
            Some(index) if index < self.values.rows.length => Ok(self.values.bytes_at(index)),
            Some(index) => Err(usage_error(format!(
                "row {row} of an Arrow column points to value {}, which is not there",
                index as isize
            ))),
        }
    }

    /// The string at a row; None where the row is null.
    #[inline(always)]
    pub fn at(&self, row: usize) -> Result<Option<&'a str>> {
        let Some(bytes) = self.bytes_at(row)? else {
            return Ok(None);
        };
        if self.values.is_utf8 || is_ascii(bytes) {
            // SAFETY: just seen, or seen when all strings were looked at.
            return Ok(Some(unsafe { std::str::from_utf8_unchecked(bytes) }));
        }
        std::str::from_utf8(bytes).map(Some).map_err(|_| not_utf8(row))
    }
}

#[cold]
fn not_utf8(row: usize) -> Box<Fault> {
    invalid_term(format!(
        "row {row} of an Arrow column holds a string that is not UTF-8"
    ))
}
