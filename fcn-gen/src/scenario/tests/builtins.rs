//! The built-in scenarios: each loads in every variant, and matches its snapshot.

use crate::scenario::{Parameter, Source, builtin, draw, load};

/// Returns all values that a parameter lists, or its default.
fn values(parameter: &Parameter) -> Vec<String> {
    let values = if parameter.values.is_empty() {
        vec![parameter.default.clone()]
    } else {
        parameter.values.clone()
    };
    values
        .iter()
        .map(|value| format!("{}={value}", parameter.name))
        .collect()
}

#[test]
fn built_in_scenarios_load_in_all_variants() {
    let mut variants = 0;
    for (name, about) in builtin::list() {
        assert!(about.len() > 10, "{name}");
        let source = Source::Builtin(name.to_owned());
        let scenario = load(&source, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (scenario.name.as_str(), scenario.about.as_str()),
            (name, about)
        );
        assert!(
            !scenario.demonstrates.is_empty() && !scenario.parameters.is_empty(),
            "{name}"
        );
        let mechanisms = scenario
            .parameters
            .iter()
            .find(|parameter| parameter.name == "mechanism");
        let mechanisms = mechanisms.map_or_else(Vec::new, values);
        for parameter in &scenario.parameters {
            for value in values(parameter) {
                let alone = load(&source, std::slice::from_ref(&value));
                alone.unwrap_or_else(|error| panic!("{name} {value}: {error}"));
                for mechanism in &mechanisms {
                    let sets = [mechanism.clone(), value.clone()];
                    load(&source, &sets).unwrap_or_else(|error| panic!("{name} {sets:?}: {error}"));
                    variants += 1;
                }
            }
        }
    }
    assert!(variants > 300, "{variants}");
}

#[test]
fn built_in_scenarios_look_as_drawn() {
    for (name, _) in builtin::list() {
        let drawn = draw(&load(&Source::Builtin(name.to_owned()), &[]).unwrap());
        assert!(
            drawn.lines().all(|line| line.chars().count() <= 100),
            "{name}"
        );
        insta::assert_snapshot!(name, drawn);
    }
}

#[test]
fn large_topologies_are_drawn_in_groups() {
    let source = Source::Builtin("incast".to_owned());
    let drawn = draw(&load(&source, &["senders=20000".to_owned()]).unwrap());
    assert!(
        drawn.lines().count() < 30 && drawn.contains("s2 … s20000 (19999)"),
        "{drawn}"
    );
}

#[test]
fn galleries_list_their_families() {
    for gallery in crate::gallery::all() {
        let scenario = load(&Source::Builtin(gallery.name.to_owned()), &[]).unwrap();
        let families = gallery.families.iter().map(|family| family.name);
        let names: Vec<&str> = std::iter::once("all").chain(families).collect();
        assert_eq!(scenario.parameters[0].values, names, "{}", gallery.name);
    }
}
