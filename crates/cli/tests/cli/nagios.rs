//! `check --nagios`: the line and the exit status, as the Monitoring Plugins guidelines have them.

use crate::{Ran, golden, lay_golden, run, run_with, scratch, zeroes};
use std::fs;

/// The text of the only line of stdout, and its performance data, if there are any.
#[track_caller]
fn line(ran: &Ran) -> (&str, Option<&str>) {
    let line = ran.stdout.strip_suffix('\n').expect("a line");
    assert!(!line.contains(char::is_control), "{line:?}");
    line.split_once(" | ").map_or((line, None), |(text, data)| (text, Some(data)))
}

/// That every datum is `label=value;warn;crit;min`, as the guidelines have it.
#[track_caller]
fn is_performance_data(data: &str) {
    for datum in data.split(' ') {
        let (label, values) = datum.split_once('=').expect("a label and a value");
        assert!(label.bytes().all(|b| b.is_ascii_lowercase()), "{datum}");
        let values: Vec<&str> = values.split(';').collect();
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        assert!(values.len() == 4 && values.iter().all(|value| is_number(value)), "{datum}");
        assert!(!values[0].is_empty(), "{datum}");
    }
}

#[test]
fn states_have_their_words_and_statuses() {
    let scratch = scratch();
    for (golden, name) in
        [("gpt-sfdisk", "good"), ("gpt-backup-gone", "worn"), ("seed-001-sdd-63", "disk")]
    {
        let laid = lay_golden(golden, scratch.path());
        fs::rename(scratch.path().join(&laid[0]), scratch.path().join(name)).unwrap();
    }
    zeroes(scratch.path(), "blank", 1 << 20);
    for (arguments, status, says) in [
        ("good", 0, "OK - good aligned"),
        ("good blank", 0, "OK - 2 targets: 1 unknown, 1 aligned"),
        ("--strict good blank", 3, "UNKNOWN - 2 targets"),
        ("worn", 1, "WARNING - worn aligned; 1 warning"),
        ("--fail-on error worn", 0, "OK - worn aligned; 1 warning"),
        ("--fail-on never disk", 0, "OK - disk misaligned; 1 error"),
        ("disk", 2, "CRITICAL - disk misaligned; 1 error; TL0001 on s1, 4.0 x the operations"),
        (
            "good disk",
            2,
            "CRITICAL - 2 targets: 1 misaligned, 1 aligned; 1 error; TL0001 on disk#s1",
        ),
        // What was found counts before what could not be read.
        ("missing disk", 2, "CRITICAL - disk misaligned; 1 error; TL0001 on s1"),
        ("missing good", 3, "UNKNOWN - good aligned; 1 not read: open missing: no such file"),
        ("missing", 3, "UNKNOWN - 1 not read: open missing: no such file"),
    ] {
        let ran = run(scratch.path(), &format!("check --nagios {arguments}"));
        assert_eq!(ran.code, Some(status), "{arguments}: {}{}", ran.stdout, ran.stderr);
        let (text, data) = line(&ran);
        assert!(text.starts_with(says), "{arguments}: {text}");
        is_performance_data(data.expect("performance data"));
    }
    let page = run(scratch.path(), "check --nagios --html page.html disk");
    assert!(page.code == Some(2) && scratch.path().join("page.html").exists());
}

#[test]
fn what_cannot_be_done_is_unknown() {
    let scratch = golden("gpt-sfdisk");
    for (arguments, says) in [
        ("check --nagios --nonsense disk", "UNKNOWN - unexpected argument '--nonsense'"),
        ("check --nagios --json disk", "UNKNOWN - the argument '--nagios' cannot be used with"),
        ("check --nagios=1 disk", "UNKNOWN - unexpected value"),
        ("check --nagios -n disk", "UNKNOWN - the argument '--nagios' cannot be used with"),
        ("check --nagios --drive wd10ears disk", "UNKNOWN - "),
        ("check --nagios --together --from list disk", "UNKNOWN - "),
    ] {
        let ran = run(scratch.path(), arguments);
        assert_eq!((ran.code, line(&ran).1), (Some(3), None), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.starts_with(says), "{}", ran.stdout);
    }
    // Of two shares of one target one has none, and that is no OK.
    let shares = ["0/2", "1/2"].map(|share| {
        let ran = run(scratch.path(), &format!("check --nagios --shard {share} disk"));
        (ran.code, line(&ran).0.to_owned())
    });
    assert!(shares.contains(&(Some(3), "UNKNOWN - no target".into())), "{shares:?}");
    assert!(shares.iter().any(|share| share.0 == Some(0)), "{shares:?}");
    // A bar in a name does not end the text.
    zeroes(scratch.path(), "a|b", 1 << 20);
    let ran = run_with(scratch.path(), &["check", "--nagios", "a|b"]);
    assert!(line(ran.ended(0)).0.starts_with("OK - a\\u{7c}b unknown"), "{}", ran.stdout);
}
