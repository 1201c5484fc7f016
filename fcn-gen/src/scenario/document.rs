//! A scenario's TOML document before it is understood: settings (`--set`) put into it, defaults spread over its entries.

use super::check;
use super::error::{Error, Locator, Place, Refusal, entry_name, holds_tables};
use super::schema::{ParameterText, ParameterTexts};
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A named knob of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its short name, for `--set`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its value where nobody sets it.
    pub default: String,
    /// The values to choose from, where they can be listed. What is allowed is for the keys to say.
    pub values: Vec<String>,
    /// The keys that it sets.
    pub sets: Vec<String>,
}

/// A `key=value` as text of its own, padded so that its places lie behind those of the file and of earlier settings.
pub(super) struct Setting {
    key: String,
    shown: String,
    padded: String,
    span: core::ops::Range<usize>,
}

/// The settings in `sets`, whose places begin at `at`.
pub(super) fn settings(file: &str, sets: &[String], at: usize) -> Result<Vec<Setting>, Error> {
    let mut next = at + 1;
    let mut all = Vec::new();
    for set in sets {
        let Some((key, value)) = set
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
        else {
            let message = "is not of the form key=value".to_owned();
            return Err(Error {
                file: file.to_owned(),
                place: Place::Set(set.clone()),
                key: None,
                message,
            });
        };
        let padding = " ".repeat(next);
        let mut padded = format!("{padding}v={value}");
        if value.is_empty() || DeTable::parse(&padded).is_err() {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            padded = format!("{padding}v=\"{quoted}\"");
        }
        let span = next..padded.len();
        next = padded.len() + 1;
        all.push(Setting {
            key: key.to_owned(),
            shown: set.clone(),
            padded,
            span,
        });
    }
    Ok(all)
}

/// A document and where its values stand.
pub(super) struct Document<'a> {
    pub table: Spanned<DeTable<'a>>,
    pub locator: Locator,
    pub parameters: Vec<Parameter>,
}

impl<'a> Document<'a> {
    /// Reads `text` and applies the settings: those named by a parameter, and those named by a path.
    pub fn read(file: &str, text: &'a str, settings: &'a [Setting]) -> Result<Self, Error> {
        let mut locator = Locator::new(file, text);
        let table = DeTable::parse(text).map_err(|error| locator.error(error.into()))?;
        locator.keys_of(table.get_ref());
        let mut document = Self {
            table,
            locator,
            parameters: Vec::new(),
        };
        document
            .take_parameters()
            .map_err(|refusal| document.locator.error(refusal))?;
        for setting in settings {
            document
                .locator
                .setting(setting.span.clone(), &setting.shown);
            document
                .apply(setting)
                .map_err(|refusal| document.locator.error(refusal))?;
        }
        document.locator.keys_of(document.table.get_ref());
        let spread = spread_defaults(document.table.get_mut());
        spread.map_err(|refusal| document.locator.error(refusal))?;
        Ok(document)
    }

    fn take_parameters(&mut self) -> Result<(), Refusal> {
        let Some(value) = self.table.get_mut().remove("parameters") else {
            return Ok(());
        };
        let texts = ParameterTexts::deserialize(ValueDeserializer::from(value))?;
        let mut texts: Vec<_> = texts.into_iter().collect();
        texts.sort_by_key(|(_, text)| text.span().start);
        let mut spread = self.table.get_ref().clone();
        spread_defaults(&mut spread)?;
        for (name, text) in texts {
            let parameter = self.parameter(name, &text, &spread)?;
            self.parameters.push(parameter);
        }
        Ok(())
    }

    /// A parameter: its default is what the document has, `spread` over the entries or not, or what it says itself.
    fn parameter(
        &self,
        name: String,
        text: &Spanned<ParameterText>,
        spread: &DeTable<'_>,
    ) -> Result<Parameter, Refusal> {
        let (at, text) = (text, text.get_ref());
        let Some(first) = text.set.first() else {
            return Err(Refusal::at(
                at,
                format!(
                    "parameters.{name} sets nothing; it needs set = [\"host.s.count\"] or the like"
                ),
            ));
        };
        let now =
            get(self.table.get_ref(), first.get_ref()).or_else(|| get(spread, first.get_ref()));
        let now = now.map(|value| shown(value.get_ref()));
        let said = text.default.as_ref().map(plain);
        let default = now.or(said).ok_or_else(|| {
            Refusal::at(
                first,
                format!(
                    "the document has no `{}`; give it, or give the parameter a default",
                    first.get_ref()
                ),
            )
        })?;
        let sets = text.set.iter().map(|path| path.get_ref().clone()).collect();
        Ok(Parameter {
            name,
            about: text.about.clone(),
            default,
            values: text.values.iter().map(plain).collect(),
            sets,
        })
    }

    fn apply(&mut self, setting: &'a Setting) -> Result<(), Refusal> {
        let parsed = DeTable::parse(&setting.padded)?;
        let (_, value) = parsed
            .into_inner()
            .into_iter()
            .next()
            .ok_or_else(|| Refusal::whole("the value is missing"))?;
        let parameter = self
            .parameters
            .iter()
            .find(|parameter| parameter.name == setting.key);
        let Some(parameter) = parameter else {
            self.known(setting)?;
            return put(self.table.get_mut(), &setting.key, &value, &setting.span);
        };
        for path in &parameter.sets {
            put(self.table.get_mut(), path, &value, &setting.span)?;
        }
        Ok(())
    }

    /// Whether a setting's key begins like one of ours. Serde refuses the rest of a wrong path, but would speak of all keys.
    fn known(&self, setting: &Setting) -> Result<(), Refusal> {
        const SINGLE: [&str; 11] = [
            "mechanism",
            "duration",
            "seed",
            "ip",
            "vantage",
            "epoch",
            "snap_len",
            "advertise_interval",
            "pnc_at",
            "family",
            "about",
        ];
        let (head, rest) = setting
            .key
            .split_once('.')
            .map_or((setting.key.as_str(), None), |(head, rest)| {
                (head, Some(rest))
            });
        let fine = match rest {
            None => SINGLE.contains(&head),
            Some(_) => [
                "profile", "defaults", "host", "switch", "link", "flow", "fault", "inject",
                "stress", "compare",
            ]
            .contains(&head),
        };
        if fine {
            return Ok(());
        }
        let names: Vec<_> = self
            .parameters
            .iter()
            .map(|parameter| parameter.name.as_str())
            .collect();
        let ours = if names.is_empty() {
            "it has no parameters".to_owned()
        } else {
            format!("its parameters are {}", names.join(", "))
        };
        Err(Refusal::span(
            setting.span.clone(),
            format!(
                "`{}` is not a key of this scenario; {ours}; a path such as host.s.count, flow.f.message, defaults.dcqcn.g or \
                 mechanism will do too",
                setting.key
            ),
        ))
    }
}

/// The value at a dotted path; entries of arrays go by their `name`, else by their number from 1.
fn get<'t, 'a>(table: &'t DeTable<'a>, path: &str) -> Option<&'t Spanned<DeValue<'a>>> {
    let (head, rest) = path
        .split_once('.')
        .map_or((path, None), |(head, rest)| (head, Some(rest)));
    let value = table.get(head)?;
    let Some(rest) = rest else {
        return Some(value);
    };
    match value.get_ref() {
        DeValue::Table(table) => get(table, rest),
        DeValue::Array(array) if holds_tables(array) => {
            let (name, rest) = rest.split_once('.')?;
            let tables = array.iter().filter_map(|entry| entry.get_ref().as_table());
            let (_, table) = tables
                .enumerate()
                .find(|(index, table)| entry_name(table, *index) == name)?;
            get(table, rest)
        }
        _ => None,
    }
}

/// Puts `value` at a dotted path; tables on the way are made where they are absent, entries of arrays are not.
fn put<'a>(
    table: &mut DeTable<'a>,
    path: &str,
    value: &Spanned<DeValue<'a>>,
    span: &core::ops::Range<usize>,
) -> Result<(), Refusal> {
    let Some((head, rest)) = path.split_once('.') else {
        // The key keeps its old place unless it goes first.
        table.remove(path);
        table.insert(
            Spanned::new(span.clone(), Cow::Owned(path.to_owned())),
            value.clone(),
        );
        return Ok(());
    };
    if table.get(head).is_none() {
        if ["host", "switch", "link", "flow", "fault", "inject"].contains(&head) {
            return Err(Refusal::span(
                span.clone(),
                format!("there is no [[{head}]] in this scenario"),
            ));
        }
        let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
        table.insert(
            Spanned::new(span.clone(), Cow::Owned(head.to_owned())),
            empty,
        );
    }
    match table.get_mut(head).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => put(table, rest, value, span),
        Some(DeValue::Array(array)) if holds_tables(array) => {
            let Some((name, rest)) = rest.split_once('.') else {
                return Err(Refusal::span(
                    span.clone(),
                    format!("`{path}` names an entry; a key of it is missing, as in {path}.count"),
                ));
            };
            let mut names = Vec::new();
            for (index, entry) in array.iter_mut().enumerate() {
                let DeValue::Table(table) = entry.get_mut() else {
                    continue;
                };
                let this = entry_name(table, index);
                if this == name {
                    return put(table, rest, value, span);
                }
                names.push(this);
            }
            Err(Refusal::span(
                span.clone(),
                format!(
                    "there is no {head} `{name}`; there are {}",
                    names.join(", ")
                ),
            ))
        }
        _ => Err(Refusal::span(
            span.clone(),
            format!("`{head}` has no keys below it"),
        )),
    }
}

/// Which entries get which defaults: `defaults.<name>` goes to each `[[entry]]`, as its key of that name or as all its keys.
const SPREAD: [(&str, &[&str]); 11] = [
    ("host", &["host"]),
    ("switch", &["switch"]),
    ("link", &["link"]),
    ("flow", &["flow"]),
    ("dcqcn", &["host"]),
    ("telemetry", &["host"]),
    ("marking", &["switch"]),
    ("limits", &["switch"]),
    ("pause", &["switch"]),
    ("rate", &["host", "link"]),
    ("delay", &["host", "link"]),
];

/// Moves `[defaults]` into the entries that leave something out; so a wrong default is refused where it stands.
fn spread_defaults(document: &mut DeTable<'_>) -> Result<(), Refusal> {
    let Some(defaults) = document.remove("defaults") else {
        return Ok(());
    };
    let DeValue::Table(defaults) = defaults.get_ref() else {
        return Err(Refusal::at(&defaults, "[defaults] is a table"));
    };
    for (key, value) in defaults {
        let Some((name, _)) = SPREAD.iter().find(|(name, _)| name == key.get_ref()) else {
            let names: Vec<_> = SPREAD.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(Refusal::at(
                key,
                format!(
                    "unknown key `{}`; allowed are {}",
                    key.get_ref(),
                    names.join(", ")
                ),
            ));
        };
        if ["host", "switch", "link", "flow"].contains(name) && !value.get_ref().is_table() {
            return Err(Refusal::at(
                value,
                format!("[defaults.{name}] is a table of the keys of [[{name}]]"),
            ));
        }
    }
    // The entries' own tables first: they are nearer.
    let mut spread = 0;
    for (name, entries) in SPREAD {
        let Some((key, value)) = defaults.get_key_value(name) else {
            continue;
        };
        for entry in entries {
            let Some(DeValue::Array(array)) = document.get_mut(*entry).map(Spanned::get_mut) else {
                continue;
            };
            spread += weight(value.get_ref()).saturating_mul(array.len());
            check::count(spread, check::SPREAD, "values for all entries", key.span())?;
            for table in array.iter_mut() {
                let DeValue::Table(table) = table.get_mut() else {
                    continue;
                };
                match value.get_ref() {
                    DeValue::Table(all) if name == *entry => merge(table, all),
                    _ => {
                        let mut one = DeTable::new();
                        one.insert(key.clone(), value.clone());
                        merge(table, &one);
                    }
                }
            }
        }
    }
    Ok(())
}

/// How much there is to copy in a value: values and octets of text.
fn weight(value: &DeValue<'_>) -> usize {
    match value {
        DeValue::String(text) => 1 + text.len(),
        DeValue::Array(array) => {
            let items = array.iter().map(|item| weight(item.get_ref()));
            1 + items.sum::<usize>()
        }
        DeValue::Table(table) => {
            let entries = table.iter();
            let entries = entries.map(|(key, value)| key.get_ref().len() + weight(value.get_ref()));
            1 + entries.sum::<usize>()
        }
        _ => 1,
    }
}

/// Adds what `into` leaves out, table by table.
fn merge<'a>(into: &mut DeTable<'a>, defaults: &DeTable<'a>) {
    for (key, value) in defaults {
        match (
            into.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut),
            value.get_ref(),
        ) {
            (None, _) => {
                into.insert(key.clone(), value.clone());
            }
            (Some(DeValue::Table(into)), DeValue::Table(defaults)) => merge(into, defaults),
            _ => {}
        }
    }
}

/// A value as a person would write it after `--set key=`.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Datetime(at) => at.to_string(),
        DeValue::Array(array) => {
            let items: Vec<_> = array.iter().map(|item| shown(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(_) => "{…}".to_owned(),
    }
}

fn plain(value: &toml::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
