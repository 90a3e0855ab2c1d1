//! Columns of strings in record batches of others, by the Arrow C data interface.
//!
//! Nothing of what a producer says is taken on trust that can be checked: numbers, pointers, offsets, indexes and views are,
//! before memory is read by them. The interface does not say how long validity bitmaps, offsets, indexes and views are: they
//! are as long as the length of their array wants, and the data of strings reaches to the last offset.

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

/// The format of a schema; empty where it is released.
fn format_of(schema: &ArrowSchema) -> &[u8] {
    if schema.format.is_null() {
        return b"";
    }
    // SAFETY: the format of a schema that is not released is a string that ends in zero.
    unsafe { CStr::from_ptr(schema.format) }.to_bytes()
}

fn layout_of(schema: &ArrowSchema) -> Option<Layout> {
    match format_of(schema) {
        b"u" => Some(Layout::Utf8),
        b"U" => Some(Layout::LargeUtf8),
        b"vu" => Some(Layout::Utf8View),
        b"n" => Some(Layout::Null),
        _ => None,
    }
}

fn index_type_of(schema: &ArrowSchema) -> Option<IndexType> {
    Some(match format_of(schema) {
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

/// So many rows need fewer bytes than there are addresses, whatever they are.
const MOST_ROWS: i64 = i64::MAX / 64;

/// The buffers of an array, and where its rows begin in them.
struct Rows<'a> {
    /// The bitmap of rows that are not null; null where no row is.
    validity: *const c_void,
    buffers: &'a [*const c_void],
    offset: usize,
    length: usize,
}

impl<'a> Rows<'a> {
    /// Check what an array says of itself, which has to have at least so many buffers.
    fn of(array: &'a ArrowArray, least_buffers: usize) -> std::result::Result<Self, &'static str> {
        let (offset, length) = (array.offset, array.length);
        if !(0..=MOST_ROWS).contains(&offset) || !(0..=MOST_ROWS).contains(&length) {
            return Err("its length or offset is negative or too large");
        }
        let n_buffers = usize::try_from(array.n_buffers).unwrap_or(0);
        if n_buffers < least_buffers || n_buffers > u32::MAX as usize {
            return Err("it has a wrong number of buffers");
        }
        let buffers: &[*const c_void] = match n_buffers {
            0 => &[],
            _ if array.buffers.is_null() => return Err("it has no buffers"),
            // SAFETY: an array has as many buffers as it says.
            _ => unsafe { std::slice::from_raw_parts(array.buffers, n_buffers) },
        };
        let validity = match buffers.first() {
            Some(&bitmap) if array.null_count != 0 => bitmap,
            _ => ptr::null(),
        };
        let lacks_bitmap = validity.is_null() && least_buffers > 0;
        if !(-1..=length).contains(&array.null_count) || (lacks_bitmap && array.null_count > 0) {
            return Err("its number of nulls is wrong, or it has no bitmap of them");
        }
        Ok(Rows {
            validity,
            buffers,
            offset: offset as usize,
            length: length as usize,
        })
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
    /// Where the data of strings ends: no offset of one is larger. Of views it is how many buffers of data there are.
    end: usize,
    /// All of them were seen to be UTF-8, which is to be had for less at once than one after the other.
    is_utf8: bool,
}

impl<'a> Values<'a> {
    fn of(array: &'a ArrowArray, layout: Layout) -> std::result::Result<Self, &'static str> {
        let least_buffers = if layout == Layout::Null { 0 } else { 3 };
        let rows = Rows::of(array, least_buffers)?;
        let mut end = 0;
        if layout != Layout::Null && rows.length > 0 {
            if rows.buffers[1].is_null() {
                return Err("its buffer of offsets or views is missing");
            }
            let last = rows.offset + rows.length;
            // SAFETY: the layout was read from the schema that came with the array: one more offset than rows.
            end = unsafe {
                match layout {
                    Layout::Utf8 => i64::from(element::<i32>(rows.buffers[1], last)),
                    Layout::LargeUtf8 => element::<i64>(rows.buffers[1], last),
                    // The last buffer holds the lengths of those of data.
                    _ if rows.buffers[rows.buffers.len() - 1].is_null() => 0,
                    _ => rows.buffers.len() as i64 - 3,
                }
            };
            if end != 0 && layout != Layout::Utf8View && rows.buffers[2].is_null() {
                return Err("its buffer of data is missing");
            }
        }
        Ok(Values {
            rows,
            layout,
            end: usize::try_from(end).map_err(|_| "its offsets are negative")?,
            is_utf8: false,
        })
    }

    /// The bytes from one offset to the next.
    #[inline(always)]
    fn between(&self, row: usize, start: i64, end: i64) -> Result<&'a [u8]> {
        if start < 0 || start > end || end as usize > self.end {
            return Err(wrong_offsets(row));
        }
        // SAFETY: the data reaches to the last offset, and there are data where that is not 0.
        Ok(unsafe { slice(self.rows.buffers[2], start as usize, (end - start) as usize) })
    }

    /// The bytes of a view: in it, or where it points to.
    fn viewed(&self, row: usize, at: usize) -> Result<&'a [u8]> {
        let buffers = self.rows.buffers;
        // SAFETY: the layout was read from the schema that came with the array: 16 bytes for each row.
        let (view, length) = unsafe {
            let view = buffers[1].cast::<u8>().add(at * 16);
            (view, view.cast::<i32>().read_unaligned())
        };
        if (0..=12).contains(&length) {
            // SAFETY: so short a string stands in the view.
            return Ok(unsafe { std::slice::from_raw_parts(view.add(4), length as usize) });
        }
        // SAFETY: of a longer one the view says where it stands.
        let (buffer, start): (i32, i32) =
            unsafe { (element(view.add(8).cast(), 0), element(view.add(12).cast(), 0)) };
        if length < 0 || start < 0 || buffer < 0 || buffer as usize >= self.end {
            return Err(wrong_offsets(row));
        }
        let data = buffers[2 + buffer as usize];
        // SAFETY: the last buffer has a length for each buffer of data.
        let size: i64 = unsafe { element(buffers[buffers.len() - 1], buffer as usize) };
        if data.is_null() || i64::from(start) + i64::from(length) > size {
            return Err(wrong_offsets(row));
        }
        // SAFETY: just seen.
        Ok(unsafe { slice(data, start as usize, length as usize) })
    }

    /// The bytes at a row; None where it is null.
    #[inline(always)]
    fn bytes_at(&self, row: usize) -> Result<Option<&'a [u8]>> {
        if self.layout == Layout::Null || self.rows.is_null(row) {
            return Ok(None);
        }
        let at = row + self.rows.offset;
        let offsets = self.rows.buffers[1];
        match self.layout {
            Layout::Utf8 => {
                // SAFETY: the layout was read from the schema that came with the array: one more offset than rows.
                let (start, end): (i32, i32) = unsafe { (element(offsets, at), element(offsets, at + 1)) };
                self.between(row, start.into(), end.into())
            }
            Layout::LargeUtf8 => {
                // SAFETY: as above.
                let (start, end): (i64, i64) = unsafe { (element(offsets, at), element(offsets, at + 1)) };
                self.between(row, start, end)
            }
            Layout::Utf8View | Layout::Null => self.viewed(row, at),
        }
        .map(Some)
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
        if first < 0 || last < first || last as usize > self.end {
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
        let refused = |why: &str| usage_error(format!("this Arrow data is not made of record batches{why}"));
        // Other arrays with children, lists and unions, have other rows than these.
        if format_of(schema) != b"+s" {
            return Err(refused(""));
        }
        if array.release.is_none() {
            return Err(refused(": it is released"));
        }
        let rows = Rows::of(array, 1).map_err(|why| refused(&format!(": {why}")))?;
        if schema.n_children != array.n_children || array.n_children < 0 {
            return Err(refused(": schema and array have different numbers of columns"));
        }
        if array.n_children > 0 && (schema.children.is_null() || array.children.is_null()) {
            return Err(refused(": its columns are missing"));
        }
        // A struct may say of a row that it is null, whatever its columns hold there.
        if let Some(null) = (0..rows.length).find(|&row| rows.is_null(row)) {
            return Err(refused(&format!(": row {null} is null as a whole")));
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
            let children = unsafe {
                let (schema, array) = (*self.schema.children.add(i), *self.array.children.add(i));
                (schema.as_ref(), array.as_ref())
            };
            let (Some(schema), Some(array)) = children else {
                return Err(usage_error(format!("column {i} of the Arrow data is missing")));
            };
            // SAFETY: the name of a child is null or a string that ends in zero.
            let name = if schema.name.is_null() {
                c""
            } else {
                unsafe { CStr::from_ptr(schema.name) }
            };
            if name.to_bytes() == wanted.as_bytes() {
                let begin = self.array.offset as usize;
                return StringColumn::new(schema, array, begin, self.rows())
                    .map(Some)
                    .map_err(|why| {
                        usage_error(format!("the Arrow column {wanted:?} cannot be read: {why}"))
                    });
            }
        }
        Ok(None)
    }
}

impl<'a> StringColumn<'a> {
    /// The column of `length` rows of an array, from `begin` on.
    fn new(
        schema: &'a ArrowSchema,
        array: &'a ArrowArray,
        begin: usize,
        length: usize,
    ) -> std::result::Result<Self, &'static str> {
        const NO_STRINGS: &str = "it does not hold strings";
        let cut = |rows: &mut Rows<'a>| {
            if rows.length < begin + length {
                return Err("it has fewer rows than its batch");
            }
            rows.offset += begin;
            rows.length = length;
            Ok(())
        };
        // SAFETY: a dictionary is null, or a schema that is not released.
        let Some(values_schema) = (unsafe { schema.dictionary.as_ref() }) else {
            let mut values = Values::of(array, layout_of(schema).ok_or(NO_STRINGS)?)?;
            cut(&mut values.rows)?;
            return Ok(StringColumn {
                values,
                indexes: None,
                plain_indexes: &[],
            });
        };
        let index_type = index_type_of(schema).ok_or(NO_STRINGS)?;
        let layout = layout_of(values_schema).ok_or(NO_STRINGS)?;
        let mut rows = Rows::of(array, 2)?;
        if rows.length > 0 && rows.buffers[1].is_null() {
            return Err("its buffer of indexes is missing");
        }
        cut(&mut rows)?;
        // SAFETY: as above.
        let values = unsafe { array.dictionary.as_ref() }.ok_or("its dictionary is missing")?;
        Ok(StringColumn {
            values: Values::of(values, layout)?,
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
            return self.values.bytes_at(row);
        }
        match self.index_at(row) {
            None => Ok(None),
            Some(index) if index < self.values.rows.length => self.values.bytes_at(index),
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
fn wrong_offsets(row: usize) -> Box<Fault> {
    usage_error(format!(
        "value {row} of an Arrow column lies outside of its data: the offsets are wrong"
    ))
}

#[cold]
fn not_utf8(row: usize) -> Box<Fault> {
    invalid_term(format!(
        "row {row} of an Arrow column holds a string that is not UTF-8"
    ))
}
