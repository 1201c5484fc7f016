//! PDML, tshark's XML of dissected packets: one element per line. Not here: its use.

/// Returns the value of an attribute in the line of an element.
#[must_use]
pub fn attribute(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let value = value.replace("&lt;", "<").replace("&gt;", ">");
    let value = value.replace("&quot;", "\"").replace("&apos;", "'");
    Some(value.replace("&amp;", "&"))
}
