//! Entry point from command line to exit code: answers Wireshark's extcap requests, or runs a
//! command.

use crate::commands::run_command;
use crate::extcap;
use fcn_tool::console::{Console, conclude};
use std::ffi::OsString;

/// Runs the command in `args` (the first is the program's name); returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let done = if extcap::is_extcap(&args) {
        extcap::answer(&args, console)
    } else {
        run_command(args, console)
    };
    conclude("fcn-gen", done, console)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;
    use std::io::{self, Write};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// Returns exit code, standard output and standard error.
    fn run_with(words: &str, colour: bool) -> (u8, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(
            words.split(' ').map(OsString::from),
            &mut Console {
                out: &mut out,
                err: &mut err,
                out_is_terminal: true,
                err_is_terminal: colour,
                colour,
                catch_interrupt: &|| Ok(Arc::default()),
            },
        );
        (
            code,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn help_and_version_succeed() {
        let (code, out, err) = run_with("fcn-gen --version", false);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out, format!("fcn-gen {}\n", fcn_tool::version()));
        assert!(out.contains("draft-xiao-rtgwg-rocev2-fast-cnp-02"), "{out}");
        assert_eq!(run_with("fcn-gen help write", false).0, 0);
    }

    #[test]
    fn invalid_options_exit_with_2_and_the_program_name() {
        for words in [
            "fcn-gen frobnicate",
            "fcn-gen write no-such-scenario -o x",
            "fcn-gen show no/such/file.toml",
            "fcn-gen compare x --mechanisms hope",
            "fcn-gen compare x --over distance",
            "fcn-gen write x -o a --truth -",
            "fcn-gen write formats -o -",
        ] {
            let (code, out, err) = run_with(words, false);
            assert_eq!((code, out.as_str()), (2, ""), "{words}: {err}");
            assert!(
                err.starts_with("fcn-gen: ") && !err.contains('\x1b'),
                "{err}"
            );
        }
    }

    #[test]
    fn ctrl_c_is_caught_before_a_file_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pcap");
        let begun = || fs::read_dir(folder.path()).unwrap().count();
        let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny.toml");
        for what in [
            &["stress-cnp", "--count=1000000000"][..],
            &["formats"],
            &[scenario],
        ] {
            let words = ["fcn-gen", "run", "-o", file.to_str().unwrap()];
            let (mut err, is_caught) = (Vec::new(), Cell::new(false));
            let code = run(
                words.iter().chain(what).map(OsString::from),
                &mut Console {
                    out: &mut io::sink(),
                    err: &mut err,
                    out_is_terminal: false,
                    err_is_terminal: false,
                    colour: false,
                    catch_interrupt: &|| {
                        assert_eq!(begun(), 0);
                        is_caught.set(true);
                        Ok(Arc::new(AtomicBool::new(true)))
                    },
                },
            );
            assert!(is_caught.get());
            // A gallery has so few packets that it may be finished before it checks for the
            // interruption.
            let is_short = what == ["formats"];
            let err = String::from_utf8(err).unwrap();
            assert!(code == 130 || is_short && code == 0, "{code}: {err}");
            assert_eq!(begun(), 1);
            fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn colour_is_only_for_terminals() {
        let (_, _, err) = run_with("fcn-gen frobnicate", true);
        assert!(err.starts_with("\x1b[1;31mfcn-gen:\x1b[0m "), "{err}");
    }

    /// A writer that fails as standard output does in these cases.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn broken_pipe_succeeds_and_full_disk_fails() {
        for (kind, expected) in [
            (io::ErrorKind::BrokenPipe, 0),
            (io::ErrorKind::StorageFull, 1),
        ] {
            let mut err = Vec::new();
            let code = run(
                ["fcn-gen", "list"].map(OsString::from),
                &mut Console {
                    out: &mut Failing(kind),
                    err: &mut err,
                    out_is_terminal: false,
                    err_is_terminal: false,
                    colour: false,
                    catch_interrupt: &|| Ok(Arc::default()),
                },
            );
            assert_eq!(code, expected);
            assert_eq!(err.is_empty(), expected == 0);
        }
    }
}
