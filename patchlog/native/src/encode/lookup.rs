//! The writer's lookup table: text to id, with the entry that was used least recently given up when the table is full.

use crate::bytes::same;
use crate::fault::{Result, unsupported};
use crate::hash::{glance, hash_bytes};

const NONE: u32 = u32::MAX;
const FIRST_BUCKETS: usize = 1 << 7;

/// An entry, in one cache line unless its text is long.
#[repr(align(64))]
struct Entry {
    /// The row that used the entry last: what one row uses must not be given up for it.
    row: u64,
    hash: u32,
    /// Differs for everything that ever stood in the table: a remembered use is good as long as this is the same.
    serial: u32,
    /// The length of the text, or `LONG` where it does not fit and stands in `Lookup::long_texts`.
    length: u8,
    text: [u8; MAX_SHORT],
}

const MAX_SHORT: usize = 47;
const LONG: u8 = u8::MAX;

/// An entry with this serial is not to be remembered: the serials have run out.
const NO_SERIAL: u32 = 0;

/// Neighbours of an entry in order of use, by their ids. Kept apart from the entries: to use one touches its neighbours too.
#[derive(Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

/// The order of use is a ring, so that all that is in it has neighbours: this id, which no entry has, stands between the
/// entry that was used last and the oldest one.
const RING: u32 = 0;

const UNLINKED: Link = Link {
    older: RING,
    newer: RING,
};

/// Entries in order of use.
struct Order {
    /// By id, one more than there are entries. All ids that stand in them are those of links.
    links: Vec<Link>,
}

impl Order {
    fn new() -> Self {
        Order {
            links: vec![UNLINKED],
        }
    }

    fn clear(&mut self) {
        self.links.clear();
        self.links.push(UNLINKED);
    }

    /// Make room for the next entry, which is not in the order yet.
    fn push(&mut self) {
        self.links.push(UNLINKED);
    }

    fn oldest(&self) -> u32 {
        self.links[RING as usize].newer
    }

    fn newest(&self) -> u32 {
        self.links[RING as usize].older
    }

    fn newer(&self, id: u32) -> u32 {
        self.links[id as usize].newer
    }

    #[inline(always)]
    fn remove(&mut self, id: u32) {
        let Link { older, newer } = self.links[id as usize];
        // SAFETY: neighbours are links of this order.
        unsafe {
            self.links.get_unchecked_mut(older as usize).newer = newer;
            self.links.get_unchecked_mut(newer as usize).older = older;
        }
    }

    /// Put an entry, which is not in the order, behind all others.
    #[inline(always)]
    fn add(&mut self, id: u32) {
        let older = self.newest();
        self.links[id as usize] = Link { older, newer: RING };
        // SAFETY: neighbours are links of this order, and so is the ring's own.
        unsafe {
            self.links.get_unchecked_mut(older as usize).newer = id;
            self.links.get_unchecked_mut(RING as usize).older = id;
        }
    }
}

pub struct Lookup {
    what: &'static str,
    size: u32,
    entries: Vec<Entry>,
    order: Order,
    /// By index, as far as there are any.
    long_texts: Vec<Vec<u8>>,
    /// Open addressing with linear probing, at most half full: the hash in the upper half, the index plus one in the lower;
    /// 0 is free.
    buckets: Vec<u64>,
    mask: usize,
    /// Indexes of entries that were found lately, by a glance at their text.
    hints: [u32; HINTS],
    /// The id of the entry that was written last.
    last_written: u32,
    next_serial: u32,
}

const HINTS: usize = 64;

/// An id and, where the entry is new, the id to write in its row (0: the previous one plus one).
pub struct Found {
    pub id: u32,
    pub new_entry: Option<u32>,
}

/// An entry as it was when it was found.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    pub id: u32,
    serial: u32,
}

impl Lookup {
    pub fn new(what: &'static str, size: u32) -> Self {
        // Grows with the entries: a size is only what the stream declares, and may be huge; and most patches are small.
        let buckets = (size as usize)
            .saturating_mul(2)
            .next_power_of_two()
            .clamp(16, FIRST_BUCKETS);
        Lookup {
            what,
            size,
            entries: Vec::new(),
            order: Order::new(),
            long_texts: Vec::new(),
            buckets: vec![0; buckets],
            mask: buckets - 1,
            hints: [NONE; HINTS],
            last_written: 0,
            next_serial: NO_SERIAL + 1,
        }
    }

    /// Forget all entries; the next one is written with an explicit id, whatever the reader holds.
    ///
    /// The first `reserved` ids are left alone: they hold what stands elsewhere in the stream.
    pub fn clear_explicitly(&mut self, reserved: u32) {
        if self.entries.len() * 16 < self.buckets.len() {
            // Patches are often small. All buckets from the first that an entry could stand in to a free one are taken.
            for entry in &self.entries {
                let mut bucket = entry.hash as usize & self.mask;
                while self.buckets[bucket] != 0 {
                    self.buckets[bucket] = 0;
                    bucket = (bucket + 1) & self.mask;
                }
            }
        } else {
            self.buckets.fill(0);
        }
        self.entries.clear();
        self.order.clear();
        for _ in 0..reserved {
            // Not in the order of use, not in a bucket and not hinted at, so it is neither found nor given up.
            self.push_entry();
        }
        self.hints.fill(NONE);
        // No id is this one plus one, so the first entry is written with its own.
        self.last_written = NONE;
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    fn push_entry(&mut self) {
        self.order.push();
        self.entries.push(Entry {
            row: 0,
            hash: 0,
            serial: NO_SERIAL,
            length: 0,
            text: [0; MAX_SHORT],
        });
    }

    /// The text of an entry that is in the table.
    #[inline(always)]
    pub fn text(&self, id: u32) -> &[u8] {
        let index = id as usize - 1;
        let entry = &self.entries[index];
        match entry.text.get(..usize::from(entry.length)) {
            Some(text) => text,
            None => &self.long_texts[index],
        }
    }

    fn set_text(&mut self, index: usize, text: &[u8]) {
        let entry = &mut self.entries[index];
        if let Some(room) = entry.text.get_mut(..text.len()) {
            room.copy_from_slice(text);
            entry.length = text.len() as u8;
            return;
        }
        entry.length = LONG;
        if index >= self.long_texts.len() {
            self.long_texts.resize_with(index + 1, Vec::new);
        }
        let long = &mut self.long_texts[index];
        long.clear();
        long.extend_from_slice(text);
    }

    /// An entry to remember.
    pub fn see(&self, id: u32) -> Seen {
        let serial = match self.entries.get((id as usize).wrapping_sub(1)) {
            Some(entry) => entry.serial,
            None => NO_SERIAL,
        };
        Seen { id, serial }
    }

    /// Whether an entry that was seen before still holds the same.
    #[inline(always)]
    pub fn holds(&self, seen: Seen) -> bool {
        match self.entries.get((seen.id as usize).wrapping_sub(1)) {
            Some(entry) => entry.serial == seen.serial && seen.serial != NO_SERIAL,
            None => false,
        }
    }

    /// Use an entry that is in the table.
    #[inline(always)]
    pub fn reuse(&mut self, id: u32, row: u64) {
        self.touch(id - 1, row);
    }

    #[inline(always)]
    fn touch(&mut self, index: u32, row: u64) {
        self.entries[index as usize].row = row;
        self.order.remove(index + 1);
        self.order.add(index + 1);
    }

    /// As `find`, for texts that are long and few: most are found by a glance.
    #[inline(always)]
    pub fn find_often(&mut self, text: &[u8], row: u64) -> Result<Found> {
        let hint = glance(text) >> (64 - HINTS.trailing_zeros());
        let index = self.hints[hint as usize];
        if index != NONE && same(self.text(index + 1), text) {
            self.touch(index, row);
            return Ok(Found {
                id: index + 1,
                new_entry: None,
            });
        }
        let found = self.find(text, row)?;
        self.hints[hint as usize] = found.id - 1;
        Ok(found)
    }

    /// Find the entry of `text`, or make one.
    #[inline(always)]
    pub fn find(&mut self, text: &[u8], row: u64) -> Result<Found> {
        let hash = (hash_bytes(text) >> 32) as u32;
        let mut bucket = hash as usize & self.mask;
        loop {
            let known = self.buckets[bucket];
            if known == 0 {
                return self.make(text, hash, row);
            }
            let index = known as u32 - 1;
            if (known >> 32) as u32 == hash && same(self.text(index + 1), text) {
                self.touch(index, row);
                return Ok(Found {
                    id: index + 1,
                    new_entry: None,
                });
            }
            bucket = (bucket + 1) & self.mask;
        }
    }

    #[inline(never)]
    fn make(&mut self, text: &[u8], hash: u32, row: u64) -> Result<Found> {
        let index = if self.entries.len() < self.size as usize {
            self.push_entry();
            self.entries.len() as u32 - 1
        } else {
            self.give_up_oldest(row)?
        };
        self.set_text(index as usize, text);
        let entry = &mut self.entries[index as usize];
        entry.hash = hash;
        entry.serial = self.next_serial;
        entry.row = row;
        if self.next_serial != NO_SERIAL {
            self.next_serial = self.next_serial.wrapping_add(1);
        }
        self.order.add(index + 1);
        if self.entries.len() * 2 > self.buckets.len() {
            self.grow_buckets();
        } else {
            self.insert_bucket(hash, index);
        }
        let id = index + 1;
        let written = if self.last_written != NONE && id == self.last_written + 1 {
            0
        } else {
            id
        };
        self.last_written = id;
        Ok(Found {
            id,
            new_entry: Some(written),
        })
    }

    fn give_up_oldest(&mut self, row: u64) -> Result<u32> {
        let oldest = self.order.oldest();
        if oldest == RING || self.entries[oldest as usize - 1].row == row {
            return Err(unsupported(format!(
                "the {} table is too small: one row needs more than its {} entries",
                self.what, self.size
            )));
        }
        let index = oldest - 1;
        self.order.remove(oldest);
        self.remove_bucket(self.entries[index as usize].hash, index);
        Ok(index)
    }

    fn grow_buckets(&mut self) {
        let size = self.buckets.len() * 2;
        self.mask = size - 1;
        self.buckets.clear();
        self.buckets.resize(size, 0);
        // All that are in the order of use: entries that are left alone are not.
        let mut id = self.order.oldest();
        while id != RING {
            self.insert_bucket(self.entries[id as usize - 1].hash, id - 1);
            id = self.order.newer(id);
        }
    }

    #[inline(always)]
    fn insert_bucket(&mut self, hash: u32, index: u32) {
        let mut bucket = hash as usize & self.mask;
        while self.buckets[bucket] != 0 {
            bucket = (bucket + 1) & self.mask;
        }
        self.buckets[bucket] = u64::from(hash) << 32 | u64::from(index + 1);
    }

    /// Remove by moving later entries of the run back, so that no marks of deletion pile up.
    #[inline(always)]
    fn remove_bucket(&mut self, hash: u32, index: u32) {
        let mut hole = hash as usize & self.mask;
        while self.buckets[hole] as u32 != index + 1 {
            hole = (hole + 1) & self.mask;
        }
        let mut next = (hole + 1) & self.mask;
        while self.buckets[next] != 0 {
            let home = (self.buckets[next] >> 32) as usize & self.mask;
            // Move it if its home does not lie between the hole and where it stands.
            if (next.wrapping_sub(home) & self.mask) >= (next.wrapping_sub(hole) & self.mask) {
                self.buckets[hole] = self.buckets[next];
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        self.buckets[hole] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_used_least_recently_is_given_up() {
        let mut lookup = Lookup::new("name", 3);
        for (row, text) in ["a", "b", "c", "a", "d"].iter().enumerate() {
            lookup.find(text.as_bytes(), row as u64).unwrap();
        }

        let b = lookup.find(b"b", 9).unwrap();

        assert_eq!(b.id, 3, "b was given up for d, and c is the oldest now");
        assert!(lookup.find(b"a", 10).unwrap().new_entry.is_none());
    }

    #[test]
    fn entries_of_the_row_being_written_are_kept() {
        let mut lookup = Lookup::new("name", 2);
        lookup.find(b"a", 1).unwrap();
        lookup.find(b"b", 1).unwrap();

        assert!(lookup.find(b"c", 1).is_err());
    }

    #[test]
    fn cleared_tables_hold_nothing() {
        for count in [0u64, 3, 300, 900] {
            let mut lookup = Lookup::new("name", 1000);
            for row in 0..count {
                lookup.find(format!("n{row}").as_bytes(), row).unwrap();
            }
            let seen = lookup.see(1);

            lookup.clear_explicitly(2);

            assert!(!lookup.holds(seen));
            assert!(lookup.buckets.iter().all(|&bucket| bucket == 0));
            assert_eq!(lookup.find(b"n0", 1).unwrap().new_entry, Some(3));
        }
    }

    #[test]
    fn texts_of_any_length_are_found_both_ways() {
        let texts: Vec<Vec<u8>> = (0..100).map(|length| vec![b'x'; length]).collect();
        let mut lookup = Lookup::new("prefix", 60);
        for (row, text) in texts.iter().enumerate() {
            let made = lookup.find_often(text, row as u64).unwrap();
            assert!(made.new_entry.is_some());

            assert_eq!(lookup.find(text, row as u64).unwrap().id, made.id);
            assert_eq!(lookup.find_often(text, row as u64).unwrap().id, made.id);
        }
    }

    #[test]
    fn an_entry_that_was_given_up_is_not_what_was_seen() {
        let mut lookup = Lookup::new("name", 1);
        lookup.find(b"a", 1).unwrap();
        let seen = lookup.see(1);
        assert!(lookup.holds(seen));

        lookup.find(b"b", 2).unwrap();

        assert!(!lookup.holds(seen));
        assert!(!lookup.holds(Seen::default()));
    }

    #[test]
    fn a_table_of_any_size_costs_what_is_in_it() {
        let mut lookup = Lookup::new("name", u32::MAX);
        for row in 0..20_000u64 {
            lookup.find(format!("n{row}").as_bytes(), row).unwrap();
        }

        for row in 0..20_000u64 {
            assert!(
                lookup
                    .find(format!("n{row}").as_bytes(), row)
                    .unwrap()
                    .new_entry
                    .is_none()
            );
        }
    }

    #[test]
    fn many_entries_stay_findable() {
        let mut lookup = Lookup::new("name", 50);
        let mut state = 7u64;
        for row in 0..20_000u64 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let text = format!("n{}", (state >> 33) % 90);
            let first = lookup.find(text.as_bytes(), row).unwrap();
            let again = lookup.find(text.as_bytes(), row).unwrap();
            assert_eq!(first.id, again.id);
            assert!(again.new_entry.is_none());
        }
    }
}
