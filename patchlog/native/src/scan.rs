//! Looking through text sixteen bytes at a time. IRIs are too short for a search that has to be set up.

/// Where the `>` of an IRI stands, and whether a byte before it needs a closer look: a control, a blank, `<`, `"` or `\`.
#[inline(always)]
pub fn end_of_iri(text: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut is_odd = false;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        while at + 16 <= text.len() {
            // SAFETY: SSE2 is part of every x86-64, and the sixteen bytes were just seen to be there.
            let (end, odd) = unsafe {
                let block = _mm_loadu_si128(text.as_ptr().add(at).cast());
                let equals = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
                let low = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x20)), block);
                let odd = _mm_or_si128(
                    _mm_or_si128(low, equals(b'<')),
                    _mm_or_si128(equals(b'"'), equals(b'\\')),
                );
                (
                    _mm_movemask_epi8(equals(b'>')) as u32,
                    _mm_movemask_epi8(odd) as u32,
                )
            };
            if end != 0 {
                let length = end.trailing_zeros();
                return Some((at + length as usize, is_odd || odd & ((1 << length) - 1) != 0));
            }
            is_odd |= odd != 0;
            at += 16;
        }
    }
    for (length, &byte) in text[at..].iter().enumerate() {
        match byte {
            b'>' => return Some((at + length, is_odd)),
            0..=0x20 | b'<' | b'"' | b'\\' => is_odd = true,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_it_stands() {
        for length in 0..70 {
            let mut text = vec![b'x'; length];
            text.extend_from_slice(b"> <\" \\ and more text behind it");

            assert_eq!(end_of_iri(&text), Some((length, false)));
        }
    }

    #[test]
    fn odd_bytes_before_the_end_are_told() {
        for length in 1..70 {
            for odd in [b' ', 0, b'<', b'"', b'\\'] {
                for at in [0, length / 2, length - 1] {
                    let mut text = vec![b'x'; length];
                    text[at] = odd;
                    text.push(b'>');
                    text.extend_from_slice(&[b'y'; 20]);

                    assert_eq!(end_of_iri(&text), Some((length, true)));
                }
            }
        }
    }

    #[test]
    fn without_an_end_there_is_none() {
        assert_eq!(end_of_iri(&[b'x'; 40]), None);
        assert_eq!(end_of_iri(b""), None);
    }
}
