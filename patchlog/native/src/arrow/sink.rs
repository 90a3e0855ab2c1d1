//! Registers to record batches, dictionary-encoded or plain.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::arrow::batch::{Batch, Pool, Strings};
use crate::arrow::columns::ColumnBuilder;
use crate::arrow::table::Table;
use crate::bytes::append;
use crate::fault::{Fault, Result, limit_exceeded};
use crate::hash::hash_bytes;
use crate::sink::{
    Action, LiteralKind, PLACES, Part, Place, QuotedTriple, STATEMENT_PLACES, Sink, Transaction,
};
use crate::term_hash::{IriFacts, hash_of_literal, hash_of_parts, hash_of_whole_iri, hash_of_word, short};
use crate::text::{
    Style, datatype_suffix, push_blank_node, push_iri, push_known_iri, push_literal, push_quoted,
};

pub const STATEMENT_COLUMNS: [&str; 4] = ["subject", "predicate", "object", "graph"];
pub const PATCH_COLUMNS: [&str; 6] = ["operation", "name", "subject", "predicate", "object", "graph"];

/// A batch is closed with the row or graph in which its strings reach this size, so that offsets of 32 bits suffice.
const MAX_BATCH_BYTES: usize = 256 << 20;

const NULL: i32 = -1;

/// Rows of dictionary columns are gathered in a block and put into their columns together. Only then it is looked at how large
/// the batch has become.
const BLOCK_ROWS: usize = 64;

/// Terms of this size make blocks of one row: 64 of them could be more than a batch may hold.
const LONG_TERM: usize = 1 << 20;

/// Where the operations of a block are, behind the terms.
const OPERATION: usize = 4;

/// What stands in a place: in a dictionary column its index in the table of this batch, else its text.
struct Register {
    text: Vec<u8>,
    index: i32,
}

/// Where an IRI stands, plus one: in the table of the place that it was made for, or among the loose IRIs.
pub struct ArrowIri(NonZeroU32);

impl ArrowIri {
    #[inline(always)]
    fn at(index: usize) -> Self {
        ArrowIri(NonZeroU32::MIN.saturating_add(index as u32))
    }

    #[inline(always)]
    fn index(&self) -> usize {
        self.0.get() as usize - 1
    }
}

/// IRIs that are in no dictionary: those of plain columns, headers and namespaces. Registers copy them.
struct LooseIris {
    strings: Strings,
    hashes: Vec<u32>,
}

/// When loose IRIs take more than this, they are let go.
const MAX_LOOSE_BYTES: usize = 1 << 20;

/// What follows the lexical form of a literal with a datatype.
pub struct Suffix {
    text: Vec<u8>,
    hash: u64,
}

impl AsRef<[u8]> for Suffix {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

pub struct ArrowSink {
    is_dictionary: bool,
    is_patch: bool,
    batch_rows: usize,
    operation: ColumnBuilder,
    /// Indexes of A and D in the dictionary of this batch, -1 where they are not there yet.
    action_indexes: [i32; 2],
    /// Index of the default graph in the dictionary of this batch, -1 where it is not there yet.
    default_graph_index: i32,
    name: ColumnBuilder,
    terms: [ColumnBuilder; 4],
    registers: [Register; PLACES],
    value_hash: u32,
    loose_iris: LooseIris,
    /// Those of tables are new with each batch, so that indexes of the one before are not taken for those of this.
    stamps: [u32; PLACES],
    /// Stays at `NEVER_AGAIN`, should a stream ever come that far.
    last_stamp: u32,
    graph_is_default: bool,
    rows: usize,
    /// 64 rows, or one as soon as a long term was met.
    block_rows: usize,
    block_begin: usize,
    /// With how many rows the block ends.
    block_end: usize,
    /// For each column the indexes of the rows that it does not have yet.
    block: Box<[[i32; BLOCK_ROWS]; 5]>,
    pub batches: Vec<Arc<Batch>>,
    pool: Arc<Pool>,
    frame_begin: usize,
}

impl ArrowSink {
    pub fn new(is_patch: bool, is_dictionary: bool, batch_rows: usize) -> Self {
        let mut sink = ArrowSink {
            is_dictionary,
            is_patch,
            batch_rows: batch_rows.max(1),
            operation: ColumnBuilder::new(is_dictionary),
            action_indexes: [NULL; 2],
            default_graph_index: NULL,
            name: ColumnBuilder::new(is_dictionary),
            terms: std::array::from_fn(|_| ColumnBuilder::new(is_dictionary)),
            registers: std::array::from_fn(|_| Register {
                text: Vec::new(),
                index: NULL,
            }),
            value_hash: 0,
            loose_iris: LooseIris {
                strings: Strings::new(),
                hashes: Vec::new(),
            },
            stamps: [0; PLACES],
            last_stamp: 0,
            graph_is_default: true,
            rows: 0,
            block_rows: BLOCK_ROWS,
            block_begin: 0,
            block_end: batch_rows.clamp(1, BLOCK_ROWS),
            block: Box::new([[NULL; BLOCK_ROWS]; 5]),
            batches: Vec::new(),
            pool: Arc::default(),
            frame_begin: 0,
        };
        sink.renew_stamps();
        sink
    }

    /// The table of a place, where its column has a dictionary.
    #[inline(always)]
    fn table(&mut self, place: Place) -> Option<&mut Table> {
        self.terms.get_mut(place as usize)?.table.as_mut()
    }

    /// Let go of what was made for the tables of the places.
    fn renew_stamps(&mut self) {
        if self.is_dictionary {
            for place in STATEMENT_PLACES {
                self.last_stamp = self.last_stamp.saturating_add(1);
                self.stamps[place as usize] = self.last_stamp;
            }
        }
    }

    /// A loose IRI can be set in any place that has no table.
    #[inline(never)]
    fn let_go_of_loose_iris(&mut self) {
        self.loose_iris.strings.clear(MAX_LOOSE_BYTES);
        self.loose_iris.hashes.clear();
        self.last_stamp = self.last_stamp.saturating_add(1);
        let first = if self.is_dictionary {
            Place::Value as usize
        } else {
            0
        };
        self.stamps[first..].fill(self.last_stamp);
    }

    pub fn columns(&self) -> &'static [&'static str] {
        if self.is_patch {
            &PATCH_COLUMNS
        } else {
            &STATEMENT_COLUMNS
        }
    }

    #[inline(always)]
    fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows >= self.block_end {
            return self.end_block();
        }
        Ok(())
    }

    #[inline(never)]
    fn end_block(&mut self) -> Result<()> {
        self.push_block();
        if self.rows >= self.batch_rows || self.column_bytes().sum::<usize>() > MAX_BATCH_BYTES {
            self.finish_batch()?;
        }
        self.begin_block();
        Ok(())
    }

    /// The bytes of the strings of each column that may have long ones.
    fn column_bytes(&self) -> impl Iterator<Item = usize> {
        self.terms.iter().chain([&self.name]).map(ColumnBuilder::bytes)
    }

    fn begin_block(&mut self) {
        self.block_begin = self.rows;
        self.block_end = self.batch_rows.min(self.rows + self.block_rows);
    }

    /// From now on look at each row how large the batch has become.
    #[cold]
    fn expect_long_terms(&mut self) {
        self.block_rows = 1;
        self.block_end = 0;
    }

    #[inline(always)]
    fn push_to_block(&mut self, indexes: [i32; 4]) {
        for (column, index) in self.block.iter_mut().zip(indexes) {
            column[(self.rows - self.block_begin) % BLOCK_ROWS] = index;
        }
    }

    /// Put the rows of the block into their columns.
    fn push_block(&mut self) {
        if self.is_dictionary {
            let (first, count) = (self.block_begin, self.rows - self.block_begin);
            let operation = self.is_patch.then_some(&mut self.operation);
            for (column, indexes) in self.terms.iter_mut().chain(operation).zip(self.block.iter()) {
                column.push_indexes(first, &indexes[..count]);
            }
        }
    }

    pub fn close_batch(&mut self) -> Result<()> {
        if self.rows > 0 {
            self.push_block();
            self.finish_batch()?;
            self.begin_block();
        }
        Ok(())
    }

    /// Make a batch of the rows, if there are any, and begin another one with what repeats.
    fn finish_batch(&mut self) -> Result<()> {
        if self.column_bytes().any(|bytes| bytes > i32::MAX as usize) {
            return Err(too_long());
        }
        let mut columns = Vec::with_capacity(6);
        self.action_indexes = [NULL; 2];
        self.default_graph_index = NULL;
        if self.is_patch {
            columns.push(self.operation.finish(self.rows, &self.pool));
            columns.push(self.name.finish(self.rows, &self.pool));
        }
        for (column, register) in self.terms.iter_mut().zip(&mut self.registers) {
            // What repeats in the next row stands in the table of the batch that ends here: take it over.
            let mut hash = 0;
            if let (Some(table), 0..) = (&column.table, register.index) {
                register.text.clear();
                append(&mut register.text, table.strings.get(register.index as usize));
                hash = table.hash(register.index);
            }
            columns.push(column.finish(self.rows, &self.pool));
            if let (Some(table), 0..) = (&mut column.table, register.index) {
                register.index = table.intern(&register.text, hash);
            }
        }
        self.renew_stamps();
        let batch = Batch {
            rows: std::mem::take(&mut self.rows),
            columns,
            pool: Arc::clone(&self.pool),
        };
        if batch.rows > 0 {
            self.batches.push(Arc::new(batch));
        }
        Ok(())
    }

    /// The hash of a term in a place, where it is needed: terms with the same text have the same. It is worked out before the
    /// text is written, as it takes long and what comes next depends on it.
    #[inline(always)]
    fn hash(&self, hash: impl FnOnce() -> u64) -> u32 {
        if self.is_dictionary { short(hash()) } else { 0 }
    }

    /// What to append the text of a term in a place to, which `end_term` then takes.
    #[inline(always)]
    fn begin_term(&mut self, place: Place) -> &mut Vec<u8> {
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        match self
            .terms
            .get_mut(place as usize)
            .and_then(|column| column.table.as_mut())
        {
            Some(table) => table.tail(),
            None => {
                let text = &mut self.registers[place as usize].text;
                text.clear();
                text
            }
        }
    }

    /// Take the text that was appended, which is that of a term of this length.
    #[inline(always)]
    fn end_term(&mut self, place: Place, hash: u32, length: usize) {
        if let Some(table) = self.table(place) {
            self.registers[place as usize].index = table.intern_tail(hash);
        } else if place == Place::Value {
            self.value_hash = hash;
        }
        if length > LONG_TERM {
            self.expect_long_terms();
        }
    }

    #[inline(always)]
    fn push_action(&mut self, action: Action) {
        let known = self.action_indexes[action as usize];
        if known >= 0 {
            self.block[OPERATION][(self.rows - self.block_begin) % BLOCK_ROWS] = known;
        } else {
            let text: &[u8] = if action == Action::Add { b"A" } else { b"D" };
            self.action_indexes[action as usize] = self.push_operation(text);
        }
    }

    /// The index of the operation, where the column has a dictionary.
    #[inline(never)]
    fn push_operation(&mut self, operation: &[u8]) -> i32 {
        let Some(table) = &mut self.operation.table else {
            self.operation.push_string(self.rows, operation);
            return NULL;
        };
        let index = table.intern(operation, short(hash_of_word(operation)));
        self.block[OPERATION][(self.rows - self.block_begin) % BLOCK_ROWS] = index;
        index
    }

    /// Takes the parts in pieces, so that nothing has to be written to memory for a call that is seldom made.
    #[inline(never)]
    fn make_loose_iri(
        &mut self,
        prefix: &str,
        of_prefix: &IriFacts,
        name: &str,
        of_name: &IriFacts,
    ) -> Result<ArrowIri> {
        let (prefix, name) = (Part::new(prefix, of_prefix), Part::new(name, of_name));
        if self.loose_iris.strings.data.len() > MAX_LOOSE_BYTES {
            self.let_go_of_loose_iris();
        }
        let hash = self.hash(|| hash_of_parts(prefix, name));
        let is_plain = prefix.facts.is_plain && name.facts.is_plain;
        let LooseIris { strings, hashes } = &mut self.loose_iris;
        let out = &mut strings.data;
        push_known_iri(out, Style::Canonical, prefix.text, name.text, is_plain);
        let bytes = out.len();
        strings.end();
        hashes.push(hash);
        let index = hashes.len() - 1;
        if bytes > i32::MAX as usize {
            return Err(too_long());
        }
        if prefix.text.len() + name.text.len() > LONG_TERM {
            self.expect_long_terms();
        }
        Ok(ArrowIri::at(index))
    }

    /// The index of the graph register, where columns have dictionaries.
    #[inline(always)]
    fn graph_index(&mut self) -> i32 {
        if self.graph_is_default {
            self.default_graph_index()
        } else {
            self.registers[Place::Graph as usize].index
        }
    }

    #[inline(always)]
    fn default_graph_index(&mut self) -> i32 {
        if self.default_graph_index < 0 {
            if let Some(table) = self.table(Place::Graph) {
                self.default_graph_index = table.intern(b"", short(hash_of_word(b"")));
            }
        }
        self.default_graph_index
    }

    fn push_plain_graph(&mut self) {
        let text: &[u8] = if self.graph_is_default {
            b""
        } else {
            &self.registers[Place::Graph as usize].text
        };
        self.terms[Place::Graph as usize].push_string(self.rows, text);
    }

    fn push_other(
        &mut self,
        operation: &[u8],
        name: Option<&[u8]>,
        has_value: bool,
        has_graph: bool,
    ) -> Result<()> {
        if !self.is_patch {
            return Ok(());
        }
        self.push_operation(operation);
        if let Some(name) = name {
            self.name.push_word(self.rows, name);
            if name.len() > LONG_TERM {
                self.expect_long_terms();
            }
        }
        if self.is_dictionary {
            let (value, hash) = (&self.registers[Place::Value as usize].text, self.value_hash);
            let object = match &mut self.terms[Place::Object as usize].table {
                Some(table) if has_value => table.intern(value, hash),
                _ => NULL,
            };
            let graph = if has_graph { self.graph_index() } else { NULL };
            self.push_to_block([NULL, NULL, object, graph]);
        } else {
            if has_value {
                let value = &self.registers[Place::Value as usize].text;
                self.terms[Place::Object as usize].push_string(self.rows, value);
            }
            if has_graph {
                self.push_plain_graph();
            }
        }
        self.end_row()
    }
}

#[cold]
fn too_long() -> Box<Fault> {
    limit_exceeded("a term is too long for Arrow: the strings of a column must take less than 2 GiB")
}

impl Sink for ArrowSink {
    type Iri = ArrowIri;
    type Datatype = Suffix;
    type Facts = IriFacts;

    #[inline(always)]
    fn facts_of(part: &str) -> IriFacts {
        IriFacts::of(part)
    }

    #[inline(always)]
    fn ascii_with_facts(part: &[u8]) -> Option<(&str, IriFacts)> {
        IriFacts::with_ascii(part)
    }

    #[inline(always)]
    fn stamp(&self, place: Place) -> u32 {
        self.stamps[place as usize]
    }

    /// Inlined, as what it returns would be written in small pieces and read in large ones, which takes the processor longer
    /// than all the rest of it.
    #[inline(always)]
    fn new_iri(
        &mut self,
        place: Place,
        prefix: Part<'_, IriFacts>,
        name: Part<'_, IriFacts>,
    ) -> Result<ArrowIri> {
        let Some(table) = self.table(place) else {
            let iri = self.make_loose_iri(prefix.text, prefix.facts, name.text, name.facts)?;
            self.iri(place, &iri)?;
            return Ok(iri);
        };
        let hash = short(hash_of_parts(prefix, name));
        let is_plain = prefix.facts.is_plain && name.facts.is_plain;
        push_known_iri(table.tail(), Style::Canonical, prefix.text, name.text, is_plain);
        let index = table.intern_tail(hash);
        self.registers[place as usize].index = index;
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        if prefix.text.len() + name.text.len() > LONG_TERM {
            self.expect_long_terms();
        }
        Ok(ArrowIri::at(index as usize))
    }

    fn make_datatype(&mut self, iri: &str) -> Result<Suffix> {
        Ok(Suffix {
            text: datatype_suffix(iri),
            hash: hash_bytes(iri.as_bytes()),
        })
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &ArrowIri) -> Result<()> {
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        let register = &mut self.registers[place as usize];
        if self.is_dictionary && place != Place::Value {
            register.index = iri.index() as i32;
        } else {
            register.text.clear();
            append(&mut register.text, self.loose_iris.strings.get(iri.index()));
            self.value_hash = self.loose_iris.hashes[iri.index()];
        }
        Ok(())
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        let hash = self.hash(|| hash_of_whole_iri(iri.as_bytes()));
        push_iri(self.begin_term(place), Style::Canonical, "", iri);
        self.end_term(place, hash, iri.len());
        Ok(())
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        let hash = self.hash(|| hash_of_word(label.as_bytes()));
        push_blank_node(self.begin_term(place), Style::Canonical, label);
        self.end_term(place, hash, label.len());
        Ok(())
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Suffix>) -> Result<()> {
        let (of_kind, kind_length) = match &kind {
            LiteralKind::Plain => (0, 0),
            LiteralKind::Language(language) => (hash_bytes(language.as_bytes()), language.len()),
            LiteralKind::Typed(datatype) => (datatype.hash, datatype.text.len()),
        };
        let hash = self.hash(|| hash_of_literal(lexical.as_bytes(), of_kind));
        push_literal(self.begin_term(place), lexical, &kind);
        self.end_term(place, hash, lexical.len() + kind_length);
        Ok(())
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        let mut text = Vec::new();
        push_quoted(&mut text, Style::Canonical, triple);
        let hash = self.hash(|| hash_of_word(&text));
        append(self.begin_term(place), &text);
        self.end_term(place, hash, text.len());
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
        }
        if self.is_dictionary {
            let graph = if has_graph { self.graph_index() } else { NULL };
            let [subject, predicate, object, ..] = &self.registers;
            let indexes = [subject.index, predicate.index, object.index, graph];
            self.push_to_block(indexes);
        } else {
            for place in [Place::Subject, Place::Predicate, Place::Object] {
                let text = &self.registers[place as usize].text;
                self.terms[place as usize].push_string(self.rows, text);
            }
            if has_graph {
                self.push_plain_graph();
            }
        }
        self.end_row()
    }

    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()> {
        self.push_other(
            if action == Action::Add { b"PA" } else { b"PD" },
            Some(name.as_bytes()),
            has_iri,
            has_graph,
        )
    }

    fn header(&mut self, key: &str) -> Result<()> {
        self.push_other(b"H", Some(key.as_bytes()), true, false)
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        let operation: &[u8] = match transaction {
            Transaction::Start => b"TX",
            Transaction::Commit => b"TC",
            Transaction::Abort => b"TA",
        };
        self.push_other(operation, None, false, false)
    }

    fn punctuation(&mut self) -> Result<()> {
        self.push_other(b"Z", None, false, false)
    }

    /// Graphs are in their table before there is a row that has them, and of some there never is one.
    fn graph_start(&mut self) -> Result<()> {
        if self.terms[Place::Graph as usize].bytes() > MAX_BATCH_BYTES {
            return self.end_block();
        }
        Ok(())
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.batches.len();
    }

    fn frame_failed(&mut self) {
        self.batches.truncate(self.frame_begin);
    }
}
