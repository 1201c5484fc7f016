//! Test plans: TOML files that hold what a run needs, so that a lab repeats it by one argument.
//!
//! A plan is turned into the options of the command line, whose parsers decide which values are
//! valid; errors name line and key. Options given on the command line outrank those of the plan.
//! Not here: the plan of the frames to send (`plan.rs`).

use crate::cli::Cli;
use crate::device::{self, Role};
use crate::scenario::model::NodeKind;
use crate::scenario::{Error, Position};
use clap::{ArgMatches, CommandFactory, ValueEnum, parser::ValueSource};
use fcn_tool::failure::{Failure, Result};
use fcn_wire::Profile;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{Item, TableLike, Value};

/// Maximum size of a plan in octets.
const LARGEST: u64 = 1 << 20;
/// The plan to fill in.
const TEMPLATE: &str = include_str!("plan_template.toml");

/// Keys of a plan with a single value, each with its option, and the option's ID.
const SINGLE: [(&str, &str, &str); 9] = [
    ("dut", "--dut", "dut"),
    ("config", "--config", "config"),
    ("node", "--node", "node"),
    ("speed", "--speed", "speed"),
    ("peer_mac", "--peer-mac", "peer_mac"),
    ("backend", "--backend", "backend"),
    ("output", "--output", "output"),
    ("only", "--only", "only"),
    ("skip", "--skip", "skip"),
];
/// Keys that are true or false.
const FLAGS: [(&str, &str, &str); 4] = [
    ("off", "--off", "off"),
    ("strict", "--strict", "strict"),
    ("force", "--force", "force"),
    (
        "allow_default_route",
        "--allow-default-route",
        "allow_default_route",
    ),
];
/// Keys of `[limits]`.
const LIMITS: [(&str, &str, &str); 3] = [
    ("flow_rate", "--flow-rate", "flow_rate"),
    ("max_latency", "--max-latency", "max_latency"),
    ("min_share", "--min-share", "min_share"),
];
/// Other keys.
const OTHERS: [&str; 6] = [
    "role",
    "port",
    "addresses",
    "parameters",
    "code_points",
    "limits",
];

/// Returns a plan with comments, for a device of this role.
pub fn template(role: Option<Role>) -> String {
    let role = role.unwrap_or(Role::CongestionPoint);
    let ports: &[(&str, &str)] = match role {
        Role::CongestionPoint => &[("eth1", "sender1"), ("eth2", "receiver")],
        Role::Receiver | Role::Sender => &[("eth1", "switch")],
        Role::Proxy => &[("eth1", "s1"), ("eth2", "s2"), ("eth3", "spine1")],
        Role::IngressPe => &[("eth1", "leaf1"), ("eth2", "p1")],
    };
    let port = |(interface, node): &(&str, &str)| {
        format!("[[port]]\ninterface = \"{interface}\"\nnode = \"{node}\"\n\n")
    };
    let ports: String = ports.iter().map(port).collect();
    let text = TEMPLATE.replace("\"ROLE\"", &format!("\"{}\"", role.id()));
    let text = match role {
        Role::IngressPe => text.replace("# node = \"leaf1\"", "node = \"pe1\""),
        _ => text,
    };
    text.replace("PORTS\n", &ports)
}

/// Returns the whole command line if `check` is given a plan: its options, and those of `args`.
///
/// # Errors
/// The plan cannot be read, or has an invalid key or value.
pub fn planned(matches: &ArgMatches, args: &[OsString]) -> Result<Option<Vec<OsString>>> {
    let Some(("check", given)) = matches.subcommand() else {
        return Ok(None);
    };
    let Some(path) = given.get_one::<PathBuf>("plan") else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let text = read(path)?;
    let plan = Plan::read(&name, &text)?;
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let mut whole: Vec<OsString> = args.iter().take(2).cloned().collect();
    if let (Some(role), false) = (plan.role, is_given("role")) {
        whole.push(role.id().into());
    }
    for option in plan.options.iter().filter(|option| !is_given(option.id)) {
        whole.extend(option.words().map(OsString::from));
    }
    // A later --set outranks an earlier one.
    for set in &plan.sets {
        whole.extend(set.words().map(OsString::from));
    }
    whole.extend(args.iter().skip(2).cloned());
    Ok(Some(whole))
}

fn read(path: &Path) -> Result<String> {
    let fits = std::fs::metadata(path).and_then(|file| match file.len() {
        0..=LARGEST => std::fs::read_to_string(path),
        _ => Err(std::io::Error::other("it is larger than 1 MiB")),
    });
    fits.map_err(|error| Failure::io("read", path, &error))
}

/// An option of the command line, and its position in the plan.
#[derive(Debug)]
struct PlannedOption {
    key: String,
    id: &'static str,
    option: &'static str,
    /// Its value; a flag has none.
    value: Option<String>,
    at: Option<Range<usize>>,
}

impl PlannedOption {
    fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.option).chain(self.value.as_deref())
    }
}

/// A plan that was read.
#[derive(Debug)]
struct Plan<'a> {
    file: &'a str,
    text: &'a str,
    role: Option<Role>,
    options: Vec<PlannedOption>,
    sets: Vec<PlannedOption>,
}

impl<'a> Plan<'a> {
    fn read(file: &'a str, text: &'a str) -> core::result::Result<Self, Error> {
        let parsed = toml_edit::Document::parse(text).map_err(|error| {
            let position = error.span().map(|span| Position::behind(text, span.start));
            Error::new(file, position.unwrap_or(Position::Whole), error.message())
        })?;
        let mut plan = Self {
            file,
            text,
            role: None,
            options: Vec::new(),
            sets: Vec::new(),
        };
        let mut addresses = None;
        for (key, item) in parsed.iter() {
            let single = SINGLE.iter().find(|(name, ..)| *name == key);
            let flag = FLAGS.iter().find(|(name, ..)| *name == key);
            match (key, single, flag) {
                (_, Some((_, option, id)), _) => plan.option(key, (option, id), item)?,
                (_, _, Some((_, option, id))) => match item.as_bool() {
                    Some(true) => plan.push(key, (option, id), None, item),
                    Some(false) => {}
                    None => return Err(plan.refuse(key, item, "write true or false")),
                },
                ("role", ..) => {
                    let role = item
                        .as_str()
                        .and_then(|text| Role::from_str(text, false).ok());
                    plan.role = Some(role.ok_or_else(|| {
                        let roles = Role::value_variants().iter().map(|role| role.id());
                        let roles = roles.collect::<Vec<_>>().join(", ");
                        plan.refuse(key, item, &format!("no such role; {roles} are allowed"))
                    })?);
                }
                ("port", ..) => plan.ports(item)?,
                ("addresses", ..) => addresses = Some(item),
                ("parameters", ..) => {
                    for (name, value) in plan.table(key, item)?.iter() {
                        plan.set(&format!("{key}.{name}"), name, value)?;
                    }
                }
                ("code_points", ..) => {
                    for (name, value) in plan.table(key, item)?.iter() {
                        let path = format!("{key}.{name}");
                        if !Profile::NAMES.contains(&name) {
                            let names = Profile::NAMES.join(", ");
                            let why = format!("no such code point; {names} are allowed");
                            return Err(plan.refuse(&path, value, &why));
                        }
                        plan.set(&path, &format!("profile.{name}"), value)?;
                    }
                }
                ("limits", ..) => {
                    for (name, value) in plan.table(key, item)?.iter() {
                        let path = format!("{key}.{name}");
                        let known = LIMITS.iter().find(|(limit, ..)| *limit == name);
                        let Some((_, option, id)) = known else {
                            let names = LIMITS.map(|(limit, ..)| limit).join(", ");
                            let why = format!("no such limit; {names} are allowed");
                            return Err(plan.refuse(&path, value, &why));
                        };
                        plan.option(&path, (option, id), value)?;
                    }
                }
                _ => {
                    let names = SINGLE.iter().chain(&FLAGS).map(|(name, ..)| *name);
                    let names = names.chain(OTHERS).collect::<Vec<_>>().join(", ");
                    let why = format!("no such key; {names} are allowed");
                    return Err(plan.refuse(key, item, &why));
                }
            }
        }
        plan.check_options()?;
        if let Some(addresses) = addresses {
            plan.addresses(addresses)?;
        }
        plan.check_sets()?;
        Ok(plan)
    }

    fn refuse(&self, key: &str, item: &Item, message: &str) -> Error {
        self.refuse_at(key, item.span(), message)
    }

    fn refuse_at(&self, key: &str, at: Option<Range<usize>>, message: &str) -> Error {
        let position = at.map(|at| Position::behind(self.text, at.start));
        Error {
            key: Some(key.to_owned()),
            ..Error::new(self.file, position.unwrap_or(Position::Whole), message)
        }
    }

    fn table<'i>(
        &self,
        key: &str,
        item: &'i Item,
    ) -> core::result::Result<&'i dyn TableLike, Error> {
        let table = item.as_table_like();
        table.ok_or_else(|| self.refuse(key, item, &format!("write a table: [{key}]")))
    }

    fn push(
        &mut self,
        key: &str,
        (option, id): (&'static str, &'static str),
        value: Option<String>,
        item: &Item,
    ) {
        self.options.push(PlannedOption {
            key: key.to_owned(),
            id,
            option,
            value,
            at: item.span(),
        });
    }

    /// Adds an option whose value is a string, a number, or a list of these.
    fn option(
        &mut self,
        key: &str,
        names: (&'static str, &'static str),
        item: &Item,
    ) -> core::result::Result<(), Error> {
        let text = item.as_value().and_then(|value| match value {
            Value::Array(list) => {
                let parts: Option<Vec<String>> = list.iter().map(plain).collect();
                parts.map(|parts| parts.join(","))
            }
            value => plain(value),
        });
        let Some(text) = text else {
            return Err(self.refuse(
                key,
                item,
                "write a string or a number, or a list of strings",
            ));
        };
        self.push(key, names, Some(text), item);
        Ok(())
    }

    /// Adds a setting of the scenario.
    fn set(&mut self, key: &str, name: &str, item: &Item) -> core::result::Result<(), Error> {
        let text = item.as_value().and_then(|value| match value {
            Value::Array(list) => {
                let quoted = |value: &Value| match value {
                    Value::String(text) => Some(format!("{:?}", text.value())),
                    other => plain(other),
                };
                let parts: Option<Vec<String>> = list.iter().map(quoted).collect();
                parts.map(|parts| format!("[{}]", parts.join(", ")))
            }
            value => plain(value),
        });
        let Some(value) = text else {
            return Err(self.refuse(key, item, "write a string, a number, or a list of these"));
        };
        self.sets.push(PlannedOption {
            key: key.to_owned(),
            id: "sets",
            option: "--set",
            value: Some(format!("{name}={value}")),
            at: item.span(),
        });
        Ok(())
    }

    fn ports(&mut self, item: &Item) -> core::result::Result<(), Error> {
        let Some(ports) = item.as_array_of_tables() else {
            return Err(self.refuse("port", item, "write a table for each port: [[port]]"));
        };
        for (place, port) in ports.iter().enumerate() {
            let path = |key: &str| format!("port.{}.{key}", place + 1);
            for (key, item) in port {
                if !["interface", "node"].contains(&key) {
                    let why = "no such key; interface, node are allowed";
                    return Err(self.refuse(&path(key), item, why));
                }
            }
            let text = |key: &str| port.get(key).and_then(Item::as_str);
            let Some(interface) = text("interface") else {
                let why = "write the port's interface, a string";
                return Err(self.refuse_at(&path("interface"), port.span(), why));
            };
            let value = match text("node") {
                Some(node) => format!("{interface}={node}"),
                None => interface.to_owned(),
            };
            self.options.push(PlannedOption {
                key: path("interface"),
                id: "iface",
                option: "--iface",
                value: Some(value),
                at: port.span(),
            });
        }
        Ok(())
    }

    /// Adds the addresses of nodes, as settings of their entries in the scenario.
    fn addresses(&mut self, item: &Item) -> core::result::Result<(), Error> {
        let Ok((_, simulation)) = device::load(self.config(), &[]) else {
            return Err(self.refuse("config", item, "no such scenario (fcn-gen list)"));
        };
        for (name, item) in self.table("addresses", item)?.iter() {
            let path = format!("addresses.{name}");
            let node = simulation.nodes.iter().find(|node| {
                // The only one of an entry with a count.
                node.name == name || node.name.strip_suffix('1') == Some(name)
            });
            let Some(node) = node else {
                let names = simulation.nodes.iter().map(|node| node.name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                let why = format!("no such node; {names} are allowed");
                return Err(self.refuse(&path, item, &why));
            };
            let entry = match node.kind {
                NodeKind::Host(_) => "host",
                NodeKind::Switch(_) => "switch",
            };
            let list = item.as_array().map(|list| list.iter().map(plain).collect());
            let one = || item.as_value().and_then(plain).map(|text| vec![text]);
            let Some(texts): Option<Vec<String>> = list.unwrap_or_else(one) else {
                return Err(self.refuse(&path, item, "write an address, or a list of two"));
            };
            for text in texts {
                let family = match text.parse() {
                    Ok(std::net::IpAddr::V6(_)) => "ipv6",
                    Ok(std::net::IpAddr::V4(_)) => "ipv4",
                    Err(_) => return Err(self.refuse(&path, item, "this is no IP address")),
                };
                self.sets.push(PlannedOption {
                    key: path.clone(),
                    id: "sets",
                    option: "--set",
                    value: Some(format!("{entry}.{name}.{family}={text}")),
                    at: item.span(),
                });
            }
        }
        Ok(())
    }

    /// Returns the scenario of the plan, or of its role.
    fn config(&self) -> Option<&str> {
        let given = self.options.iter().find(|option| option.id == "config");
        let usual = self.role.and_then(super::plan::usual_config);
        given.and_then(|option| option.value.as_deref()).or(usual)
    }

    /// Refuses values that the command line would refuse, at their positions.
    fn check_options(&self) -> core::result::Result<(), Error> {
        for option in &self.options {
            let words = ["fcn-gen", "check", "receiver", "--dry-run"].into_iter();
            let parsed = Cli::command().try_get_matches_from(words.chain(option.words()));
            if let Err(error) = parsed {
                let text = error.to_string();
                let text = text.lines().next().unwrap_or_default();
                let text = text.strip_prefix("error: ").unwrap_or(text);
                return Err(self.refuse_at(&option.key, option.at.clone(), text));
            }
        }
        Ok(())
    }

    /// Refuses settings that the scenario refuses, at their positions.
    fn check_sets(&self) -> core::result::Result<(), Error> {
        let sets = self.sets.iter().filter_map(|set| set.value.clone());
        let sets: Vec<String> = sets.collect();
        let source = device::source(self.config());
        let Err(error) = crate::scenario::load(&source, &sets) else {
            return Ok(());
        };
        let Position::Set(given) = &error.position else {
            return Err(error);
        };
        let set = self
            .sets
            .iter()
            .find(|set| set.value.as_ref() == Some(given));
        Err(set.map_or_else(
            || error.clone(),
            |set| self.refuse_at(&set.key, set.at.clone(), &error.message),
        ))
    }
}

/// Returns a string, number or truth value as the command line takes it.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(truth) => Some(truth.value().to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let plan = Plan::read("plan.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let all = plan.options.iter().chain(&plan.sets);
        let all = all.map(|option| option.words().collect::<Vec<_>>().join(" "));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_plan_is_the_options_that_it_stands_for() {
        let text = r#"
            role = "congestion-point"
            dut = "a switch"
            speed = 0.05
            off = false
            strict = true
            only = ["fastcnp", "cnp"]
            [[port]]
            interface = "eth1"
            node = "sender1"
            [[port]]
            interface = "eth2"
            [addresses]
            receiver = ["2001:db8:9::1", "192.0.2.9"]
            sender = "2001:db8:9::2"
            switch = "2001:db8:9::3"
            [parameters]
            kmin = "20kB"
            flows = 3
            [code_points]
            fast_cnp_option1 = 0x9D
            [limits]
            max_latency = "1ms"
        "#;
        assert_eq!(
            words(text),
            "--dut a switch --speed 0.05 --strict --only fastcnp,cnp --iface eth1=sender1 --iface eth2 \
             --max-latency 1ms --set kmin=20kB --set flows=3 --set profile.fast_cnp_option1=157 \
             --set host.receiver.ipv6=2001:db8:9::1 --set host.receiver.ipv4=192.0.2.9 \
             --set host.sender.ipv6=2001:db8:9::2 --set switch.switch.ipv6=2001:db8:9::3"
        );
    }

    #[test]
    fn errors_name_line_key_and_what_is_allowed() {
        for (text, expected) in [
            (
                "spede = 1",
                "plan.toml:1:9: spede: no such key; dut, config,",
            ),
            (
                "\nrole = \"switch\"",
                "plan.toml:2:8: role: no such role; congestion-point, receiver,",
            ),
            ("off = 1", "plan.toml:1:7: off: write true or false"),
            (
                "speed = \"fast\"",
                "plan.toml:1:9: speed: invalid value 'fast' for '--speed <X>'",
            ),
            (
                "backend = \"dpdk\"",
                "plan.toml:1:11: backend: invalid value 'dpdk'",
            ),
            (
                "[limits]\nlatency = 1",
                "plan.toml:2:11: limits.latency: no such limit; flow_rate,",
            ),
            (
                "[limits]\nmin_share = 2.5",
                "plan.toml:2:13: limits.min_share: invalid value '2.5'",
            ),
            (
                "[code_points]\nfast = 1",
                "plan.toml:2:8: code_points.fast: no such code point; fast_cnp",
            ),
            (
                "[code_points]\nfast_cnp_option1 = 1",
                "plan.toml:2:20: code_points.fast_cnp_option1: ",
            ),
            ("[parameters]\nkmni = 1", "plan.toml:2:8: parameters.kmni: "),
            (
                "[parameters]\nmtu = 1000",
                "plan.toml:2:7: parameters.mtu: 1000 is not a valid RoCE MTU",
            ),
            (
                "[addresses]\nr9 = \"::1\"",
                "plan.toml:2:6: addresses.r9: no such node; sender1, receiver",
            ),
            (
                "[addresses]\nreceiver = \"r1\"",
                "plan.toml:2:12: addresses.receiver: this is no IP address",
            ),
            (
                "[[port]]\nnode = \"s\"",
                "plan.toml:1:1: port.1.interface: write the port's interface",
            ),
            (
                "port = 3",
                "plan.toml:1:8: port: write a table for each port: [[port]]",
            ),
            (
                "limits = 3",
                "plan.toml:1:10: limits: write a table: [limits]",
            ),
            ("config = \"none such\"\n[addresses]\n", "plan.toml:"),
            ("role = ", "plan.toml:1:8: "),
        ] {
            let error = Plan::read("plan.toml", text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_template_is_a_plan_of_each_role() {
        for role in Role::value_variants() {
            let text = template(Some(*role));
            let plan = Plan::read("plan.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan.role, Some(*role));
            // What is commented out is valid, too, but for the examples of names.
            let lines = text.lines().map(|line| match line.strip_prefix("# ") {
                Some(key) if key.contains(" = ") && !key.starts_with("config") => key,
                _ => line,
            });
            let lines = lines.filter(|line| !line.starts_with("node = \"leaf1\""));
            let other = [
                "rate = ",
                "kmin",
                "kmax",
                "flows",
                "receiver",
                "mechanism",
                "mtu",
            ];
            let plain = matches!(role, Role::Proxy | Role::IngressPe);
            let lines =
                lines.filter(|line| !plain || !other.iter().any(|key| line.starts_with(key)));
            let whole: Vec<&str> = lines.collect();
            Plan::read("plan.toml", &whole.join("\n")).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
