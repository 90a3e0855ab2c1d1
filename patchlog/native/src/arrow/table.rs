//! The distinct strings of a dictionary column, and how to find them.

use crate::arrow::batch::{Pool, Strings};
use crate::bytes::{append, same};

/// A string is appended to the data first, and then looked for: nearly all are new, and so are written where they stay.
pub struct Table {
    pub strings: Strings,
    /// The hash of each string.
    hashes: Vec<u32>,
    /// By the lower bits of the hash. Where a group is full the next one is taken.
    groups: Vec<Group>,
    /// The bits that are the hash's in an entry of a group.
    tag_mask: u32,
}

/// Four places for entries, which are taken in turn. An entry has the index of a string plus one in its lower bits, as
/// many as number all places, and those of the hash in the others: its tag. A place that is free holds 0.
///
/// A string goes to the first place that is free in its group. Which one it is is worked out, and a group is seldom
/// full: where places were looked at one by one, what the processor guessed wrong took 3 to 8 percent of the time.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Group([u32; Group::PLACES]);

impl Group {
    const PLACES: usize = 4;
    const EMPTY: Self = Group([0; Group::PLACES]);

    /// The places that are free, and those with the tag, of which free ones may be some: a bit for each place.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn look(&self, tag: u32, tag_mask: u32) -> (u32, u32) {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of every x86-64, and a group has the sixteen bytes that are loaded, and their alignment.
        unsafe {
            let entries = _mm_load_si128(self.0.as_ptr().cast());
            let tags = _mm_and_si128(entries, _mm_set1_epi32(tag_mask as i32));
            let places_of = |found: __m128i| _mm_movemask_ps(_mm_castsi128_ps(found)) as u32;
            (
                places_of(_mm_cmpeq_epi32(entries, _mm_setzero_si128())),
                places_of(_mm_cmpeq_epi32(tags, _mm_set1_epi32(tag as i32))),
            )
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn look(&self, tag: u32, tag_mask: u32) -> (u32, u32) {
        self.look_at_each(tag, tag_mask)
    }

    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn look_at_each(&self, tag: u32, tag_mask: u32) -> (u32, u32) {
        (0..).zip(self.0).fold((0, 0), |(free, tagged), (place, entry)| {
            (
                free | u32::from(entry == 0) << place,
                tagged | u32::from(entry & tag_mask == tag) << place,
            )
        })
    }
}

const FIRST_GROUPS: usize = 64;

impl Table {
    pub fn new() -> Self {
        let mut table = Table {
            strings: Strings::new(),
            hashes: Vec::new(),
            groups: Vec::new(),
            tag_mask: 0,
        };
        table.resize(FIRST_GROUPS);
        table
    }

    /// The hash that the string was interned with.
    pub fn hash(&self, index: i32) -> u32 {
        self.hashes[index as usize]
    }

    /// The index of a string. The hash is the same whenever the string is.
    pub fn intern(&mut self, text: &[u8], hash: u32) -> i32 {
        append(self.tail(), text);
        self.intern_tail(hash)
    }

    /// What to append the next string to.
    #[inline(always)]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.strings.data
    }

    /// The index of a string that was appended, which is removed where it was there before.
    #[inline(always)]
    pub fn intern_tail(&mut self, hash: u32) -> i32 {
        let group = hash as usize & (self.groups.len() - 1);
        let (free, tagged) = self.groups[group].look(hash & self.tag_mask, self.tag_mask);
        if tagged == 0 && free != 0 {
            self.add_tail(group, free, hash)
        } else {
            self.search_tail(group, hash)
        }
    }

    /// The string at the end of the data is new, and these places of the group are free.
    #[inline(always)]
    fn add_tail(&mut self, group: usize, free: u32, hash: u32) -> i32 {
        let count = self.hashes.len() + 1;
        let place = free.trailing_zeros() as usize % Group::PLACES;
        self.groups[group].0[place] = hash & self.tag_mask | count as u32;
        self.hashes.push(hash);
        self.strings.end();
        // Half of the places may be taken.
        if count * 2 >= self.groups.len() * Group::PLACES {
            self.resize(self.groups.len() * 2);
        }
        count as i32 - 1
    }

    #[inline(never)]
    fn search_tail(&mut self, mut group: usize, hash: u32) -> i32 {
        let start = self.strings.offsets.last().map_or(0, |&offset| offset as usize);
        loop {
            let (free, tagged) = self.groups[group].look(hash & self.tag_mask, self.tag_mask);
            let mut candidates = tagged & !free;
            while candidates != 0 {
                let entry = self.groups[group].0[candidates.trailing_zeros() as usize % Group::PLACES];
                let index = (entry & !self.tag_mask) as usize - 1;
                if same(self.strings.get(index), &self.strings.data[start..]) {
                    self.strings.data.truncate(start);
                    return index as i32;
                }
                candidates &= candidates - 1;
            }
            if free != 0 {
                return self.add_tail(group, free, hash);
            }
            group = (group + 1) & (self.groups.len() - 1);
        }
    }

    /// Give the strings so many groups, a power of two.
    #[inline(never)]
    fn resize(&mut self, groups: usize) {
        self.groups.clear();
        self.groups.resize(groups, Group::EMPTY);
        self.tag_mask = !((groups * Group::PLACES) as u32 - 1);
        for (count, &hash) in (1..).zip(&self.hashes) {
            let mut group = hash as usize & (groups - 1);
            let free = loop {
                match self.groups[group].0.iter_mut().find(|entry| **entry == 0) {
                    Some(free) => break free,
                    None => group = (group + 1) & (groups - 1),
                }
            };
            *free = hash & self.tag_mask | count;
        }
    }

    /// The strings, after which there are none.
    pub fn take_strings(&mut self, pool: &Pool) -> Strings {
        self.groups.fill(Group::EMPTY);
        self.hashes.clear();
        std::mem::replace(&mut self.strings, pool.strings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_looked_at_as_its_places_are_one_by_one() {
        let tag_mask = !0xFF;
        for taken in 0..=Group::PLACES {
            for tags in 0..3u32.pow(taken as u32) {
                let mut group = Group::EMPTY;
                for place in 0..taken {
                    group.0[place] = (tags / 3u32.pow(place as u32) % 3) << 8 | (place as u32 + 1);
                }
                for tag in 0..4 {
                    assert_eq!(
                        group.look(tag << 8, tag_mask),
                        group.look_at_each(tag << 8, tag_mask)
                    );
                }
            }
        }
    }

    #[test]
    fn strings_are_found_again_whatever_their_hashes_are() {
        // Few hashes for many strings: groups overflow into those behind them, and from the last one into the first.
        // The tag 0 is that of places that are free.
        for hashes in [vec![0], vec![u32::MAX], vec![0, 1, 63, 1 << 31, u32::MAX - 1]] {
            let mut table = Table::new();
            let hash_of = |string: usize| hashes[string % hashes.len()];
            for _ in 0..2 {
                for string in 0..500 {
                    let text = format!("{string}");
                    assert_eq!(table.intern(text.as_bytes(), hash_of(string)), string as i32);
                }
                for string in (0..500).rev() {
                    let text = format!("{string}");
                    assert_eq!(table.intern(text.as_bytes(), hash_of(string)), string as i32);
                    assert_eq!(table.hash(string as i32), hash_of(string));
                }

                let strings = table.take_strings(&Pool::default());

                assert_eq!(strings.len(), 500);
                assert_eq!(strings.get(499), b"499");
                assert_eq!(table.strings.len(), 0);
            }
        }
    }
}
