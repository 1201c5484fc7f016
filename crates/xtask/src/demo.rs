//! `cargo xtask demo`: from a fresh clone to decoded captures, step by step.
//! Not here: what the steps do, but for the last, which shows the captures.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::packages;
use crate::report::{self, Ink, Step, ink};
use crate::{captures, install_plugin, process};

/// Matches the messages that the plugin exists for.
const OUR_MESSAGES: &str = "fastcnp || cnp || proxycn || wanfcn";

/// Lines shown of each capture.
const LINES: usize = 1;

/// Characters of a line shown.
const WIDTH: usize = 118;

/// Runs the steps, and ends with the command to type next.
///
/// # Errors
/// A step failed; those after it were not begun.
pub fn run() -> Outcome {
    let folder = captures::folder()?;
    let mut packages = || packages::ensure(&install_plugin::needs()?);
    let mut plugin = || install_plugin::install(None);
    let mut write = || {
        let count = captures::write(&folder, None)?;
        Ok(format!("{count} captures in {}", folder.display()))
    };
    let mut show = || show(&folder);
    let mut steps = [
        Step {
            title: "Install what is missing",
            work: &mut packages,
        },
        Step {
            title: "Build the plugin and install it",
            work: &mut plugin,
        },
        Step {
            title: "Write the sample captures",
            work: &mut write,
        },
        Step {
            title: "Decode the sample captures",
            work: &mut show,
        },
    ];
    let of = steps.len();
    for (index, step) in steps.iter_mut().enumerate() {
        // It has said so itself, with what to do.
        if report::step(index + 1, of, step).result.is_err() {
            return Err(Failure::new(format!(
                "the demo stopped at step {} of {of}: {}",
                index + 1,
                step.title
            )));
        }
    }
    let files = captures_in(&folder)?;
    if let Some(file) = files
        .iter()
        .find(|f| file_name(f).starts_with("fast-cnp"))
        .or(files.first())
    {
        println!("\nNext: {}", ink(Ink::Bold, &next_command(file)));
    }
    Ok(())
}

/// The capture files of a folder, by name, the broken ones last.
fn captures_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = folder
        .read_dir()
        .map_err(|e| Failure::io("read", folder, &e))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "pcapng"))
        .collect();
    // Those that show defects come last.
    files.sort_by_key(|f| (file_name(f).starts_with("broken"), f.clone()));
    if files.is_empty() {
        return Err(
            Failure::new(format!("there is no capture in {}", folder.display()))
                .todo("cargo xtask captures"),
        );
    }
    Ok(files)
}

/// Shows each capture in a few lines.
fn show(folder: &Path) -> Outcome<String> {
    let files = captures_in(folder)?;
    let mut ours = 0;
    for file in &files {
        let bytes = std::fs::read(file).map_err(|e| Failure::io("read", file, &e))?;
        let about = section_comment(&bytes).unwrap_or_default();
        let about = about.lines().next().unwrap_or_default();
        println!(
            "    {}  {}",
            ink(Ink::Bold, &file_name(file)),
            shortened(about, WIDTH)
        );
        let mut lines = decode(file, Some(OUR_MESSAGES))?;
        ours += lines.len();
        if lines.is_empty() {
            lines = decode(file, None)?;
        }
        let more = lines.len().saturating_sub(LINES);
        for line in lines.iter().take(LINES) {
            println!("        {}", shortened(line, WIDTH));
        }
        if more > 0 {
            println!("        {}", ink(Ink::Dim, &format!("… and {more} more")));
        }
    }
    if ours == 0 {
        return Err(Failure::new(format!(
            "tshark finds none of our messages in {}",
            folder.display()
        ))
        .todo("cargo xtask captures, then cargo xtask install-plugin"));
    }
    Ok(format!("{} captures, {ours} notifications", files.len()))
}

/// Frame number, protocol and Info column of the packets that a display filter matches, by the installed tshark.
fn decode(file: &Path, filter: Option<&str>) -> Outcome<Vec<String>> {
    // Columns, since the fields that hold their text are called differently from one Wireshark to the next.
    let columns = r#"gui.column.format:"No.","%m","Protocol","%p","Info","%i""#;
    let mut command = Command::new("tshark");
    command
        .arg("-n")
        .arg("-r")
        .arg(file)
        .args(["-T", "tabs", "-o", columns]);
    if let Some(filter) = filter {
        command.args(["-Y", filter]);
    }
    Ok(process::stdout(&mut command)?
        .lines()
        .filter_map(row)
        .collect())
}

/// A line of `-T tabs`, aligned.
fn row(line: &str) -> Option<String> {
    let mut columns = line.splitn(3, '\t').map(str::trim);
    let (number, protocol, info) = (columns.next()?, columns.next()?, columns.next()?);
    Some(format!("{number:>3}  {protocol:<8}  {info}"))
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// What a person would type next: Wireshark where there is a screen for it.
fn next_command(capture: &Path) -> String {
    let screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let path = std::env::current_dir()
        .ok()
        .and_then(|here| capture.strip_prefix(here).ok().map(Path::to_path_buf))
        .unwrap_or_else(|| capture.to_path_buf());
    if screen && process::which("wireshark").is_some() {
        format!("wireshark {}", path.display())
    } else {
        format!("tshark -r {} -O fastcnp", path.display())
    }
}

/// The comment of a pcapng file's first section, by which each of our captures says what it shows.
fn section_comment(file: &[u8]) -> Option<String> {
    const SECTION_HEADER: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
    const OPT_COMMENT: u16 = 1;
    const FIXED_PART: usize = 24;
    let big = match file.get(8..12)? {
        [0x1A, 0x2B, 0x3C, 0x4D] => true,
        [0x4D, 0x3C, 0x2B, 0x1A] => false,
        _ => return None,
    };
    let two = |at: &[u8]| {
        let octets = [*at.first()?, *at.get(1)?];
        Some(if big {
            u16::from_be_bytes(octets)
        } else {
            u16::from_le_bytes(octets)
        })
    };
    let length = file.get(4..8)?.try_into().ok()?;
    let length = if big {
        u32::from_be_bytes(length)
    } else {
        u32::from_le_bytes(length)
    };
    // The block's length stands again at its end.
    let mut options = file.get(FIXED_PART..usize::try_from(length).ok()?.checked_sub(4)?)?;
    if file.get(..4)? != SECTION_HEADER {
        return None;
    }
    loop {
        let (code, length) = (two(options)?, usize::from(two(options.get(2..)?)?));
        let value = options.get(4..4 + length)?;
        if code == OPT_COMMENT {
            return Some(String::from_utf8_lossy(value).into_owned());
        }
        options = options.get(4 + length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_align() {
        assert_eq!(
            row("1\tCNP\tCNP \u{2192} QP 0x12\tx").as_deref(),
            Some("  1  CNP       CNP \u{2192} QP 0x12\tx")
        );
        assert_eq!(row("Running as user"), None);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(shortened("a→b", 3), "a→b");
        assert_eq!(shortened("a→b→c", 3), "a→…");
        assert_eq!(shortened("ab", 0), "…");
    }

    fn section(big: bool, options: &[(u16, &[u8])]) -> Vec<u8> {
        let two = |v: u16| {
            if big {
                v.to_be_bytes()
            } else {
                v.to_le_bytes()
            }
        };
        let four = |v: u32| {
            if big {
                v.to_be_bytes()
            } else {
                v.to_le_bytes()
            }
        };
        let mut body = Vec::new();
        for (code, value) in options {
            body.extend(two(*code));
            body.extend(two(u16::try_from(value.len()).unwrap()));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let length = four(u32::try_from(28 + body.len()).unwrap());
        let mut block = vec![0x0A, 0x0D, 0x0D, 0x0A];
        block.extend(length);
        block.extend(four(0x1A2B_3C4D));
        block.extend(two(1));
        block.extend(two(0));
        block.extend([0xFF; 8]);
        block.extend(body);
        block.extend(length);
        block
    }

    #[test]
    fn reads_the_section_comment_of_either_byte_order() {
        for big in [true, false] {
            let file = section(
                big,
                &[(4, b"fcn"), (1, "Fast CNP → sender".as_bytes()), (0, b"")],
            );
            assert_eq!(section_comment(&file).as_deref(), Some("Fast CNP → sender"));
            assert_eq!(
                section_comment(&section(big, &[(4, b"fcn"), (0, b"")])),
                None
            );
            for cut in 0..file.len() {
                // Whole options only: a cut file has no whole block.
                assert_eq!(
                    section_comment(&file[..cut]).is_some(),
                    cut >= file.len() - 4,
                    "{cut}"
                );
            }
        }
        assert_eq!(
            section_comment(b"no capture, but a text of some length"),
            None
        );
    }

    #[test]
    fn decodes_in_one_line_a_packet() {
        if process::which("tshark").is_none() {
            println!("SKIPPED: tshark is not installed");
            return;
        }
        // A section, an Ethernet interface, a frame of 14 octets.
        let mut bytes = section(false, &[(0, b"")]);
        bytes.extend([1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0]);
        bytes.extend([6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0, 0, 0, 0, 14, 0, 0, 0, 14, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5, 0, 0]);
        bytes.extend([48, 0, 0, 0]);
        let file =
            std::env::temp_dir().join(format!("fcn-xtask-row-{}.pcapng", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let all = decode(&file, None).unwrap();
        assert!(
            all.len() == 1 && all[0].starts_with("  1  0x88b5  "),
            "{all:?}"
        );
        assert_eq!(decode(&file, Some("ip")), Ok(Vec::new()));
        assert!(decode(&file, Some("no.such.field")).is_err());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_folder_without_captures_says_what_to_do() {
        let folder = std::env::temp_dir().join(format!("fcn-xtask-demo-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let text = captures_in(&folder).unwrap_err().to_string();
        assert!(text.ends_with("what to do: cargo xtask captures"), "{text}");
        for name in ["b.pcapng", "a.pcapng", "a.txt"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let names: Vec<_> = captures_in(&folder)
            .unwrap()
            .iter()
            .map(|p| file_name(p))
            .collect();
        assert_eq!(names, ["a.pcapng", "b.pcapng"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
