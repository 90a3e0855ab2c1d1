//! The reader's lookup tables: entries off the wire, id counters, and what the sink made of the entries.

use std::borrow::Cow;

use crate::decode::messages::split_iri;
use crate::fault::{Fault, Result, unknown_entry};
use crate::options::TermOptions;
use crate::sink::{Part, Place, Sink};
use crate::text::{XSD_STRING, utf8};
use crate::wire::{Fields, LENGTH, VARINT};

/// What the sink made of an IRI, good as long as the prefix entry is the one it was made with.
struct CachedIri<I> {
    prefix_id: u32,
    prefix_serial: u32,
    iri: I,
    /// Bytes of prefix and name.
    size: u16,
}

/// Bytes of the longest IRI that is remembered: else a long prefix would be kept once for each name.
const MAX_CACHED_IRI: usize = 1024;

/// IRIs remembered for a name: most names go with one prefix, some with a few.
struct CachedIris<I> {
    newest: Option<CachedIri<I>>,
    older: Option<CachedIri<I>>,
}

impl<I> CachedIris<I> {
    const NONE: Self = CachedIris {
        newest: None,
        older: None,
    };
}

struct Name<F> {
    text: String,
    facts: F,
    is_defined: bool,
}

struct Prefix<F> {
    text: String,
    facts: F,
    /// Counts the definitions of this entry: 0 is not defined.
    serial: u32,
}

pub struct Datatype<D> {
    pub iri: String,
    /// xsd:string, which plain literals have.
    pub is_string: bool,
    is_defined: bool,
    pub made: Option<D>,
}

pub struct Lookups<S: Sink> {
    names: Vec<Name<S::Facts>>,
    /// Beside the names, so that an IRI that was met before touches little memory.
    cached_iris: Vec<CachedIris<S::Iri>>,
    name_size: u32,
    last_name_entry: u32,
    last_name: u32,
    prefixes: Vec<Prefix<S::Facts>>,
    last_prefix_entry: u32,
    last_prefix: u32,
    datatypes: Vec<Datatype<S::Datatype>>,
    last_datatype_entry: u32,
    strict: bool,
}

impl<S: Sink> Lookups<S> {
    /// The options were checked against the limits before: that is what makes these allocations safe.
    pub fn new(options: &TermOptions, strict: bool) -> Self {
        Lookups {
            names: Vec::new(),
            cached_iris: Vec::new(),
            name_size: options.names,
            last_name_entry: 0,
            last_name: 0,
            prefixes: (0..options.prefixes)
                .map(|_| Prefix {
                    text: String::new(),
                    facts: S::Facts::default(),
                    serial: 0,
                })
                .collect(),
            last_prefix_entry: 0,
            last_prefix: 0,
            datatypes: (0..options.datatypes)
                .map(|_| Datatype {
                    iri: String::new(),
                    is_string: false,
                    is_defined: false,
                    made: None,
                })
                .collect(),
            last_datatype_entry: 0,
            strict,
        }
    }

    /// Write the sizes that the tables have into options that were met in the middle of a stream.
    pub fn keep_sizes(&self, options: &mut TermOptions) {
        options.names = self.name_size;
        options.prefixes = self.prefixes.len() as u32;
        options.datatypes = self.datatypes.len() as u32;
    }

    /// Fields of a lookup entry: its id as it stands, and its text.
    #[inline(always)]
    fn split_entry<'a>(&self, data: &'a [u8]) -> Result<(u32, Cow<'a, str>)> {
        const TEXT: u8 = 2 << 3 | LENGTH;
        // Nearly always: no id, as ids run up.
        if let [TEXT, length @ ..0x80, text @ ..] = data {
            if text.len() == *length as usize {
                return Ok((0, utf8(text, self.strict)?));
            }
        }
        self.split_any_entry(data)
    }

    #[inline(never)]
    fn split_any_entry<'a>(&self, data: &'a [u8]) -> Result<(u32, Cow<'a, str>)> {
        let mut id = 0;
        let mut text: &[u8] = b"";
        let mut fields = Fields::new(data);
        while !fields.is_done() {
            match fields.tag()? {
                (1, VARINT) => id = fields.varint()? as u32,
                (2, LENGTH) => text = fields.bytes()?,
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        Ok((id, utf8(text, self.strict)?))
    }

    #[inline(always)]
    fn entry_id(what: &str, id: u32, last: u32, size: u32) -> Result<u32> {
        let id = if id == 0 { last.wrapping_add(1) } else { id };
        if id == 0 || id > size {
            return Err(unknown_entry(format!(
                "{what} entry {id} does not fit a table of {size}"
            )));
        }
        Ok(id)
    }

    pub fn name_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_entry(data)?;
        let id = Self::entry_id("name", id, self.last_name_entry, self.name_size)?;
        self.last_name_entry = id;
        let index = (id - 1) as usize;
        if index >= self.names.len() {
            // Grows as it is used: most streams need less than they reserve.
            self.names.resize_with(index + 1, || Name {
                text: String::new(),
                facts: S::Facts::default(),
                is_defined: false,
            });
            self.cached_iris.resize_with(index + 1, || CachedIris::NONE);
        }
        let name = &mut self.names[index];
        name.text.clear();
        name.text.push_str(&text);
        name.facts = S::facts_of(&text);
        name.is_defined = true;
        self.cached_iris[index] = CachedIris::NONE;
        Ok(())
    }

    pub fn prefix_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_entry(data)?;
        let id = Self::entry_id("prefix", id, self.last_prefix_entry, self.prefixes.len() as u32)?;
        self.last_prefix_entry = id;
        let prefix = &mut self.prefixes[(id - 1) as usize];
        prefix.text.clear();
        prefix.text.push_str(&text);
        prefix.facts = S::facts_of(&text);
        prefix.serial += 1;
        Ok(())
    }

    pub fn datatype_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_entry(data)?;
        let id = Self::entry_id(
            "datatype",
            id,
            self.last_datatype_entry,
            self.datatypes.len() as u32,
        )?;
        self.last_datatype_entry = id;
        self.datatypes[(id - 1) as usize] = Datatype {
            is_string: text == XSD_STRING,
            iri: text.into_owned(),
            is_defined: true,
            made: None,
        };
        Ok(())
    }

    /// The ids of an IRI message with what they leave out filled in: the name's, and the prefix's (0: the last one).
    #[inline(always)]
    fn iri_ids(&mut self, data: &[u8]) -> Result<(u32, u32)> {
        let (prefix_id, name_id) = split_iri(data)?;
        self.last_name = if name_id == 0 {
            self.last_name.wrapping_add(1)
        } else {
            name_id
        };
        Ok((self.last_name, prefix_id))
    }

    /// Check the ids of an IRI, name first: the index of the name, and the prefix id to use (0: the empty prefix).
    fn checked_ids(&mut self, name_id: u32, prefix_id: u32) -> Result<(usize, u32)> {
        let index = name_id.wrapping_sub(1) as usize;
        if !self.names.get(index).is_some_and(|name| name.is_defined) {
            return Err(no_entry("name", name_id, self.name_size));
        }
        if prefix_id != 0 {
            self.last_prefix = prefix_id;
        }
        let prefix_id = self.last_prefix;
        if prefix_id != 0
            && self
                .prefixes
                .get(prefix_id as usize - 1)
                .is_none_or(|prefix| prefix.serial == 0)
        {
            return Err(no_entry("prefix", prefix_id, self.prefixes.len() as u32));
        }
        Ok((index, prefix_id))
    }

    /// The text of an IRI message, in two parts.
    pub fn resolve_iri(&mut self, data: &[u8]) -> Result<(&str, &str)> {
        let (name_id, prefix_id) = self.iri_ids(data)?;
        let (index, prefix_id) = self.checked_ids(name_id, prefix_id)?;
        let prefix = match prefix_id {
            0 => "",
            id => &self.prefixes[id as usize - 1].text,
        };
        Ok((prefix, &self.names[index].text))
    }

    /// Set a register from an IRI message; how many bytes the IRI has.
    #[inline(always)]
    pub fn set_iri(&mut self, sink: &mut S, place: Place, data: &[u8]) -> Result<u64> {
        let (name_id, explicit_prefix) = self.iri_ids(data)?;
        let prefix_id = if explicit_prefix == 0 {
            self.last_prefix
        } else {
            explicit_prefix
        };
        let prefix_serial = match self.prefixes.get((prefix_id as usize).wrapping_sub(1)) {
            Some(prefix) => prefix.serial,
            None => 0,
        };
        if let Some(cached) = self.cached_iris.get((name_id as usize).wrapping_sub(1)) {
            // What is remembered was checked when it was made, and both entries are still the same.
            let is_good = |cached: &CachedIri<S::Iri>| {
                cached.prefix_id == prefix_id
                    && cached.prefix_serial == prefix_serial
                    && sink.holds_iri(place, &cached.iri)
            };
            let found = match (&cached.newest, &cached.older) {
                (Some(newest), _) if is_good(newest) => Some(newest),
                (_, Some(older)) if is_good(older) => Some(older),
                _ => None,
            };
            if let Some(found) = found {
                self.last_prefix = prefix_id;
                sink.iri(place, &found.iri)?;
                return Ok(u64::from(found.size));
            }
        }
        self.make_iri(sink, place, name_id, explicit_prefix)
    }

    #[inline(never)]
    fn make_iri(&mut self, sink: &mut S, place: Place, name_id: u32, explicit_prefix: u32) -> Result<u64> {
        let (index, prefix_id) = self.checked_ids(name_id, explicit_prefix)?;
        let (prefix, prefix_serial) = match self.prefixes.get((prefix_id as usize).wrapping_sub(1)) {
            Some(prefix) => (Part::new(prefix.text.as_str(), prefix.facts), prefix.serial),
            None => (Part::new("", S::facts_of("")), 0),
        };
        let name = &self.names[index];
        let name = Part::new(name.text.as_str(), name.facts);
        let size = prefix.text.len() + name.text.len();
        let iri = sink.make_iri(place, prefix, name)?;
        sink.iri(place, &iri)?;
        if size <= MAX_CACHED_IRI {
            let cached = &mut self.cached_iris[index];
            cached.older = cached.newest.replace(CachedIri {
                prefix_id,
                prefix_serial,
                iri,
                size: size as u16,
            });
        }
        Ok(size as u64)
    }

    /// The datatype entry with this id; None where it is in range and not defined, which only a strict reader minds.
    pub fn datatype(&mut self, id: u32) -> Result<Option<&mut Datatype<S::Datatype>>> {
        let size = self.datatypes.len() as u32;
        if id == 0 || id > size {
            return Err(unknown_entry(format!(
                "datatype lookup {id} is out of range (the table holds {size})"
            )));
        }
        let datatype = &mut self.datatypes[(id - 1) as usize];
        if datatype.is_defined {
            Ok(Some(datatype))
        } else if self.strict {
            Err(no_entry("datatype", id, size))
        } else {
            Ok(None)
        }
    }
}

#[cold]
fn no_entry(what: &str, id: u32, size: u32) -> Box<Fault> {
    if id == 0 || id > size {
        unknown_entry(format!(
            "{what} lookup {id} is out of range (the table holds {size})"
        ))
    } else {
        unknown_entry(format!(
            "{what} lookup {id} is not defined: the writer must write a {what} row before using it"
        ))
    }
}
