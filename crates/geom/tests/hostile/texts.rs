//! Whatever a person types or pipes: nothing panics, and what is made of a text says the same when
//! it is written as text again.

use trueline_geom::audit::profile;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::size;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::layout::sfdisk::{Script, dump};
use trueline_geom::layout::{self, Layout, May, Planned, backup, in_order};
use trueline_geom::mapping::route::Route;
use trueline_geom::newfs::{Newfs, Options};
use trueline_geom::plan::{self, Plan, Use};
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry;
use trueline_geom::table::scheme::{New, TableSite};
use trueline_geom::table::{Request, Rules, Table, Wanted, types};

const SECTOR: u64 = 512;
const LENGTH: u64 = 64 << 30;

/// Texts of every kind that is read, from which mutants are made.
pub const TEXTS: [&str; 12] = [
    "GPT 128\n1 freebsd-boot 40 1024 boot [bootme]\n2 freebsd-ufs 2048 400000 my root [x]\n",
    "MBR 4\n1 freebsd 63 1000 [active]\n2 !165 2048 4s\n3 ebr 1m 1g\n",
    "BSD 8\n1 freebsd-ufs 16 1024\n2 freebsd-swap 0x800 90k\n",
    "label: gpt\nlabel-id: B7646D81-3083-9342-B9D4-61396E225554\nunit: sectors\nfirst-lba: 2048\n\
        last-lba: 131038\ntable-length: 9\nsector-size: 512\n\na1 : start=2048, size=2048, type=U, \
        name=\"e\\x22sp\", attrs=\"RequiredPartition GUID:60,63\"\n",
    "label: dos\nlabel-id: 0x12345678\ngrain: 4096\n\n,10MiB,S,*\n2048 +1G Ex\n,1M\n,,L\n;;;\n",
    "disk1 : start=63, size=1000, type=5\ndisk5 : start=126, size=100, type=83\ndisk6 : start=400, size=10, Id=82, bootable\n",
    "md5x4:64k+luks+lvm+xfs+mysql",
    "raidz2x6+vm-images+ext4+postgres",
    "-UL data -b 64k -f 8192 -i 4m -m 8 -o space -s 200000 -r 8 -S 4096",
    "-a 7 -c 5000 -d 65536 -e 3 -g 1 -h 1 -k 0 --maxphys=131072 --flavour 14 -nEJltRN",
    "12.5%",
    "0x1fMiB",
];

/// Reads `text` as every kind of text there is.
pub fn texts_hold(text: &str) {
    let _ = size::bytes(text);
    backup_holds(text);
    script_holds(text);
    use_holds(text);
    newfs_holds(text);
}

fn on<T>(disk: &Sparse, look: impl FnOnce(&Probe<'_>, &TableSite<'_>) -> T) -> T {
    let (route, stores) =
        (Route::store(0, disk.length()), [Box::new(disk.clone()) as Box<dyn Store>]);
    let (budget, topology) = (Budget::new(Limits::default()), Topology::new(SECTOR, disk.length()));
    look(
        &Probe::new(&route, &stores, &budget, SECTOR, Some(0), None),
        &TableSite { topology: &topology, base: 0, kind: None },
    )
}

/// A message quotes what it is about, each byte spelt out at the worst, and not more.
fn line(text: &str, said: &str) {
    assert!(said.len() < 12 * text.len() + 1000, "{} bytes about {} bytes", said.len(), text.len());
}

fn backup_holds(text: &str) {
    let read = match backup::parse(text, SECTOR) {
        Ok(read) => read,
        Err(mistake) => return line(text, &mistake.to_string()),
    };
    assert!(read.partitions.len() <= 4096);
    let Some(scheme) = registry::scheme_named(&read.scheme) else { return };
    let mut table: Table = match on(&Sparse::new(LENGTH), |probe, ground| {
        scheme.create(
            probe,
            ground,
            &New { entries: read.entries, random: [7; 16], ..New::default() },
        )
    }) {
        Ok(table) => table,
        Err(refusal) => return line(text, &refusal.to_string()),
    };
    for partition in read.partitions.iter().take(64) {
        let Some(kind) = scheme.kind(&partition.kind) else { continue };
        let place =
            Request { start: Some(partition.start), size: Some(partition.size), align: None };
        let (index, label) = (Some(partition.index), partition.label.clone());
        let uuid = scheme.has_guids().then_some(Guid([3; 16]));
        let wanted = Wanted { kind, place, index, label, uuid, attributes: 0 };
        let _ = on(&Sparse::new(LENGTH), |_, ground| table.add(ground, wanted, Rules::Aligned));
    }
    let written = backup::write(&table);
    let again = backup::parse(&written, SECTOR).unwrap_or_else(|why| panic!("{why}: {written}"));
    assert_eq!(
        (again.scheme.as_str(), again.partitions.len()),
        (scheme.name(), table.entries.len()),
        "{written}"
    );
    for (line, entry) in again.partitions.iter().zip(&table.entries) {
        // gpart has one name for the types 5 and 15.
        let kind = scheme.kind(&line.kind).map(types::gpart_name);
        assert_eq!(
            (line.index, line.start, line.size),
            (entry.partition.index, entry.partition.start, entry.partition.length)
        );
        assert_eq!(kind, Some(types::gpart_name(entry.partition.kind)));
    }
}

/// The tables of a layout on a disk, each time with the same identities.
fn planned(layout: &Layout, disk: &Sparse) -> Result<Planned, layout::Refused> {
    on(disk, |probe, ground| {
        layout::plan(layout, probe, ground, LENGTH, May::default(), &mut || [9; 16])
    })
}

fn script_holds(text: &str) {
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(mistake) => return line(text, &mistake.to_string()),
    };
    // A table of thousands of entries is only slow.
    if text.lines().count() > 64 {
        return;
    }
    let layout = match script.layout(SECTOR, LENGTH) {
        Ok(layout) => layout,
        Err(refusal) => return line(text, &refusal.to_string()),
    };
    let mut disk = Sparse::new(LENGTH);
    let Ok(Planned { steps, stages }) = planned(&layout, &disk) else { return };
    for patch in in_order(&stages) {
        assert!(patch.end() <= LENGTH, "{}", patch.what);
        disk.put(patch.offset, &patch.bytes);
    }
    let again = planned(&layout, &disk).unwrap_or_else(|why| panic!("a second time: {why:?}"));
    assert!(again.stages.is_empty(), "a second time: {:?}", again.steps[0].edits);
    let logicals = steps.get(1).map(|step| (&step.table, step.offset));
    let Some(written) = dump(&steps[0].table, logicals, "disk") else { return };
    let reread = Script::parse(&written).unwrap_or_else(|why| panic!("{why}: {written}"));
    let layout = reread.layout(SECTOR, LENGTH).unwrap_or_else(|why| panic!("{why}: {written}"));
    let same = planned(&layout, &disk).unwrap_or_else(|why| panic!("{why:?}: {written}"));
    assert!(same.stages.is_empty(), "{:?}: {written}", same.steps[0].edits);
}

fn use_holds(text: &str) {
    let wanted = match Use::parse(text) {
        Ok(wanted) => wanted,
        Err(why) => return line(text, &why.to_string()),
    };
    for length in [0, 1 << 20, LENGTH, u64::MAX] {
        let mut topology = Topology::new(SECTOR, length);
        topology.facts = profile::assumed();
        let plan = Plan::make(&wanted, plan::LayerBase::disk(topology, vec!["/dev/disk".into()]));
        assert!(plan.choices.len() <= 512 && plan.commands.len() <= 512 && plan.notes.len() <= 512);
        for choice in &plan.choices {
            assert!(choice.price.amplification.is_finite(), "{choice:?}");
        }
    }
}

fn newfs_holds(text: &str) {
    let words: Vec<String> = text.split_whitespace().take(64).map(String::from).collect();
    for sector in [512, 4096] {
        match Options::parse(&words, sector) {
            Ok(options) => {
                let _ = Newfs::new(LENGTH, sector, None, &options)
                    .map_err(|why| line(text, &why.to_string()));
            }
            Err(why) => line(text, &why.to_string()),
        }
    }
}
