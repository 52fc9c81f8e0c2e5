//! SQLite: its page, as large as the unit.
//!
//! # Sources
//! sqlite.org: PRAGMA `page_size` (512 to 65536, 4096 by default; a database that has tables takes
//! another at VACUUM), `journal_mode` (in WAL mode the page size is fixed); "Powersafe Overwrite":
//! a write is taken to change nothing beside it.

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, database, describe_unit, power, powers,
    unit_size, written,
};

/// Default page of SQLite, in bytes.
pub(super) const PAGE: u64 = 4096;
const MOST: u64 = 65536;

pub(super) struct Sqlite;

impl Layer for Sqlite {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let page = power(unit_size(t), MOST).max(PAGE);
        let price = |size| database::price(base, size);
        let why = format!(
            "at least the unit; pages begin on any {} bytes; {}",
            database::grid(base, page),
            describe_unit(t)
        );
        let mut choice = Choice::new("sqlite", "page", Value::Bytes(page), why)
            .typed(format!("page_size={page}"))
            .costing(price(page));
        for other in powers(PAGE, MOST).filter(|&other| other != page) {
            choice = choice.or(
                Value::Bytes(other),
                price(other),
                if other < page { "small rows, read singly" } else { "large rows, blobs" },
            );
        }
        plan.choose(choice);
        let wal = Choice::new(
            "sqlite",
            "journal",
            Value::word("wal"),
            "pages are appended to the log and written in place at a checkpoint",
        );
        let twice = |t| Price::amplified(2.0 * written(t, page, database::grid(base, page)));
        plan.choose(wal.typed("journal_mode=wal").costing(twice(t)).or(
            Value::word("delete"),
            twice(t),
            "SQLite's own: each old page goes to a journal first",
        ));
        database::placement(base, page, plan);
        let file = format!("{}/data.sqlite", base.arguments());
        plan.run(format!(
            "sqlite3 {file} 'PRAGMA page_size={page}; VACUUM; PRAGMA journal_mode=wal;'"
        ));
        base.clone()
    }
}
