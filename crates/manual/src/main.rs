//! `fcn-manual FOLDER`: writes man pages and completions as packages install them below `/usr/share`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let words: Vec<_> = env::args_os().skip(1).collect();
    let [folder] = &words[..] else {
        eprintln!("fcn-manual: name the folder to write into, and nothing else");
        return ExitCode::from(2);
    };
    let folder = Path::new(folder);
    match write(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fcn-manual: cannot write: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    for file in fcn_manual::files() {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &file.text)?;
    }
    Ok(())
}
