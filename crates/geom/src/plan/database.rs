//! Databases that overwrite pages in files: MySQL (InnoDB), PostgreSQL, MongoDB (WiredTiger); and
//! RocksDB, which does not.
//!
//! # Cost of a page
//! A page lies wherever the file system put it: on its blocks, not on its own size. 16 KiB pages on
//! 4 KiB blocks cross a 16 KiB unit three times in four, so they cost 1.75 where an extent size
//! hint, larger blocks or records would make it 1.
//!
//! # Torn pages
//! InnoDB writes every page twice, PostgreSQL its whole image after a checkpoint, because a power
//! cut may leave half a page. The protection may be switched off only where that cannot happen: on
//! records that are never overwritten (ZFS), or on a device that writes a page as one
//! (`atomic_write_unit_max_bytes`), and then only if pages lie on their own size.
//!
//! # Sources
//! MySQL 8.4 manual: `innodb_page_size` (4096 to 65536, 16384 by default), `innodb_doublewrite`,
//! `innodb_log_write_ahead_size` (512 to the page, 8192 by default). PostgreSQL 17 manual:
//! `full_page_writes`, `--with-blocksize` (8 KiB by default, 1 to 32), initdb(1) `--wal-segsize`;
//! sections 28.1 and 28.6 (a file system such as ZFS that prevents partial page writes). WiredTiger
//! `WT_SESSION::create`: `allocation_size` (4 KiB by default), `internal_page_max` (4 KiB) and
//! `leaf_page_max` (32 KiB), multiples of it; MongoDB's
//! `storage.wiredTiger.collectionConfig.configString` and `indexConfig.configString`. RocksDB wiki,
//! "IO" (files are written once, from end to end).

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, describe, describe_unit, fact, power,
    powers, unit_size, written,
};
use crate::base::topology::{Topology, Why};

/// Default page of InnoDB, in bytes.
pub(super) const INNODB: u64 = 16384;
pub(super) const POSTGRES: u64 = 8192;
pub(super) const WIREDTIGER: u64 = 4096;

/// Database server that is planned for.
pub(super) enum Database {
    Mysql,
    Postgres,
    Mongodb,
    Rocksdb,
}

impl Layer for Database {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        match self {
            Database::Mysql => mysql(base, plan),
            Database::Postgres => postgres(base, plan),
            Database::Mongodb => mongodb(base, plan),
            Database::Rocksdb => rocksdb(base, plan),
        }
        base.clone()
    }
}

/// Granularity in bytes at which pages of that size begin.
pub(super) fn grid(base: &LayerBase, page: u64) -> u64 {
    base.files.as_ref().map_or(page, |f| f.grid).min(page)
}

/// The price of writing one page of `page` bytes.
pub(super) fn price(base: &LayerBase, page: u64) -> Price {
    Price::amplified(written(&base.topology, page, grid(base, page)))
}

/// The choice of a page, with every other size from the least to the most; `sizes` is (size, least,
/// most) in bytes.
fn page(
    layer: &'static str,
    parameter: &'static str,
    typed: &str,
    sizes: (u64, u64, u64),
    base: &LayerBase,
    why: &str,
) -> Choice {
    let (size, least, most) = sizes;
    let why = format!(
        "{why}; pages begin on any {} bytes; {}",
        grid(base, size),
        describe_unit(&base.topology)
    );
    let mut choice = Choice::new(layer, parameter, Value::Bytes(size), why)
        .typed(format!("{typed}{size}"))
        .costing(price(base, size));
    for other in powers(least, most).filter(|&other| other != size) {
        choice = choice.or(
            Value::Bytes(other),
            price(base, other),
            if other < size { "small rows, read singly" } else { "large rows, scans" },
        );
    }
    choice
}

/// Risk that a power cut leaves a page half written.
enum Torn {
    /// A torn page is possible, as far as is known.
    Yes,
    /// The device could write it as one, but the file system does not place it so; the reason in
    /// words.
    Placed(String),
    /// A torn page is impossible; the reason in words.
    No(String),
}

fn torn(base: &LayerBase, page: u64) -> Torn {
    let files = base.files.as_ref();
    if let Some(f) = files.filter(|f| f.whole_blocks && f.grid >= page) {
        return Torn::No(format!("{} never overwrites a record of {}", f.system, f.grid));
    }
    let atomic =
        fact(&base.topology, Why::Atomic).filter(|f| f.grain.size() >= page && f.grain.contains(0));
    match atomic {
        Some(f) if files.is_none_or(|files| files.grid >= page) => {
            Torn::No(format!("written as one: {}", describe(f)))
        }
        Some(f) => Torn::Placed(format!(
            "the device writes it as one ({}), but it does not lie on its own size",
            describe(f)
        )),
        None => Torn::Yes,
    }
}

/// Adds the choice of protection against torn pages: `on` writes each page `times` over; `sizes` is
/// (page in bytes, times).
fn guard(
    layer: &'static str,
    parameter: &'static str,
    set: &str,
    sizes: (u64, f64),
    base: &LayerBase,
    plan: &mut Plan,
) {
    let (page, times) = sizes;
    let one = price(base, page);
    let twice = Price { amplification: one.amplification * times, ..one.clone() };
    let choice = |value: &str, why: String, price: Price| {
        Choice::new(layer, parameter, Value::word(value), why)
            .typed(format!("{set}{value}"))
            .costing(price)
    };
    plan.choose(match torn(base, page) {
        Torn::No(why) => {
            let why = format!("half a page cannot be left: {why}");
            choice("off", why, one).or(
                Value::word("on"),
                twice,
                "if that is not to be relied on",
            )
        }
        Torn::Placed(why) => choice("on", why, twice).or(
            Value::word("off"),
            one,
            "once the files are placed on whole pages: an extent size hint, blocks or clusters of a page",
        ),
        Torn::Yes => {
            let why = format!("a power cut may leave half a page of {page} bytes");
            choice("on", why, twice).or(Value::word("off"), one, "only if losing data is allowed")
        }
    });
}

/// Adds a note with the option that makes a file system put pages on multiples of their own size.
pub(super) fn placement(base: &LayerBase, page: u64, plan: &mut Plan) {
    let Some(files) = base.files.as_ref().filter(|f| f.grid < page) else { return };
    let (now, then) =
        (written(&base.topology, page, files.grid), written(&base.topology, page, page));
    if then < now {
        let how = match files.system {
            "xfs" => {
                format!("xfs_io -c 'extsize {page}' {} before the files are made", base.arguments())
            }
            "ext4" => format!("-O bigalloc -C {page}"),
            _ => format!("blocks of {page}"),
        };
        plan.note(format!(
            "{}: pages of {page} bytes on blocks of {} cost {now:.2} bytes for one, on their own size {then:.2}: {how}",
            files.system, files.grid
        ));
    }
}

/// Adds a note about the price of a page on a set with parity.
fn parity(layer: &str, t: &Topology, page: u64, plan: &mut Plan) {
    if let Some(row) = fact(t, Why::FullStripe).map(|f| f.grain.size()).filter(|&row| row > page) {
        plan.note(format!(
            "{layer}: a page of {page} bytes is part of a row of {row}: old data and parity are read for every page; a mirror (md10) is not"
        ));
    }
}

fn mysql(base: &LayerBase, plan: &mut Plan) {
    plan.choose(page(
        "mysql",
        "page",
        "innodb_page_size=",
        (INNODB, 4096, 65536),
        base,
        "InnoDB's own; it can only be set for a new server",
    ));
    guard("mysql", "doublewrite", "innodb_doublewrite=", (INNODB, 2.0), base, plan);
    let log = unit_size(&base.topology).clamp(4096, INNODB);
    let why = format!(
        "log writes fill whole units, so none is read first: {}",
        describe_unit(&base.topology)
    );
    let ahead = Choice::new("mysql", "log write ahead", Value::Bytes(log), why)
        .typed(format!("innodb_log_write_ahead_size={log}"));
    plan.choose(ahead.costing(price(base, log)).or(
        Value::Bytes(512),
        price(base, 512),
        "smaller log, each write part of a unit",
    ));
    placement(base, INNODB, plan);
    parity("mysql", &base.topology, INNODB, plan);
    let directory = format!("{}/mysql", base.arguments());
    let settings = settings("mysql", plan);
    plan.run(format!("printf '%s\\n' '[mysqld]' datadir={directory} {settings} > {directory}.cnf"));
    plan.run(format!("install -d -o mysql {directory}"));
    plan.run(format!("mysqld --defaults-file={directory}.cnf --user=mysql --initialize"));
    plan.note(format!(
        "mysql: start the server with --defaults-file={directory}.cnf too; MariaDB's \
        last command is mariadb-install-db --defaults-file={directory}.cnf --user=mysql"
    ));
}

/// The settings of all choices of `layer` that go into a server's file, as words of a shell.
fn settings(layer: &str, plan: &Plan) -> String {
    let settings =
        plan.choices.iter().filter(|c| c.layer == layer).filter_map(|c| c.command.as_deref());
    settings.filter(|command| !command.starts_with("--")).collect::<Vec<_>>().join(" ")
}

fn postgres(base: &LayerBase, plan: &mut Plan) {
    let why = "BLCKSZ of the usual builds; another needs a build of its own";
    let choice = page("postgres", "page", "--with-blocksize=", (POSTGRES, 4096, 32768), base, why);
    // The option counts in KiB.
    plan.choose(choice.typed(format!("--with-blocksize={}", POSTGRES / 1024)));
    guard("postgres", "full_page_writes", "full_page_writes=", (POSTGRES, 2.0), base, plan);
    let wal = Choice::new(
        "postgres",
        "wal block",
        Value::Bytes(POSTGRES),
        format!("as built; a commit writes whole ones; {}", describe_unit(&base.topology)),
    );
    plan.choose(wal.typed("--with-wal-blocksize=8").costing(price(base, POSTGRES)));
    let segment = Choice::new(
        "postgres",
        "wal segment",
        Value::Bytes(16 << 20),
        "initdb's own; whole units of everything",
    )
    .typed("--wal-segsize=16");
    plan.choose(segment.or(
        Value::Bytes(64 << 20),
        Price::amplified(1.0),
        "fewer files under heavy writing",
    ));
    if base.files.as_ref().is_some_and(|f| f.whole_blocks) {
        let why = "a used segment written again saves nothing where blocks are never overwritten";
        plan.choose(
            Choice::new("postgres", "wal_recycle", Value::word("off"), why)
                .typed("wal_recycle=off"),
        );
        plan.choose(
            Choice::new("postgres", "wal_init_zero", Value::word("off"), why)
                .typed("wal_init_zero=off"),
        );
    }
    placement(base, POSTGRES, plan);
    parity("postgres", &base.topology, POSTGRES, plan);
    let directory = format!("{}/postgres", base.arguments());
    let settings = settings("postgres", plan);
    plan.run(format!("install -d -m 700 -o postgres {directory}"));
    plan.run(format!("su postgres -c 'initdb -D {directory} --wal-segsize=16 --data-checksums'"));
    plan.run(format!("printf '%s\\n' {settings} >> {directory}/postgresql.conf"));
}

fn mongodb(base: &LayerBase, plan: &mut Plan) {
    // A leaf page of 32 KiB is whole allocations.
    let size = power(unit_size(&base.topology), 32768).max(WIREDTIGER);
    let why = "WiredTiger writes whole ones, of the unit; every page is whole allocations";
    let choice =
        page("mongodb", "allocation size", "allocation_size=", (size, 4096, 32768), base, why);
    // A page of any kind is whole allocations. MongoDB's own are 4 KiB inside collections, 16 KiB
    // in indexes, 32 KiB at the leaves.
    let pages = |inner: u64, leaf: u64| {
        format!(
            "allocation_size={size},internal_page_max={},leaf_page_max={}",
            inner.max(size),
            leaf.max(size)
        )
    };
    let collection = format!("--wiredTigerCollectionConfigString {}", pages(4096, 32768));
    let index = format!("--wiredTigerIndexConfigString {}", pages(16384, 16384));
    plan.choose(choice.typed(format!("{collection} {index}")));
    placement(base, size, plan);
    let directory = format!("{}/mongodb", base.arguments());
    plan.run(format!("install -d -o mongodb {directory}"));
    plan.run(format!(
        "su -s /bin/sh mongodb -c 'mongod --dbpath {directory} {collection} {index}'"
    ));
}

fn rocksdb(base: &LayerBase, plan: &mut Plan) {
    let buffer = unit_size(&base.topology).max(1 << 20);
    let why = format!(
        "tables are written once, from end to end, in buffers of it: whole units; {}",
        describe_unit(&base.topology)
    );
    let choice = Choice::new("rocksdb", "write buffer of a file", Value::Bytes(buffer), why);
    plan.choose(
        choice
            .typed(format!("writable_file_max_buffer_size={buffer}"))
            .costing(Price::amplified(written(&base.topology, buffer, buffer))),
    );
    let why = "with the page cache out of the way the buffer is what the device sees";
    plan.choose(
        Choice::new("rocksdb", "direct writes", Value::word("true"), why)
            .typed("use_direct_io_for_flush_and_compaction=true"),
    );
    let why = "blocks are only read; compressed they end anywhere, so none is aligned unless \
        block_align is set and compression is not";
    let block = Choice::new("rocksdb", "block", Value::Bytes(16384), why).typed("block_size=16384");
    plan.choose(block.or(
        Value::Bytes(4096),
        Price::amplified(1.0),
        "RocksDB's own: more index in memory",
    ));
    let log = unit_size(&base.topology).max(512);
    if log > 4096 {
        plan.note(format!(
            "rocksdb: a synced log write below {log} bytes is part of a unit: group commits, or keep wal_dir on a device of smaller units"
        ));
    }
}
