//! Registers to record batches, dictionary-encoded or plain.

use std::sync::Arc;

use crate::arrow::batch::{Batch, Pool};
use crate::arrow::columns::ColumnBuilder;
use crate::fault::Result;
use crate::hash::hash_bytes;
use crate::sink::{Action, LiteralKind, PLACES, Part, Place, QuotedTriple, Sink, Transaction};
use crate::term_hash::{IriFacts, hash_of_literal, hash_of_parts, hash_of_whole_iri, hash_of_word, short};
use crate::text::{
    Style, append, datatype_suffix, push_blank_node, push_iri, push_known_iri, push_literal, push_quoted,
};

pub const STATEMENT_COLUMNS: [&str; 4] = ["subject", "predicate", "object", "graph"];
pub const PATCH_COLUMNS: [&str; 6] = ["operation", "name", "subject", "predicate", "object", "graph"];

/// A batch is closed when its strings reach this size, so that offsets of 32 bits suffice.
const MAX_BATCH_BYTES: usize = 256 << 20;

const NULL: i32 = -1;

/// What stands in a place: its text, or in a dictionary column its index in the table of this batch and its hash.
struct Register {
    text: Vec<u8>,
    index: i32,
    hash: u32,
}

pub enum ArrowIri {
    /// Dictionary columns: where the IRI stands in the table of a place, in the batch of that number.
    Interned {
        epoch: u32,
        place: Place,
        index: i32,
        hash: u32,
    },
    /// Plain columns, and values of headers and namespaces.
    Text { text: Box<Box<[u8]>>, hash: u32 },
}

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
            operation: ColumnBuilder::new(is_dictionary),
            action_indexes: [NULL; 2],
            default_graph_index: NULL,
            name: ColumnBuilder::new(is_dictionary),
            terms: std::array::from_fn(|_| ColumnBuilder::new(is_dictionary)),
            registers: std::array::from_fn(|_| Register {
                text: Vec::new(),
                index: NULL,
                hash: 0,
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
            columns.push(self.operation.finish(self.rows, &self.pool));
            columns.push(self.name.finish(self.rows, &self.pool));
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
        columns.extend(
            self.terms
                .iter_mut()
                .map(|column| column.finish(self.rows, &self.pool)),
        );
        if self.is_dictionary {
            for (column, register) in self.terms.iter_mut().zip(&mut self.registers) {
                if let (Some(table), 0..) = (&mut column.table, register.index) {
                    register.index = table.intern(&register.text, register.hash);
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

    /// Write a term into a place: `write` appends its text. Terms with the same text have the same hash.
    #[inline(always)]
    fn set(&mut self, place: Place, hash: impl FnOnce() -> u32, write: impl FnOnce(&mut Vec<u8>)) {
        let index = place as usize;
        if place == Place::Graph {
            self.graph_is_default = false;
        }
        let hash = if self.is_dictionary { hash() } else { 0 };
        self.registers[index].hash = hash;
        match self.terms.get_mut(index).and_then(|column| column.table.as_mut()) {
            Some(table) => {
                write(table.tail());
                self.registers[index].index = table.intern_tail(hash);
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
        let known = &mut self.action_indexes[action as usize];
        if *known >= 0 {
            self.operation.push_index(self.rows, *known);
            return;
        }
        let text: &[u8] = if action == Action::Add { b"A" } else { b"D" };
        *known = self.operation.push_word(self.rows, text).unwrap_or(NULL);
    }

    #[inline(always)]
    fn push_graph(&mut self) {
        let graph = &mut self.terms[Place::Graph as usize];
        if !self.graph_is_default {
            if self.is_dictionary {
                graph.push_index(self.rows, self.registers[Place::Graph as usize].index);
            } else {
                graph.push_string(self.rows, &self.registers[Place::Graph as usize].text);
            }
        } else if self.default_graph_index >= 0 {
            graph.push_index(self.rows, self.default_graph_index);
        } else {
            self.default_graph_index = graph.push_word(self.rows, b"").unwrap_or(NULL);
        }
    }

    fn push_other(&mut self, operation: &[u8], name: Option<&[u8]>, has_value: bool, has_graph: bool) {
        if !self.is_patch {
            return;
        }
        self.operation.push_word(self.rows, operation);
        if let Some(name) = name {
            self.name.push_word(self.rows, name);
        }
        if has_value {
            let value = &self.registers[Place::Value as usize];
            self.terms[Place::Object as usize].push_text(self.rows, &value.text, value.hash);
        }
        if has_graph {
            self.push_graph();
        }
        self.end_row();
    }
}

impl Sink for ArrowSink {
    type Iri = ArrowIri;
    type Datatype = Suffix;
    type Facts = IriFacts;

    #[inline(always)]
    fn facts_of(part: &str) -> IriFacts {
        IriFacts::of(part)
    }

    /// Inlined, as what it returns would be written in small pieces and read in large ones, which takes the processor longer
    /// than all the rest of it.
    #[inline(always)]
    fn make_iri(
        &mut self,
        place: Place,
        prefix: Part<'_, IriFacts>,
        name: Part<'_, IriFacts>,
    ) -> Result<ArrowIri> {
        let is_plain = prefix.facts.is_plain && name.facts.is_plain;
        let push =
            |out: &mut Vec<u8>| push_known_iri(out, Style::Canonical, prefix.text, name.text, is_plain);
        let hash = if self.is_dictionary {
            short(hash_of_parts(prefix, name))
        } else {
            0
        };
        if let Some(table) = self
            .terms
            .get_mut(place as usize)
            .and_then(|column| column.table.as_mut())
        {
            push(table.tail());
            return Ok(ArrowIri::Interned {
                epoch: self.epoch,
                place,
                index: table.intern_tail(hash),
                hash,
            });
        }
        let mut text = Vec::with_capacity(prefix.text.len() + name.text.len() + 2);
        push(&mut text);
        Ok(ArrowIri::Text {
            text: Box::new(text.into_boxed_slice()),
            hash,
        })
    }

    #[inline(always)]
    fn holds_iri(&self, wanted: Place, iri: &ArrowIri) -> bool {
        match iri {
            ArrowIri::Interned { epoch, place, .. } => *epoch == self.epoch && *place == wanted,
            // The value of a header or namespace is never interned.
            ArrowIri::Text { .. } => !self.is_dictionary || wanted == Place::Value,
        }
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
        match iri {
            ArrowIri::Interned { index, hash, .. } => {
                register.index = *index;
                register.hash = *hash;
            }
            ArrowIri::Text { text, hash } => {
                register.hash = *hash;
                register.text.clear();
                append(&mut register.text, text);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        let hash = || short(hash_of_whole_iri(iri.as_bytes()));
        self.set(place, hash, |out| push_iri(out, Style::Canonical, "", iri));
        Ok(())
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        let hash = || short(hash_of_word(label.as_bytes()));
        self.set(place, hash, |out| push_blank_node(out, Style::Canonical, label));
        Ok(())
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Suffix>) -> Result<()> {
        let hash = || {
            let kind = match &kind {
                LiteralKind::Plain => 0,
                LiteralKind::Language(language) => hash_bytes(language.as_bytes()),
                LiteralKind::Typed(datatype) => datatype.hash,
            };
            short(hash_of_literal(lexical.as_bytes(), kind))
        };
        self.set(place, hash, |out| push_literal(out, lexical, &kind));
        Ok(())
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        let mut text = Vec::new();
        push_quoted(&mut text, Style::Canonical, triple);
        self.set(place, || short(hash_of_word(&text)), |out| append(out, &text));
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
        let (row, registers) = (self.rows, &self.registers);
        let [subject, predicate, object, _] = &mut self.terms;
        if self.is_dictionary {
            subject.push_index(row, registers[0].index);
            predicate.push_index(row, registers[1].index);
            object.push_index(row, registers[2].index);
        } else {
            subject.push_string(row, &registers[0].text);
            predicate.push_string(row, &registers[1].text);
            object.push_string(row, &registers[2].text);
        }
        if has_graph {
            self.push_graph();
        }
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
