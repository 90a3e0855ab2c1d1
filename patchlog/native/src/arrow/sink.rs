//! Registers to record batches, dictionary-encoded or plain.

use std::cell::Cell;
use std::sync::Arc;

use crate::arrow::batch::{Batch, Column, Strings, Values};
use crate::fault::Result;
use crate::hash::hash_bytes;
use crate::sink::{Action, LiteralKind, PLACES, Place, QuotedTriple, STATEMENT_PLACES, Sink, Transaction};
use crate::text::{
    Style, datatype_suffix, push_blank_node, push_iri, push_language, push_lexical, push_quoted,
};

pub const STATEMENT_COLUMNS: [&str; 4] = ["subject", "predicate", "object", "graph"];
pub const PATCH_COLUMNS: [&str; 6] = ["operation", "name", "subject", "predicate", "object", "graph"];

/// A batch is closed when its strings reach this size, so that offsets of 32 bits suffice.
const MAX_BATCH_BYTES: usize = 256 << 20;

const NULL: i32 = -1;

/// Distinct strings of a column and how to find them.
struct Table {
    strings: Strings,
    hashes: Vec<u64>,
    buckets: Vec<i32>,
}

impl Table {
    fn new() -> Self {
        Table { strings: Strings::new(), hashes: Vec::new(), buckets: vec![NULL; 256] }
    }

    #[inline(always)]
    fn intern(&mut self, text: &[u8]) -> i32 {
        let hash = hash_bytes(text);
        let mask = self.buckets.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            let index = self.buckets[bucket];
            if index == NULL {
                break;
            }
            if self.hashes[index as usize] == hash && self.strings.get(index as usize) == text {
                return index;
            }
            bucket = (bucket + 1) & mask;
        }
        let index = self.strings.len() as i32;
        self.strings.push(text);
        self.hashes.push(hash);
        self.buckets[bucket] = index;
        if self.hashes.len() * 2 > self.buckets.len() {
            self.grow();
        }
        index
    }

    fn grow(&mut self) {
        let size = self.buckets.len() * 4;
        self.buckets.clear();
        self.buckets.resize(size, NULL);
        for (index, &hash) in self.hashes.iter().enumerate() {
            let mut bucket = hash as usize & (size - 1);
            while self.buckets[bucket] != NULL {
                bucket = (bucket + 1) & (size - 1);
            }
            self.buckets[bucket] = index as i32;
        }
    }

    fn take_strings(&mut self) -> Strings {
        self.hashes.clear();
        self.buckets.fill(NULL);
        std::mem::replace(&mut self.strings, Strings::new())
    }
}

struct ColumnBuilder {
    /// None: the column is plain.
    table: Option<Table>,
    indexes: Vec<i32>,
    strings: Strings,
    validity: Vec<u8>,
    rows: usize,
    null_count: usize,
}

impl ColumnBuilder {
    fn new(is_dictionary: bool) -> Self {
        ColumnBuilder {
            table: is_dictionary.then(Table::new),
            indexes: Vec::new(),
            strings: Strings::new(),
            validity: Vec::new(),
            rows: 0,
            null_count: 0,
        }
    }

    #[inline(always)]
    fn mark(&mut self, is_valid: bool) {
        // Bits are kept only once there is a null: most columns never have one.
        if self.null_count > 0 || !is_valid {
            if self.null_count == 0 {
                self.validity.clear();
                self.validity.resize(self.rows.div_ceil(8), 0xFF);
                if self.rows % 8 != 0 {
                    let last = self.rows / 8;
                    self.validity[last] = (1 << (self.rows % 8)) - 1;
                }
            }
            if self.rows % 8 == 0 {
                self.validity.push(0);
            }
            if is_valid {
                self.validity[self.rows / 8] |= 1 << (self.rows % 8);
            } else {
                self.null_count += 1;
            }
        }
        self.rows += 1;
    }

    #[inline(always)]
    fn push(&mut self, register: &Register) {
        match &self.table {
            Some(_) => self.indexes.push(register.index),
            None => self.strings.push(&register.text),
        }
        self.mark(true);
    }

    fn push_text(&mut self, text: &[u8]) {
        match &mut self.table {
            Some(table) => {
                let index = table.intern(text);
                self.indexes.push(index);
            }
            None => self.strings.push(text),
        }
        self.mark(true);
    }

    fn push_null(&mut self) {
        match &self.table {
            Some(_) => self.indexes.push(0),
            None => self.strings.push(b""),
        }
        self.mark(false);
    }

    fn bytes(&self) -> usize {
        self.table.as_ref().map_or(self.strings.data.len(), |table| table.strings.data.len())
    }

    fn finish(&mut self) -> Column {
        let values = match &mut self.table {
            Some(table) => {
                let mut strings = table.take_strings();
                if strings.len() == 0 && self.null_count > 0 {
                    strings.push(b""); // an index of a null row must still be in range for some readers
                }
                Values::Dictionary { indexes: std::mem::take(&mut self.indexes), strings }
            }
            None => Values::Plain(std::mem::replace(&mut self.strings, Strings::new())),
        };
        let null_count = std::mem::take(&mut self.null_count);
        self.rows = 0;
        Column { values, validity: (null_count > 0).then(|| std::mem::take(&mut self.validity)), null_count }
    }
}

/// What stands in a place: its text, or in a dictionary column its index in the table of this batch.
struct Register {
    text: Vec<u8>,
    index: i32,
}

pub struct ArrowIri {
    text: Box<[u8]>,
    /// For each column the batch in which the IRI was interned last, and its index there.
    interned: [Cell<(u32, i32)>; 4],
}

pub struct ArrowSink {
    is_dictionary: bool,
    is_patch: bool,
    batch_rows: usize,
    /// Counts batches, so that indexes of the one before are not taken for those of this.
    epoch: u32,
    operation: ColumnBuilder,
    name: ColumnBuilder,
    terms: [ColumnBuilder; 4],
    registers: [Register; PLACES],
    graph_is_default: bool,
    rows: usize,
    pub batches: Vec<Arc<Batch>>,
    frame_begin: usize,
    scratch: Vec<u8>,
}

impl ArrowSink {
    pub fn new(is_patch: bool, is_dictionary: bool, batch_rows: usize) -> Self {
        ArrowSink {
            is_dictionary,
            is_patch,
            batch_rows: batch_rows.max(1),
            epoch: 1,
            operation: ColumnBuilder::new(is_dictionary),
            name: ColumnBuilder::new(is_dictionary),
            terms: std::array::from_fn(|_| ColumnBuilder::new(is_dictionary)),
            registers: std::array::from_fn(|_| Register { text: Vec::new(), index: NULL }),
            graph_is_default: true,
            rows: 0,
            batches: Vec::new(),
            frame_begin: 0,
            scratch: Vec::new(),
        }
    }

    pub fn columns(&self) -> &'static [&'static str] {
        if self.is_patch { &PATCH_COLUMNS } else { &STATEMENT_COLUMNS }
    }

    #[inline(always)]
    fn end_row(&mut self) {
        self.rows += 1;
        if self.rows >= self.batch_rows {
            self.close_batch();
        } else if self.rows % 64 == 0 && self.terms.iter().map(ColumnBuilder::bytes).sum::<usize>() > MAX_BATCH_BYTES {
            self.close_batch();
        }
    }

    pub fn close_batch(&mut self) {
        if self.rows == 0 {
            return;
        }
        let mut columns = Vec::with_capacity(6);
        if self.is_patch {
            columns.push(self.operation.finish());
            columns.push(self.name.finish());
        }
        // What repeats in the next row stands in the table of the batch that ends here: take it over.
        if self.is_dictionary {
            for (column, register) in self.terms.iter().zip(&mut self.registers) {
                if let (Some(table), 0..) = (&column.table, register.index) {
                    register.text.clear();
                    register.text.extend_from_slice(table.strings.get(register.index as usize));
                }
            }
        }
        columns.extend(self.terms.iter_mut().map(ColumnBuilder::finish));
        if self.is_dictionary {
            for (column, register) in self.terms.iter_mut().zip(&mut self.registers) {
                if let (Some(table), 0..) = (&mut column.table, register.index) {
                    register.index = table.intern(&register.text);
                }
            }
        }
        self.epoch += 1;
        self.batches.push(Arc::new(Batch { rows: self.rows, columns }));
        self.rows = 0;
    }

    /// Put the text in `scratch` into a place.
    #[inline(always)]
    fn set_scratch(&mut self, place: Place) {
        let index = place as usize;
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        match self.terms.get_mut(index).and_then(|column| column.table.as_mut()) {
            Some(table) => self.registers[index].index = table.intern(&self.scratch),
            None => std::mem::swap(&mut self.registers[index].text, &mut self.scratch),
        }
    }

    #[inline(always)]
    fn push_graph(&mut self, has_graph: bool) {
        if !has_graph {
            self.terms[3].push_null();
        } else if self.graph_is_default {
            self.terms[3].push_text(b"");
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

    fn make_iri(&mut self, prefix: &str, name: &str) -> Result<ArrowIri> {
        let mut text = Vec::with_capacity(prefix.len() + name.len() + 2);
        push_iri(&mut text, Style::Canonical, prefix, name);
        Ok(ArrowIri { text: text.into_boxed_slice(), interned: Default::default() })
    }

    fn make_datatype(&mut self, iri: &str) -> Result<Vec<u8>> {
        Ok(datatype_suffix(iri))
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &ArrowIri) -> Result<()> {
        let index = place as usize;
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        if let Some(table) = self.terms.get_mut(index).and_then(|column| column.table.as_mut()) {
            let (epoch, known) = iri.interned[index].get();
            self.registers[index].index = if epoch == self.epoch {
                known
            } else {
                let made = table.intern(&iri.text);
                iri.interned[index].set((self.epoch, made));
                made
            };
        } else {
            let text = &mut self.registers[index].text;
            text.clear();
            text.extend_from_slice(&iri.text);
        }
        Ok(())
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        self.scratch.clear();
        push_iri(&mut self.scratch, Style::Canonical, "", iri);
        self.set_scratch(place);
        Ok(())
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        self.scratch.clear();
        push_blank_node(&mut self.scratch, Style::Canonical, label);
        self.set_scratch(place);
        Ok(())
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Vec<u8>>) -> Result<()> {
        self.scratch.clear();
        push_lexical(&mut self.scratch, lexical);
        match kind {
            LiteralKind::Plain => {}
            LiteralKind::Language(language) => push_language(&mut self.scratch, language),
            LiteralKind::Typed(suffix) => self.scratch.extend_from_slice(suffix),
        }
        self.set_scratch(place);
        Ok(())
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        self.scratch.clear();
        push_quoted(&mut self.scratch, Style::Canonical, triple);
        self.set_scratch(place);
        Ok(())
    }

    fn default_graph(&mut self) -> Result<()> {
        self.graph_is_default = true;
        Ok(())
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        if self.is_patch {
            self.operation.push_text(if action == Action::Add { b"A" } else { b"D" });
            self.name.push_null();
        }
        for place in &STATEMENT_PLACES[..3] {
            let index = *place as usize;
            self.terms[index].push(&self.registers[index]);
        }
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
