//! JSON that is readable in a diff: one line for each member of the document, and for each element
//! of its lists. The content of the documents is defined elsewhere.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Depth down to which every value gets its own line: the document's members, and the elements of
/// its lists.
const LINES: usize = 2;

/// Serialises the document `value`, ending with a line feed.
///
/// # Errors
/// The value cannot be represented in JSON.
pub fn to_vec<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Lines::default()))?;
    out.push(b'\n');
    Ok(out)
}

/// State of the writer.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// True if the current list or object has a value, so that its closing bracket goes on its own
    /// line.
    any: bool,
}

impl Lines {
    fn begin<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.any = false;
        out.write_all(bracket)
    }

    fn end<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if std::mem::replace(&mut self.any, true) && self.depth < LINES {
            self.line(out, self.depth)?;
        }
        out.write_all(bracket)
    }

    fn next<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.any = true;
        if !first {
            out.write_all(b",")?;
        }
        if self.depth <= LINES {
            return self.line(out, self.depth);
        }
        if first { Ok(()) } else { out.write_all(b" ") }
    }

    fn line<W: Write + ?Sized>(&self, out: &mut W, depth: usize) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_member_and_list_element_has_its_own_line() {
        let document = json!({"a": 1, "list": [{"x": [1, 2], "y": {}}, {"x": [[3, 4]]}], "none": [], "s": "t"});
        let text = String::from_utf8(to_vec(&document).unwrap()).unwrap();
        assert_eq!(
            text,
            r#"{
  "a": 1,
  "list": [
    {"x": [1, 2], "y": {}},
    {"x": [[3, 4]]}
  ],
  "none": [],
  "s": "t"
}
"#
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            document
        );
    }
}
