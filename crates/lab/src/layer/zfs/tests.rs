use super::*;

const RECORD: u64 = 128 << 10;
const DEVICE: u64 = 1 << 30;

fn zfs(keys: Keys) -> Zfs {
    let mut layer = Zfs::new(keys).unwrap();
    layer.attach(DEVICE, 512).unwrap();
    layer
}

fn plan(layer: &mut Zfs, asked: Ask) -> Vec<Ask> {
    let mut steps = Steps::default();
    layer.plan(asked, &mut steps).unwrap();
    steps.asks().collect()
}

fn reads(layer: &mut Zfs, asked: Ask) -> usize {
    plan(layer, asked).iter().filter(|ask| ask.op == Op::Read).count()
}

#[test]
fn what_it_asks_lies_on_the_device_and_never_on_a_record_in_use() {
    let mut layer = zfs(Keys { size: Some(8 * RECORD), ..Keys::default() });
    for at in 0..600 {
        let asked = match at % 3 {
            0 => ask(Op::Write, at * 37 % 7 * RECORD + 512, RECORD),
            1 => ask(Op::Write, at * 13 % 8 * RECORD, 4096),
            _ => FLUSH,
        };
        for Ask { op, offset, length, .. } in plan(&mut layer, asked) {
            assert!(offset + length <= DEVICE && (op == Op::Flush) == (length == 0));
        }
        let places: HashSet<u64> = (0..8).filter_map(|own| layer.places.of(own)).collect();
        assert_eq!(places.len(), 8, "each has its own");
    }
    assert!(layer.end_group(&mut Steps::default()).is_ok());
}

#[test]
fn a_warm_object_is_not_read_and_a_small_cache_forgets() {
    let part = |record: u64| ask(Op::Write, record * RECORD, 512);
    let size = Some(4 * RECORD);
    let mut warm = zfs(Keys { size, warm: true, ..Keys::default() });
    assert_eq!(reads(&mut warm, part(1)), 0);
    let mut small = zfs(Keys { size, memory: RECORD, flush: FlushKind::Group, ..Keys::default() });
    // What is dirty is in memory whatever its size is; after its group the latest alone.
    assert_eq!([1, 2, 1].map(|own| reads(&mut small, part(own))), [1, 1, 0]);
    assert_eq!(plan(&mut small, FLUSH).len(), 2 + 1 + 4 + 1);
    assert_eq!([2, 1].map(|own| reads(&mut small, part(own))), [0, 1]);
}

#[test]
fn a_group_ends_when_enough_is_dirty() {
    let mut layer = zfs(Keys { group: 2 * RECORD, ..Keys::default() });
    let whole = |record: u64| ask(Op::Write, record * RECORD, RECORD);
    assert_eq!(plan(&mut layer, whole(0)), []);
    assert_eq!(plan(&mut layer, whole(0)), []);
    assert_eq!(plan(&mut layer, whole(9)).len(), 2 + 1 + 4 + 1);
    // What the log would have to hold counts as well.
    let many = (0..).find(|_| !plan(&mut layer, ask(Op::Write, 0, 512)).is_empty());
    assert_eq!(many, Some(4 * RECORD / (192 + 512)));
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let refused = |keys: Keys, sector| {
        let mut layer = Zfs::new(keys).map_err(|e| e.message)?;
        layer.attach(DEVICE, sector).map_err(|e| e.message)
    };
    let good = Keys::default();
    assert_eq!(refused(good, 4096), Ok(()));
    for (keys, sector, word) in [
        (Keys { record: 3000, ..good }, 512, "record = 3000"),
        (Keys { size: Some(5000), ..good }, 512, "size = 5000"),
        (Keys { memory: 4096, ..good }, 512, "memory = 4096"),
        (Keys { size: Some(DEVICE), ..good }, 512, "have room for"),
        (Keys { warm: true, memory: RECORD, ..good }, 512, "warm"),
        (good, 8192, "sectors beneath"),
    ] {
        let message = refused(keys, sector).unwrap_err();
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(zfs(good).length(DEVICE) % RECORD, 0);
    assert_eq!(zfs(good).length(1 << 20), 0);
}

#[test]
fn commits_on_a_small_device_end_groups_before_there_is_no_place() {
    let mut layer = Zfs::new(Keys::default()).unwrap();
    layer.attach(64 << 20, 512).unwrap();
    let records = layer.length(64 << 20) / (128 << 10);
    for nth in 0..3000 {
        let write = ask(Op::Write, nth * 7 % records * (128 << 10), 128 << 10);
        let planned = layer.plan(Ask { fua: true, ..write }, &mut Steps::default());
        assert_eq!(planned, Ok(()), "write {nth} of {records} records");
    }
}
