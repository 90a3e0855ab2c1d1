//! Short runs of bytes compared and copied: to call for it takes longer than to do it.

/// Whether two texts, which are probably short, are the same.
#[inline(always)]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    let length = a.len();
    if length != b.len() {
        return false;
    }
    if !(8..=64).contains(&length) {
        return a == b;
    }
    let word = |text: &[u8], at: usize| u64::from_ne_bytes(text[at..at + 8].try_into().unwrap_or_default());
    // From the end: there texts that share a prefix differ.
    let mut at = length - 8;
    loop {
        if word(a, at) != word(b, at) {
            return false;
        }
        if at == 0 {
            return true;
        }
        at = at.saturating_sub(8);
    }
}

/// Append a text that is probably short. A call to copy memory takes longer than to copy a few words.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, text: &[u8]) {
    append_all(out, [text]);
}

/// Append texts one after another, with one look at the room there is.
#[inline(always)]
pub fn append_all<const N: usize>(out: &mut Vec<u8>, texts: [&[u8]; N]) {
    let length = texts.iter().map(|text| text.len()).sum();
    out.reserve(length);
    let end = out.len();
    // SAFETY: there is room for all of the texts behind the end, and the length is that of what is written there.
    unsafe {
        let mut to = out.as_mut_ptr().add(end);
        for text in texts {
            copy_short(text, to);
            to = to.add(text.len());
        }
        out.set_len(end + length);
    }
}

/// Append the two halves of a text between a byte and another. The first half has at times more than 64 bytes, as the prefixes
/// of nanopublications do, which are still copied without a call.
#[inline(always)]
pub fn append_between(out: &mut Vec<u8>, begin: u8, first: &[u8], second: &[u8], end: u8) {
    let length = first.len() + second.len() + 2;
    out.reserve(length);
    let before = out.len();
    // SAFETY: there is room for all of it behind what was there, and the length is that of what is written.
    unsafe {
        let to = out.as_mut_ptr().add(before);
        *to = begin;
        copy_medium(first, to.add(1));
        copy_short(second, to.add(1 + first.len()));
        *to.add(length - 1) = end;
        out.set_len(before + length);
    }
}

/// Copy a text that has at times more than 64 bytes. Where it nearly never has, to ask costs more than it brings.
///
/// # Safety
/// There is room for the text, and it does not overlap with that.
#[inline(always)]
unsafe fn copy_medium(text: &[u8], to: *mut u8) {
    // SAFETY: promised by the caller; each branch has the lengths that it needs.
    unsafe {
        if text.len() > 64 && text.len() <= 128 {
            ends::<64>(text, to);
        } else {
            copy_short(text, to);
        }
    }
}

/// Copy the first and the last `N` bytes of a text; where they overlap both write the same.
///
/// # Safety
/// There is room for the text, it does not overlap with that, and it has `N` bytes or more.
#[inline(always)]
unsafe fn ends<const N: usize>(text: &[u8], to: *mut u8) {
    let (from, last) = (text.as_ptr(), text.len() - N);
    // SAFETY: promised by the caller.
    unsafe {
        to.cast::<[u8; N]>()
            .write_unaligned(from.cast::<[u8; N]>().read_unaligned());
        to.add(last)
            .cast::<[u8; N]>()
            .write_unaligned(from.add(last).cast::<[u8; N]>().read_unaligned());
    }
}

/// Copy a text that is probably short to the beginning of a place that has room for it.
#[inline(always)]
pub fn copy_to(place: &mut [u8], text: &[u8]) {
    assert!(text.len() <= place.len());
    // SAFETY: there is room, and what is borrowed to be written does not overlap with what is borrowed to be read.
    unsafe { copy_short(text, place.as_mut_ptr()) }
}

/// Copy a text that is probably short.
///
/// # Safety
/// There is room for the text, and it does not overlap with that.
#[inline(always)]
unsafe fn copy_short(text: &[u8], to: *mut u8) {
    let length = text.len();
    // Comparisons and not a table of jumps: the lengths of what is copied in one place are alike, and so well predicted.
    // SAFETY: promised by the caller; each branch has the lengths that it needs.
    unsafe {
        if length >= 32 {
            if length <= 64 {
                ends::<32>(text, to);
            } else {
                to.copy_from_nonoverlapping(text.as_ptr(), length);
            }
        } else if length >= 16 {
            ends::<16>(text, to);
        } else if length >= 8 {
            ends::<8>(text, to);
        } else if length >= 4 {
            ends::<4>(text, to);
        } else if length >= 2 {
            ends::<2>(text, to);
        } else if length == 1 {
            *to = text[0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_appended_whole() {
        let text: Vec<u8> = (0..200).collect();
        for length in 0..=200 {
            let mut out = b"before".to_vec();

            append(&mut out, &text[..length]);

            assert_eq!(out, [b"before", &text[..length]].concat());
        }
    }

    #[test]
    fn texts_are_the_same_only_if_every_byte_is() {
        for length in 0..80 {
            let text: Vec<u8> = (0..length).collect();
            assert!(same(&text, &text.clone()));
            for at in 0..text.len() {
                let mut other = text.clone();
                other[at] ^= 1;
                assert!(!same(&text, &other));
            }
            assert!(!same(&text, &[&text[..], b"x"].concat()));
        }
    }
}
