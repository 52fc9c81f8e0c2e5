//! The report of `trace`: causes of what misses with their evidence, and the fixes of `check` for
//! the same stack.

use crate::browser::Browser;
use crate::loops::{Loop, can, sh};
use crate::recipe::Scratch;
use crate::terminal::show;
use crate::tracing::{MIB, able, disk, job, number, traced};
use crate::{golden, list, run, run_with, scratch, zeroes};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Writes a recording of these requests, a microsecond apart: direction, first byte, bytes.
fn record(directory: &Path, requests: impl IntoIterator<Item = (char, u64, u64)>) {
    let mut text = String::from("trueline trace 1\n");
    for (nth, (direction, offset, length)) in requests.into_iter().enumerate() {
        text += &format!("{} {direction} {offset} {length}\n", nth * 1000);
    }
    fs::write(directory.join("requests"), text).expect("a file can be written");
}

/// The text and the document of the same recording.
fn replayed(scratch: &Scratch, options: &str, target: &str) -> (String, Value) {
    let line = format!("trace --replay requests {options} {target}");
    let text = run(scratch.path(), &line);
    let document = run(scratch.path(), &format!("{line} --json"));
    (text.ended(0).stdout.clone(), document.ended(0).json())
}

/// The text of the recording alone: `--json` has no histogram to choose.
fn replayed_text(scratch: &Scratch, options: &str) -> String {
    run(scratch.path(), &format!("trace --replay requests {options}")).ended(0).stdout.clone()
}

/// The only cause of that name.
#[track_caller]
fn cause<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut found = list(document, "causes").iter().filter(|cause| cause["cause"] == name);
    let own = found.next().unwrap_or_else(|| panic!("no {name}: {document:#}"));
    assert!(found.next().is_none(), "{document:#}");
    own
}

#[track_caller]
fn counted(cause: &Value) -> (bool, u64, u64) {
    (cause["known"] == true, number(cause, "/requests"), number(cause, "/of"))
}

#[test]
fn a_start_off_the_grain_has_the_fixes_of_check() {
    let scratch = disk();
    let own = |nth: u64| 63 * 512 + nth * 4096;
    record(scratch.path(), (0..20).map(|nth| ('W', own(nth), 4096)));
    let (text, document) = replayed(&scratch, "--unit 4k", "disk");
    let start = cause(&document, "start");
    assert_eq!(counted(start), (true, 20, 20));
    assert_eq!((&start["provider"], &start["blame"]), (&"s1".into(), &"s1".into()));
    let checked = run(scratch.path(), "check --json --physical 4096 disk").json();
    let found = list(&checked["targets"][0], "findings");
    let found = found.iter().find(|found| found["rule"] == "TL0001").expect("a finding");
    for key in ["fix", "commands"] {
        assert!(!list(found, key).is_empty(), "{found:#}");
        assert_eq!(start[key], found[key], "{key}");
    }
    // The commands stand on lines of their own, behind the line that says why.
    let lines: Vec<&str> = text.lines().collect();
    let why = lines.iter().position(|line| line.contains("because s1 begins 3584 bytes past"));
    let last = list(start, "commands").last().and_then(Value::as_str).expect("a command");
    assert_eq!(lines[why.expect("a reason") + 2].trim(), last, "{text}");
    assert_eq!(list(&document, "causes").len(), 1, "{document:#}");
    // On the grain there is none.
    record(scratch.path(), (0..20).map(|nth| ('W', MIB + nth * 4096, 4096)));
    let (text, document) = replayed(&scratch, "--unit 4k", "md:64m");
    assert_eq!((list(&document, "causes").len(), text.lines().count()), (0, 3), "{text}");
}

#[test]
fn chunks_that_are_no_whole_units_are_named_with_their_set() {
    let scratch = scratch();
    for name in ["a", "b"] {
        zeroes(scratch.path(), name, 64 * MIB);
    }
    run(scratch.path(), "stripe label -s 4096 data a b").ended(0);
    record(scratch.path(), (0..30).map(|nth| ('W', nth << 16, 32768)));
    let (text, document) = replayed(&scratch, "--unit 16k", "a,b#stripe/data");
    let chunk = cause(&document, "chunk");
    assert_eq!(counted(chunk), (true, 30, 30));
    assert_eq!(chunk["blame"], "stripe/data");
    let fix = "fix: make stripe/data anew with chunks of whole 16384 bytes (16 KiB)";
    assert!(text.contains(fix), "{text}");
    // Eight pieces of each request, on two disks.
    let sum =
        |line: &Vec<&str>| line[3..].iter().filter_map(|n| n.parse::<u64>().ok()).sum::<u64>();
    assert_eq!(histogram(&text)[1..].iter().map(sum).sum::<u64>(), 240, "{text}");
}

#[test]
fn blocks_smaller_than_the_unit_are_named_with_the_writes_that_are_of_them() {
    let scratch = golden("ext-ext2-1k");
    let blocks = (0..30).map(|nth| ('W', (5 * nth + 1) << 10, 1 << 10));
    let merged = (0..10).map(|nth| ('W', (20 * nth + 1) << 10, 5 << 10));
    // Two that no page cache of that file system sends.
    let direct = [('W', 512, 512), ('W', 2560, 512)];
    record(scratch.path(), blocks.chain(merged).chain(direct));
    let (text, document) = replayed(&scratch, "--unit 4k", "disk");
    let block = cause(&document, "block");
    assert_eq!(counted(block), (true, 40, 42));
    assert_eq!(block["rule"], "TL0004");
    let fixes = list(block, "fix").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    assert!(fixes.iter().any(|fix| fix.contains("mke2fs -b 4096")), "{fixes:?}");
    let says = "because: ext2 on disk writes a block of 1024 bytes: 40 of 42 such requests are \
        whole blocks of it";
    assert!(text.contains(says), "{text}");
    // The blocks have their cause: neither pages nor a client are suspected.
    assert_eq!(list(&document, "causes").len(), 1, "{document:#}");
    // Requests of which none is a block are not theirs.
    record(scratch.path(), (0..20).map(|nth| ('W', 4096 * nth + 512, 512)));
    let (_, document) = replayed(&scratch, "--unit 4k", "disk");
    assert!(list(&document, "causes").iter().all(|cause| cause["cause"] != "block"));
    assert_eq!(counted(cause(&document, "page")), (false, 20, 20));
}

#[test]
fn sectors_of_an_encrypted_volume_are_named_where_they_let_less_than_a_page_through() {
    for (disk, sector, found) in
        [("luks-luks2-512", 512, true), ("luks-luks2-4096", 4096, false), ("luks-luks1", 512, true)]
    {
        let scratch = golden(disk);
        let checked = run(scratch.path(), "check --json disk").json();
        let providers = list(&checked["targets"][0], "providers");
        let data = providers.iter().find(|p| p["class"] == "crypto_LUKS").expect("a data area");
        let start = number(data, "/start").next_multiple_of(4096);
        let small = [('W', start, 512), ('W', start + 8192, 4096)];
        record(scratch.path(), small);
        let (text, document) = replayed(&scratch, "--unit 4k", "disk");
        let causes = list(&document, "causes");
        assert_eq!(causes.iter().any(|c| c["cause"] == "sector"), found, "{disk}: {document:#}");
        if found {
            let own = cause(&document, "sector");
            assert_eq!(counted(own), (true, 1, 1), "{disk}");
            let fix = own["fix"][0].as_str().expect("a fix");
            assert!(fix.contains("cryptsetup reencrypt --sector-size 4096"), "{fix}");
            assert!(fix.contains("cannot be mounted then"), "{fix}");
            assert_eq!(fix.contains("convert --type luks2 first"), disk == "luks-luks1", "{fix}");
            assert!(text.contains(&format!("encrypted in sectors of {sector} bytes")), "{text}");
        }
    }
}

#[test]
fn suspicions_are_called_so_and_have_their_counts() {
    let scratch = scratch();
    let pages = (0..300).map(|nth| ('W', nth * 7 % 4000 * 8192, 8192));
    let odd = (0..20).map(|nth| ('W', nth * 16384 + 512, 16384));
    record(scratch.path(), pages.clone().chain(odd));
    let (text, document) = replayed(&scratch, "--unit 16k", "");
    let page = cause(&document, "page");
    assert_eq!(counted(page), (false, 300, 300));
    assert!(page["fix"][0].as_str().is_some_and(|fix| fix.contains("innodb_page_size=16384")));
    let client = cause(&document, "client");
    assert_eq!(counted(client), (false, 20, 20));
    let says = [
        "suspected: pages of 8 KiB, as of a database: 300 of 300 such writes",
        "20 of 20 begin at a multiple of 512 bytes and of no more, 20 of 20 are of 16 KiB",
    ];
    for says in says {
        assert!(text.contains(says), "{says}: {text}");
    }
    // Pages that begin anywhere are none.
    let anywhere = (0..300).map(|nth| ('W', nth * 7 % 4000 * 8192 + nth % 3 / 2 * 512, 8192));
    record(scratch.path(), anywhere);
    let (_, document) = replayed(&scratch, "--unit 16k", "");
    assert!(list(&document, "causes").iter().all(|c| c["cause"] != "page"), "{document:#}");
    // Pages that are read before they are written, and pages that are not.
    let rewritten = (0..40).flat_map(|nth| [('R', nth * 4096, 4096), ('W', nth * 4096, 4096)]);
    let only_read = (100..120).map(|nth| ('R', nth * 4096, 4096));
    record(scratch.path(), rewritten.chain(only_read.clone()));
    let (text, document) = replayed(&scratch, "--unit 4k", "");
    assert_eq!(counted(cause(&document, "rewrite")), (false, 40, 60));
    assert!(text.contains("disk: suspected: writes of parts of pages: 40 of 60 reads"), "{text}");
    record(scratch.path(), only_read);
    let (_, document) = replayed(&scratch, "--unit 4k", "");
    assert_eq!(list(&document, "causes").len(), 0, "{document:#}");
}

/// The table of sizes and alignments in a report: its lines, without what else is there.
fn histogram(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.contains("REQUESTS  "));
    lines
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn sizes_and_alignments_that_miss_are_a_table() {
    let scratch = scratch();
    let of = |count: u64, direction, offset, length| {
        (0..count).map(move |nth| (direction, offset + nth * MIB, length))
    };
    let requests = of(5, 'W', 4096, 8192).chain(of(7, 'W', 1024, 8192)).chain(of(3, 'W', 0, 512));
    let requests = requests.chain(of(11, 'R', 8192, 6144)).chain(of(13, 'R', 2048, 1024));
    record(scratch.path(), requests);
    let (text, document) = replayed(&scratch, "--unit 4k", "");
    let heading = ["REQUESTS", "SIZE", "AT", "1K", "AT", "2K", "AT", "4K+"];
    let at = |line: &[&'static str]| line.to_vec();
    // A column without requests is none; reads of less than a unit cost no more than others.
    let missing = [
        at(&["REQUESTS", "SIZE", "AT", "1K", "AT", "4K+"]),
        at(&["writes,", "misaligned", "8K", "7"]),
        at(&["writes,", "partial", "512", "3"]),
        at(&["reads,", "misaligned", "4K", "11"]),
    ];
    assert_eq!(histogram(&text), missing, "{text}");
    let text = replayed_text(&scratch, "--unit 4k --histogram");
    let all = [
        at(&heading),
        at(&["writes,", "misaligned", "8K", "7"]),
        at(&["writes,", "partial", "512", "3"]),
        at(&["writes,", "aligned", "8K", "5"]),
        at(&["reads,", "misaligned", "4K", "11"]),
        at(&["reads,", "partial", "1K", "13"]),
    ];
    assert_eq!(histogram(&text), all, "{text}");
    // Every piece of the document is in it.
    let buckets = list(&document["layers"][0], "histogram");
    let sum: u64 = buckets.iter().map(|bucket| number(bucket, "/count")).sum();
    assert_eq!(sum, 5 + 7 + 3 + 11 + 13);
    // Nothing misses, and nothing is shown.
    record(scratch.path(), of(5, 'W', 4096, 8192).chain(of(13, 'R', 2048, 1024)));
    let (text, _) = replayed(&scratch, "--unit 4k", "");
    assert_eq!(histogram(&text).len(), 0, "{text}");
    let refused = run(scratch.path(), "trace --replay requests --histogram --json");
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
}

#[test]
fn a_crowd_of_sizes_is_cut_to_the_most_and_fits_every_terminal() {
    let scratch = disk();
    let mut requests = Vec::new();
    for class in 0..12u64 {
        for at in 0..12u64 {
            let nth = class * 12 + at;
            for again in 0..=nth % 5 {
                requests.push(('W', (1 << 20) * (8 + again) + (512 << at), 512 << class));
                requests.push(('R', 512 << at, 512 << class));
            }
        }
    }
    let all: usize = requests.len();
    record(scratch.path(), requests);
    for options in ["--unit 1m", "--unit 1m --histogram", "--unit 4k --histogram", "--unit 16k"] {
        for width in [40, 60, 80, 100, 132] {
            let line = format!("trace --replay requests {options} disk");
            let shown = show(scratch.path(), width, &line.split(' ').collect::<Vec<_>>());
            assert_eq!(shown.code, Some(0), "{}", shown.text());
            let wider = shown.wider(width).into_iter();
            let wider = wider.filter(|line| !line.trim_start().starts_with("trueline move "));
            assert_eq!(wider.count(), 0, "{options} {width}: {}", shown.text());
        }
    }
    let (text, document) = replayed(&scratch, "--unit 16k", "disk");
    let table = histogram(&text);
    assert_eq!(table.len(), 1 + 12 + 1, "{text}");
    let sum = |table: &[Vec<&str>]| -> usize {
        let numbers = table.iter().flat_map(|line| &line[4..]);
        numbers.filter_map(|word| word.parse::<usize>().ok()).sum()
    };
    let left = table[13][1].parse::<usize>().expect("a number");
    // Of all layers, what is misaligned, and writes of less than a unit.
    let missing: u64 = list(&document, "layers")
        .iter()
        .map(|layer| {
            ["/writes/misaligned", "/writes/partial", "/reads/misaligned"]
                .map(|path| number(layer, path))
                .iter()
                .sum::<u64>()
        })
        .sum();
    assert_eq!((sum(&table[1..13]) + left) as u64, missing, "{text}");
    let whole = run(scratch.path(), "trace --replay requests --unit 16k --histogram disk");
    assert_eq!(sum(&histogram(&whole.stdout)[1..]), all, "{}", whole.stdout);
}

/// The page cache of a device reads a page of which a part is written; direct requests go as they
/// are, and their process is named.
#[test]
fn what_the_kernel_makes_of_writes_is_suspected_as_what_it_is() {
    if !able() {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 * MIB);
    let device = Loop::new(scratch.path(), "");
    // At every page its second sector.
    let buffered = format!(
        "fio --name=job --filename={} --direct=0 --ioengine=psync --rw=write:3584 --bs=512 \
            --offset=512 --size=1M --number_ios=64 --end_fsync=1 --output=/dev/null 2>/dev/null",
        device.0
    );
    let ran = traced(scratch.path(), &["--unit", "4096", "--json", &device.0, "--run", &buffered]);
    let document = ran.ended(0).json();
    let (known, rewritten, reads) = counted(cause(&document, "rewrite"));
    assert!(!known && rewritten >= 64 && reads >= rewritten, "{document:#}");
    // Others miss more, through a layer: a partition that begins at sector 63.
    drop(device);
    let scratch = disk();
    let device = Loop::new(scratch.path(), "");
    let direct = [
        job(&device.0, "randwrite", 8192, 512, 50),
        job(&device.0, "randwrite", 8192, 63 * 512, 90),
    ]
    .join(" && ");
    let ran = traced(scratch.path(), &["--unit", "4096", "--json", &device.0, "--run", &direct]);
    let document = ran.ended(0).json();
    let client = cause(&document, "client");
    let says = client["message"].as_str().expect("a sentence");
    assert!(says.starts_with("a program that opens the device itself (O_DIRECT)"), "{says}");
    assert!(says.contains("; fio (") && says.ends_with(") sent 50 of them"), "{says}");
    assert_eq!(counted(cause(&document, "start")), (true, 90, 140));
}

#[test]
fn a_partition_that_is_traced_has_the_fix_for_its_disk() {
    let makes = "command -v partx";
    if !able() || !can("partitions of loop devices", makes) {
        return;
    }
    let scratch = disk();
    let device = Loop::new(scratch.path(), "");
    sh("/", &format!("partx --add {}", device.0)).expect("the kernel takes the partition");
    let partition = format!("{}p1", device.0);
    let run = job(&partition, "randwrite", 4096, MIB, 30);
    let ran = traced(scratch.path(), &["--unit", "4096", "--json", &partition, "--run", &run]);
    let document = ran.ended(0).json();
    let start = cause(&document, "start");
    assert_eq!(counted(start), (true, 30, 30));
    let checked = run_with(scratch.path(), &["check", "--json", "--physical", "4096", &device.0]);
    let checked = checked.json();
    let found = list(&checked["targets"][0], "findings");
    let found = found.iter().find(|found| found["rule"] == "TL0001").expect("a finding");
    assert_eq!(start["fix"], found["fix"], "{document:#}");
    assert!(start["fix"].to_string().contains(&format!("{}#s1", device.0)), "{document:#}");
}

/// A page of a trace, with its document.
fn page(scratch: &Scratch, options: &str) -> (String, Value) {
    let line = format!("trace --replay requests {options} --html page.html --json disk");
    let document = run(scratch.path(), &line).ended(0).json();
    (fs::read_to_string(scratch.path().join("page.html")).expect("a page"), document)
}

#[test]
fn a_page_has_the_numbers_of_the_document() {
    let scratch = disk();
    let own = (0..30).map(|nth| ('W', 63 * 512 + nth * 4096, 4096));
    let on_grain = (0..10).map(|nth| ('W', MIB + nth * 4096, 4096));
    record(scratch.path(), own.chain(on_grain).chain([('R', 512 * 65, 512)]));
    let (page, document) = page(&scratch, "--unit 4k --drive wd10ears,512n");
    assert!(page.contains("✗ 30 of 41 requests miss the grain</span>: requests</h1>"), "{page}");
    for run in list(&document, "drives") {
        let row = format!(
            "<td>{}<td class=\"num\">{}<td",
            run["variant"].as_str().expect("a name"),
            run["requests"]
        );
        assert!(page.contains(&row), "{row}: {page}");
    }
    // Each bucket of the histogram is a cell.
    let names = |size: u64| match size {
        512 => "512".to_owned(),
        size if size == MIB => "1M+".to_owned(),
        size => format!("{}K", size >> 10),
    };
    for bucket in list(&document["layers"][0], "histogram") {
        let title = format!(
            "<title>{} at multiples of {}: {} {}</title>",
            names(number(bucket, "/size")),
            names(number(bucket, "/alignment")),
            bucket["count"],
            bucket["verdict"].as_str().expect("a verdict")
        );
        assert!(page.contains(&title), "{title}: {page}");
    }
    let command = list(cause(&document, "start"), "commands").last().and_then(Value::as_str);
    let command = command.expect("a command").replace('\'', "&#39;");
    assert!(page.contains(&format!("<code>{command}</code>")), "{command}: {page}");
    // A file that is no page stays, and is refused before there is a report.
    let refused = run(scratch.path(), "trace --replay requests --html disk disk");
    assert!(
        refused.refused().ends_with("no page or drawing: name a new file"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stdout, "");
    // A page that cannot be written does not take the report with it.
    let lost = run(scratch.path(), "trace --replay requests --html nowhere/page.html disk");
    assert!(lost.refused().contains("nowhere/page.html"), "{}", lost.stderr);
    assert!(lost.stdout.starts_with("traced requests: "), "{}", lost.stdout);
}

#[test]
fn a_browser_draws_the_page_as_wide_as_its_window_and_its_bars_as_their_shares() {
    let scratch = disk();
    let Some(mut browser) = Browser::start(scratch.path()) else { return };
    // Three of four writes at sector 63, on a drive that says nothing of itself.
    let own = (0..30).map(|nth| ('W', 63 * 512 + nth * 4096, 4096));
    let on_grain = (0..10).map(|nth| ('W', MIB + nth * 4096, 4096));
    record(scratch.path(), own.chain(on_grain));
    page(&scratch, "--unit 4k --drive wd10ears");
    let url = format!("file://{}", scratch.path().join("page.html").display());
    for width in [1100, 400] {
        browser.open(&url, width);
        let wide = browser.is("document.documentElement.scrollWidth - innerWidth");
        assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{width}: {wide}");
        // What is drawn of the verdicts are their shares.
        let width_of = |class: &str| {
            format!("document.querySelector('td.shares {class}').getBoundingClientRect().width")
        };
        let share = format!("{} / {}", width_of(".v-misaligned"), width_of("svg"));
        let share = browser.is(&share).as_f64().expect("a number");
        assert!((share - 0.75).abs() < 0.01, "{width}: {share}");
        let cells = browser.is("document.querySelectorAll('.heat g').length");
        assert!(cells.as_u64().is_some_and(|cells| cells > 1), "{cells}");
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    }
}
