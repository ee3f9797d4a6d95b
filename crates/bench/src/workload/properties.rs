//! Java property files, the form in which YCSB publishes its workloads.
//!
//! A line is `key=value`, `key: value` or `key value`; `#` and `!` begin comments; a backslash at the end
//! continues the line and elsewhere escapes the next character. A key that occurs twice keeps its last value,
//! as in Java.

/// One setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The name.
    pub key: String,
    /// The text after the separator, without surrounding blanks.
    pub value: String,
    /// Where it stands, for messages: the line, from 1.
    pub line: usize,
}

/// A file that is not a property file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `\\u` must be followed by four hexadecimal digits")]
pub struct PropertyError {
    /// The line, from 1.
    pub line: usize,
}

/// Reads the settings of a property file, each key once, in the order of their last occurrence.
///
/// # Errors
/// [`PropertyError`] for a malformed escape.
pub fn parse_properties(text: &str) -> Result<Vec<Property>, PropertyError> {
    let mut properties: Vec<Property> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let first = first.trim_start();
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while continues(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start());
        }
        let line = index + 1;
        let property = split(&logical, line)?;
        properties.retain(|earlier| earlier.key != property.key);
        properties.push(property);
    }
    Ok(properties)
}

/// Whether a line ends in an odd number of backslashes: an even number is escaped backslashes.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

fn split(logical: &str, line: usize) -> Result<Property, PropertyError> {
    let mut escaped = false;
    let end = logical.find(|c: char| {
        let separates = !escaped && (c == '=' || c == ':' || c.is_whitespace());
        escaped = c == '\\' && !escaped;
        separates
    });
    let (key, rest) = logical.split_at(end.unwrap_or(logical.len()));
    let rest = rest.trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
    Ok(Property { key: unescape(key, line)?, value: unescape(value, line)?, line })
}

fn unescape(text: &str, line: usize) -> Result<String, PropertyError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                out.push(code.and_then(char::from_u32).ok_or(PropertyError { line })?);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse_properties(text).unwrap().into_iter().map(|p| (p.key, p.value)).collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    #[test]
    fn every_separator_and_comment() {
        let text = "# comment\n! another\n\n a=1\nb : 2 \nc 3\nd=\ne\nf==x\r\n";
        let expected =
            [pair("a", "1"), pair("b", "2"), pair("c", "3"), pair("d", ""), pair("e", ""), pair("f", "=x")];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn continuations_and_escapes() {
        assert_eq!(pairs("a=1,\\\n   2\nb=x\\\\\nc=3"), [pair("a", "1,2"), pair("b", "x\\"), pair("c", "3")]);
        assert_eq!(pairs("a\\=b=\\u0041\\t!"), [pair("a=b", "A\t!")]);
        assert_eq!(parse_properties("x=1\ny=\\u00g1"), Err(PropertyError { line: 2 }));
        assert_eq!(pairs("a=1\\"), [pair("a", "1")]);
    }

    #[test]
    fn the_last_of_a_key_counts_and_lines_are_kept() {
        let properties = parse_properties("a=1\nb=2\n\na=3").unwrap();
        assert_eq!(properties.len(), 2);
        assert_eq!(
            (properties[1].key.as_str(), properties[1].value.as_str(), properties[1].line),
            ("a", "3", 4)
        );
    }
}
