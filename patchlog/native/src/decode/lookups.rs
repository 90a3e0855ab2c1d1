//! The reader's lookup tables: entries off the wire, id counters, and what the sink made of the entries.

use std::borrow::Cow;

use crate::bytes::copy_to;
use crate::decode::messages::split_iri;
use crate::fault::{Fault, Result, unknown_entry};
use crate::options::TermOptions;
use crate::sink::{NEVER_AGAIN, Part, Place, Sink};
use crate::text::{XSD_STRING, utf8};
use crate::wire::{Fields, LENGTH, VARINT};

/// What the sink made of an IRI. It must be small: streams with many names go through all of them again and again.
struct CachedIri<I> {
    validity: Validity,
    iri: I,
    /// Bytes of prefix and name.
    size: u16,
}

/// Until when an IRI is good: the edition of its prefix, and the stamp of the sink. In one number, to be compared at once.
#[derive(Clone, Copy, PartialEq)]
struct Validity(u64);

impl Validity {
    #[inline(always)]
    fn of(edition: u32, stamp: u32) -> Self {
        Validity(u64::from(edition) << 32 | u64::from(stamp))
    }

    #[inline(always)]
    fn with_stamp(self, stamp: u32) -> Self {
        Validity(self.0 >> 32 << 32 | u64::from(stamp))
    }
}

/// Editions of prefixes: of the one that is always there, and of those that are not.
const EMPTY_PREFIX: u32 = 1;
const UNDEFINED: u32 = 0;

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
    text: NameText,
    facts: F,
    is_defined: bool,
}

/// The text of a name. Nearly all are short and stand in the entry itself, so that a new entry is written without a look at
/// the one before: to wait for that would take longer than all the rest.
struct NameText {
    /// Of no meaning where the text is short.
    long: String,
    short: [u8; SHORT_NAME],
    length: u8,
}

const SHORT_NAME: usize = 22;

impl NameText {
    const EMPTY: Self = NameText {
        long: String::new(),
        short: [0; SHORT_NAME],
        length: 0,
    };

    #[inline(always)]
    fn as_str(&self) -> &str {
        match self.short.get(..usize::from(self.length)) {
            // SAFETY: `put` wrote a text there, of this length.
            Some(short) => unsafe { std::str::from_utf8_unchecked(short) },
            None => &self.long,
        }
    }

    #[inline(always)]
    fn put(&mut self, text: &str) {
        if text.len() <= SHORT_NAME {
            copy_to(&mut self.short, text.as_bytes());
            self.length = text.len() as u8;
        } else {
            self.long.clear();
            self.long.push_str(text);
            self.length = u8::MAX;
        }
    }
}

struct Prefix<F> {
    text: String,
    facts: F,
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
    /// By id: the first is the empty prefix, which is no entry.
    prefixes: Vec<Prefix<S::Facts>>,
    /// Of each prefix the number of its definition, among those of all.
    editions: Vec<u32>,
    last_edition: u32,
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
            prefixes: (0..=options.prefixes)
                .map(|_| Prefix {
                    text: String::new(),
                    facts: S::facts_of(""),
                })
                .collect(),
            editions: (0..=options.prefixes)
                .map(|id| if id == 0 { EMPTY_PREFIX } else { UNDEFINED })
                .collect(),
            last_edition: EMPTY_PREFIX,
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
        options.prefixes = self.prefix_size();
        options.datatypes = self.datatypes.len() as u32;
    }

    fn prefix_size(&self) -> u32 {
        self.prefixes.len() as u32 - 1
    }

    /// Fields of a lookup entry, in whatever order.
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
        match split_short_entry::<S>(data) {
            Some((id, text, facts)) => self.put_name(id, text, facts),
            None => self.any_entry(data, Self::put_name),
        }
    }

    /// An entry of another layout, or with a text that is not ASCII only.
    #[inline(never)]
    fn any_entry(
        &mut self,
        data: &[u8],
        put: fn(&mut Self, u32, &str, S::Facts) -> Result<()>,
    ) -> Result<()> {
        let (id, text) = self.split_any_entry(data)?;
        put(self, id, &text, S::facts_of(&text))
    }

    #[inline(always)]
    fn put_name(&mut self, id: u32, text: &str, facts: S::Facts) -> Result<()> {
        let id = Self::entry_id("name", id, self.last_name_entry, self.name_size)?;
        self.last_name_entry = id;
        let index = (id - 1) as usize;
        if index >= self.names.len() {
            self.make_room_for_names(index + 1);
        }
        let name = &mut self.names[index];
        name.text.put(text);
        name.facts = facts;
        name.is_defined = true;
        self.cached_iris[index] = CachedIris::NONE;
        Ok(())
    }

    /// The table grows as it is used: most streams need less than they reserve.
    #[inline(never)]
    fn make_room_for_names(&mut self, count: usize) {
        self.names.resize_with(count, || Name {
            text: NameText::EMPTY,
            facts: S::Facts::default(),
            is_defined: false,
        });
        self.cached_iris.resize_with(count, || CachedIris::NONE);
    }

    pub fn prefix_entry(&mut self, data: &[u8]) -> Result<()> {
        match split_short_entry::<S>(data) {
            Some((id, text, facts)) => self.put_prefix(id, text, facts),
            None => self.any_entry(data, Self::put_prefix),
        }
    }

    #[inline(always)]
    fn put_prefix(&mut self, id: u32, text: &str, facts: S::Facts) -> Result<()> {
        let id = Self::entry_id("prefix", id, self.last_prefix_entry, self.prefix_size())?;
        self.last_prefix_entry = id;
        let prefix = &mut self.prefixes[id as usize];
        prefix.text.clear();
        prefix.text.push_str(text);
        prefix.facts = facts;
        if self.last_edition == u32::MAX {
            self.renumber_editions();
        }
        self.last_edition += 1;
        self.editions[id as usize] = self.last_edition;
        Ok(())
    }

    /// Start the numbers of definitions again. What is remembered goes by the old ones.
    #[cold]
    fn renumber_editions(&mut self) {
        self.cached_iris.fill_with(|| CachedIris::NONE);
        self.last_edition = EMPTY_PREFIX;
        for edition in &mut self.editions[1..] {
            if *edition != UNDEFINED {
                self.last_edition += 1;
                *edition = self.last_edition;
            }
        }
    }

    pub fn datatype_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_any_entry(data)?;
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

    /// The id of the name of an IRI, which may be left out.
    #[inline(always)]
    fn name_id(&mut self, name_id: u32) -> u32 {
        self.last_name = if name_id == 0 {
            self.last_name.wrapping_add(1)
        } else {
            name_id
        };
        self.last_name
    }

    /// Check the ids of an IRI, name first: the index of the name.
    #[inline(always)]
    fn checked_ids(&self, name_id: u32, prefix_id: u32) -> Result<usize> {
        let index = name_id.wrapping_sub(1) as usize;
        if !self.names.get(index).is_some_and(|name| name.is_defined) {
            return Err(no_entry("name", name_id, self.name_size));
        }
        if self.edition(prefix_id) == UNDEFINED {
            return Err(no_entry("prefix", prefix_id, self.prefix_size()));
        }
        Ok(index)
    }

    /// The text of an IRI message, in two parts.
    pub fn resolve_iri(&mut self, data: &[u8]) -> Result<(&str, &str)> {
        let (prefix_id, name_id) = split_iri(data)?;
        let (name_id, prefix_id) = (self.name_id(name_id), self.prefix_id(prefix_id));
        let index = self.checked_ids(name_id, prefix_id)?;
        self.last_prefix = prefix_id;
        Ok((
            &self.prefixes[prefix_id as usize].text,
            self.names[index].text.as_str(),
        ))
    }

    /// The id of the prefix of an IRI, which may be left out.
    #[inline(always)]
    fn prefix_id(&self, prefix_id: u32) -> u32 {
        if prefix_id == 0 {
            self.last_prefix
        } else {
            prefix_id
        }
    }

    #[inline(always)]
    fn edition(&self, prefix_id: u32) -> u32 {
        self.editions
            .get(prefix_id as usize)
            .copied()
            .unwrap_or(UNDEFINED)
    }

    /// Set a register from the ids of an IRI, its prefix and its name; how many bytes the IRI has.
    #[inline(always)]
    pub fn set_iri(&mut self, sink: &mut S, place: Place, (prefix_id, name_id): (u32, u32)) -> Result<u64> {
        let name_id = self.name_id(name_id);
        let prefix_id = self.prefix_id(prefix_id);
        let validity = Validity::of(self.edition(prefix_id), sink.stamp(place));
        if let Some(cached) = self.cached_iris.get((name_id as usize).wrapping_sub(1)) {
            // What is remembered was checked when it was made, and both entries are still the same.
            let found = match (&cached.newest, &cached.older) {
                (Some(newest), _) if newest.validity == validity => Some(newest),
                (_, Some(older)) if older.validity == validity => Some(older),
                _ => None,
            };
            if let Some(found) = found {
                self.last_prefix = prefix_id;
                sink.iri(place, &found.iri)?;
                return Ok(u64::from(found.size));
            }
        }
        self.make_iri(sink, place, name_id, prefix_id, validity)
    }

    #[inline(never)]
    fn make_iri(
        &mut self,
        sink: &mut S,
        place: Place,
        name_id: u32,
        prefix_id: u32,
        validity: Validity,
    ) -> Result<u64> {
        let index = self.checked_ids(name_id, prefix_id)?;
        self.last_prefix = prefix_id;
        let prefix = &self.prefixes[prefix_id as usize];
        let prefix = Part::new(prefix.text.as_str(), &prefix.facts);
        let name = &self.names[index];
        let name = Part::new(name.text.as_str(), &name.facts);
        let size = prefix.text.len() + name.text.len();
        let iri = sink.new_iri(place, prefix, name)?;
        // To make this one the sink may have let go of others, and have another stamp.
        let stamp = sink.stamp(place);
        if size <= MAX_CACHED_IRI && stamp != NEVER_AGAIN {
            let cached = &mut self.cached_iris[index];
            if let Some(newest) = cached.newest.take() {
                cached.older = Some(newest);
            }
            cached.newest = Some(CachedIri {
                validity: validity.with_stamp(stamp),
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

/// Fields of a lookup entry whose layout is that of nearly all, and whose text is ASCII: its id as it stands, its text, and
/// what the sink has to know of that.
#[inline(always)]
fn split_short_entry<S: Sink>(data: &[u8]) -> Option<(u32, &str, S::Facts)> {
    const ID: u8 = 1 << 3;
    const TEXT: u8 = 2 << 3 | LENGTH;
    // No id, as ids run up; or once a table is full, the id of the entry that makes room.
    let (id, length, text) = match *data {
        [TEXT, length @ ..0x80, ref text @ ..] => (0, length, text),
        [ID, low, high @ ..0x80, TEXT, length @ ..0x80, ref text @ ..] if low >= 0x80 => {
            (u32::from(low & 0x7F) | u32::from(high) << 7, length, text)
        }
        [ID, id @ ..0x80, TEXT, length @ ..0x80, ref text @ ..] => (u32::from(id), length, text),
        _ => return None,
    };
    if text.len() != usize::from(length) {
        return None;
    }
    S::ascii_with_facts(text).map(|(text, facts)| (id, text, facts))
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
