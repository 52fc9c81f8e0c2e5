//! Refusals of edits, with advice in the options of this command line.

use trueline_geom::table::{Advice, Property, Refusal};

/// The reason of a refusal, with its advice if there is any.
pub(crate) fn text(refusal: &Refusal) -> String {
    refusal.worded(&advice(&refusal.advice))
}

fn advice(advice: &Advice) -> String {
    match advice {
        Advice::Words(text) => text.clone(),
        Advice::LeaveOut(Property::Index) => "leave out -i".into(),
        Advice::LeaveOut(Property::Label) => "leave out -l".into(),
        Advice::LeaveOut(Property::Entries) => {
            "leave out -n: a chain has no size of its own".into()
        }
        Advice::LeaveOut(Property::ProviderName) => "leave out -h".into(),
        Advice::DeleteOrChooseIndex => "delete it first, or leave out -i".into(),
        Advice::NameIndex => "say which with -i".into(),
        Advice::Recover => "recover it first: part recover".into(),
        Advice::Align => "put it on the grain first: trueline move --align".into(),
        Advice::AddExtended => "add one to an MBR: part add -t ebr".into(),
        Advice::Type(near) => {
            let some = match near.as_slice() {
                [] => String::new(),
                near => format!("there are {}; ", near.join(", ")),
            };
            format!(
                "{some}trueline part add --help lists the names; any other is a number or GUID after a !"
            )
        }
        Advice::ShowSectors(size) => format!(
            "if the disk has such sectors, say --logical {size}; else change the numbers and the sector-size line"
        ),
        Advice::ReplaceTable => {
            "--replace puts the layout in its place, and what is in these partitions is lost".into()
        }
        Advice::ReplaceContents => {
            "--replace writes the layout over it, and what is in it is lost".into()
        }
        Advice::AddOrDeleteOthers => "add them to it, or delete them with --delete-others".into(),
    }
}
