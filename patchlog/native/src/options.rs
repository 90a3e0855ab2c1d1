//! Stream options and reader limits, as `patchlog.codec.options` has them, with their layout on the wire.

use crate::fault::{Result, unsupported};
use crate::wire::{Fields, LENGTH, VARINT, put_string, put_uint};

pub const MIN_NAME_TABLE: u32 = 8;
const MAX_RDF_VERSION: u32 = 2;
const MAX_PATCH_VERSION: u32 = 1;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_name_table: u64,
    pub max_prefix_table: u64,
    pub max_datatype_table: u64,
    pub max_frame_bytes: u64,
    pub max_rows_per_frame: u64,
    pub max_nesting_depth: u64,
    pub max_decoded_frame_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_name_table: 4096,
            max_prefix_table: 1024,
            max_datatype_table: 256,
            max_frame_bytes: 64 << 20,
            max_rows_per_frame: 2 << 20,
            max_nesting_depth: 64,
            max_decoded_frame_bytes: 256 << 20,
        }
    }
}

/// What both kinds of stream say about their terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermOptions {
    pub generalized: bool,
    pub rdf_star: bool,
    pub names: u32,
    pub prefixes: u32,
    pub datatypes: u32,
}

impl TermOptions {
    fn check_tables(&self, limits: Option<&Limits>) -> Result<()> {
        if self.names < MIN_NAME_TABLE {
            return Err(unsupported(format!(
                "the name table holds {} entries; at least {MIN_NAME_TABLE} are needed",
                self.names
            )));
        }
        let Some(limits) = limits else { return Ok(()) };
        for (what, size, limit) in [
            ("name", self.names, limits.max_name_table),
            ("prefix", self.prefixes, limits.max_prefix_table),
            ("datatype", self.datatypes, limits.max_datatype_table),
        ] {
            if u64::from(size) > limit {
                return Err(unsupported(format!(
                    "the stream asks for a {what} table of {size} entries; this reader allows {limit} \
                     (Limits.max_{what}_table_size)"
                )));
            }
        }
        Ok(())
    }
}

fn check_version(version: u32, newest: u32, strict: bool) -> Result<()> {
    if version > newest {
        return Err(unsupported(format!(
            "the stream has version {version}; this reader knows versions up to {newest}"
        )));
    }
    if version == 0 && strict {
        return Err(unsupported("the stream has no version; version 0 is not allowed"));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Physical {
    Triples = 1,
    Quads = 2,
    Graphs = 3,
}

impl Physical {
    fn name(self) -> &'static str {
        match self {
            Physical::Triples => "TRIPLES",
            Physical::Quads => "QUADS",
            Physical::Graphs => "GRAPHS",
        }
    }

    pub fn from_number(number: u32) -> Option<Physical> {
        Some(match number {
            1 => Physical::Triples,
            2 => Physical::Quads,
            3 => Physical::Graphs,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdfOptions {
    pub stream_name: String,
    /// As it stands on the wire; `physical` reads it.
    pub physical_number: u32,
    pub logical_number: u32,
    pub terms: TermOptions,
    pub version: u32,
}

const LOGICAL_NUMBERS: [u32; 8] = [0, 1, 2, 3, 4, 13, 14, 114];

impl RdfOptions {
    pub fn parse(data: &[u8], strict: bool) -> Result<RdfOptions> {
        let mut options = RdfOptions {
            stream_name: String::new(),
            physical_number: 0,
            logical_number: 0,
            terms: TermOptions {
                generalized: false,
                rdf_star: false,
                names: 0,
                prefixes: 0,
                datatypes: 0,
            },
            version: 0,
        };
        let mut name: &[u8] = b"";
        let mut fields = Fields::new(data);
        while !fields.is_done() {
            let (field, wire_type) = fields.tag()?;
            match (field, wire_type) {
                (1, LENGTH) => name = fields.bytes()?,
                (2, VARINT) => options.physical_number = fields.varint()? as u32,
                (14, VARINT) => options.logical_number = fields.varint()? as u32,
                _ => parse_shared(
                    &mut fields,
                    field,
                    wire_type,
                    &mut options.terms,
                    &mut options.version,
                )?,
            }
        }
        options.stream_name = crate::text::utf8(name, strict)?.into_owned();
        if !strict && !options.has_known_logical_type() {
            options.logical_number = 0;
        }
        Ok(options)
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        put_string(out, 1, &self.stream_name);
        put_uint(out, 2, u64::from(self.physical_number));
        write_flags(out, &self.terms);
        write_tables(out, &self.terms);
        put_uint(out, 14, u64::from(self.logical_number));
        put_uint(out, 15, u64::from(self.version));
    }

    pub fn physical(&self) -> Result<Physical> {
        match self.physical_number {
            0 => Err(unsupported("the physical type of the stream is not set")),
            number => Physical::from_number(number)
                .ok_or_else(|| unsupported(format!("physical type {number} is not known"))),
        }
    }

    pub fn has_known_logical_type(&self) -> bool {
        LOGICAL_NUMBERS.contains(&self.logical_number)
    }

    fn logical_name(&self) -> &'static str {
        match self.logical_number {
            1 => "FLAT_TRIPLES",
            2 => "FLAT_QUADS",
            3 => "GRAPHS",
            4 => "DATASETS",
            13 => "SUBJECT_GRAPHS",
            14 => "NAMED_GRAPHS",
            114 => "TIMESTAMPED_NAMED_GRAPHS",
            _ => "UNSPECIFIED",
        }
    }

    fn check_consistent(&self) -> Result<()> {
        if !self.has_known_logical_type() {
            return Err(unsupported(format!(
                "logical type {} is not known",
                self.logical_number
            )));
        }
        let physical = self.physical()?;
        let fits = match self.logical_number % 10 {
            0 => true,
            1 | 3 => physical == Physical::Triples,
            _ => physical != Physical::Triples,
        };
        if fits {
            Ok(())
        } else {
            Err(unsupported(format!(
                "logical type {} does not go with physical type {}",
                self.logical_name(),
                physical.name()
            )))
        }
    }

    pub fn check_readable(&self, limits: &Limits, strict: bool) -> Result<()> {
        self.physical()?;
        check_version(self.version, MAX_RDF_VERSION, strict)?;
        self.terms.check_tables(Some(limits))?;
        if strict { self.check_consistent() } else { Ok(()) }
    }

    pub fn check_writable(&self) -> Result<()> {
        self.check_consistent()?;
        check_version(self.version, MAX_RDF_VERSION, true)?;
        self.terms.check_tables(None)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementType {
    Triples = 1,
    Quads = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamType {
    Frame = 1,
    Flat = 2,
    Punctuated = 3,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchOptions {
    pub statement_number: u32,
    pub stream_number: u32,
    pub terms: TermOptions,
    pub version: u32,
}

impl PatchOptions {
    pub fn parse(data: &[u8]) -> Result<PatchOptions> {
        let mut options = PatchOptions {
            statement_number: 0,
            stream_number: 0,
            terms: TermOptions {
                generalized: false,
                rdf_star: false,
                names: 0,
                prefixes: 0,
                datatypes: 0,
            },
            version: 0,
        };
        let mut fields = Fields::new(data);
        while !fields.is_done() {
            let (field, wire_type) = fields.tag()?;
            match (field, wire_type) {
                (1, VARINT) => options.statement_number = fields.varint()? as u32,
                (2, VARINT) => options.stream_number = fields.varint()? as u32,
                _ => parse_shared(
                    &mut fields,
                    field,
                    wire_type,
                    &mut options.terms,
                    &mut options.version,
                )?,
            }
        }
        Ok(options)
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        put_uint(out, 1, u64::from(self.statement_number));
        put_uint(out, 2, u64::from(self.stream_number));
        write_flags(out, &self.terms);
        write_tables(out, &self.terms);
        put_uint(out, 15, u64::from(self.version));
    }

    pub fn statement_type(&self) -> Result<StatementType> {
        match self.statement_number {
            1 => Ok(StatementType::Triples),
            2 => Ok(StatementType::Quads),
            0 => Err(unsupported("the statement type of the patch stream is not set")),
            number => Err(unsupported(format!("statement type {number} is not known"))),
        }
    }

    pub fn stream_type(&self) -> Result<StreamType> {
        match self.stream_number {
            1 => Ok(StreamType::Frame),
            2 => Ok(StreamType::Flat),
            3 => Ok(StreamType::Punctuated),
            0 => Err(unsupported("the stream type of the patch stream is not set")),
            number => Err(unsupported(format!("stream type {number} is not known"))),
        }
    }

    pub fn check_readable(&self, limits: &Limits, strict: bool) -> Result<()> {
        self.statement_type()?;
        self.stream_type()?;
        check_version(self.version, MAX_PATCH_VERSION, strict)?;
        self.terms.check_tables(Some(limits))
    }

    pub fn check_writable(&self) -> Result<()> {
        self.statement_type()?;
        self.stream_type()?;
        check_version(self.version, MAX_PATCH_VERSION, true)?;
        self.terms.check_tables(None)
    }
}

/// The fields that both options messages have under the same numbers.
fn parse_shared(
    fields: &mut Fields<'_>,
    field: u32,
    wire_type: u8,
    terms: &mut TermOptions,
    version: &mut u32,
) -> Result<()> {
    match (field, wire_type) {
        (3, VARINT) => terms.generalized = fields.varint()? != 0,
        (4, VARINT) => terms.rdf_star = fields.varint()? != 0,
        (9, VARINT) => terms.names = fields.varint()? as u32,
        (10, VARINT) => terms.prefixes = fields.varint()? as u32,
        (11, VARINT) => terms.datatypes = fields.varint()? as u32,
        (15, VARINT) => *version = fields.varint()? as u32,
        _ => fields.skip(wire_type)?,
    }
    Ok(())
}

fn write_flags(out: &mut Vec<u8>, terms: &TermOptions) {
    put_uint(out, 3, u64::from(terms.generalized));
    put_uint(out, 4, u64::from(terms.rdf_star));
}

fn write_tables(out: &mut Vec<u8>, terms: &TermOptions) {
    put_uint(out, 9, u64::from(terms.names));
    put_uint(out, 10, u64::from(terms.prefixes));
    put_uint(out, 11, u64::from(terms.datatypes));
}
