//! `fcn-page MODULE`: prints `fcn.html`, with the WebAssembly module in the file MODULE.
#![forbid(unsafe_code)]

use base64::prelude::{BASE64_STANDARD, Engine as _};
use fcn_tool::page::{STYLE, source};
use fcn_top::analysis::STORY;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

const BODY: &str = include_str!("open.html");
const SCRIPT: &str = include_str!("open.js");
const WORKER: &str = include_str!("worker.js");
const OWN_STYLE: &str = include_str!("open.css");

fn main() -> ExitCode {
    let words: Vec<_> = env::args_os().skip(1).collect();
    let [module] = &words[..] else {
        eprintln!("fcn-page: name the WebAssembly module, and nothing else");
        return ExitCode::from(2);
    };
    let module = Path::new(module);
    let written = fs::read(module).and_then(|octets| write(&octets, &mut io::stdout().lock()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fcn-page: {}: {error}", module.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes the page. Its policy allows its scripts, those of the report in its frame, and the
/// module; nothing can be loaded or sent.
fn write(module: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(module)?;
    let module = BASE64_STANDARD.encode(packed.finish()?);
    let style = [STYLE, OWN_STYLE].concat();
    let story = STORY.sources();
    let scripts = format!("{} {}", source(SCRIPT), story.scripts);
    let styles = format!("{} {}", source(&style), story.style);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src {scripts} 'wasm-unsafe-eval'; worker-src blob:; style-src {styles}; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>fcn-tools: congestion notifications in a capture</title>\n\
         <style>{style}</style>\n</head>\n<body>\n\
         <noscript><p>This page needs JavaScript to read a capture; it loads nothing.</p></noscript>\n\
         {BODY}\
         <script type=\"text/plain\" id=\"worker\">{WORKER}</script>\n\
         <script type=\"text/plain\" id=\"module\">{module}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n"
    )?;
    out.flush()
}
