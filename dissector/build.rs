//! Generates Rust bindings for the installed Wireshark, from its own headers.
//!
//! Bindings are generated for every version, 4.0 included. The ones bundled with epan-sys fit only
//! early 4.0 releases, lack expert info and packet data, and link without an error against later
//! versions whose structures differ. With one method for all versions, the method used for 4.4 and
//! 4.6 is the one tested on 4.0. epan-sys is kept for linking, and a test compares its layouts with
//! ours.

use std::path::PathBuf;
use std::process::exit;
use std::{env, fs};

/// Minor versions of Wireshark that this source was tested with.
const KNOWN: [(u32, u32); 3] = include!("versions.rs");

/// Patterns for the functions to bind, grouped by prefix.
const FUNCTIONS: &[&str] = &[
    "add_(conversation|endpoint)_table_data",
    "call_dissector_only",
    "col_(add_str|append_str|get_text|get_writable|set_str)",
    "create_dissector_handle(_with_name_and_description)?",
    "dissector_(add_for_decode_as|add_uint|add_uint_range_with_preference|change_uint|delete_uint)",
    "dissector_(get_uint_handle|handle_get_protocol_index|is_uint_changed|reset_uint)",
    "dissector_(table_foreach|try_uint)",
    "dtbl_entry_get_handle",
    "expert_register_(field_array|protocol)",
    "find_(dissector|dissector_table|protocol_by_id|tap_id)",
    "get_data_source_tvb",
    "have_tap_listener",
    "p_(add|get)_proto_data",
    "prefs_(find_module|find_preference|get_range_value|get_uint_value(_real)?)",
    "prefs_register_(protocol|(bool|string|uint)_preference)",
    "proto_(get_id_by_filter_name|get_protocol_short_name|is_protocol_enabled)",
    "proto_item_(add_subtree|append_text|set_text)",
    "proto_register_(field_array|plugin|protocol|subtree_array)",
    "proto_registrar_get_(nth|id_byname)",
    "proto_tree_add_(boolean|checksum|expert|expert_format|ipv4|ipv6|item)",
    "proto_tree_add_(string|time|uint|uint64)",
    "proto_tree_move_item",
    "register_(cleanup_routine|conversation_table|init_routine|postdissector)",
    "register_(shutdown_routine|tap)",
    "report_failure",
    "set_actual_length",
    "stats_tree_(create_node|manip_node_int|register_plugin)",
    "tap_queue_packet",
    "tvb_(captured_length|get_ds_tvb|get_ptr|new_subset_length_caplen)",
    "tvb_(raw_offset|reported_length)",
    "value_is_in_range",
    "wmem_(alloc|list_frame_data|list_frame_prev|list_tail)",
];

const TYPES: &[&str] = &[
    "address_type",
    "conv_filter_type_e",
    "conv_hash_t",
    "conversation_type",
    "ei_register_info",
    "expert_field",
    "field_display_e",
    "ft_framenum_type",
    "ftenum",
    "hf_register_info",
    "manip_node_mode",
    "packet_info",
    "proto_plugin",
    "proto_tree",
    "stat_node_datatype",
    "stats_tree",
    "tap_packet_status",
    "tvbuff_t",
    "value_string",
];

const CONSTANTS: &[&str] = &[
    "COL_INFO",
    "COL_PROTOCOL",
    "ENC_.*",
    "FI_GENERATED",
    "FI_HIDDEN",
    "PI_.*",
    "pref_current",
    "WIRESHARK_VERSION_.*",
    "WTAP_ENCAP_(ETHERNET|NULL|LOOP|RAW_IP|RAW_IP4|RAW_IP6|SLL|SLL2)",
    "WTAP_HAS_INTERFACE_ID",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=versions.rs");
    println!("cargo:rerun-if-changed=wireshark.h");
    // An undefined symbol would otherwise be detected only when Wireshark loads the plugin.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");

    let wireshark = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("wireshark")
        .unwrap_or_else(|e| {
            stop(&format!(
                "Wireshark's development files are not usable here.\n\
                 On Debian: apt-get install libwireshark-dev libwsutil-dev libwiretap-dev libglib2.0-dev\n\
                 (wireshark.pc needs glib's, which Debian's package does not require)\n\n{e}"
            ))
        });
    let mut numbers = wireshark.version.split('.').map(|n| n.parse::<u32>().ok());
    let version = (
        numbers.next().flatten().unwrap_or(0),
        numbers.next().flatten().unwrap_or(0),
    );
    let names = KNOWN.map(|(major, minor)| format!("{major}.{minor}"));
    if !KNOWN.contains(&version) {
        println!(
            "cargo:warning=the plugin is not tested with Wireshark {}, only with {}",
            wireshark.version,
            names.join(", ")
        );
    }
    println!("cargo:rustc-check-cfg=cfg(wireshark_4_0, has_gboolean, has_uint_value_real)");
    if version == (4, 0) {
        println!("cargo:rustc-cfg=wireshark_4_0");
    }

    let mut builder = bindgen::Builder::default()
        .header("wireshark.h")
        .clang_args(
            wireshark
                .include_paths
                .iter()
                .map(|path| format!("-I{}", path.display())),
        )
        .default_enum_style(bindgen::EnumVariation::Consts)
        // Only its address is passed on; in later versions it has a zero-length array, whose
        // accessors are unusable.
        .opaque_type("epan_range")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .derive_default(false)
        .merge_extern_blocks(true);
    for name in FUNCTIONS {
        builder = builder.allowlist_function(name);
    }
    for name in TYPES {
        builder = builder.allowlist_type(name);
    }
    for name in CONSTANTS {
        builder = builder.allowlist_var(name);
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("wireshark.rs");
    // bindgen panics if it finds no libclang; the panic message does not name the package.
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.generate()));
    match made {
        Ok(Ok(bindings)) => {
            let bindings = bindings.to_string();
            // Version differences are detected in the headers, so that an unknown version may work
            // as well.
            let signature = |name: &str| {
                let (_, rest) = bindings.split_once(&format!("fn {name}("))?;
                Some(rest.split_once(';')?.0)
            };
            if signature("prefs_register_bool_preference").is_some_and(|s| s.contains("gboolean")) {
                println!("cargo:rustc-cfg=has_gboolean");
            }
            if signature("prefs_get_uint_value_real").is_some() {
                println!("cargo:rustc-cfg=has_uint_value_real");
            }
            fs::write(&out, bindings)
                .unwrap_or_else(|e| stop(&format!("cannot write {}: {e}", out.display())));
        }
        Ok(Err(e)) => stop(&format!("cannot read Wireshark's headers: {e}")),
        Err(_) => stop(
            "bindgen needs libclang.\nOn Debian: apt-get install libclang-dev\n\
             (or set LIBCLANG_PATH to the folder with libclang.so)",
        ),
    }
}

fn stop(message: &str) -> ! {
    eprintln!("\n{message}\n");
    exit(1)
}
