//! Registers to record batches, dictionary-encoded or plain.

use std::sync::Arc;

use crate::arrow::batch::{Batch, Column, Pool, Strings, Values};
use crate::fault::Result;
use crate::hash::hash_bytes;
use crate::sink::{Action, LiteralKind, PLACES, Place, QuotedTriple, Sink, Transaction};
use crate::text::{
    Style, append, datatype_suffix, push_blank_node, push_iri, push_language, push_lexical, push_quoted, same,
};

pub const STATEMENT_COLUMNS: [&str; 4] = ["subject", "predicate", "object", "graph"];
pub const PATCH_COLUMNS: [&str; 6] = ["operation", "name", "subject", "predicate", "object", "graph"];

/// A batch is closed when its strings reach this size, so that offsets of 32 bits suffice.
const MAX_BATCH_BYTES: usize = 256 << 20;

const NULL: i32 = -1;

/// Distinct strings of a column and how to find them.
struct Table {
    strings: Strings,
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

    fn intern(&mut self, text: &[u8]) -> i32 {
        self.strings.data.extend_from_slice(text);
        self.intern_tail()
    }

    /// Where to write a string that `intern_tail` then takes.
    #[inline(always)]
    fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.strings.data
    }

    /// The index of the string at the end of the data, which is removed where it was there before.
    #[inline(always)]
    fn intern_tail(&mut self) -> i32 {
        let start = self.strings.offsets.last().map_or(0, |&offset| offset as usize);
        let text = &self.strings.data[start..];
        let hash = hash_bytes(text) >> 32;
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let entry = self.buckets[bucket];
            if entry == 0 {
                break;
            }
            let index = (entry as u32 - 1) as usize;
            if entry >> 32 == hash && same(self.strings.get(index), text) {
                self.strings.data.truncate(start);
                return index as i32;
            }
            bucket = (bucket + 1) & mask;
        }
        let index = self.strings.len();
        self.strings.offsets.push(self.strings.data.len() as i32);
        self.buckets[bucket] = hash << 32 | (index as u64 + 1);
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

struct ColumnBuilder {
    /// None: the column is plain.
    table: Option<Table>,
    indexes: Vec<i32>,
    strings: Strings,
    /// Kept only once a null stands beside a value: most columns have one or the other.
    validity: Option<Vec<u8>>,
    /// Nulls at the begin of the batch, counted and not yet laid down.
    leading_nulls: usize,
    null_count: usize,
    batch_rows: usize,
}

impl ColumnBuilder {
    fn new(is_dictionary: bool, batch_rows: usize) -> Self {
        ColumnBuilder {
            table: is_dictionary.then(Table::new),
            indexes: Vec::new(),
            strings: Strings::new(),
            validity: None,
            leading_nulls: 0,
            null_count: 0,
            batch_rows,
        }
    }

    #[inline(always)]
    fn rows(&self) -> usize {
        if self.table.is_some() {
            self.indexes.len()
        } else {
            self.strings.len()
        }
    }

    /// Before a value: lay down the nulls that came before any, and mark the value as one where nulls are marked.
    #[inline(always)]
    fn before_value(&mut self) {
        if self.leading_nulls > 0 {
            self.lay_down_nulls();
        }
        if self.validity.is_some() {
            self.mark(true);
        }
    }

    #[inline(never)]
    fn mark(&mut self, is_valid: bool) {
        let row = self.rows();
        if let Some(validity) = &mut self.validity {
            if row % 8 == 0 {
                validity.push(0);
            }
            if is_valid {
                validity[row / 8] |= 1 << (row % 8);
            }
        }
    }

    #[inline(never)]
    fn lay_down_nulls(&mut self) {
        let count = std::mem::take(&mut self.leading_nulls);
        match &self.table {
            Some(_) => self.indexes.resize(count, 0),
            None => self.strings.offsets.resize(count + 1, 0),
        }
        self.validity = Some(vec![0; count.div_ceil(8)]);
        self.null_count = count;
    }

    #[inline(always)]
    fn push_index(&mut self, index: i32) {
        self.before_value();
        if self.indexes.capacity() == 0 {
            self.indexes.reserve(self.batch_rows.min(1 << 16));
        }
        self.indexes.push(index);
    }

    #[inline(always)]
    fn push(&mut self, register: &Register) {
        match &self.table {
            Some(_) => self.push_index(register.index),
            None => {
                self.before_value();
                self.strings.push(&register.text);
            }
        }
    }

    fn push_text(&mut self, text: &[u8]) {
        match &mut self.table {
            Some(table) => {
                let index = table.intern(text);
                self.push_index(index);
            }
            None => {
                self.before_value();
                self.strings.push(text);
            }
        }
    }

    #[inline(always)]
    fn push_null(&mut self) {
        if self.rows() == 0 {
            self.leading_nulls += 1;
        } else {
            self.push_null_after_value();
        }
    }

    #[inline(never)]
    fn push_null_after_value(&mut self) {
        let rows = self.rows();
        self.validity.get_or_insert_with(|| {
            let mut bits = vec![0xFF; rows.div_ceil(8)];
            if rows % 8 != 0 {
                bits[rows / 8] = (1 << (rows % 8)) - 1;
            }
            bits
        });
        self.mark(false);
        match &self.table {
            Some(_) => self.indexes.push(0),
            None => self.strings.push(b""),
        }
        self.null_count += 1;
    }

    fn bytes(&self) -> usize {
        self.table
            .as_ref()
            .map_or(self.strings.data.len(), |table| table.strings.data.len())
    }

    fn finish(&mut self, pool: &Pool) -> Column {
        if self.leading_nulls > 0 {
            self.lay_down_nulls();
        }
        let values = match &mut self.table {
            Some(table) => {
                let mut strings = table.take_strings(pool);
                if strings.len() == 0 && self.null_count > 0 {
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
            validity: self.validity.take(),
            null_count: std::mem::take(&mut self.null_count),
        }
    }
}

/// What stands in a place: its text, or in a dictionary column its index in the table of this batch.
struct Register {
    text: Vec<u8>,
    index: i32,
}

pub enum ArrowIri {
    /// Dictionary columns: where the IRI stands in the table of a place, in the batch of that number.
    Interned { epoch: u32, place: Place, index: i32 },
    /// Plain columns.
    Text(Box<[u8]>),
}

pub struct ArrowSink {
    is_dictionary: bool,
    is_patch: bool,
    batch_rows: usize,
    /// Counts batches, so that indexes of the one before are not taken for those of this.
    epoch: u32,
    operation: ColumnBuilder,
    /// Indexes of A and D in the dictionary of this batch, -1 where they are not there yet.
    action_indexes: [i32; 2],
    /// Index of the default graph in the dictionary of this batch, -1 where it is not there yet.
    default_graph_index: i32,
    name: ColumnBuilder,
    terms: [ColumnBuilder; 4],
    registers: [Register; PLACES],
    graph_is_default: bool,
    rows: usize,
    pub batches: Vec<Arc<Batch>>,
    pool: Arc<Pool>,
    frame_begin: usize,
}

impl ArrowSink {
    pub fn new(is_patch: bool, is_dictionary: bool, batch_rows: usize) -> Self {
        ArrowSink {
            is_dictionary,
            is_patch,
            batch_rows: batch_rows.max(1),
            epoch: 1,
            operation: ColumnBuilder::new(is_dictionary, batch_rows),
            action_indexes: [NULL; 2],
            default_graph_index: NULL,
            name: ColumnBuilder::new(is_dictionary, batch_rows),
            terms: std::array::from_fn(|_| ColumnBuilder::new(is_dictionary, batch_rows)),
            registers: std::array::from_fn(|_| Register {
                text: Vec::new(),
                index: NULL,
            }),
            graph_is_default: true,
            rows: 0,
            batches: Vec::new(),
            pool: Arc::default(),
            frame_begin: 0,
        }
    }

    pub fn columns(&self) -> &'static [&'static str] {
        if self.is_patch {
            &PATCH_COLUMNS
        } else {
            &STATEMENT_COLUMNS
        }
    }

    #[inline(always)]
    fn end_row(&mut self) {
        self.rows += 1;
        if self.rows >= self.batch_rows || (self.rows % 64 == 0 && self.batch_bytes() > MAX_BATCH_BYTES) {
            self.close_batch();
        }
    }

    fn batch_bytes(&self) -> usize {
        self.terms.iter().map(ColumnBuilder::bytes).sum()
    }

    pub fn close_batch(&mut self) {
        if self.rows == 0 {
            return;
        }
        let mut columns = Vec::with_capacity(6);
        self.action_indexes = [NULL; 2];
        self.default_graph_index = NULL;
        if self.is_patch {
            columns.push(self.operation.finish(&self.pool));
            columns.push(self.name.finish(&self.pool));
        }
        // What repeats in the next row stands in the table of the batch that ends here: take it over.
        if self.is_dictionary {
            for (column, register) in self.terms.iter().zip(&mut self.registers) {
                if let (Some(table), 0..) = (&column.table, register.index) {
                    register.text.clear();
                    register
                        .text
                        .extend_from_slice(table.strings.get(register.index as usize));
                }
            }
        }
        columns.extend(self.terms.iter_mut().map(|column| column.finish(&self.pool)));
        if self.is_dictionary {
            for (column, register) in self.terms.iter_mut().zip(&mut self.registers) {
                if let (Some(table), 0..) = (&mut column.table, register.index) {
                    register.index = table.intern(&register.text);
                }
            }
        }
        self.epoch += 1;
        self.batches.push(Arc::new(Batch {
            rows: self.rows,
            columns,
            pool: Arc::clone(&self.pool),
        }));
        self.rows = 0;
    }

    /// Write a term into a place: `write` appends its text.
    #[inline(always)]
    fn set(&mut self, place: Place, write: impl FnOnce(&mut Vec<u8>)) {
        let index = place as usize;
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        match self.terms.get_mut(index).and_then(|column| column.table.as_mut()) {
            Some(table) => {
                write(table.tail());
                self.registers[index].index = table.intern_tail();
            }
            None => {
                let text = &mut self.registers[index].text;
                text.clear();
                write(text);
            }
        }
    }

    #[inline(always)]
    fn push_action(&mut self, action: Action) {
        let known = self.action_indexes[action as usize];
        if known >= 0 {
            self.operation.push_index(known);
            return;
        }
        self.operation
            .push_text(if action == Action::Add { b"A" } else { b"D" });
        if let Some(&index) = self.operation.indexes.last() {
            self.action_indexes[action as usize] = index;
        }
    }

    #[inline(always)]
    fn push_graph(&mut self, has_graph: bool) {
        if !has_graph {
            self.terms[3].push_null();
        } else if self.graph_is_default {
            if self.default_graph_index >= 0 {
                self.terms[3].push_index(self.default_graph_index);
            } else {
                self.terms[3].push_text(b"");
                self.default_graph_index = self.terms[3].indexes.last().copied().unwrap_or(NULL);
            }
        } else {
            self.terms[3].push(&self.registers[3]);
        }
    }

    fn push_other(&mut self, operation: &[u8], name: Option<&[u8]>, has_value: bool, has_graph: bool) {
        if !self.is_patch {
            return;
        }
        self.operation.push_text(operation);
        match name {
            Some(name) => self.name.push_text(name),
            None => self.name.push_null(),
        }
        self.terms[0].push_null();
        self.terms[1].push_null();
        if has_value {
            self.terms[2].push_text(&self.registers[Place::Value as usize].text);
        } else {
            self.terms[2].push_null();
        }
        self.push_graph(has_graph);
        self.end_row();
    }
}

impl Sink for ArrowSink {
    type Iri = ArrowIri;
    type Datatype = Vec<u8>;

    fn make_iri(&mut self, place: Place, prefix: &str, name: &str) -> Result<ArrowIri> {
        if let Some(table) = self
            .terms
            .get_mut(place as usize)
            .and_then(|column| column.table.as_mut())
        {
            push_iri(table.tail(), Style::Canonical, prefix, name);
            return Ok(ArrowIri::Interned {
                epoch: self.epoch,
                place,
                index: table.intern_tail(),
            });
        }
        let mut text = Vec::with_capacity(prefix.len() + name.len() + 2);
        push_iri(&mut text, Style::Canonical, prefix, name);
        Ok(ArrowIri::Text(text.into_boxed_slice()))
    }

    #[inline(always)]
    fn holds_iri(&self, wanted: Place, iri: &ArrowIri) -> bool {
        match iri {
            ArrowIri::Interned { epoch, place, .. } => *epoch == self.epoch && *place == wanted,
            // The value of a header or namespace is never interned.
            ArrowIri::Text(_) => !self.is_dictionary || wanted == Place::Value,
        }
    }

    fn make_datatype(&mut self, iri: &str) -> Result<Vec<u8>> {
        Ok(datatype_suffix(iri))
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &ArrowIri) -> Result<()> {
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        let register = &mut self.registers[place as usize];
        match iri {
            ArrowIri::Interned { index, .. } => register.index = *index,
            ArrowIri::Text(text) => {
                register.text.clear();
                register.text.extend_from_slice(text);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        self.set(place, |out| push_iri(out, Style::Canonical, "", iri));
        Ok(())
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        self.set(place, |out| push_blank_node(out, Style::Canonical, label));
        Ok(())
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Vec<u8>>) -> Result<()> {
        self.set(place, |out| {
            push_lexical(out, lexical);
            match kind {
                LiteralKind::Plain => {}
                LiteralKind::Language(language) => push_language(out, language),
                LiteralKind::Typed(suffix) => append(out, suffix),
            }
        });
        Ok(())
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        self.set(place, |out| push_quoted(out, Style::Canonical, triple));
        Ok(())
    }

    fn default_graph(&mut self) -> Result<()> {
        self.graph_is_default = true;
        Ok(())
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        if self.is_patch {
            self.push_action(action);
            self.name.push_null();
        }
        let [subject, predicate, object, _] = &mut self.terms;
        subject.push(&self.registers[0]);
        predicate.push(&self.registers[1]);
        object.push(&self.registers[2]);
        self.push_graph(has_graph);
        self.end_row();
        Ok(())
    }

    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()> {
        self.push_other(
            if action == Action::Add { b"PA" } else { b"PD" },
            Some(name.as_bytes()),
            has_iri,
            has_graph,
        );
        Ok(())
    }

    fn header(&mut self, key: &str) -> Result<()> {
        self.push_other(b"H", Some(key.as_bytes()), true, false);
        Ok(())
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        let operation: &[u8] = match transaction {
            Transaction::Start => b"TX",
            Transaction::Commit => b"TC",
            Transaction::Abort => b"TA",
        };
        self.push_other(operation, None, false, false);
        Ok(())
    }

    fn punctuation(&mut self) -> Result<()> {
        self.push_other(b"Z", None, false, false);
        Ok(())
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.batches.len();
    }

    fn frame_failed(&mut self) {
        self.batches.truncate(self.frame_begin);
    }
}
