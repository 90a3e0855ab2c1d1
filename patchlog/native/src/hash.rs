//! A fast hash of short texts, seeded per process: who does not know the seed cannot prepare texts that collide.
//!
//! It is no cryptographic hash. The seed never leaves the process, and every product has it in both factors, so that no text
//! makes one of them zero whatever the seed is.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(0x9E37_79B9_7F4A_7C15u64))
}

const K0: u64 = 0xA076_1D64_78BD_642F;
const K1: u64 = 0xE703_7ED1_A0B4_28DB;

#[inline(always)]
pub fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ (wide >> 64) as u64
}

#[inline(always)]
fn read8(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default())
}

#[inline(always)]
fn read4(bytes: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(bytes[..4].try_into().unwrap_or_default()))
}

#[inline(always)]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    hash_seeded(bytes, seed())
}

#[inline(always)]
fn hash_seeded(bytes: &[u8], seed: u64) -> u64 {
    let length = bytes.len();
    let mut state = seed ^ (length as u64).wrapping_mul(K0);
    let (a, b) = if length > 16 {
        let mut rest = bytes;
        while rest.len() > 16 {
            state = fold(
                read8(rest) ^ K0 ^ state,
                read8(&rest[8..]) ^ K1 ^ seed.rotate_left(32),
            );
            rest = &rest[16..];
        }
        (read8(&bytes[length - 16..]), read8(&bytes[length - 8..]))
    } else if length >= 8 {
        (read8(bytes), read8(&bytes[length - 8..]))
    } else if length >= 4 {
        (read4(bytes), read4(&bytes[length - 4..]))
    } else if length > 0 {
        let first = u64::from(bytes[0]);
        let middle = u64::from(bytes[length / 2]);
        let last = u64::from(bytes[length - 1]);
        (first << 16 | middle << 8 | last, 0)
    } else {
        (0, 0)
    };
    fold(a ^ K1 ^ seed.rotate_left(32), b ^ state)
}

/// A number for a place in a small table of hints: texts of one length with the same end have the same. Its high bits are good.
#[inline(always)]
pub fn glance(text: &[u8]) -> u64 {
    let end = text.last_chunk::<8>().map_or(0, |end| u64::from_le_bytes(*end));
    end.wrapping_add(text.len() as u64).wrapping_mul(K0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_has_the_same_hash_whatever_the_seed_is() {
        let text = |words: &[u64]| {
            words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        for words in [
            &[7, K1, 1, 2][..],
            &[K0, 7, 1, 2],
            &[7, K1, 7, K1, 1, 2],
            &[K1, 7],
            &[K1],
        ] {
            let hashes: std::collections::HashSet<u64> = (1..=64u64)
                .map(|seed| hash_seeded(&text(words), seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
                .collect();
            assert_eq!(hashes.len(), 64, "{words:x?}");
        }
    }

    #[test]
    fn what_stands_before_a_word_is_not_forgotten() {
        for seed in 1..=64u64 {
            let hash = |first: u64| {
                let bytes: Vec<u8> = [first, K1, 1, 2]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                hash_seeded(&bytes, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            };
            assert_ne!(hash(7), hash(8));
        }
    }
}
