//! The plugin's part of a sample, which is the same with every version of Wireshark: its fields,
//! each with the Wireshark item that contains it, its octets and its text; and the columns of its
//! messages.
//!
//! Extracted from tshark's PDML, which has one element per line. Wireshark's own dissection of a
//! packet differs from version to version, and is left out.

use std::path::Path;

use anyhow::ensure;

use crate::failure::Outcome;
use crate::pdml::attribute;
use crate::tshark::Tshark;

/// Digits of octets that every version of Wireshark shows before it truncates them.
const DIGITS: usize = 72;

/// Item that contains an expert info; its text has the severity.
const EXPERT: &str = "_ws.expert";

/// Frame number, protocol and Info column. In Wireshark 4.0 the fields with their text are named
/// after these titles, and in other versions they have these names regardless of the titles.
pub const COLUMNS: &str = r#"gui.column.format:"No.","%m","protocol","%p","info","%i""#;

/// Protocols of the plugin, by their names in Wireshark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocols {
    /// Names in the Protocol column.
    shorts: Vec<String>,
    /// Names in filters.
    filters: Vec<String>,
}

impl Protocols {
    /// Returns the protocols that this tshark has and one without the plugin does not.
    ///
    /// # Errors
    /// tshark failed, or has no more.
    pub fn from_tshark(tshark: &Tshark) -> Outcome<Self> {
        let this = Self::read(&tshark.adds(&Tshark::stock()?, &["-G", "protocols"])?);
        ensure!(!this.filters.is_empty(), "the plugin registers no protocol");
        Ok(this)
    }

    /// Parses lines of name, short name and filter, separated by tabs.
    fn read(lines: &[String]) -> Self {
        let row = |line: &String| {
            let mut columns = line.split('\t').skip(1).map(str::to_owned);
            Some((columns.next()?, columns.next()?))
        };
        let (shorts, filters) = lines.iter().filter_map(row).unzip();
        Self { shorts, filters }
    }

    fn has(&self, field: &str) -> bool {
        let rest = |filter: &String| field.strip_prefix(filter.as_str());
        let mut rests = self.filters.iter().filter_map(rest);
        rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Returns the plugin's part of the notable frames of a sample.
///
/// # Errors
/// tshark failed.
pub fn decode(
    tshark: &Tshark,
    protocols: &Protocols,
    capture: &Path,
    notable: &str,
) -> Outcome<String> {
    let run = |format: &[&str]| tshark.decode(capture, &[format, &["-Y", notable]].concat());
    let mut text = columns(protocols, &run(&["-T", "tabs", "-o", COLUMNS])?);
    text.push('\n');
    text += &fields(protocols, &run(&["-T", "pdml"])?);
    Ok(text)
}

/// Returns frame number, protocol and Info column from a line of `-T tabs`.
pub fn tabs(line: &str) -> Option<[&str; 3]> {
    let mut columns = line.splitn(3, '\t').map(str::trim);
    Some([columns.next()?, columns.next()?, columns.next()?])
}

/// Returns a line for each message of the plugin.
fn columns(protocols: &Protocols, text: &str) -> String {
    let rows = text.lines().filter_map(tabs);
    let own = rows.filter(|[_, protocol, _]| protocols.shorts.iter().any(|s| s == protocol));
    own.map(|row| row.join("  ") + "\n").collect()
}

/// Returns a line for each field of the plugin, below that of its frame, indented by its nesting in
/// such fields.
fn fields(protocols: &Protocols, pdml: &str) -> String {
    let mut text = String::new();
    let mut open: Vec<Element> = Vec::new();
    let mut frame = String::new();
    for line in pdml.lines().map(str::trim_start) {
        if line.starts_with("</proto>") || line.starts_with("</field>") {
            open.pop();
            continue;
        }
        let Some(element) = Element::read(line) else {
            continue;
        };
        if element.name == "frame.number" {
            frame = format!("frame {}\n", attribute(line, "show").unwrap_or_default());
        }
        if protocols.has(&element.name) {
            // Frames without fields of the plugin are not listed.
            text += &core::mem::take(&mut frame);
            let around = open.iter().rev().map(|around| around.name.as_str());
            // Up to the first of Wireshark's items: what contains that one differs between
            // versions.
            let around = around.take_while(|name| protocols.has(name) || *name == EXPERT);
            let depth = 1 + around.filter(|name| protocols.has(name)).count();
            let place = match open.last() {
                Some(around) if around.name == EXPERT => {
                    let (severity, _) = around.text.split_once(": ").unwrap_or((&around.text, ""));
                    format!("{severity} > ")
                }
                Some(around) if !protocols.has(&around.name) => format!("{} > ", around.name),
                _ => String::new(),
            };
            let (name, value) = (&element.name, element.value(line));
            text += &format!("{:1$}{place}{name}  {value}\n", "", 2 * depth);
        }
        if !line.trim_end().ends_with("/>") {
            open.push(element);
        }
    }
    text
}

/// Start tag of a protocol or field in PDML.
struct Element {
    name: String,
    text: String,
}

impl Element {
    fn read(line: &str) -> Option<Self> {
        if !line.starts_with("<proto ") && !line.starts_with("<field ") {
            return None;
        }
        let shown = attribute(line, "showname").or_else(|| attribute(line, "show"));
        Some(Self {
            name: attribute(line, "name")?,
            text: shown.unwrap_or_default(),
        })
    }

    /// Returns its position in the packet, and its text.
    fn value(&self, line: &str) -> String {
        let number = |name| attribute(line, name).unwrap_or_default();
        let hidden = attribute(line, "hide").map_or("", |_| " hidden");
        let (at, size) = (number("pos"), number("size"));
        let text = match self.text.split_once(": ") {
            // "0.000000080 seconds" or "80 nanoseconds", depending on the version.
            Some((name, span)) if span.ends_with("seconds") => {
                format!("{name}: {} s", number("show"))
            }
            _ => cut(&self.text),
        };
        format!("{at}+{size}{hidden}  {text}")
    }
}

/// Truncates long octets in a text in the way of the oldest Wireshark.
fn cut(text: &str) -> String {
    let mut out = String::new();
    let mut run = 0;
    for c in text.replace(" […]", "").chars() {
        run = if c.is_ascii_hexdigit() { run + 1 } else { 0 };
        match run {
            0 if c == '…' && out.ends_with('…') => {}
            0..=DIGITS => out.push(c),
            _ if out.ends_with('…') => {}
            _ => out.push('…'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocols() -> Protocols {
        let lines = ["RoCEv2 marks\tRoCEv2\trocev2\tT", "Congestion\tCNP\tcnp\tT"];
        Protocols::read(&lines.map(str::to_owned))
    }

    #[test]
    fn added_protocols_belong_to_the_plugin() {
        let plugin = protocols();
        assert_eq!(plugin.shorts, ["RoCEv2", "CNP"]);
        assert!(plugin.has("cnp") && plugin.has("cnp.becn") && plugin.has("rocev2.icrc"));
        assert!(!plugin.has("cnpx") && !plugin.has("ip") && !plugin.has("cnpx.a"));
    }

    #[test]
    fn fields_are_listed_with_their_surroundings() {
        let pdml = r#"<packet>
  <proto name="geninfo" pos="0" showname="General information" size="94">
    <field name="num" pos="0" show="1" showname="Number" value="1" size="94"/>
  </proto>
  <proto name="frame" showname="Frame 1" size="94" pos="0">
    <field name="frame.number" showname="Frame Number: 1" size="0" pos="0" show="1"/>
  </proto>
  <proto name="infiniband" showname="InfiniBand" size="32" pos="62">
    <field name="infiniband.bth" showname="BTH" size="12" pos="62">
      <field name="rocev2.becn" showname=".1.. = BECN: True" size="1" pos="66" show="1" value="40"/>
    </field>
  </proto>
  <proto name="cnp" showname="CNP &quot;a&quot; &lt; &amp;lt;" size="32" pos="62">
    <field name="cnp.qp" showname="QP: 1" size="3" hide="yes" pos="67" show="1">
      <field name="_ws.expert" showname="Expert Info (Warning/Protocol): no" size="0" pos="67">
        <field name="cnp.bad" showname="no" size="0" pos="67" show=""/>
      </field>
    </field>
    <field name="cnp.none" show="x" size="1" pos="1"/>
    <field name="cnp.delay" showname="Delay: 80 nanoseconds" show="0.000000080" size="0" pos="1"/>
    <field name="ip" show="IP" size="1" pos="1">
      <field name="rocev2.fecn" show="y" size="1" pos="2"/>
    </field>
  </proto>
</packet>
<packet>
  <proto name="frame" showname="Frame 2" size="94" pos="0">
    <field name="frame.number" showname="Frame Number: 2" size="0" pos="0" show="2"/>
  </proto>
</packet>
"#;
        assert_eq!(
            fields(&protocols(), pdml),
            "frame 1
  infiniband.bth > rocev2.becn  66+1  .1.. = BECN: True
  cnp  62+32  CNP \"a\" < &lt;
    cnp.qp  67+3 hidden  QP: 1
      Expert Info (Warning/Protocol) > cnp.bad  67+0  no
    cnp.none  1+1  x
    cnp.delay  1+0  Delay: 0.000000080 s
  ip > rocev2.fecn  2+1  y
"
        );
    }

    #[test]
    fn columns_are_those_of_the_plugins_messages() {
        let tabs = "    1\tRRoCE\tRDMA\n    2\tCNP\tCNP \u{2192} QP\n\n";
        assert_eq!(columns(&protocols(), tabs), "2  CNP  CNP \u{2192} QP\n");
    }

    #[test]
    fn octets_are_truncated_alike() {
        let long = "0".repeat(100);
        let short = &long[..DIGITS];
        let expected = format!("Free: {short}…");
        assert_eq!(cut(&format!("Free: {long}")), expected);
        assert_eq!(cut(&format!("Free […]: {long}…")), expected);
        assert_eq!(cut(&format!("Free: {short}…")), expected);
        assert_eq!(cut(&format!("Free: {short}")), format!("Free: {short}"));
    }
}
