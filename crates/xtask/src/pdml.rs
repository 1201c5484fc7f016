//! PDML, tshark's XML of what it dissected: an element a line. Not here: what is made of it.

/// An attribute's value in the line of an element.
#[must_use]
pub fn attribute(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let value = value.replace("&lt;", "<").replace("&gt;", ">");
    let value = value.replace("&quot;", "\"").replace("&apos;", "'");
    Some(value.replace("&amp;", "&"))
}
