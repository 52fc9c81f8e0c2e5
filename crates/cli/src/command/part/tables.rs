//! Tables made by hand, for tests of the output of `part`.

use crate::render::gpart::{Called, Shown};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::mapping::slices::{Dialect, PartitionType};
use trueline_geom::probe::Probe;
use trueline_geom::table::scheme::{Attribute, New, Scheme, TableSite};
use trueline_geom::table::types::ALIASES;
use trueline_geom::table::{Entry, Refusal, Request, Rules, Table, Wanted};

pub(crate) const SECTOR: u64 = 512;
/// gpart's `freebsd` and `freebsd-boot` in a GPT.
const FREEBSD: &str = "516e7cb4-6ecf-11d6-8ff8-00022d09712b";

/// A scheme that knows names and nothing else.
pub(crate) struct Named(&'static str);

pub(crate) static GPT: Named = Named("GPT");
pub(crate) static BSD: Named = Named("BSD");

impl Scheme for Named {
    fn name(&self) -> &'static str {
        self.0
    }

    fn read(&self, _: &Probe<'_>) -> Option<Table> {
        None
    }

    fn create(&self, _: &Probe<'_>, _: &TableSite<'_>, _: &New) -> Result<Table, Refusal> {
        Err(Refusal::new("made by hand", ""))
    }

    fn suffix(&self, entry: &Entry) -> String {
        match entry.partition.kind {
            PartitionType::Gpt(guid) if guid.to_string() == FREEBSD => {
                format!("s{}", entry.partition.index)
            }
            PartitionType::Gpt(_) => format!("p{}", entry.partition.index),
            _ => char::from_digit(9 + entry.partition.index, 36).unwrap().into(),
        }
    }

    fn kind(&self, name: &str) -> Option<PartitionType> {
        let alias = ALIASES.iter().find(|a| a.name == name)?;
        if self.0 == "GPT" {
            alias.gpt?.parse().ok().map(PartitionType::Gpt)
        } else {
            alias.bsd.map(|b| PartitionType::Bsd(Dialect::FreeBsd, b))
        }
    }

    fn attributes(&self) -> &'static [Attribute] {
        const ON: Attribute =
            Attribute { name: "bootme", bit: 1 << 59, of_table: false, exclusive: false };
        const ONCE: Attribute = Attribute { name: "bootonce", bit: 1 << 58, ..ON };
        if self.0 == "GPT" { &[ON, ONCE] } else { &[] }
    }

    fn accept(&self, _: &Table, _: &Entry) -> Result<(), Refusal> {
        Ok(())
    }

    fn render(&self, _: &Table, _: &Table) -> Vec<Patch> {
        Vec::new()
    }

    fn erase(&self, _: &Table) -> Vec<Patch> {
        Vec::new()
    }
}

/// A provider with its table, as a command of `part` has it.
pub(crate) struct Bench {
    pub name: Called,
    pub topology: Topology,
    pub base: u64,
    pub scheme: &'static Named,
    pub table: Table,
}

impl Bench {
    /// A disk of `sectors` sectors with units of `unit` bytes, and a table from LBA `first` to
    /// `last`.
    pub(crate) fn disk(name: &str, sectors: u64, unit: u64, (first, last): (u64, u64)) -> Bench {
        let grain = Grain::new(unit, 0).unwrap();
        let fact = Fact { grain, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
        let topology = Topology::new(SECTOR, sectors * SECTOR).with(fact);
        Bench::new(name, topology, 0, &GPT, first, last)
    }

    /// A BSD label in partition `index` of this one.
    pub(crate) fn label(&self, index: u32) -> Bench {
        let entry = self.table.entry(index).unwrap();
        let topology = self.topology.shift(entry.partition.start, entry.partition.length);
        Bench::new(
            &self.shown().partition(entry),
            topology,
            entry.partition.start,
            &BSD,
            0,
            entry.partition.length / SECTOR - 1,
        )
    }

    fn new(
        name: &str,
        topology: Topology,
        base: u64,
        scheme: &'static Named,
        first: u64,
        last: u64,
    ) -> Bench {
        let table = Table {
            usable: first * SECTOR..(last + 1) * SECTOR,
            capacity: if scheme.0 == "GPT" { 128 } else { 8 },
            kept: if scheme.0 == "GPT" { Vec::new() } else { vec![3] },
            ..Table::new(scheme, SECTOR, topology.length)
        };
        Bench { name: Called::geom(name), topology, base, scheme, table }
    }

    pub(crate) fn shown(&self) -> Shown<'_> {
        Shown { name: &self.name, table: &self.table, scheme: self.scheme }
    }

    pub(crate) fn site(&self) -> TableSite<'_> {
        TableSite { topology: &self.topology, base: self.base, kind: None }
    }

    /// Adds a partition; returns its index.
    pub(crate) fn add(&mut self, kind: &str, place: Request, rules: Rules) -> u32 {
        let kind = self.scheme.kind(kind).unwrap();
        let wanted = Wanted { kind, place, index: None, label: None, uuid: None, attributes: 0 };
        let site = TableSite { topology: &self.topology, base: self.base, kind: None };
        self.table.add(&site, wanted, rules).unwrap()
    }
}
