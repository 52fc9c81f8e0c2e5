use super::*;

const TABLE: u64 = (80 << 20) + 2 * PAGE;

fn server(keys: &str) -> Result<PostgreSql, Error> {
    PostgreSql::new(toml::from_str(keys).expect("keys"))
}

fn plan(server: &mut PostgreSql, asked: Ask) -> Vec<Ask> {
    let mut steps = Steps::default();
    server.plan(asked, &mut steps).expect("a plan");
    steps.asks().collect()
}

#[test]
fn a_page_is_in_the_log_whole_once_and_written_at_the_checkpoint() {
    let mut server = server("").expect("a server");
    let write = |offset, length| ask(Op::Write, offset, length);
    let first = plan(&mut server, write(512, 512));
    assert_eq!(first, [ask(Op::Read, TABLE, PAGE), write(0, PAGE), FLUSH]);
    // 56 rows of 128 bytes and their line pointers, in a record of 65 bytes more; a commit of 34.
    let counts = server.wal_counts();
    assert_eq!((counts.records, counts.images), (2, 1));
    assert_eq!(counts.bytes, 65 + 24 + 56 * (128 + 4) + 34);
    // A page of 55 rows and two versions has less than a tenth free: it is pruned.
    assert_eq!(plan(&mut server, write(0, PAGE)), [write(0, PAGE), FLUSH]);
    assert_eq!(server.wal_counts().bytes, counts.bytes + 58 + 74 + 34);
    assert_eq!(plan(&mut server, ask(Op::Read, 0, PAGE)), []);
    // The read pruned the page too, and a page is written after its records.
    let (log, table) = (write(0, PAGE), write(TABLE, PAGE));
    let data = [write(80 << 20, PAGE), log, FLUSH, table, FLUSH, FLUSH];
    let end = [log, FLUSH, write(TABLE - PAGE, PAGE), FLUSH];
    assert_eq!(plan(&mut server, FLUSH), [&data[..], &end].concat());
    // Nothing is dirty; the next write has an image again, which the page of the log has no room
    // for.
    assert_eq!(plan(&mut server, FLUSH), end);
    assert_eq!(plan(&mut server, write(0, 1)), [write(0, 2 * PAGE), FLUSH]);
}

#[test]
fn a_read_prunes_what_a_part_of_two_pages_changed() {
    let mut server = server("").expect("a server");
    let both = plan(&mut server, ask(Op::Write, PAGE - 1, 2));
    let read = |page| ask(Op::Read, TABLE + page * PAGE, PAGE);
    assert_eq!(both[..2], [read(0), read(1)]);
    assert_eq!(plan(&mut server, FLUSH).len(), 9);
    assert_eq!(plan(&mut server, ask(Op::Read, PAGE, 1)), []);
    assert_eq!(server.wal_counts().images, 3);
    // The log up to its record, the page and a flush of its file; there was no commit.
    let checkpoint = plan(&mut server, FLUSH);
    assert_eq!(checkpoint.len(), 8);
    assert_eq!(checkpoint[2..4], [ask(Op::Write, TABLE + PAGE, PAGE), FLUSH]);
    assert_eq!(server.length(TABLE + 3 * PAGE - 1), 2 * PAGE);
}

#[test]
fn a_server_that_cannot_be_is_refused() {
    for (keys, why) in [
        ("fillfactor = 100", "no room"),
        ("fillfactor = 9", "10 to 100"),
        ("row = 0", "row = 0"),
        ("row = 4096", "has 1 rows"),
        ("before = 90", "a row has 97"),
        ("segment = 1000", "a power of two"),
        ("log = 1000000", "whole segments"),
        ("wal-buffers = 8192", "at least 4"),
        ("position = 3", "a multiple of 8"),
    ] {
        let refused = server(keys).err().map(|e| e.message).expect(keys);
        assert!(refused.contains(why), "{keys}: {refused}");
    }
    assert!(server("").expect("a server").attach(0, 16384).is_err());
}
