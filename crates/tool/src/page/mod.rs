//! A standalone page: one HTML file with its data, scripts and style, which needs no network and
//! may come from any source.
//!
//! The data may contain text written by the senders of the packets. So it is one block of JSON
//! which no content can terminate, scripts insert it into the page only as text, and the page's
//! Content Security Policy permits only the scripts written here. `page.js` has the common parts of
//! all pages: charts by uPlot, tables, numbers with their units.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// Chart library.
const UPLOT: &str = include_str!("uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("uplot/LICENSE");
const SCRIPT: &str = include_str!("page.js");

/// A page without its data.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Title until the script sets another one: plain words, no markup.
    pub title: &'static str,
    /// Script that fills the page, after the common script.
    pub script: &'static str,
}

/// What a Content Security Policy has to allow for a page: names of scripts, and of the style.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Scripts.
    pub scripts: String,
    /// The style.
    pub style: String,
}

impl Page {
    /// Returns the scripts, in their order.
    fn scripts(&self) -> [String; 3] {
        // The licence must be included in every copy.
        let uplot = format!("/*\n{}\n*/\n{UPLOT}", UPLOT_LICENCE.trim_end());
        [uplot, SCRIPT.to_owned(), self.script.to_owned()]
    }

    /// Returns what a policy has to allow for the page, for a document that shows it in a frame.
    #[must_use]
    pub fn sources(&self) -> Sources {
        Sources {
            scripts: self.scripts().map(|script| source(&script)).join(" "),
            style: source(&style()),
        }
    }

    /// Writes the page with its data, which the script finds in the element `data`.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn write(&self, data: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
        let Sources {
            scripts: allowed,
            style: allowed_style,
        } = self.sources();
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {allowed}; \
             style-src {allowed_style}; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{}</title>\n<style>{}</style>\n</head>\n<body>\n\
             <noscript><p>This page needs JavaScript to draw the data in it; it loads nothing.</p></noscript>\n\
             <main id=\"page\"></main>\n<script type=\"application/json\" id=\"data\">",
            self.title,
            style()
        )?;
        serde_json::to_writer(Inert(&mut *out), data)?;
        out.write_all(b"</script>\n")?;
        for script in self.scripts() {
            writeln!(out, "<script>{script}</script>")?;
        }
        out.write_all(b"</body>\n</html>\n")?;
        out.flush()
    }
}

/// Style of the common parts, which other documents may have as well.
pub const STYLE: &str = include_str!("page.css");

fn style() -> String {
    [UPLOT_STYLE, STYLE].concat()
}

/// Returns the name of a script or style in a policy: its hash.
#[must_use]
pub fn source(text: &str) -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(text));
    format!("'sha256-{hash}'")
}

/// Writes JSON into an HTML element: characters that might end it, or begin another one, are
/// escaped. They occur only in strings.
struct Inert<W>(W);

impl<W: Write> Write for Inert<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_all(text)?;
        Ok(text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        for part in text.split_inclusive(|octet| matches!(octet, b'<' | b'>' | b'&')) {
            let (before, escaped): (_, &[u8]) = match part.split_last() {
                Some((b'<', before)) => (before, b"\\u003c"),
                Some((b'>', before)) => (before, b"\\u003e"),
                Some((b'&', before)) => (before, b"\\u0026"),
                _ => (part, b""),
            };
            self.0.write_all(before)?;
            self.0.write_all(escaped)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const PAGE: Page = Page {
        title: "a test",
        script: "show(data)",
    };

    fn page(data: &Value) -> String {
        let mut page = Vec::new();
        PAGE.write(data, &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    /// Returns the text between the tags of the data.
    fn block(page: &str) -> &str {
        let begin = "<script type=\"application/json\" id=\"data\">";
        let (_, rest) = page.split_once(begin).unwrap();
        rest.split_once("</script>").unwrap().0
    }

    #[test]
    fn data_cannot_end_its_block() {
        let data = json!({
            "</script><script>alert(1)</script>": "<!--<script>",
            "b": ["&lt;img src=x onerror=alert(1)>", "]]>", "\u{2028}\u{0}\u{1b}\u{7f}\"'`\\", "<svg/onload=x>"],
            "n": 0.5,
        });
        let text = page(&data);
        let block = block(&text);
        assert!(!block.contains(['<', '>', '&']), "{block}");
        assert!(!block.chars().any(|c| c < ' '), "{block}");
        assert_eq!(serde_json::from_str::<Value>(block).unwrap(), data);
        // The same number of elements as in a page without data.
        let tags = |page: &str| page.matches('<').count();
        assert_eq!(tags(&text), tags(&page(&Value::Null)));
    }

    #[test]
    fn the_policy_allows_only_the_pages_scripts_and_style() {
        let text = page(&Value::Null);
        let (_, rest) = text
            .split_once("Content-Security-Policy\" content=\"")
            .unwrap();
        let policy = rest.split_once("\">").unwrap().0;
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        let mut scripts = 0;
        for part in text.split("<script>").skip(1) {
            let script = part.split_once("</script>").unwrap().0;
            assert!(policy.contains(&source(script)));
            scripts += 1;
        }
        assert_eq!(scripts, 3);
        let (_, rest) = text.split_once("<style>").unwrap();
        assert!(policy.contains(&source(rest.split_once("</style>").unwrap().0)));
        // The known hash of an empty text in browsers.
        let known = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        assert_eq!(source(""), known);
    }

    #[test]
    fn nothing_is_loaded_and_no_part_ends_early() {
        for part in [UPLOT, UPLOT_STYLE, UPLOT_LICENCE, SCRIPT, STYLE] {
            for end in ["</", "<!--", "*/\n*/", "@import", "url(", "import("] {
                assert!(!part.contains(end), "{end}");
            }
        }
        for script in [UPLOT, SCRIPT] {
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
                "fetch(",
                "XMLHttp",
            ] {
                assert!(!script.contains(way), "{way}");
            }
        }
        assert!(page(&Value::Null).contains("Copyright (c) 2022 Leon Sorokin"));
    }

    #[test]
    fn uplot_is_unmodified() {
        let notes = include_str!("uplot/README.md");
        assert!(notes.starts_with("# uPlot 1.6.32\n") && UPLOT.contains("(v1.6.32)"));
        for (text, hash) in [
            (UPLOT, "GcjUxq2Ikpp59K5J1vcWFWbf0Lo9FcxJXpdPeH63jx8="),
            (UPLOT_STYLE, "32MMao1vjur/JktQ9zzlsRT2Rv/ZoLt08EmwoAE1+gQ="),
            (
                UPLOT_LICENCE,
                "j5iSKWmbT+LxoEMtDp7cM4qKkR4lDi0bAezXcKX1sb0=",
            ),
        ] {
            assert_eq!(source(text), format!("'sha256-{hash}'"));
        }
    }
}
