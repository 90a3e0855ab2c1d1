//! Record batches of others to a sink: the Arrow C data interface, consumed.

use std::ffi::{CStr, c_void};

use crate::arrow::abi::{ArrowArray, ArrowSchema};
use crate::decode::nquads::Datatypes;
use crate::fault::{Result, invalid_term, usage_error};
use crate::sink::{Action, LiteralKind, Place, Sink, Transaction};
use crate::text::{Parsed, parse_canonical};

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
struct StringColumn<'a> {
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

/// The string at a row of an array that is not dictionary-encoded.
fn string_at(array: &ArrowArray, layout: Layout, row: usize) -> Result<Option<&str>> {
    if layout == Layout::Null || is_null(array, row) {
        return Ok(None);
    }
    let at = row + array.offset as usize;
    // SAFETY: the layout was read from the schema that came with the array.
    let bytes = unsafe {
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
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(invalid_term(format!(
            "row {row} of an Arrow column holds a string that is not UTF-8"
        ))),
    }
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

    /// The index into the dictionary at a row; None where the row is null.
    fn index_at(&self, index_type: IndexType, row: usize) -> Option<usize> {
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

    fn at(&self, row: usize) -> Result<Option<&'a str>> {
        match self.dictionary {
            None => string_at(self.array, self.layout, row),
            Some((index_type, values, layout)) => match self.index_at(index_type, row) {
                None => Ok(None),
                Some(index) if index < values.length as usize => string_at(values, layout, index),
                Some(index) => Err(usage_error(format!(
                    "row {row} of an Arrow column points to value {index}, which is not there"
                ))),
            },
        }
    }
}

/// What is known of a value of a dictionary.
enum Known<I> {
    Nothing,
    /// Met once: most values are met no more often, and then nothing is kept for them.
    Met,
    Iri(I),
}

/// A column of terms: what the sink made of the values of its dictionary is kept for the batch.
struct TermColumn<'a, S: Sink> {
    strings: StringColumn<'a>,
    known: Vec<Known<S::Iri>>,
    last: Option<usize>,
}

impl<'a, S: Sink> TermColumn<'a, S> {
    fn new(strings: StringColumn<'a>) -> Self {
        let values = strings
            .dictionary
            .map_or(0, |(_, values, _)| values.length as usize);
        TermColumn {
            strings,
            known: (0..values).map(|_| Known::Nothing).collect(),
            last: None,
        }
    }

    /// Set the register of a place from a row; false where the row is null.
    #[inline(always)]
    fn set(&mut self, row: usize, place: Place, datatypes: &mut Datatypes<S>, sink: &mut S) -> Result<bool> {
        let Some((index_type, _, _)) = self.strings.dictionary else {
            let Some(text) = self.strings.at(row)? else {
                return Ok(false);
            };
            set_term(text, place, datatypes, sink)?;
            return Ok(true);
        };
        let Some(index) = self.strings.index_at(index_type, row) else {
            return Ok(false);
        };
        if self.last == Some(index) {
            return Ok(true);
        }
        if let Some(Known::Iri(iri)) = self.known.get(index) {
            sink.iri(place, iri)?;
        } else if !self.set_value(index, row, place, datatypes, sink)? {
            return Ok(false);
        }
        self.last = Some(index);
        Ok(true)
    }

    fn set_value(
        &mut self,
        index: usize,
        row: usize,
        place: Place,
        datatypes: &mut Datatypes<S>,
        sink: &mut S,
    ) -> Result<bool> {
        let Some(text) = self.strings.at(row)? else {
            return Ok(false);
        };
        if !text.starts_with('<') {
            set_term(text, place, datatypes, sink)?;
            return Ok(true);
        }
        match (parse_canonical(text)?, &self.known[index]) {
            (Parsed::Iri(iri), Known::Met) => {
                let made = sink.make_iri(place, "", &iri)?;
                sink.iri(place, &made)?;
                self.known[index] = Known::Iri(made);
            }
            (Parsed::Iri(iri), _) => {
                sink.plain_iri(place, &iri)?;
                self.known[index] = Known::Met;
            }
            _ => set_term(text, place, datatypes, sink)?,
        }
        Ok(true)
    }
}

/// Set a register from canonical text.
#[inline]
pub fn set_term<S: Sink>(text: &str, place: Place, datatypes: &mut Datatypes<S>, sink: &mut S) -> Result<()> {
    match parse_canonical(text)? {
        Parsed::Iri(iri) => sink.plain_iri(place, &iri),
        Parsed::BlankNode(label) => sink.blank_node(place, &label),
        Parsed::Plain(lexical) => sink.literal(place, &lexical, LiteralKind::Plain),
        Parsed::Language(lexical, language) => {
            sink.literal(place, &lexical, LiteralKind::Language(&language))
        }
        Parsed::Typed(lexical, datatype) => datatypes.literal(sink, place, &lexical, &datatype),
        Parsed::Quoted(triple) => sink.quoted_triple(place, &triple),
        Parsed::DefaultGraph if place == Place::Graph => sink.default_graph(),
        Parsed::DefaultGraph => Err(invalid_term(format!(
            "the empty string is not a {}",
            place.word()
        ))),
    }
}

const TERM_NAMES: [&str; 4] = ["subject", "predicate", "object", "graph"];

/// Read a struct array of the columns that `ArrowSink` writes.
///
/// # Safety
/// Schema and array belong together, follow the C data interface and are not released.
pub unsafe fn read_batch<S: Sink>(
    schema: &ArrowSchema,
    array: &ArrowArray,
    datatypes: &mut Datatypes<S>,
    sink: &mut S,
) -> Result<()> {
    let column = |wanted: &str| -> Result<Option<StringColumn<'_>>> {
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
                return StringColumn::new(child, values, wanted).map(Some);
            }
        }
        Ok(None)
    };
    let operation = column("operation")?;
    let name = column("name")?;
    let mut terms: [Option<TermColumn<'_, S>>; 4] = [None, None, None, None];
    for (slot, wanted) in terms.iter_mut().zip(TERM_NAMES) {
        *slot = column(wanted)?.map(TermColumn::new);
    }
    let [Some(subject), Some(predicate), Some(object), graph] = &mut terms else {
        return Err(usage_error(
            "an Arrow batch needs the columns subject, predicate and object",
        ));
    };
    let offset = array.offset as usize;
    for row in offset..offset + array.length as usize {
        let code = match &operation {
            None => "A",
            Some(column) => column
                .at(row)?
                .ok_or_else(|| usage_error(format!("row {row}: operation is null")))?,
        };
        let name_at = || -> Result<&str> {
            let text = name.as_ref().map_or(Ok(None), |column| column.at(row))?;
            text.ok_or_else(|| usage_error(format!("row {row}: an operation {code} needs a name")))
        };
        match code {
            "A" | "+" | "D" | "-" => {
                let mut is_whole = subject.set(row, Place::Subject, datatypes, sink)?;
                is_whole &= predicate.set(row, Place::Predicate, datatypes, sink)?;
                is_whole &= object.set(row, Place::Object, datatypes, sink)?;
                if !is_whole {
                    return Err(invalid_term(format!(
                        "row {row}: a statement needs subject, predicate and object"
                    )));
                }
                let has_graph = match graph {
                    Some(graph) => graph.set(row, Place::Graph, datatypes, sink)?,
                    None => false,
                };
                let action = if matches!(code, "A" | "+") {
                    Action::Add
                } else {
                    Action::Delete
                };
                sink.statement(action, has_graph)?;
            }
            "PA" | "PD" => {
                let has_iri = match object.strings.at(row)? {
                    Some(text) => {
                        set_term(text, Place::Value, datatypes, sink)?;
                        true
                    }
                    None => false,
                };
                let has_graph = match graph {
                    Some(graph) => graph.set(row, Place::Graph, datatypes, sink)?,
                    None => false,
                };
                let action = if code == "PA" { Action::Add } else { Action::Delete };
                sink.namespace(action, name_at()?, has_iri, has_graph)?;
            }
            "H" => {
                let text = object.strings.at(row)?;
                let text =
                    text.ok_or_else(|| invalid_term(format!("row {row}: a header needs a value in object")))?;
                set_term(text, Place::Value, datatypes, sink)?;
                sink.header(name_at()?)?;
            }
            "TX" => sink.transaction(Transaction::Start)?,
            "TC" => sink.transaction(Transaction::Commit)?,
            "TA" => sink.transaction(Transaction::Abort)?,
            "Z" => sink.punctuation()?,
            other => {
                return Err(usage_error(format!(
                    "row {row}: operation {other:?} is not known"
                )));
            }
        }
    }
    Ok(())
}
