//! Lookup entries onto the wire: found or written for the terms that need them, and the ids that leave out what follows.

use crate::bytes::same;
use crate::encode::frames::Frames;
use crate::encode::lookup::{Lookup, Seen};
use crate::fault::{Result, unsupported};
use crate::hash::glance;
use crate::options::TermOptions;
use crate::scan::split_point;
use crate::wire::{put_bytes, put_uint};

/// Field numbers of the lookup rows, which differ between the two kinds of stream.
pub struct LookupRows {
    pub name: u32,
    pub prefix: u32,
    pub datatype: u32,
}

/// How many of the first entries of each table are left alone.
#[derive(Clone, Copy, Default)]
pub struct Reserved {
    pub names: u32,
    pub prefixes: u32,
}

/// The entries that an IRI which is set many times was written with last.
#[derive(Clone, Copy, Default)]
struct Remembered {
    handle: u64,
    prefix: Seen,
    name: Seen,
}

const FIRST_REMEMBERED: usize = 1 << 6;
const REMEMBERED: usize = 1 << 13;

/// The entries of an IRI without a handle: of those whose ends look like this one's, the last.
#[derive(Clone, Copy, Default)]
struct Recent {
    prefix: Seen,
    name: Seen,
}

const RECENT: usize = 1 << 10;

/// With fewer prefixes than a quad has terms, one statement could need more entries than there are.
const FEWEST_PREFIXES: u32 = 4;
/// No id follows this one, so the next is written out.
const NO_ID: u32 = u32::MAX - 1;

pub struct Entries {
    names: Lookup,
    prefixes: Lookup,
    datatypes: Lookup,
    last_prefix: u32,
    last_name: u32,
    /// Grows up to `REMEMBERED` with the handles that come: most patches are small, and a source of text has none.
    remembered: Vec<Remembered>,
    /// Filled when the first IRI comes without a handle.
    recent: Vec<Recent>,
    rows: LookupRows,
    /// Number of the row being written.
    row: u64,
    entry: Vec<u8>,
}

impl Entries {
    pub fn new(options: &TermOptions, rows: LookupRows) -> Self {
        Entries {
            names: Lookup::new("name", options.names),
            prefixes: Lookup::new("prefix", options.prefixes),
            datatypes: Lookup::new("datatype", options.datatypes),
            last_prefix: 0,
            last_name: 0,
            remembered: Vec::new(),
            recent: Vec::new(),
            rows,
            row: 0,
            entry: Vec::new(),
        }
    }

    /// Write what comes with explicit ids, whatever the reader holds.
    pub fn start_anew(&mut self, reserved: Reserved) {
        self.names.clear_explicitly(reserved.names);
        self.prefixes.clear_explicitly(reserved.prefixes);
        self.datatypes.clear_explicitly(0);
        self.last_prefix = 0;
        self.last_name = NO_ID;
    }

    pub fn begin_row(&mut self) {
        self.row += 1;
    }

    /// The ids to write for an IRI (0 where they follow from the ones before), after the rows of new entries. `handle`: its
    /// number where it has one, else 0.
    #[inline(always)]
    pub fn iri_ids(&mut self, iri: &[u8], handle: u64, frames: &mut Frames) -> Result<(u32, u32)> {
        if handle == 0 {
            if self.recent.is_empty() {
                self.recent = vec![Recent::default(); RECENT];
            }
            let slot = (glance(iri) >> (64 - RECENT.trailing_zeros())) as usize;
            let Recent { prefix, name } = self.recent[slot];
            if self.hold(prefix, name) && self.make_up(iri, prefix.id, name.id) {
                return Ok(self.reuse(prefix.id, name.id));
            }
            let (prefix, name) = self.find(iri, frames)?;
            self.recent[slot] = Recent {
                prefix: self.prefixes.see(prefix),
                name: self.names.see(name),
            };
            return Ok(self.count_ids(prefix, name));
        }
        let slot = handle as usize & (REMEMBERED - 1);
        if slot >= self.remembered.len() {
            let room = (slot + 1).next_power_of_two().max(FIRST_REMEMBERED);
            self.remembered.resize(room, Remembered::default());
        }
        let known = self.remembered[slot];
        if known.handle == handle && self.hold(known.prefix, known.name) {
            return Ok(self.reuse(known.prefix.id, known.name.id));
        }
        let (prefix, name) = self.find(iri, frames)?;
        self.remembered[slot] = Remembered {
            handle,
            prefix: self.prefixes.see(prefix),
            name: self.names.see(name),
        };
        Ok(self.count_ids(prefix, name))
    }

    /// Whether entries that were seen before still hold the same.
    #[inline(always)]
    fn hold(&self, prefix: Seen, name: Seen) -> bool {
        self.names.holds(name) && (prefix.id == 0 || self.prefixes.holds(prefix))
    }

    /// Whether the texts of two entries, which hold what they held, are this IRI.
    #[inline(always)]
    fn make_up(&self, iri: &[u8], prefix: u32, name: u32) -> bool {
        let prefix = match prefix {
            0 => b"",
            id => self.prefixes.text(id),
        };
        match iri.split_at_checked(prefix.len()) {
            Some((start, rest)) => same(self.names.text(name), rest) && same(prefix, start),
            None => false,
        }
    }

    /// Use entries that are in the tables: the ids to write.
    #[inline(always)]
    fn reuse(&mut self, prefix: u32, name: u32) -> (u32, u32) {
        if prefix != 0 {
            self.prefixes.reuse(prefix, self.row);
        }
        self.names.reuse(name, self.row);
        self.count_ids(prefix, name)
    }

    /// The ids of the entries of an IRI, which are written where they are new. Without prefixes that of the prefix is 0.
    #[inline(always)]
    fn find(&mut self, iri: &[u8], frames: &mut Frames) -> Result<(u32, u32)> {
        let mut prefix = 0;
        let mut name = iri;
        if self.prefixes.size() >= FEWEST_PREFIXES {
            let (start, rest) = iri.split_at(split_point(iri));
            name = rest;
            let found = self.prefixes.find_often(start, self.row)?;
            if let Some(id) = found.new_entry {
                self.push_entry(self.rows.prefix, id, start, frames);
            }
            prefix = found.id;
        }
        let found = self.names.find(name, self.row)?;
        if let Some(id) = found.new_entry {
            self.push_entry(self.rows.name, id, name, frames);
        }
        Ok((prefix, found.id))
    }

    #[inline(always)]
    fn count_ids(&mut self, prefix: u32, name: u32) -> (u32, u32) {
        let written_prefix = if prefix == self.last_prefix { 0 } else { prefix };
        let written_name = if name == self.last_name.wrapping_add(1) {
            0
        } else {
            name
        };
        self.last_prefix = prefix;
        self.last_name = name;
        (written_prefix, written_name)
    }

    #[inline(always)]
    pub fn datatype_id(&mut self, iri: &[u8], frames: &mut Frames) -> Result<u32> {
        if self.datatypes.size() == 0 {
            return Err(unsupported(
                "a typed literal cannot be written: the datatype table has size 0",
            ));
        }
        let found = self.datatypes.find_often(iri, self.row)?;
        if let Some(id) = found.new_entry {
            self.push_entry(self.rows.datatype, id, iri, frames);
        }
        Ok(found.id)
    }

    #[inline(never)]
    fn push_entry(&mut self, kind: u32, id: u32, text: &[u8], frames: &mut Frames) {
        self.entry.clear();
        put_uint(&mut self.entry, 1, u64::from(id));
        if !text.is_empty() {
            put_bytes(&mut self.entry, 2, text);
        }
        frames.push_row(kind, &self.entry);
    }
}
