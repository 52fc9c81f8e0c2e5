//! The two directories that a file system is made with, and their inodes.

use super::geometry::{DEV_BSIZE, Geometry, up};
use super::options::{Flavour, Options};
use super::superblock::{CK_INODE, check_hash, hashes, word};
use crate::base::ondisk::on_disk;
use zerocopy::{FromZeros, I64, IntoBytes, LE, U16, U32, U64};

/// Inode of the root directory; 0 is none, 1 once held bad blocks.
pub(super) const ROOTINO: u64 = 2;
/// Bytes of a directory block.
const DIRBLKSIZ: u16 = 512;
/// A file's kind in its mode, and in a directory.
const IFDIR: u16 = 0o040_000;
const DT_DIR: u8 = 4;

on_disk! {
    /// On-disk inode, `struct ufs2_dinode`.
    #[derive(IntoBytes)]
    pub(super) struct Dinode of 256 bytes {
          0 => di_mode: U16<LE>,
          2 => di_nlink: U16<LE>,
          4 => di_uid: U32<LE>,
          8 => di_gid: U32<LE>,
         12 => di_blksize: U32<LE>,
         16 => di_size: U64<LE>,
         24 => di_blocks: U64<LE>,
         32 => di_atime: I64<LE>,
         40 => di_mtime: I64<LE>,
         48 => di_ctime: I64<LE>,
         56 => di_birthtime: I64<LE>,
         64 => di_nsec: [U32<LE>; 4],
         80 => pub(super) di_gen: U32<LE>,
         84 => di_kernflags: U32<LE>,
         88 => di_flags: U32<LE>,
         92 => di_extsize: U32<LE>,
         96 => di_extb: [U64<LE>; 2],
        112 => di_db: [U64<LE>; 12],
        208 => di_ib: [U64<LE>; 3],
        232 => di_modrev: U64<LE>,
        240 => di_dirdepth: U32<LE>,
        244 => di_ckhash: U32<LE>,
        248 => di_spare: [U32<LE>; 2],
    }
}

/// Directory `n` of the file system: 0 is the root, 1 is `.snap`.
pub(super) struct Directory<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) options: &'a Options,
    pub(super) n: u64,
}

impl Directory<'_> {
    /// First fragment of its own block.
    pub(super) fn fragment(&self) -> u64 {
        up(self.geometry.data(0), self.geometry.frag) + self.n * self.geometry.frag
    }

    pub(super) fn inode(&self, time: i64) -> Dinode {
        let (root, snap) = (self.n == 0, self.options.snap);
        let mut inode = Dinode::new_zeroed();
        inode.di_mode = U16::new(IFDIR | if root { 0o755 } else { 0o775 });
        inode.di_nlink = U16::new(if root && snap { 3 } else { 2 });
        inode.di_gid = U32::new(if root { 0 } else { self.options.operator_gid });
        inode.di_size = U64::new(u64::from(DIRBLKSIZ));
        inode.di_blocks = U64::new(self.geometry.fsize / DEV_BSIZE);
        for clock in
            [&mut inode.di_atime, &mut inode.di_mtime, &mut inode.di_ctime, &mut inode.di_birthtime]
        {
            *clock = I64::new(time);
        }
        inode.di_db[0] = U64::new(self.fragment());
        inode.di_dirdepth =
            U32::new(u32::from(!root && self.options.flavour == Flavour::FreeBsd14));
        if hashes(self.options) & CK_INODE != 0 {
            inode.di_ckhash = U32::new(check_hash(inode.as_bytes()));
        }
        inode
    }

    /// Fills `bytes` with its entries, in the first bytes of a fragment; the last one's room
    /// reaches to the end of the directory block.
    pub(super) fn entries(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let root = [(ROOTINO, "."), (ROOTINO, ".."), (ROOTINO + 1, ".snap")];
        let snap = [(ROOTINO + 1, "."), (ROOTINO, "..")];
        let entries: &[(u64, &str)] = match (self.n, self.options.snap) {
            (0, true) => &root,
            (0, false) => &root[..2],
            _ => &snap,
        };
        let mut at: u16 = 0;
        for (i, (inode, name)) in entries.iter().enumerate() {
            let letters = u8::try_from(name.len()).unwrap_or(u8::MAX);
            // Eight bytes, then the name and a NUL in whole words.
            let own = 8 + 4 * (u16::from(letters) / 4 + 1);
            let room = if i + 1 == entries.len() { DIRBLKSIZ - at } else { own };
            let entry = &mut bytes[usize::from(at)..];
            entry[..4].copy_from_slice(word(*inode).as_bytes());
            entry[4..6].copy_from_slice(&room.to_le_bytes());
            entry[6..8].copy_from_slice(&[DT_DIR, letters]);
            entry[8..8 + name.len()].copy_from_slice(name.as_bytes());
            at += room;
        }
    }
}
