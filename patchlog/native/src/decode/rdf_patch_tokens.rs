//! How far the abbreviations of RDF Patch text reach: numbers, prefixed names, and ids that stand bare in headers.

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// How many bytes of `text` are a number, and the local name of its datatype.
pub fn number_length(text: &[u8]) -> Option<(usize, &'static str)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = digits(&text[sign..]);
    let mut end = sign + whole;
    let has_dot = text.get(end) == Some(&b'.');
    let fraction = if has_dot { digits(&text[end + 1..]) } else { 0 };
    if whole == 0 && fraction == 0 {
        return None;
    }
    // A dot without digits behind it belongs to a number only where an exponent follows: otherwise it ends the row.
    for mantissa in [end + if has_dot { 1 + fraction } else { 0 }, end] {
        if matches!(text.get(mantissa), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(text.get(mantissa + 1), Some(b'+' | b'-')));
            let exponent = digits(text.get(mantissa + 1 + sign..).unwrap_or_default());
            if exponent > 0 {
                return Some((mantissa + 1 + sign + exponent, "double"));
            }
        }
    }
    if fraction > 0 {
        end += 1 + fraction;
        return Some((end, "decimal"));
    }
    (whole > 0).then_some((end, "integer"))
}

/// Where the colon of a prefixed name stands, and how many bytes the whole name has.
pub fn prefixed_name_length(text: &[u8]) -> Option<(usize, usize)> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | 0x80..);
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte >= 0x80;
    let mut at = 0;
    if text.first().is_some_and(|&byte| is_start(byte)) {
        at = 1;
        loop {
            let dots = text[at..].iter().take_while(|&&byte| byte == b'.').count();
            let letters = text[at + dots..]
                .iter()
                .take_while(|&&byte| is_name(byte))
                .count();
            if letters == 0 {
                break;
            }
            at += dots + letters;
        }
    }
    if text.get(at) != Some(&b':') {
        return None;
    }
    let colon = at;
    at += 1;
    if text.get(at) == Some(&b'.') {
        return Some((colon, at));
    }
    loop {
        let dots = text[at..].iter().take_while(|&&byte| byte == b'.').count();
        let mut end = at + dots;
        loop {
            match text.get(end) {
                Some(&byte) if is_name(byte) || byte == b':' => end += 1,
                Some(b'%')
                    if text.get(end + 1).is_some_and(u8::is_ascii_hexdigit)
                        && text.get(end + 2).is_some_and(u8::is_ascii_hexdigit) =>
                {
                    end += 3;
                }
                Some(b'\\')
                    if text
                        .get(end + 1)
                        .is_some_and(|byte| b"_~.-!$&'()*+,;=/?#@%".contains(byte)) =>
                {
                    end += 2;
                }
                _ => break,
            }
        }
        if end == at + dots {
            break;
        }
        at = end;
    }
    Some((colon, at))
}

/// A row that has the id of a patch as it stands in JSON and on command lines: what is before it, the id, and the rest.
pub fn bare_id(text: &str) -> Option<(&str, &str, &str)> {
    const BLANKS: [char; 3] = [' ', '\t', '\r'];
    let row = text.trim_start_matches(BLANKS).strip_prefix('H')?;
    let key = row.trim_start_matches(BLANKS);
    let value = key.strip_prefix("id").or_else(|| key.strip_prefix("prev"))?;
    let id_begins = value.trim_start_matches(BLANKS);
    let is_separated = key.len() < row.len() && id_begins.len() < value.len();
    let (id, behind) = id_begins.split_at_checked(36)?;
    let is_id = id.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let has_ended = behind.is_empty() || behind.starts_with([' ', '\t', '\r', '.', '#']);
    let before = &text[..text.len() - id_begins.len()];
    (is_separated && is_id && has_ended).then_some((before, id, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_behind_digits_ends_the_row() {
        assert_eq!(number_length(b"42 ."), Some((2, "integer")));
        assert_eq!(number_length(b"42."), Some((2, "integer")));
        assert_eq!(number_length(b"4.2."), Some((3, "decimal")));
        assert_eq!(number_length(b"-.5e+3 ."), Some((6, "double")));
        assert_eq!(number_length(b"4.e2"), Some((4, "double")));
        assert_eq!(number_length(b"."), None);
        assert_eq!(number_length(b"+x"), None);
    }

    #[test]
    fn a_prefixed_name_holds_dots_but_not_at_its_end() {
        assert_eq!(prefixed_name_length(b"ex:a.b. "), Some((2, 6)));
        assert_eq!(prefixed_name_length(b": "), Some((0, 1)));
        assert_eq!(prefixed_name_length(b"e.x:a%20b\\,c "), Some((3, 12)));
        assert_eq!(prefixed_name_length(b"word "), None);
    }
}
