use super::*;

fn server(keys: &str) -> Result<InnoDb, Error> {
    InnoDb::new(toml::from_str(keys).expect("keys"))
}

fn plan(server: &mut InnoDb, asked: Ask) -> Vec<Ask> {
    let mut steps = Steps::default();
    server.plan(asked, &mut steps).expect("a plan");
    steps.asks().collect()
}

#[test]
fn a_page_is_written_twice_and_once_for_many_transactions() {
    let mut server = server("").expect("a server");
    let (buffer, write) = (96 << 20, |offset, length| ask(Op::Write, offset, length));
    let (system, table) = (buffer + 128 * PAGE, buffer + 384 * PAGE);
    let first = plan(&mut server, write(PAGE - 1, 2));
    let read = |page| ask(Op::Read, table + page * PAGE, PAGE);
    assert_eq!(first, [read(0), read(1), write(HEADER, 4096), FLUSH]);
    assert_eq!(plan(&mut server, write(0, 512)), [write(HEADER, 4096), FLUSH]);
    assert_eq!(plan(&mut server, ask(Op::Read, 0, PAGE)), []);
    let found = plan(&mut server, FLUSH);
    // Two pages of the table, and two of each transaction's rollback segment, as they changed.
    let pages = [system, table, table + PAGE, system + PAGE, system + 2 * PAGE, system + 3 * PAGE];
    assert_eq!(found[..2], [write(buffer, 6 * PAGE), write(HEADER, 4096)]);
    assert_eq!(found[4..10], pages.map(|at| write(at, PAGE)));
    let end = [write(8192, 4096), FLUSH, FLUSH, FLUSH, write(HEADER, 4096), FLUSH];
    assert_eq!(found[10..16], end);
    assert_eq!(found[16..], [write(4096, 4096), FLUSH]);
    assert_eq!(plan(&mut server, FLUSH), []);
    assert_eq!(server.length(table + 3 * PAGE - 1), 2 * PAGE);
}

#[test]
fn a_write_of_the_log_goes_on_behind_its_header() {
    let mut server = server("log = 4194304\nlsn = 4194300\nredo = 5000").expect("a server");
    let found = plan(&mut server, ask(Op::Write, 0, 1));
    let writes = [(4_194_304 - 4096, 4096), (HEADER, 8192)];
    assert_eq!(found[1..3], writes.map(|(offset, length)| ask(Op::Write, offset, length)));
}

#[test]
fn a_server_that_cannot_be_is_refused() {
    for (keys, why) in [
        ("block = 8192", "from 512 to 4096"),
        ("log = 1048576", "from 4 MiB"),
        ("lsn = 0", "lsn = 0"),
        ("redo = 2000000", "1 MiB a row"),
    ] {
        let refused = server(keys).err().map(|e| e.message).expect(keys);
        assert!(refused.contains(why), "{keys}: {refused}");
    }
    assert!(server("").expect("a server").attach(0, 16384).is_err());
}
