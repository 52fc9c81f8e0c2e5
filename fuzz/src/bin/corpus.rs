//! Golden disks to fuzz inputs, and back.
//!
//! `corpus build DIR FILE.hex...` writes what the targets start from, these and the built-in
//! hostile disks, under DIR/taste, DIR/parser, DIR/hexdump and DIR/edit; a text of every kind under
//! DIR/texts and DIR/newfs; a volume group under DIR/volumes; sets of md under DIR/members; volumes
//! of LUKS under DIR/unlock; images under DIR/qcow2; a Btrfs under DIR/free; and the models under
//! DIR/model. `corpus show taste|parser|edit FILE` prints the disks of one input as hexdump text:
//! what a crash leaves, as golden disks.

use std::path::Path;
use trueline_fuzz::cases;
use trueline_fuzz::hexdump::hexdump;
use trueline_fuzz::input::{SCRIPT, decode, encode};
use trueline_fuzz::invariants::{Subject, parser_holds, parsers};
use trueline_fuzz::texts::TEXTS;
use trueline_fuzz::{volume, volumes};
use trueline_geom::base::store::{Sparse, Store};
use trueline_sim::model::MODELS;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["build", into, ref files @ ..] => build(Path::new(into), files),
        ["show", target @ ("taste" | "parser" | "edit"), file] => show(target, file),
        _ => Err("usage: corpus build DIR FILE.hex... | corpus show taste|parser|edit FILE".into()),
    };
    if let Err(why) = done {
        eprintln!("corpus: {why}");
        std::process::exit(2);
    }
}

fn build(into: &Path, files: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    for target in
        ["taste", "parser", "hexdump", "edit", "texts", "volumes", "members", "newfs", "model"]
            .into_iter()
            .chain(["unlock", "qcow2", "free"])
    {
        std::fs::create_dir_all(into.join(target))?;
    }
    let tagged = volume::TEXT
        .replace(r#""sector_size":512"#, r#""sector_size":512,"integrity":{"type":"hmac(sha1)"}"#);
    let unlock = into.join("unlock");
    std::fs::write(unlock.join("luks1"), [&[1][..], &volume::header_1()].concat())?;
    std::fs::write(unlock.join("luks2"), [&[0][..], volume::TEXT.as_bytes()].concat())?;
    let tags = [&[0][..], tagged.as_bytes(), &[0], &volume::tags()].concat();
    std::fs::write(unlock.join("luks2-tags"), tags)?;
    // A set of four members of every version, level and layout, with nothing changed.
    for (version, level) in (0..3).flat_map(|version| (0..7).map(move |level| (version, level))) {
        for layout in [0, 2, 6] {
            let name = format!("{version}-{level}-{layout}");
            std::fs::write(into.join("members").join(name), [3, version, level, layout, 15])?;
        }
    }
    // A Btrfs with nothing changed, of either kind.
    std::fs::write(into.join("free").join("plain"), [0])?;
    std::fs::write(into.join("free").join("group-tree"), [1])?;
    // A plain image and one of everything, with twenty requests each.
    std::fs::write(into.join("qcow2").join("plain"), [1, 2, 4, 0, 20, 9])?;
    std::fs::write(into.join("qcow2").join("all"), [3, 3, 4, 3, 20, 7])?;
    let group = [volumes::TEXT.as_bytes(), &[0], &volumes::thin_pool()].concat();
    std::fs::write(into.join("volumes").join("every-kind"), group)?;
    for (nth, text) in TEXTS.iter().enumerate() {
        std::fs::write(into.join("texts").join(nth.to_string()), text)?;
        // A length of 64 MiB or so in 512-byte sectors.
        let numbers = [38, 0, 0, 0, 0, 0, 0, 0, 255, 0, 12, 0];
        std::fs::write(
            into.join("newfs").join(nth.to_string()),
            [&numbers, text.as_bytes()].concat(),
        )?;
    }
    for (name, text) in MODELS {
        // What is said of the numbers is only in the way of changing them.
        let numbers = text.split_once("\n[origin]").map_or(*text, |(front, _)| front);
        std::fs::write(into.join("model").join(name), text)?;
        std::fs::write(into.join("model").join(format!("{name}-numbers")), numbers)?;
    }
    for (name, disks) in cases::all() {
        if let Some(data) = encode(&disks[..disks.len().min(4)], 512) {
            std::fs::write(into.join("taste").join(name.replace(' ', "-")), data)?;
        }
    }
    for file in files {
        let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(file)?;
        let disks: Vec<Sparse> = Sparse::from_hexdumps(&text)
            .map_err(|why| format!("{file}: {why}"))?
            .into_iter()
            .map(|(_, disk)| disk)
            .collect();
        if let Some(data) = disks.first().and_then(luks) {
            std::fs::write(into.join("unlock").join(&*name), data)?;
        }
        std::fs::write(into.join("hexdump").join(&*name), &text)?;
        for sector in [512, 4096] {
            if let Some(data) = encode(&disks, sector) {
                std::fs::write(into.join("taste").join(format!("{name}-{sector}")), &data)?;
            } else {
                eprintln!("corpus: {file} is too long for an input: left out");
            }
            for (nth, disk) in disks.iter().enumerate() {
                let Some(data) = encode(std::slice::from_ref(disk), sector) else { continue };
                same(disk, &data).map_err(|why| format!("{file}: {why}"))?;
                for script in 0..3_u8 {
                    let script: Vec<u8> = (0..=255_u8)
                        .take(SCRIPT)
                        .map(|n| n.wrapping_mul(37 + 2 * script))
                        .collect();
                    let edited = [script, data.clone()].concat();
                    std::fs::write(
                        into.join("edit").join(format!("{name}-{nth}-{sector}-{}", edited[1])),
                        edited,
                    )?;
                }
                // A parser starts from the disks that it recognises.
                for which in 0..parsers() {
                    if parser_holds(which, &Subject::new(disk.clone(), sector)) {
                        let data = [&[u8::try_from(which)?], data.as_slice()].concat();
                        std::fs::write(
                            into.join("parser").join(format!("{name}-{nth}-{sector}-{which}")),
                            data,
                        )?;
                    }
                }
            }
        }
        let twice: Vec<Sparse> = disks.iter().chain(&disks).cloned().collect();
        if let Some(data) = encode(&twice, 512) {
            std::fs::write(into.join("taste").join(format!("{name}-twice")), data)?;
        }
    }
    Ok(())
}

/// A golden disk must not change on its way into an input, save for checksums that are wrong on
/// purpose.
fn same(disk: &Sparse, data: &[u8]) -> Result<(), String> {
    let [back] = &decode(data)[..] else { return Err("not one disk".into()) };
    let runs = |disk: &Sparse| disk.runs().map(|(at, bytes)| (at, bytes.len())).collect::<Vec<_>>();
    (back.disk.length() == disk.length() && runs(&back.disk) == runs(disk))
        .then_some(())
        .ok_or_else(|| "does not survive".into())
}

/// The input that is the LUKS volume of a whole disk, without its payload; `None` for another disk.
fn luks(disk: &Sparse) -> Option<Vec<u8>> {
    let mut head = vec![0; 16 << 10];
    disk.read_at(&mut head, 0).ok()?;
    match head.get(..8)? {
        b"LUKS\xba\xbe\0\x01" => Some([&[1], &head[..592]].concat()),
        b"LUKS\xba\xbe\0\x02" => Some([&[0], &head[4096..]].concat()),
        _ => None,
    }
}

fn show(target: &str, file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let data = std::fs::read(file)?;
    let before = match target {
        "parser" => 1,
        "edit" => SCRIPT,
        _ => 0,
    };
    let data = data.get(before..).unwrap_or_default();
    for (nth, subject) in decode(data).iter().enumerate() {
        println!(
            "# Disk {nth} of a fuzz input: sectors of {} bytes, unit {:?}.",
            subject.sector, subject.physical
        );
        print!("{}", hexdump(&subject.disk));
    }
    Ok(())
}
