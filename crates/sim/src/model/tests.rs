use super::*;

/// A built-in model with the line of `key` in another form.
fn with(name: &str, key: &str, value: &str) -> String {
    let line = |line: &str| {
        if line.starts_with(&format!("{key} =")) {
            format!("{key} = {value}")
        } else {
            line.to_owned()
        }
    };
    let text = Model::named(name).unwrap();
    let text = ["\n[range]", "\n[origin]"]
        .iter()
        .find_map(|table| text.split_once(table))
        .map_or(text, |(front, _)| front);
    let changed: Vec<String> = text.lines().map(line).collect();
    assert!(changed.iter().any(|line| *line == format!("{key} = {value}")), "{name} has no {key}");
    changed.join("\n")
}

#[test]
fn values_that_no_drive_has_are_refused_with_their_line() {
    for (name, key, value, reason) in [
        ("qlc-16k", "dies", "0", "dies = 0: from 1 to 4096"),
        ("qlc-16k", "dies", "5000", "from 1 to 4096"),
        ("qlc-16k", "channels", "0", "channels = 0: from 1"),
        ("qlc-16k", "planes", "0", "planes = 0: from 1"),
        ("qlc-16k", "queue_depth", "0", "queue_depth = 0: from 1 to 65536"),
        ("qlc-16k", "page_bytes", "2097152", "from logical_block_size = 512 to 1 MiB"),
        ("sd-4m", "page_bytes", "32768", "physical_block_size = 16384 at most"),
        ("qlc-16k", "page_bytes", "256", "a power of two from logical_block_size"),
        ("qlc-16k", "page_bytes", "3000", "a power of two"),
        ("qlc-16k", "read_ns", "-1", "read_ns = -1: from 0"),
        ("qlc-16k", "read_ns", "nan", "read_ns = NaN: from 0"),
        ("qlc-16k", "program_ns", "1e300", "which is a second"),
        ("qlc-16k", "command_ns", "inf", "command_ns = inf"),
        ("qlc-16k", "controller_ns", "2e9", "which is a second"),
        ("qlc-16k", "merge_ns", "-0.5", "merge_ns = -0.5"),
        ("qlc-16k", "link_rate_bytes", "0", "from 100000 to 2^44 bytes a second"),
        ("qlc-16k", "link_rate_bytes", "9223372036854775807", "from 100000 to 2^44"),
        ("qlc-16k", "channel_rate_bytes", "1", "from 100000"),
        ("qlc-16k", "buffer_bytes", "8192", "from one indirection unit, 16384"),
        ("qlc-16k", "cache_bytes", "9223372036854775807", "to 1 TiB"),
        ("qlc-16k", "spare_percent", "0.5", "0, no process, or from 1 to 400"),
        ("qlc-16k", "spare_percent", "nan", "from 1 to 400"),
        ("qlc-16k", "erase_block_bytes", "512", "from page_bytes to 1 GiB"),
        ("qlc-16k", "filled", "1.5", "filled = 1.5: from 0 to 1"),
        ("qlc-16k", "erase_ns", "-1", "erase_ns = -1: from 0"),
        ("qlc-16k", "physical_block_size", "8388608", "an indirection unit has 4 MiB at most"),
        ("qlc-16k", "size", "9223372036854775296", "at most 64 PiB"),
        ("qlc-16k", "size", "0", "at least one physical block"),
        ("qlc-16k", "name", "\"\"", "name: empty"),
        ("md", "name", "\" \"", "name: empty"),
        ("sd-4m", "open_units", "0", "both, or neither"),
        ("sd-4m", "copy_rate_bytes", "5", "copy_rate_bytes = 5: from 100000"),
        ("sd-4m", "unit_style", "\"circular\"", "unknown variant"),
        (
            "sd-4m",
            "allocation_unit_bytes",
            "8192",
            "a power of two from physical_block_size = 16384",
        ),
        ("sd-4m", "allocation_unit_bytes", "3000000", "a power of two"),
        ("md", "command_ns", "1e10", "which is a second"),
        ("md", "command_ns", "nan", "command_ns = NaN"),
        // What TOML or the type of the value refuses.
        ("qlc-16k", "dies", "-1", "invalid value"),
        ("qlc-16k", "dies", "\"many\"", "invalid type"),
        ("qlc-16k", "dies", "1.5", "invalid type"),
        ("qlc-16k", "dies", "{ a = 1 }", "invalid type"),
        ("qlc-16k", "read_ns", "[1, 2]", "invalid type"),
        ("qlc-16k", "link_rate_bytes", "1e300", "invalid type"),
        ("qlc-16k", "size", "99999999999999999999", ""),
        ("qlc-16k", "power_loss_protection", "1", "invalid type"),
    ] {
        let text = with(name, key, value);
        let refusal = Model::parse(&text).expect_err(&format!("{key} = {value}"));
        assert!(refusal.message.contains(reason), "{key} = {value}: {refusal}");
        let line =
            text.lines().position(|line| line.starts_with(&format!("{key} ="))).map(|at| at + 1);
        assert_eq!(refusal.line, line, "{key} = {value}: {refusal}");
    }
    for (line, reason) in [
        ("gc_factor = 0.5", "from 1, no garbage collection"),
        ("gc_factor = nan", "from 1"),
        ("gc_factor = 2.0\nspare_percent = 10.0", "a factor or a process, not both"),
        ("spare_percent = 10.0", "cards collect no garbage"),
    ] {
        let refusal = Model::parse(&format!("{}\n{line}", with("sd-4m", "planes", "1")));
        assert!(refusal.unwrap_err().message.contains(reason), "{line}");
    }
    for (key, reason) in [
        ("optimal_io_size", "1 TiB at most"),
        ("reported_physical_block_size", "a power of two from 512"),
    ] {
        let text = with("md", "size", "1073741824")
            .replace("[memory]", &format!("{key} = 18446744073709551615\n[memory]"));
        let refusal = Model::parse(&text).unwrap_err();
        assert!(refusal.message.contains(reason) && refusal.line.is_some(), "{refusal}");
    }
    let text = with("md", "command_ns", "1").replace("[memory]", "rate_bytes = 5\n[memory]");
    assert_eq!(Model::parse(&text).unwrap_err().line, Some(8), "a key in the wrong table");
    let ranges = [
        ("[5, 1]", "the least first"),
        ("[nan, 1]", "two numbers"),
        ("[0, inf]", "two numbers"),
        ("[1]", "two numbers, the least first, or words"),
        ("[\"a\"]", "two words and more"),
        ("[\"a\", \"b\", \"a\"]", "each once"),
        ("[\"a\", 1]", "or words"),
    ];
    for (range, reason) in ranges {
        let text = format!("{}\n[range]\ncommand_ns = {range}\n", with("md", "command_ns", "1"));
        let refusal = Model::parse(&text).unwrap_err();
        assert!(refusal.message.contains(reason), "{range}: {refusal}");
        assert_eq!(refusal.line, Some(text.lines().count()), "{range}: {refusal}");
    }
}

#[test]
fn a_key_that_is_given_twice_is_named() {
    let text = with("md", "command_ns", "1\ncommand_ns = 2");
    let refusal = Model::parse(&text).unwrap_err();
    assert_eq!(refusal.message, "duplicate key command_ns");
}

#[test]
fn ranges_and_origins_speak_of_keys_that_are_there() {
    let text = with("md", "command_ns", "1");
    let last = Some(text.lines().count() + 2);
    for (said, message) in [
        ("[range]\ncomand_ns = [1, 2]", "[range] comand_ns: the model has no such key"),
        ("[range]\nrpm = [1, 2]", "[range] rpm: the model has no such key"),
        (
            "[range]\ncommand_ns = [\"a\", \"b\"]",
            "[range] command_ns = [\"a\", \"b\"]: two numbers for a number, words for a word",
        ),
        (
            "[range]\nname = [1, 2]",
            "[range] name = [1, 2]: two numbers for a number, words for a word",
        ),
        ("[origin]\ncomand_ns = \"generic: x\"", "[origin] comand_ns: the model has no such key"),
    ] {
        let refusal = Model::parse(&format!("{text}\n{said}\n")).expect_err(said);
        assert_eq!((refusal.message.as_str(), refusal.line), (message, last), "{said}");
    }
    for left_out in
        ["[range]\nalignment_offset = [0, 512]", "[origin]\noptimal_io_size = \"generic: none\""]
    {
        assert!(Model::parse(&format!("{text}\n{left_out}\n")).is_ok(), "{left_out}");
    }
    // The table that comes first need not be the one that gives the value.
    let text =
        "[origin]\ncommand_ns = \"generic: x\"\n[memory]\ncommand_ns = -1.0\nrate_bytes = 0\n";
    let head = "name = \"m\"\ntitle = \"m\"\nsize = 4096\nlogical_block_size = \
        512\nphysical_block_size = 512\n";
    assert_eq!(Model::parse(&format!("{head}{text}")).unwrap_err().line, Some(9));
}

#[test]
fn what_is_no_number_is_said_in_words_and_in_its_table() {
    let text = Model::named("wd10ears").unwrap();
    let refused = |from: &str, to: &str| Model::parse(&text.replace(from, to)).unwrap_err();
    let said = refused("rpm = 5400.0", "rpm = \"fast\"");
    assert_eq!(said.message, "rpm: invalid type: string \"fast\", expected a number");
    let line =
        |beginning: &str| text.lines().position(|line| line.starts_with(beginning)).unwrap() + 1;
    assert_eq!(said.line, Some(line("rpm = 5400.0")));
    assert_eq!(
        refused("heads = 4", "heads = -4").message,
        "heads: invalid value: integer `-4`, expected a whole number below 2^32"
    );
    assert_eq!(
        refused("size = 1000204886016", "size = \"1t\"").message,
        "size: invalid type: string \"1t\", expected a whole number"
    );
    // The same key in another table, which an editor that replaces all changes too.
    let origin = refused("rpm = \"", "rpm = 0 # \"");
    assert_eq!(origin.message, "in [origin]: rpm: invalid type: integer `0`, expected a string");
    assert_eq!(origin.line, Some(line("rpm = \"")));
}

#[test]
fn any_hard_disk_may_have_zones_and_nothing_else() {
    let zoned = |name: &str, more: &[(&str, i64)]| {
        let set = [("zone_bytes", 1 << 28), ("conventional_zones", 2)];
        let set: Vec<(String, Value)> = set
            .iter()
            .chain(more)
            .map(|&(key, value)| (key.to_owned(), Value::Integer(value)))
            .collect();
        let model = Model::parse_with(Model::named(name).unwrap(), &set);
        model.map(|model| model.zones().is_some()).map_err(|refused| refused.message)
    };
    assert_eq!(zoned("wd10ears", &[]), Ok(true));
    for (name, more, why) in [
        ("smr-8tb", [].as_slice(), "not of shingled"),
        ("qlc-16k", &[], "hard disks alone"),
        ("wd10ears", &[("zone_bytes", 4095)], "whole physical blocks of 4096"),
        ("wd10ears", &[("zone_bytes", 4096)], "zones, 16777216 at most"),
        ("wd10ears", &[("zone_bytes", 0)], "zone_bytes says how large they are"),
        ("wd10ears", &[("alignment_offset", 3584)], "first physical block is at byte 0"),
    ] {
        assert!(zoned(name, more).is_err_and(|message| message.contains(why)), "{name} {why}");
    }
}
