//! From a place in a JSON text to the pointer of the value there.

/// A list or an object that has begun and not ended.
enum Open {
    /// The number of the element.
    List(usize),
    /// The name of the member, once it is known, as it stands in the text.
    Object(Option<(usize, usize)>),
}

/// The JSON pointer (RFC 6901) of the innermost value that is open where `offset` bytes of
/// `text` have been read; empty for the whole. The text need be valid only up to there.
#[must_use]
pub fn at(text: &[u8], offset: usize) -> String {
    let text = text.get(..offset).unwrap_or(text);
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'[' => open.push(Open::List(0)),
            b'{' => open.push(Open::Object(None)),
            b']' | b'}' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::List(index)) => *index += 1,
                Some(Open::Object(name)) => *name = None,
                None => {}
            },
            b'"' => {
                let start = at;
                at = end_of_string(text, start);
                if let Some(Open::Object(name @ None)) = open.last_mut() {
                    *name = Some((start, at));
                    at += 1;
                    continue;
                }
                at += 1;
            }
            _ => {}
        }
    }
    open.iter().map(|open| component(text, open)).collect()
}

/// Where the string that begins at `at` ends: the quote.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn component(text: &[u8], open: &Open) -> String {
    match open {
        Open::List(index) => format!("/{index}"),
        Open::Object(None) => String::new(),
        Open::Object(Some((start, end))) => {
            let raw = text.get(*start..*end).unwrap_or_default();
            let quoted = [b"\"", raw, b"\""].concat();
            let name = serde_json::from_slice(&quoted)
                .unwrap_or_else(|_| String::from_utf8_lossy(raw).into_owned());
            format!("/{}", name.replace('~', "~0").replace('/', "~1"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_pointer() {
        let text = br#"{"a~/b": [1, {"c\"": "x,y]"}], "d": {"e": 2}, "f": 3}"#;
        let after = |part: &str| {
            let whole = std::str::from_utf8(text).unwrap();
            at(text, whole.find(part).unwrap() + part.len())
        };
        assert_eq!(after("[1"), "/a~0~1b/0");
        assert_eq!(after("x,y]"), "/a~0~1b/1/c\"");
        assert_eq!(after("\"x,y]\"}"), "/a~0~1b/1");
        assert_eq!(after("\"}]"), "/a~0~1b");
        assert_eq!(after("\"}],"), "");
        assert_eq!(after("{\"e\": 2"), "/d/e");
        assert_eq!(after("2}"), "/d");
        assert_eq!(after(": 3"), "/f");
        assert_eq!(at(text, usize::MAX), "");
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for text in ["]", "}}}", "\"", "{\"a\\", "[,,,", "{\"a\": [\"b\"", ",:,"] {
            for offset in 0..10 {
                let _ = at(text.as_bytes(), offset);
            }
        }
        assert_eq!(at(b"[,,,", 9), "/3");
    }
}
