//! Looks up columns by identifier or abbreviation; suggests the nearest name for a wrong one.

use crate::record::{Record, column_named};

/// Short names of columns, valid in every table that has the column and no other column of that
/// name.
pub const SHORT: &[(&str, &str)] = &[
    ("rate", "rate_1s"),
    ("peak", "rate_peak"),
    ("gap", "gap_p50"),
    ("ce", "ce_share"),
    ("data", "data_rate"),
    ("label", "flow_label"),
    ("rule", "what"),
    ("if", "interface"),
];

/// The rate abbreviated by `rate` in a table with several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rates {
    /// The rate of the last second, for ongoing output.
    #[default]
    Latest,
    /// The mean, for output at the end.
    Mean,
}

/// Returns the index of a column by its identifier or short name, ignoring case.
///
/// # Errors
///
/// There is no such column; the text lists the columns or suggests one.
pub fn named<R: Record>(name: &str, rates: Rates) -> Result<usize, String> {
    let lower = name.to_lowercase();
    if rates == Rates::Mean
        && lower == "rate"
        && let Some(mean) = column_named::<R>("rate_mean")
    {
        return Ok(mean);
    }
    let long = SHORT.iter().find(|(short, _)| *short == lower);
    column_named::<R>(&lower)
        .or_else(|| column_named::<R>(long?.1))
        .ok_or_else(|| {
            let shown: String = name.chars().take(40).collect();
            let ids = R::COLUMNS.iter().map(|column| column.id);
            let shorts = SHORT
                .iter()
                .filter(|(_, long)| column_named::<R>(long).is_some());
            let all = ids.clone().chain(shorts.clone().map(|(short, _)| *short));
            let near = near(&lower, all).map(|near| {
                let long = shorts.clone().find(|(short, _)| *short == near);
                long.map_or(near, |(_, long)| long)
            });
            unknown("column", &shown, near, &ids.collect::<Vec<_>>())
        })
}

/// Error text for an unknown name: a suggestion, or the list of known names.
pub(crate) fn unknown(what: &str, name: &str, near: Option<&str>, known: &[&str]) -> String {
    match near {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!(
            "there is no {what} `{name}`; available: {}",
            known.join(", ")
        ),
    }
}

/// Returns the entry of `known` nearest to `name`, if near enough; else the first that starts with
/// it.
pub(crate) fn near<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // Longer names are not typing errors, and the distance costs the product of the lengths.
    if name.is_empty() || name.len() > 64 {
        return None;
    }
    let allowed = if name.chars().count() < 4 { 1 } else { 2 };
    known
        .clone()
        .map(|other| (strsim::levenshtein(name, other), other))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
        .or_else(|| known.clone().find(|other| other.starts_with(name)))
        .or_else(|| {
            let mut known = known;
            known.find(|other| name.len() > 2 && other.contains(name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EventRecord, InterfaceRecord, QpRecord};

    #[test]
    fn columns_are_found_by_any_of_their_names() {
        for (name, id) in [
            ("rate_1s", "rate_1s"),
            ("rate", "rate_1s"),
            ("RATE", "rate_1s"),
            ("gap", "gap_p50"),
            ("data", "data_rate"),
        ] {
            assert_eq!(
                named::<QpRecord>(name, Rates::Latest),
                Ok(column_named::<QpRecord>(id).unwrap())
            );
        }
        // Mean for output at the end; the rate of the last second if the table has no mean.
        assert_eq!(
            named::<QpRecord>("Rate", Rates::Mean).ok(),
            column_named::<QpRecord>("rate_mean")
        );
        assert_eq!(
            named::<InterfaceRecord>("rate", Rates::Mean).ok(),
            column_named::<InterfaceRecord>("rate_1s")
        );
        // A table's own column takes precedence over a short name.
        assert_eq!(
            named::<InterfaceRecord>("data", Rates::Latest).ok(),
            column_named::<InterfaceRecord>("data")
        );
        assert_eq!(
            named::<EventRecord>("rule", Rates::Latest).ok(),
            column_named::<EventRecord>("what")
        );
    }

    #[test]
    fn wrong_names_are_corrected() {
        for (name, meant) in [
            ("rate1s", "rate_1s"),
            ("notifer", "notifier"),
            ("gap_", "gap_p50"),
            ("zebra", ""),
        ] {
            let message = named::<QpRecord>(name, Rates::Latest).unwrap_err();
            if meant.is_empty() {
                assert!(message.contains("available: sender, qp"), "{message}");
            } else {
                assert!(
                    message.ends_with(&format!("did you mean `{meant}`?")),
                    "{message}"
                );
            }
        }
    }
}
