//! Proofs on whole disks: the golden files under `tests/disks/`, and the outside oracles (the real
//! tools, the real kernel) on the disks their recipes make.

mod apply;
mod booted;
mod containers;
mod debian;
mod golden;
mod gpt;
mod guest;
mod kernel;
mod kernel_words;
mod killed;
mod known;
mod labels;
mod lay;
mod lsblk;
mod mbr;
mod moved;
mod oracle;
mod planned;
mod random;
mod recipe;
mod round;
mod sectors;
mod seeds;
mod sets;
#[path = "../../../../tests/skip.rs"]
mod skip;
mod thin_dump;
mod windows;
