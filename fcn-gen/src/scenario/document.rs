//! A scenario's TOML document before deserialisation: settings (`--set`) are applied to it,
//! defaults are copied to its entries, and the positions of its keys are kept.
//!
//! Paths name entries of arrays by their index; users name them by their `name`, or by their number
//! from 1 if they have none.

use super::error::{Error, Position, Refusal, refuse};
use super::limits;
use super::schema::{ParameterKeys, list};
use core::ops::Range;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// A named parameter of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Short name, for `--set`.
    pub name: String,
    /// Description.
    pub about: String,
    /// Default value.
    pub default: String,
    /// Values to choose from, if they can be listed. The keys decide which values are valid.
    pub values: Vec<String>,
    /// Keys that it sets.
    pub sets: Vec<String>,
}

/// Names of the arrays of tables.
const ENTRIES: [&str; 6] = ["host", "switch", "link", "flow", "fault", "inject"];

/// Keys of `[defaults]`: a table for each `[[entry]]`, named like it, and those of the entry's keys
/// that may be given directly.
const DEFAULTS: [(&str, &[&str]); 4] = [
    (
        "host",
        &[
            "dcqcn",
            "telemetry",
            "hpcc",
            "swift",
            "timely",
            "rate",
            "delay",
        ],
    ),
    ("switch", &["marking", "limits", "pause"]),
    ("link", &["rate", "delay"]),
    ("flow", &[]),
];

/// A document with settings applied to it.
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    /// Items from the text have their position in it; items that were set have none.
    root: Item,
    /// Paths that were set, each with its `key=value`.
    settings: Vec<(Vec<String>, &'a str)>,
    pub parameters: Vec<Parameter>,
}

impl<'a> Document<'a> {
    /// Parses `text` and applies the settings: those named by a parameter, and those named by a
    /// path.
    pub fn read(file: &'a str, text: &'a str, sets: &'a [String]) -> Result<Self, Error> {
        let parsed = toml_edit::Document::parse(text).map_err(|error| {
            let position = error.span().map(|span| Position::behind(text, span.start));
            Error::new(file, position.unwrap_or(Position::Whole), error.message())
        })?;
        let mut document = Self {
            file,
            text,
            root: parsed.into_item(),
            settings: Vec::new(),
            parameters: Vec::new(),
        };
        document.parameters = document
            .find_parameters()
            .map_err(|refusal| document.error(refusal))?;
        for set in sets {
            document
                .apply(set)
                .map_err(|message| Error::new(file, Position::Set(set.clone()), message))?;
        }
        Ok(document)
    }

    /// Returns true if the document has the key.
    pub fn has(&self, path: &str) -> bool {
        get(&self.root, path).is_some()
    }

    /// Deserialises the keys, with defaults for values missing in entries.
    pub fn keys<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut spread = self.root.clone();
        remove(&mut spread, "parameters");
        spread_defaults(&mut spread)
            .and_then(|()| deserialize(spread))
            .and_then(|keys| self.check_unused_defaults().map(|()| keys))
            .map_err(|refusal| self.error(refusal))
    }

    /// Refuses a default that was set but is not used by any entry.
    fn check_unused_defaults(&self) -> Result<(), Refusal> {
        for (path, _) in &self.settings {
            let [defaults, first, ..] = path.as_slice() else {
                continue;
            };
            let is_table = value_at(&self.root, path).is_some_and(Item::is_table_like);
            if defaults != "defaults" || is_table {
                continue;
            }
            let is_taken = DEFAULTS.into_iter().any(|(array, keys)| {
                let skipped = match keys.contains(&first.as_str()) {
                    true => 1,
                    false if array == first => 2,
                    false => return false,
                };
                let key = path.get(skipped..).unwrap_or_default();
                let count = self
                    .root
                    .get(array)
                    .and_then(entries)
                    .map_or(0, |all| all.len());
                (0..count).any(|index| {
                    let entry = [array.to_owned(), index.to_string()];
                    let mut sources = sources(&[&entry, key].concat()).into_iter();
                    let nearest = sources.find(|path| value_at(&self.root, path).is_some());
                    nearest.as_ref() == Some(path)
                })
            });
            if !is_taken {
                let message =
                    "has no effect: nothing uses it, or everything that could has its own value";
                refuse!(path.join("."), "{message}");
            }
        }
        Ok(())
    }

    fn find_parameters(&self) -> Result<Vec<Parameter>, Refusal> {
        #[derive(Deserialize)]
        struct Keys {
            parameters: BTreeMap<String, ParameterKeys>,
        }
        let Some(item) = self.root.get("parameters") else {
            return Ok(Vec::new());
        };
        let mut alone = Table::new();
        alone.insert("parameters", item.clone());
        let mut read: Keys = deserialize(Item::Table(alone))?;
        let mut spread = self.root.clone();
        spread_defaults(&mut spread)?;
        let names = item.as_table_like().into_iter().flat_map(TableLike::iter);
        names
            .filter_map(|(name, _)| read.parameters.remove_entry(name))
            .map(|(name, keys)| parameter(name, keys, [&self.root, &spread]))
            .collect()
    }

    fn apply(&mut self, set: &'a str) -> Result<(), String> {
        let (key, text) = set.split_once('=').ok_or("is not of the form key=value")?;
        let (key, text) = (key.trim(), text.trim());
        let value: Value = text.parse().unwrap_or_else(|_| Value::from(text));
        let parameter = self
            .parameters
            .iter()
            .find(|parameter| parameter.name == key);
        let paths = parameter.map_or_else(|| vec![key.to_owned()], |known| known.sets.clone());
        for path in paths {
            self.settings
                .push((put(&mut self.root, &path, &value)?, set));
        }
        Ok(())
    }

    /// Converts a refusal to an error with its position.
    pub fn error(&self, refusal: Refusal) -> Error {
        let Refusal {
            path,
            span,
            mut message,
        } = refusal;
        let (place, key) = self.locate(&path, span.as_ref()).unzip();
        let at = || Some(Position::behind(self.text, span?.start));
        let position = place.or_else(at).unwrap_or(Position::Whole);
        if let (Position::Set(_), [name]) = (&position, path.as_slice())
            && !self.offers(name)
        {
            let names = self.parameters.iter().map(|parameter| &parameter.name);
            message += &format!("; parameters: {}", list(names));
        }
        Error {
            file: self.file.to_owned(),
            position,
            key,
            message,
        }
    }

    /// Returns true if the text has a key, or a parameter of that name.
    fn offers(&self, name: &str) -> bool {
        let key = self.root.as_table_like().and_then(|root| root.key(name));
        let mut parameters = self.parameters.iter();
        key.is_some_and(|key| key.span().is_some()) || parameters.any(|known| known.name == name)
    }

    /// Returns the position of the value at `path`, or of the nearest item above it, and its key as
    /// users name it.
    fn locate(&self, path: &[String], span: Option<&Range<usize>>) -> Option<(Position, String)> {
        let nearest = (1..=path.len()).rev().filter_map(|len| path.get(..len));
        nearest.flat_map(sources).find_map(|path| {
            let item = value_at(&self.root, &path)?;
            let own = item.span();
            let set = self.settings.iter().rev().find(|(set, _)| {
                path.starts_with(set) || (own.is_none() && set.starts_with(&path))
            });
            let place = match set {
                Some((_, set)) => Position::Set((*set).to_owned()),
                None => Position::behind(self.text, span.cloned().or(own)?.start),
            };
            Some((place, self.named(&path)))
        })
    }

    /// Returns a path as users write it.
    fn named(&self, path: &[String]) -> String {
        let mut item = Some(&self.root);
        let mut names = Vec::new();
        for step in path {
            let next = item.and_then(|item| child(item, step));
            match (item.is_some_and(is_array), next) {
                (false, _) => names.push(step.clone()),
                (true, Some(entry)) if entry.is_table_like() => {
                    names.push(entry_name(entry, step.parse().unwrap_or(0)));
                }
                // Values of a list have no names.
                (true, _) => {}
            }
            item = next;
        }
        names.join(".")
    }
}

/// Deserialises a table.
fn deserialize<T: DeserializeOwned>(table: Item) -> Result<T, Refusal> {
    let table = table.into_table().unwrap_or_default();
    let deserializer = toml_edit::de::Deserializer::from(DocumentMut::from(table));
    serde_path_to_error::deserialize(deserializer).map_err(Refusal::from)
}

/// Builds a parameter. Its default is the value in one of the documents, or its own `default`.
fn parameter(
    name: String,
    keys: ParameterKeys,
    in_documents: [&Item; 2],
) -> Result<Parameter, Refusal> {
    let path = format!("parameters.{name}");
    let Some(first) = keys.set.first() else {
        refuse!(
            path,
            "sets nothing; add set, for example set = [\"host.s.count\"]"
        );
    };
    let now = in_documents
        .iter()
        .find_map(|document| get(document, first));
    let Some(default) = now.and_then(json).or(keys.default) else {
        refuse!(
            path + ".set.0",
            "the document has no `{first}`; add it, or add a default to the parameter"
        );
    };
    Ok(Parameter {
        name,
        about: keys.about,
        default: shown(&default),
        values: keys.values.iter().map(shown).collect(),
        sets: keys.set,
    })
}

fn is_array(item: &Item) -> bool {
    item.is_array() || item.is_array_of_tables()
}

/// Returns the entries of an array; `None` if it is not an array of tables.
fn entries(array: &Item) -> Option<Vec<&Item>> {
    let all: Vec<&Item> = (0..).map_while(|index: usize| array.get(index)).collect();
    (!all.is_empty() && all.iter().all(|entry| entry.is_table_like())).then_some(all)
}

/// Returns the name of an array's entry as users write it.
fn entry_name(entry: &Item, index: usize) -> String {
    let name = entry.get("name").and_then(Item::as_str);
    name.map_or_else(|| (index + 1).to_string(), str::to_owned)
}

/// Returns the names of an array's entries as users write them.
fn entry_names(array: &Item) -> Option<Vec<String>> {
    let entries = entries(array)?.into_iter().zip(0..);
    let names = entries.map(|(entry, index)| entry_name(entry, index));
    Some(names.collect())
}

/// Returns the child of `item` at a step of a path.
fn child<'t>(item: &'t Item, step: &str) -> Option<&'t Item> {
    if is_array(item) {
        return item.get(step.parse::<usize>().ok()?);
    }
    item.get(step)
}

/// Converts a dotted path as users write it to steps; steps without an item stay as written.
fn steps(root: &Item, path: &str) -> Vec<String> {
    let mut item = Some(root);
    let step = |step: &str| {
        let names = item.and_then(entry_names);
        let index = names.and_then(|names| names.iter().position(|name| name == step));
        let step = index.map_or_else(|| step.to_owned(), |index| index.to_string());
        item = item.and_then(|item| child(item, &step));
        step
    };
    path.split('.').map(step).collect()
}

/// Returns the value at a dotted path as users write it.
fn get<'t>(root: &'t Item, path: &str) -> Option<&'t Item> {
    value_at(root, &steps(root, path))
}

/// Returns the value at a path.
fn value_at<'t>(root: &'t Item, path: &[String]) -> Option<&'t Item> {
    path.iter().try_fold(root, |item, step| child(item, step))
}

/// Puts `value` at a dotted path as users write it, and returns the path's steps. Missing tables
/// are created on the way, missing entries of arrays are not.
fn put(root: &mut Item, path: &str, value: &Value) -> Result<Vec<String>, String> {
    let steps = steps(root, path);
    let mut item = root;
    let mut before = "";
    for (index, step) in steps.iter().enumerate() {
        let is_last = index + 1 == steps.len();
        let no_keys = || format!("`{before}` has no keys below it");
        if let Some(names) = entry_names(item) {
            if is_last {
                return Err(format!(
                    "`{path}` is an entry; append one of its keys, as in {path}.count"
                ));
            }
            let entry = step
                .parse::<usize>()
                .ok()
                .and_then(|index| item.get_mut(index));
            item = entry.ok_or_else(|| {
                format!(
                    "there is no {before} `{step}`; expected one of {}",
                    names.join(", ")
                )
            })?;
        } else {
            let table = item.as_table_like_mut().ok_or_else(no_keys)?;
            if !table.contains_key(step) {
                if index == 0 && ENTRIES.contains(&step.as_str()) {
                    return Err(format!("there is no [[{step}]] in this scenario"));
                }
                table.insert(step, Item::Table(Table::new()));
            }
            item = table.get_mut(step).ok_or_else(no_keys)?;
        }
        before = step;
    }
    *item = Item::Value(value.clone());
    Ok(steps)
}

fn remove(table: &mut Item, key: &str) -> Option<Item> {
    table.as_table_like_mut()?.remove(key)
}

/// Converts a value to JSON.
fn json(item: &Item) -> Option<Json> {
    let value = item.clone().into_value().ok()?;
    Json::deserialize(value.into_deserializer()).ok()
}

/// Formats a value as a user would write it after `--set key=`.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(values) => format!("[{}]", list(values.iter().map(shown))),
        Json::Object(_) => "{…}".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the paths at which a value may be found: its own, and those of defaults.
fn sources(path: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![path.to_vec()];
    if let [entry, _, key @ ..] = path
        && ENTRIES.contains(&entry.as_str())
        && !key.is_empty()
    {
        all.push([&["defaults".to_owned(), entry.clone()], key].concat());
        all.push([&["defaults".to_owned()], key].concat());
    }
    all
}

/// Copies `[defaults]` to the entries that leave values out, so that a wrong default is refused at
/// its own position.
fn spread_defaults(root: &mut Item) -> Result<(), Refusal> {
    let Some(defaults) = remove(root, "defaults") else {
        return Ok(());
    };
    let Some(defaults) = defaults.as_table_like() else {
        refuse!("defaults", "[defaults] must be a table");
    };
    let mut spread = 0;
    for (key, value) in defaults.iter() {
        let path = format!("defaults.{key}");
        let arrays = DEFAULTS.map(|(array, _)| array);
        let alone = DEFAULTS.iter().flat_map(|(_, keys)| *keys).copied();
        let known: BTreeSet<&str> = arrays.into_iter().chain(alone).collect();
        if !known.contains(key) {
            let names = list(known.iter().map(|name| format!("`{name}`")));
            refuse!(path, "unknown field `{key}`, expected one of {names}");
        }
        if arrays.contains(&key) && !value.is_table_like() {
            refuse!(path, "[{path}] must be a table with keys of [[{key}]]");
        }
    }
    for (name, keys) in DEFAULTS {
        let root = root.as_table_like_mut();
        let Some(array) = root.and_then(|root| root.get_mut(name)) else {
            continue;
        };
        // The entry's own table takes precedence.
        let mut all = Table::new();
        if let Some(own) = defaults.get(name).and_then(Item::as_table_like) {
            merge(&mut all, own);
        }
        let mut alone = Table::new();
        for (key, value) in keys.iter().filter_map(|key| defaults.get_key_value(key)) {
            alone.entry_format(key).or_insert(value.clone());
        }
        merge(&mut all, &alone);
        let all = Item::Table(all);
        let len = entries(array).map_or(0, |entries| entries.len());
        spread += weight(&all).saturating_mul(len);
        let path = || format!("defaults.{name}");
        limits::at_most(spread, limits::SPREAD, "values for all entries", path)?;
        for index in 0..len {
            let entry = array.get_mut(index).and_then(Item::as_table_like_mut);
            if let (Some(entry), Some(all)) = (entry, all.as_table_like()) {
                merge(entry, all);
            }
        }
    }
    Ok(())
}

/// Returns the amount of data to copy in a value: number of values plus octets of text.
fn weight(item: &Item) -> usize {
    let text = item.as_str().map_or(0, str::len);
    let elements = (0..).map_while(|index: usize| item.get(index)).map(weight);
    let table = item.as_table_like().into_iter().flat_map(TableLike::iter);
    1 + text
        + elements.sum::<usize>()
        + table
            .map(|(key, value)| key.len() + weight(value))
            .sum::<usize>()
}

/// Adds the values missing in `into`, table by table.
fn merge(into: &mut dyn TableLike, defaults: &dyn TableLike) {
    for (key, value) in defaults.iter() {
        let own = into.get_mut(key).map(Item::as_table_like_mut);
        match (own, value.as_table_like()) {
            (None, _) => {
                if let Some((key, value)) = defaults.get_key_value(key) {
                    into.entry_format(key).or_insert(value.clone());
                }
            }
            (Some(Some(own)), Some(defaults)) => merge(own, defaults),
            _ => {}
        }
    }
}
