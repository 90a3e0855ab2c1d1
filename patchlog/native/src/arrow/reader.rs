//! Record batches of others to a sink: the Arrow C data interface, consumed.

use crate::arrow::abi::{ArrowArray, ArrowSchema};
use crate::arrow::strings::{ForeignBatch, StringColumn};
use crate::decode::nquads::Datatypes;
use crate::fault::{Result, invalid_term, usage_error};
use crate::scan::literal_needs_escape;
use crate::sink::{Action, LiteralKind, Place, Sink, Transaction};
use crate::text::{Parsed, parse_canonical};

/// What a row of a batch says.
#[derive(Clone, Copy)]
enum Operation {
    Statement(Action),
    Namespace(Action),
    Header,
    Transaction(Transaction),
    Punctuation,
}

impl Operation {
    fn of(code: &str) -> Option<Operation> {
        Some(match code {
            "A" | "+" => Operation::Statement(Action::Add),
            "D" | "-" => Operation::Statement(Action::Delete),
            "PA" => Operation::Namespace(Action::Add),
            "PD" => Operation::Namespace(Action::Delete),
            "H" => Operation::Header,
            "TX" => Operation::Transaction(Transaction::Start),
            "TC" => Operation::Transaction(Transaction::Commit),
            "TA" => Operation::Transaction(Transaction::Abort),
            "Z" => Operation::Punctuation,
            _ => return None,
        })
    }
}

/// The column of operations: the codes of its dictionary are told apart once.
struct OperationColumn<'a> {
    strings: StringColumn<'a>,
    known: Vec<Option<Operation>>,
}

/// There are eleven codes. What a dictionary has beyond so many is told apart row by row.
const KNOWN_CODES: usize = 16;

impl<'a> OperationColumn<'a> {
    fn new(strings: StringColumn<'a>) -> Self {
        let values = strings.dictionary_values().unwrap_or(0);
        OperationColumn {
            strings,
            known: vec![None; values.min(KNOWN_CODES)],
        }
    }

    #[inline(always)]
    fn at(&mut self, row: usize) -> Result<Operation> {
        let index = self.strings.index_at(row);
        let known = index.and_then(|index| self.known.get_mut(index));
        if let Some(Some(operation)) = known {
            return Ok(*operation);
        }
        let code = self.strings.at(row)?;
        let code = code.ok_or_else(|| usage_error(format!("row {row}: operation is null")))?;
        let operation = Operation::of(code)
            .ok_or_else(|| usage_error(format!("row {row}: operation {code:?} is not known")))?;
        if let Some(known) = known {
            *known = Some(operation);
        }
        Ok(operation)
    }

    /// The name in the row of an operation that has one.
    fn name_at(&self, row: usize, names: Option<&StringColumn<'a>>) -> Result<&'a str> {
        if let Some(name) = names.map_or(Ok(None), |names| names.at(row))? {
            return Ok(name);
        }
        let code = self.strings.at(row)?.unwrap_or_default();
        Err(usage_error(format!(
            "row {row}: an operation {code} needs a name"
        )))
    }
}

/// Of so many values of a dictionary is kept what the sink made of them. Those beyond are made each time.
const KNOWN_VALUES: usize = 1 << 22;

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
    fn new(mut strings: StringColumn<'a>, rows: usize) -> Self {
        strings.check_utf8(rows);
        let values = strings.dictionary_values().unwrap_or(0);
        TermColumn {
            strings,
            known: (0..values.min(KNOWN_VALUES)).map(|_| Known::Nothing).collect(),
            last: None,
        }
    }

    /// Set the register of a place from a row; false where the row is null.
    #[inline(always)]
    fn set(&mut self, row: usize, place: Place, datatypes: &mut Datatypes<S>, sink: &mut S) -> Result<bool> {
        if self.strings.dictionary_values().is_none() {
            let Some(text) = self.strings.at(row)? else {
                return Ok(false);
            };
            set_term(text, place, datatypes, sink)?;
            return Ok(true);
        }
        let Some(index) = self.strings.index_at(row) else {
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
        match (parse_canonical(text)?, self.known.get_mut(index)) {
            (Parsed::Iri(iri), Some(known @ Known::Met)) => {
                *known = Known::Iri(sink.new_whole_iri(place, &iri)?);
            }
            (Parsed::Iri(iri), known) => {
                sink.plain_iri(place, &iri)?;
                if let Some(known) = known {
                    *known = Known::Met;
                }
            }
            _ => set_term(text, place, datatypes, sink)?,
        }
        Ok(true)
    }
}

/// Set a register from a literal of a datatype that was met before, and without escapes; false where the text is not one.
#[inline(always)]
fn set_known_typed<S: Sink>(
    text: &str,
    place: Place,
    datatypes: &mut Datatypes<S>,
    sink: &mut S,
) -> Result<bool> {
    let Some((datatype, length)) = datatypes.named_last(text.as_bytes()) else {
        return Ok(false);
    };
    let quoted = &text[..text.len() - length];
    match quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(lexical) if !literal_needs_escape(lexical.as_bytes()) => {
            sink.literal(place, lexical, LiteralKind::Typed(datatype))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Set a register from canonical text.
#[inline]
pub fn set_term<S: Sink>(text: &str, place: Place, datatypes: &mut Datatypes<S>, sink: &mut S) -> Result<()> {
    if let [b'"', .., b'>'] = text.as_bytes() {
        if set_known_typed(text, place, datatypes, sink)? {
            return Ok(());
        }
    }
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
    // SAFETY: promised by the caller.
    let batch = unsafe { ForeignBatch::of(schema, array) }?;
    let mut operations = batch.column("operation")?.map(OperationColumn::new);
    let names = batch.column("name")?;
    let mut terms: [Option<TermColumn<'_, S>>; 4] = [None, None, None, None];
    for (slot, wanted) in terms.iter_mut().zip(TERM_NAMES) {
        *slot = batch
            .column(wanted)?
            .map(|strings| TermColumn::new(strings, batch.rows()));
    }
    let [Some(subject), Some(predicate), Some(object), graph] = &mut terms else {
        return Err(usage_error(
            "an Arrow batch needs the columns subject, predicate and object",
        ));
    };
    for row in 0..batch.rows() {
        let operation = match &mut operations {
            None => Operation::Statement(Action::Add),
            Some(operations) => operations.at(row)?,
        };
        // Only where there are operations is there one that has a name.
        let name_at = || {
            operations
                .as_ref()
                .map_or(Ok(""), |column| column.name_at(row, names.as_ref()))
        };
        match operation {
            Operation::Statement(action) => {
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
                sink.statement(action, has_graph)?;
            }
            Operation::Namespace(action) => {
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
                sink.namespace(action, name_at()?, has_iri, has_graph)?;
            }
            Operation::Header => {
                let text = object.strings.at(row)?;
                let text =
                    text.ok_or_else(|| invalid_term(format!("row {row}: a header needs a value in object")))?;
                set_term(text, Place::Value, datatypes, sink)?;
                sink.header(name_at()?)?;
            }
            Operation::Transaction(transaction) => sink.transaction(transaction)?,
            Operation::Punctuation => sink.punctuation()?,
        }
    }
    Ok(())
}
