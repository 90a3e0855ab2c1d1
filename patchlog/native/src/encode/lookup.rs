//! The writer's lookup table: text to id, with the entry that was used least recently given up when the table is full.

use crate::fault::{Result, unsupported};
use crate::hash::hash_bytes;
use crate::text::same;

const NONE: u32 = u32::MAX;
const FIRST_BUCKETS: usize = 1 << 13;

struct Entry {
    text: Vec<u8>,
    hash: u64,
    /// Neighbours in order of use.
    older: u32,
    newer: u32,
    /// The row that used the entry last: what one row uses must not be given up for it.
    row: u64,
    /// Differs for everything that ever stood in the table: a remembered use is good as long as this is the same.
    serial: u64,
}

pub struct Lookup {
    what: &'static str,
    size: u32,
    entries: Vec<Entry>,
    /// Open addressing with linear probing; at most half full.
    buckets: Vec<u32>,
    mask: usize,
    oldest: u32,
    newest: u32,
    /// The id of the entry that was written last.
    last_written: u32,
    next_serial: u64,
}

/// An id and, where the entry is new, the id to write in its row (0: the previous one plus one).
pub struct Found {
    pub id: u32,
    pub serial: u64,
    pub new_entry: Option<u32>,
}

impl Lookup {
    pub fn new(what: &'static str, size: u32) -> Self {
        // Grows with the entries: a size is only what the stream declares, and may be huge.
        let buckets = (size as usize)
            .saturating_mul(2)
            .next_power_of_two()
            .clamp(16, FIRST_BUCKETS);
        Lookup {
            what,
            size,
            entries: Vec::new(),
            buckets: vec![NONE; buckets],
            mask: buckets - 1,
            oldest: NONE,
            newest: NONE,
            last_written: 0,
            next_serial: 0,
        }
    }

    /// Forget all entries; the next one is written with an explicit id, whatever the reader holds.
    ///
    /// The first `reserved` ids are left alone: they hold what stands elsewhere in the stream.
    pub fn clear_explicitly(&mut self, reserved: u32) {
        self.entries.clear();
        for _ in 0..reserved {
            // Not in the order of use and not in a bucket, so it is neither found nor given up.
            self.entries.push(Entry {
                text: Vec::new(),
                hash: 0,
                older: NONE,
                newer: NONE,
                row: 0,
                serial: u64::MAX,
            });
        }
        self.buckets.fill(NONE);
        self.oldest = NONE;
        self.newest = NONE;
        // No id is this one plus one, so the first entry is written with its own.
        self.last_written = NONE;
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether an entry that was found before still holds the same.
    #[inline(always)]
    pub fn holds(&self, id: u32, serial: u64) -> bool {
        self.entries
            .get((id as usize).wrapping_sub(1))
            .is_some_and(|entry| entry.serial == serial)
    }

    /// Use an entry that `holds` said is still there.
    #[inline(always)]
    pub fn reuse(&mut self, id: u32, row: u64) {
        self.entries[id as usize - 1].row = row;
        self.touch(id - 1);
    }

    #[inline(always)]
    fn touch(&mut self, index: u32) {
        if self.newest != index {
            self.unlink(index);
            self.link_newest(index);
        }
    }

    #[inline(always)]
    fn unlink(&mut self, index: u32) {
        let Entry { older, newer, .. } = self.entries[index as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
    }

    #[inline(always)]
    fn link_newest(&mut self, index: u32) {
        let newest = self.newest;
        let entry = &mut self.entries[index as usize];
        entry.older = newest;
        entry.newer = NONE;
        match newest {
            NONE => self.oldest = index,
            _ => self.entries[newest as usize].newer = index,
        }
        self.newest = index;
    }

    /// Find the entry of `text`, or make one.
    #[inline(always)]
    pub fn find(&mut self, text: &[u8], row: u64) -> Result<Found> {
        let hash = hash_bytes(text);
        let mut bucket = hash as usize & self.mask;
        loop {
            let index = self.buckets[bucket];
            if index == NONE {
                return self.make(text, hash, row);
            }
            let entry = &mut self.entries[index as usize];
            if entry.hash == hash && same(&entry.text, text) {
                entry.row = row;
                let serial = entry.serial;
                self.touch(index);
                return Ok(Found {
                    id: index + 1,
                    serial,
                    new_entry: None,
                });
            }
            bucket = (bucket + 1) & self.mask;
        }
    }

    fn make(&mut self, text: &[u8], hash: u64, row: u64) -> Result<Found> {
        let index = if self.entries.len() < self.size as usize {
            self.entries.push(Entry {
                text: text.to_vec(),
                hash,
                older: NONE,
                newer: NONE,
                row,
                serial: 0,
            });
            self.entries.len() as u32 - 1
        } else {
            self.give_up_oldest(text, hash, row)?
        };
        self.next_serial += 1;
        self.entries[index as usize].serial = self.next_serial;
        self.link_newest(index);
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
            serial: self.next_serial,
            new_entry: Some(written),
        })
    }

    fn give_up_oldest(&mut self, text: &[u8], hash: u64, row: u64) -> Result<u32> {
        let index = self.oldest;
        if index == NONE || self.entries[index as usize].row == row {
            return Err(unsupported(format!(
                "the {} table is too small: one row needs more than its {} entries",
                self.what, self.size
            )));
        }
        self.unlink(index);
        self.remove_bucket(self.entries[index as usize].hash, index);
        let entry = &mut self.entries[index as usize];
        entry.text.clear();
        entry.text.extend_from_slice(text);
        entry.hash = hash;
        entry.row = row;
        Ok(index)
    }

    fn grow_buckets(&mut self) {
        let size = self.buckets.len() * 2;
        self.mask = size - 1;
        self.buckets.clear();
        self.buckets.resize(size, NONE);
        // All that are in the order of use: entries that are left alone are not.
        let mut index = self.oldest;
        while index != NONE {
            let Entry { hash, newer, .. } = self.entries[index as usize];
            self.insert_bucket(hash, index);
            index = newer;
        }
    }

    fn insert_bucket(&mut self, hash: u64, index: u32) {
        let mut bucket = hash as usize & self.mask;
        while self.buckets[bucket] != NONE {
            bucket = (bucket + 1) & self.mask;
        }
        self.buckets[bucket] = index;
    }

    /// Remove by moving later entries of the run back, so that no marks of deletion pile up.
    fn remove_bucket(&mut self, hash: u64, index: u32) {
        let mut hole = hash as usize & self.mask;
        while self.buckets[hole] != index {
            hole = (hole + 1) & self.mask;
        }
        let mut next = (hole + 1) & self.mask;
        while self.buckets[next] != NONE {
            let home = self.entries[self.buckets[next] as usize].hash as usize & self.mask;
            // Move it if its home does not lie between the hole and where it stands.
            if (next.wrapping_sub(home) & self.mask) >= (next.wrapping_sub(hole) & self.mask) {
                self.buckets[hole] = self.buckets[next];
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        self.buckets[hole] = NONE;
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
