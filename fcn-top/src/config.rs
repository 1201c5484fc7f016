//! Options that may also be set in the configuration file, under the same names. The command line
//! takes precedence.

use crate::columns::near;
use crate::text::clean;
use crate::values::{Count, Net, Size, Span, Speed};
use clap::{Args, CommandFactory, Parser, ValueEnum};
use fcn_tool::failure::Failure;
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Colours of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colours {
    /// For any background, respecting NO_COLOR and COLORFGBG
    #[default]
    Auto,
    /// For a dark background
    Dark,
    /// For a light background
    Light,
    /// None
    None,
}

macro_rules! preferences {
    ($($(#[doc = $doc:literal])+ $(#[arg($($arg:tt)*)])* $field:ident: $type:ty = $default:literal;)+) => {
        /// Options that may be set in the configuration file; `None` if not given.
        #[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct Preferences {
            $($(#[doc = $doc])+ #[arg(long)] $(#[arg($($arg)*)])* pub $field: Option<$type>,)+
        }

        impl Preferences {
            /// Names, as on the command line, and defaults, as in the file.
            const DEFAULTS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), $default),)+];

            /// Fills options that are not set here from `others`.
            pub fn or(self, others: Self) -> Self {
                Self { $($field: self.$field.or(others.$field),)+ }
            }
        }
    };
}

preferences! {
    /// Size of the kernel's packet ring, at least 1MiB and less than 2GiB [default: 16MiB]
    #[arg(value_name = "SIZE", help_heading = "Capture")]
    buffer: Size = "\"16MiB\"";
    /// Octets captured of each packet [default: 512]
    #[arg(value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(128..=262_144), help_heading = "Capture")]
    snap_length: u32 = "512";
    /// Do not switch the interface to promiscuous mode: packets for other hosts may be missing
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Capture")]
    no_promiscuous: bool = "false";
    /// Receive every packet from the kernel, not only possible notifications, RoCEv2 and tunnels
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Capture")]
    no_kernel_filter: bool = "false";
    /// Keep all privileges, so that an interface deleted and created again can be reopened
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Capture")]
    keep_privileges: bool = "false";
    /// Memory for packets that can be exported [default: 8MiB]
    #[arg(value_name = "SIZE", help_heading = "Capture")]
    keep: Size = "\"8MiB\"";
    /// TOML file with code points other than the defaults. Keys: fast_cnp_option1,
    /// fast_cnp_option2, proxy_address_option, ioam_option, rocev2_port, proxy_cn_port,
    /// wan_fcn_port, csig_ether_type, trimmed_dscp, bgp_pnc_characteristic, icrc_reading; force = true accepts values that the
    /// drafts forbid
    #[arg(value_name = "FILE", help_heading = "Analysis")]
    profile: PathBuf = "\"\"";
    /// DSCPs of packets that switches have trimmed, besides the profile's; others are recognised
    /// only if their lengths show it
    #[arg(value_name = "DSCP,…", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=63), help_heading = "Analysis")]
    trimmed_dscp: Vec<u8> = "[]";
    /// DSCPs that plain CNPs are expected with; any other is an event
    #[arg(value_name = "DSCP,…", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=63), help_heading = "Analysis")]
    cnp_dscp: Vec<u8> = "[]";
    /// Prefixes or addresses that may notify; a notification from any other source is an event
    #[arg(value_name = "PREFIX,…", value_delimiter = ',', help_heading = "Analysis")]
    trust: Vec<Net> = "[]";
    /// Senders that handle Fast CNPs, whose data must not be marked CE as well
    #[arg(value_name = "PREFIX,…", value_delimiter = ',', help_heading = "Analysis")]
    able: Vec<Net> = "[]";
    /// The domain whose border notifications must not cross in either direction
    #[arg(value_name = "PREFIX,…", value_delimiter = ',', help_heading = "Analysis")]
    domain: Vec<Net> = "[]";
    /// Limit of notifications per second from one notifier about one flow, for each kind except
    /// CNPs; 0: no limit [default: 20000]
    #[arg(value_name = "N", help_heading = "Analysis")]
    flow_rate: u32 = "20000";
    /// Speed of the links captured, for how long a pause lasts (PFC, 802.3x) [default: 100Gbps]
    #[arg(value_name = "RATE", help_heading = "Analysis")]
    link_speed: Speed = "\"100Gbps\"";
    /// Count interfaces separately: a row for each
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Analysis")]
    per_interface: bool = "false";
    /// Take the time of mirrors' copies from their own clocks (ERSPAN type III)
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Analysis")]
    mirror_clock: bool = "false";
    /// Do not verify the ICRC of notifications
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Analysis")]
    no_icrc: bool = "false";
    /// Maximum number of rows; beyond it, those notified longest ago are dropped [default: 100000]
    #[arg(value_name = "N", help_heading = "Analysis")]
    max_rows: Count = "100000";
    /// Column to sort by, such as sender or rate_1s; a leading minus puts the greatest first;
    /// empty: most notifications first
    #[arg(value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Output")]
    sort: String = "\"\"";
    /// Interval of --jsonl; given on the command line, --csv also writes its rows for each interval
    /// [default: 1s]
    #[arg(value_name = "TIME", help_heading = "Output")]
    interval: Span = "\"1s\"";
    /// Show host names from the system's resolver instead of addresses
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Output")]
    resolve: bool = "false";
    /// Mask every address, everywhere
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Output")]
    privacy: bool = "false";
    /// Show times in UTC
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false", hide_possible_values = true, help_heading = "Output")]
    utc: bool = "false";
    /// View to start with: qps, notifiers, flow, paths, events, interfaces, nics, flows,
    /// receivers [default: qps]
    #[arg(value_name = "VIEW", help_heading = "Screen")]
    view: String = "\"qps\"";
    /// Colours [default: auto]
    #[arg(value_name = "WHICH", help_heading = "Screen")]
    colours: Colours = "\"auto\"";
    /// Interval at which the screen is drawn [default: 250ms]
    #[arg(value_name = "TIME", help_heading = "Screen")]
    refresh: Span = "\"250ms\"";
}

/// A command with only the preferences, used to query their names and help.
#[derive(Parser)]
struct Bare {
    #[command(flatten)]
    preferences: Preferences,
}

/// Returns the name of an option on the command line and in the file.
fn key(field: &str) -> String {
    field.replace('_', "-")
}

/// Returns a configuration file with every option, its meaning and its default, commented out.
pub fn template() -> String {
    let mut text = String::from(
        "# fcn-top's configuration: $XDG_CONFIG_HOME/fcn-top/config.toml, else ~/.config/fcn-top/config.toml.\n\
         # These are the defaults; remove the # before a name to change its value.\n\
         # Every name is also an option of the command line, which wins.\n",
    );
    let command = Bare::command();
    let mut heading = None;
    for (field, default) in Preferences::DEFAULTS {
        let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == field) else {
            continue;
        };
        if arg.get_help_heading() != heading {
            heading = arg.get_help_heading();
            let _ = write!(text, "\n## {}\n", heading.unwrap_or_default());
        }
        let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
        // The default follows on the next line.
        let about = about.split(" [default: ").next().unwrap_or_default();
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect();
        let values = match arg.is_hide_possible_values_set() || values.is_empty() {
            true => String::new(),
            false => format!(": {}", values.join(", ")),
        };
        let _ = write!(text, "\n# {about}{values}.\n#{} = {default}\n", key(field));
    }
    text
}

impl Preferences {
    /// Parses a configuration.
    ///
    /// # Errors
    ///
    /// The text is not a valid configuration; the message has the position and a suggestion.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let bad = |why: String| {
            Failure::usage("bad configuration")
                .and(path.display().to_string())
                .and(why)
        };
        let table: toml::Table =
            toml::from_str(text).map_err(|e| bad(e.to_string().trim_end().to_owned()))?;
        for name in table.keys() {
            let known: Vec<String> = Self::DEFAULTS.iter().map(|(field, _)| key(field)).collect();
            if known.contains(name) {
                continue;
            }
            let name = clean(name);
            return Err(bad(
                match near(&name.replace('_', "-"), known.iter().map(String::as_str)) {
                    Some(near) => format!("`{name}` is not an option; did you mean `{near}`?"),
                    None => {
                        format!("`{name}` is not an option; fcn-top --print-config prints them all")
                    }
                },
            ));
        }
        toml::from_str(text).map_err(|e| bad(e.to_string().trim_end().to_owned()))
    }

    /// Reads the named configuration file, or the default one if it exists.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a valid configuration.
    pub fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let (path, must_be) = match (named, usual_path()) {
            (Some(path), _) => (path.to_path_buf(), true),
            (None, Some(path)) => (path, false),
            (None, None) => return Ok(Self::default()),
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_be => {
                Ok(Self::default())
            }
            Err(error) => Err(Failure::usage("cannot read the configuration")
                .and(path.display().to_string())
                .and(error.to_string())
                .and("leave it out with --no-config")),
        }
    }

    /// Returns the length of an interval.
    pub fn interval(&self) -> Duration {
        self.interval.map_or(Duration::from_secs(1), |span| span.0)
    }
}

/// Returns the default path of the configuration file.
fn usual_path() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("fcn-top/config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Preferences, Failure> {
        Preferences::parse(text, Path::new("c.toml"))
    }

    #[test]
    fn the_template_has_every_option_with_its_default() {
        let template = template();
        assert_eq!(parse(&template).unwrap(), Preferences::default());
        let uncommented: String = template
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(option) if option.starts_with(|c: char| c.is_ascii_lowercase()) => option,
                _ => line,
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let all = parse(&uncommented).unwrap();
        let defaults: String = (Preferences::DEFAULTS.iter())
            .map(|(field, default)| format!("{} = {default}\n", key(field)))
            .collect();
        assert_eq!(all, parse(&defaults).unwrap());
        assert_eq!(
            all.clone().or(Preferences::default()),
            Preferences::default().or(all)
        );
        for arg in Bare::command().get_arguments() {
            let Some(long) = arg.get_long().filter(|long| *long != "help") else {
                continue;
            };
            assert!(uncommented.contains(&format!("\n{long} = ")), "{long}");
            let help = arg.get_help().unwrap().to_string();
            if let Some((_, default)) = help.split_once(" [default: ") {
                let default = default.trim_end_matches(']');
                assert!(
                    uncommented.contains(&format!("\n{long} = {default}\n"))
                        || uncommented.contains(&format!("\n{long} = \"{default}\"\n")),
                    "{help}"
                );
            }
        }
    }

    #[test]
    fn the_command_line_wins() {
        let file = parse("privacy = true\nper-interface = true\ntrust = [\"10.0.0.0/8\"]").unwrap();
        let line = Bare::try_parse_from([
            "x",
            "--privacy=false",
            "--trust",
            "::1,fd00::/8",
            "--no-icrc",
        ])
        .unwrap()
        .preferences;
        let both = line.or(file);
        assert_eq!(
            (both.privacy, both.per_interface, both.no_icrc),
            (Some(false), Some(true), Some(true))
        );
        assert_eq!(both.trust.unwrap().len(), 2);
    }

    #[test]
    fn errors_name_the_file_and_suggest_a_fix() {
        for (text, part) in [
            ("privcy = true", "did you mean `privacy`?"),
            ("max_rows = 5", "did you mean `max-rows`?"),
            ("kubernetes = 1", "--print-config"),
            ("buffer = \"lots\"", "`lots` is not a valid size"),
            ("buffer = ", "line 1"),
            ("colours = \"pink\"", "expected one of"),
        ] {
            let failure = parse(text).unwrap_err();
            assert_eq!(failure.exit().code(), 2);
            let message = failure.to_string();
            assert!(
                message.starts_with("bad configuration: c.toml: "),
                "{message}"
            );
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
