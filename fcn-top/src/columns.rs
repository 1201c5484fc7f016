//! Finds columns by name: the identifier or an abbreviation; suggests the nearest for a wrong name.

use crate::record::{Record, column_named};

/// Short names of columns, wherever a table has the column and none of that name.
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

/// Which of its rates `rate` is short for, in a table that has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rates {
    /// That of the last second: of what goes on.
    #[default]
    Latest,
    /// The mean: of what is told at the end.
    Mean,
}

/// The number of the column called so, by its identifier or a short name, in whatever case.
///
/// # Errors
/// There is none; the text says which there are, or which one was probably meant.
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

/// What is said of a name that is none: which one was probably meant, or which there are.
pub(crate) fn unknown(what: &str, name: &str, near: Option<&str>, known: &[&str]) -> String {
    match near {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!(
            "there is no {what} `{name}`; there are: {}",
            known.join(", ")
        ),
    }
}

/// The one of `known` that differs least from `name`, if that is little; else the first that begins with it.
pub(crate) fn near<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // Longer ones are no typing errors, and the distance costs the product of the lengths.
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
        // At the end it is that of all the time; where a table has no mean, that of the last second.
        assert_eq!(
            named::<QpRecord>("Rate", Rates::Mean).ok(),
            column_named::<QpRecord>("rate_mean")
        );
        assert_eq!(
            named::<InterfaceRecord>("rate", Rates::Mean).ok(),
            column_named::<InterfaceRecord>("rate_1s")
        );
        // A table's own column goes before a short name.
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
    fn a_wrong_name_is_put_right() {
        for (name, meant) in [
            ("rate1s", "rate_1s"),
            ("notifer", "notifier"),
            ("gap_", "gap_p50"),
            ("zebra", ""),
        ] {
            let message = named::<QpRecord>(name, Rates::Latest).unwrap_err();
            if meant.is_empty() {
                assert!(message.contains("there are: sender, qp"), "{message}");
            } else {
                assert!(
                    message.ends_with(&format!("did you mean `{meant}`?")),
                    "{message}"
                );
            }
        }
    }
}
