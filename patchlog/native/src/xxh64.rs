//! XXH64, the hash that Spark calls `xxhash64`: to be compared with what it reckons, where `hash` is for ourselves only.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

#[inline(always)]
fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2))
        .rotate_left(31)
        .wrapping_mul(P1)
}

#[inline(always)]
fn word8(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default())
}

#[inline]
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let stripes = bytes.chunks_exact(32);
    let mut rest = stripes.remainder();
    let mut state = if bytes.len() < 32 {
        seed.wrapping_add(P5)
    } else {
        let mut lanes = [
            seed.wrapping_add(P1).wrapping_add(P2),
            seed.wrapping_add(P2),
            seed,
            seed.wrapping_sub(P1),
        ];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, word8(word));
            }
        }
        let turned = [1, 7, 12, 18].into_iter().zip(lanes);
        let joined = turned.fold(0u64, |sum, (turn, lane)| sum.wrapping_add(lane.rotate_left(turn)));
        lanes.into_iter().fold(joined, |state, lane| {
            (state ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4)
        })
    };
    state = state.wrapping_add(bytes.len() as u64);
    while let Some((word, behind)) = rest.split_at_checked(8) {
        state = (state ^ round(0, word8(word)))
            .rotate_left(27)
            .wrapping_mul(P1)
            .wrapping_add(P4);
        rest = behind;
    }
    if let Some((word, behind)) = rest.split_first_chunk::<4>() {
        let word = u64::from(u32::from_le_bytes(*word));
        state = (state ^ word.wrapping_mul(P1))
            .rotate_left(23)
            .wrapping_mul(P2)
            .wrapping_add(P3);
        rest = behind;
    }
    for &byte in rest {
        state = (state ^ u64::from(byte).wrapping_mul(P5))
            .rotate_left(11)
            .wrapping_mul(P1);
    }
    state = (state ^ state >> 33).wrapping_mul(P2);
    state = (state ^ state >> 29).wrapping_mul(P3);
    state ^ state >> 32
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    #[test]
    fn published_values() {
        assert_eq!(xxh64(b"", 0), 0xEF46_DB37_51D8_E999);
        assert_eq!(xxh64(b"a", 0), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(xxh64(b"abc", 0), 0x44BC_2CF5_AD77_0999);
    }
}
