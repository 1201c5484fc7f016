//! Packages that a program or library depends on: determined by the libraries that it names, and
//! the newest symbol of the C library.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::failure::Outcome;
use crate::process;

/// Returns a program's dependencies, as in Debian's field `Depends`.
pub(super) fn depends(file: &Path) -> Outcome<Vec<String>> {
    let mut readelf = Command::new("readelf");
    readelf
        .env("LC_ALL", "C")
        .args(["--wide", "--dynamic", "--version-info"]);
    let text = process::stdout(readelf.arg(file))?;
    packages(&text).with_context(|| format!("{}", file.display()))
}

/// Returns the packages for readelf's output.
fn packages(readelf: &str) -> Outcome<Vec<String>> {
    let mut packages = Vec::new();
    for line in readelf.lines() {
        if let Some((_, rest)) = line.split_once("(NEEDED)")
            && let Some((_, rest)) = rest.split_once('[')
        {
            let library = rest.trim_end().trim_end_matches(']');
            packages.extend(package(library, readelf)?);
        }
    }
    packages.sort();
    packages.dedup();
    Ok(packages)
}

/// Returns the package of a library; `None` for those that come with the C library.
fn package(library: &str, readelf: &str) -> Outcome<Option<String>> {
    Ok(Some(match library {
        "libc.so.6" => format!("libc6 (>= {})", newest_glibc(readelf)?),
        "libm.so.6" | "ld-linux-x86-64.so.2" => return Ok(None),
        "libgcc_s.so.1" => "libgcc-s1".to_owned(),
        // The newest version whose functions the bindings use.
        "libpcap.so.0.8" => "libpcap0.8 (>= 1.9.1)".to_owned(),
        // Renamed for 64-bit times, on architectures where these were a change.
        "libglib-2.0.so.0" => "libglib2.0-0t64 | libglib2.0-0".to_owned(),
        // Of a Wireshark; these names change with each version.
        _ => match library.split_once(".so.") {
            Some((name @ ("libwireshark" | "libwiretap" | "libwsutil"), number)) => {
                format!("{name}{number}")
            }
            _ => bail!("the package with {library} is unknown"),
        },
    }))
}

/// Returns the newest version of the C library that a symbol needs.
fn newest_glibc(readelf: &str) -> Outcome<String> {
    let versions = readelf.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let numbers = rest[..end.unwrap_or(rest.len())].split('.');
        numbers
            .map(|number| number.parse().ok())
            .collect::<Option<Vec<u32>>>()
    });
    let newest = versions.max().context("it needs no version of glibc")?;
    let numbers: Vec<String> = newest.iter().map(ToString::to_string).collect();
    Ok(numbers.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "\
 0x0000000000000001 (NEEDED)             Shared library: [libpcap.so.0.8]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]
  0x0060:   Name: GLIBC_2.2.5  Flags: none  Version: 7
  0x0070:   Name: GLIBC_2.34  Flags: none  Version: 5
  0x0080:   Name: GLIBC_2.9  Flags: none  Version: 3
";

    #[test]
    fn dependencies_are_those_of_the_newest_symbol() {
        let expected = ["libc6 (>= 2.34)", "libpcap0.8 (>= 1.9.1)"];
        assert_eq!(packages(PROGRAM).unwrap(), expected);
    }

    #[test]
    fn packages_of_wireshark_libraries_have_their_number() {
        let text = " (NEEDED) Shared library: [libwireshark.so.18]\n (NEEDED) Shared library: [libwsutil.so.16]\n";
        assert_eq!(packages(text).unwrap(), ["libwireshark18", "libwsutil16"]);
    }

    #[test]
    fn an_unknown_library_is_an_error() {
        let text = " (NEEDED) Shared library: [libssl.so.3]\n";
        let failure = packages(text).unwrap_err().to_string();
        assert!(failure.contains("libssl.so.3"), "{failure}");
    }
}
