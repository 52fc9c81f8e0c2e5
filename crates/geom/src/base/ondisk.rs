//! Shared parts of on-disk declarations: GUIDs, fixed text, and structures that show the offset of
//! each field.
//!
//! A declaration uses `zerocopy`'s byte-order integers, in the specification's own names. It stands
//! in `on_disk!`, so that a wrong offset does not compile.

use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A structure as it is on a disk: its size in bytes, and each field behind its offset. Offsets and
/// size are checked at compile time, and none can be left out. Bytes of an image are read in place.
///
/// ```text
/// on_disk! {
///     /// Header of a table.
///     #[derive(Clone, IntoBytes)]
///     struct Header of 12 bytes {
///         0 => magic: [u8; 8],
///         8 => count: U32,
///     }
/// }
/// ```
///
/// A structure that two byte orders share is generic over one `O: ByteOrder`.
macro_rules! on_disk {
    ($(
        $(#[$attribute:meta])*
        $visible:vis struct $name:ident $(<$order:ident: $bound:ident>)? of $size:literal bytes {
            $($(#[$note:meta])* $offset:literal => $seen:vis $field:ident: $kind:ty,)*
        }
    )+) => {$(
        $(#[$attribute])*
        #[derive(
            ::zerocopy::FromBytes,
            ::zerocopy::Immutable,
            ::zerocopy::KnownLayout,
            ::zerocopy::Unaligned,
        )]
        #[repr(C)]
        $visible struct $name $(<$order: $bound>)? {
            $($(#[$note])* $seen $field: $kind,)*
        }

        const _: () = {
            type Checked = $name $(<$crate::base::ondisk::on_disk!(@any $order)>)?;
            assert!(size_of::<Checked>() == $size);
            $(assert!(std::mem::offset_of!(Checked, $field) == $offset);)*
        };
    )+};
    // Any byte order: all have the same layout.
    (@any $order:ident) => { ::zerocopy::LE };
}
pub(crate) use on_disk;

/// A GUID as UEFI stores it: the first three fields little-endian (UEFI 2.10, appendix A).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// True if all 16 bytes are zero: in GPT, an unused entry.
    pub fn is_nil(&self) -> bool {
        self.0 == [0; 16]
    }

    /// A random GUID (RFC 9562, version 4) of 16 random bytes.
    pub fn random(bytes: [u8; 16]) -> Guid {
        let mut guid = Guid(bytes);
        // The version and the variant, in storage order: byte 7 holds the high half of the third
        // field.
        guid.0[7] = guid.0[7] & 0x0f | 0x40;
        guid.0[8] = guid.0[8] & 0x3f | 0x80;
        guid
    }
}

impl std::str::FromStr for Guid {
    type Err = ();

    /// Parses the text form, in either case; the first three fields are swapped into storage order.
    fn from_str(text: &str) -> Result<Guid, ()> {
        let hex: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
        if text.len() != 36 || hex.len() != 32 || !hex.is_ascii() {
            return Err(());
        }
        let mut bytes = [0; 16];
        for (i, at) in ORDER.into_iter().enumerate() {
            let pair = std::str::from_utf8(&hex[2 * i..2 * i + 2]).map_err(|_| ())?;
            bytes[at] = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        Ok(Guid(bytes))
    }
}

/// Storage index of each byte of the text form.
const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, at) in ORDER.into_iter().enumerate() {
            if [4, 6, 8, 10].contains(&i) {
                f.write_str("-")?;
            }
            write!(f, "{:02x}", self.0[at])?;
        }
        Ok(())
    }
}

/// 16 bytes as most file systems print their UUID, in storage order; `None` if all zero.
pub fn uuid(bytes: &[u8; 16]) -> Option<String> {
    if *bytes == [0; 16] {
        return None;
    }
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    Some([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// Text in a fixed field, up to the first NUL, without trailing blanks; control characters and
/// invalid UTF-8 are replaced. `None` if nothing is left.
pub fn text(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    printable(&String::from_utf8_lossy(&field[..end]))
}

/// UTF-16LE text in a fixed field, cleaned as [`text`] does.
pub fn text_utf16(field: &[u8]) -> Option<String> {
    text_units(field.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])))
}

/// UTF-16BE text in a fixed field, cleaned as [`text`] does.
pub fn text_utf16be(field: &[u8]) -> Option<String> {
    text_units(field.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])))
}

/// Text of UTF-16 code units up to the first NUL, cleaned as [`text`] does.
pub fn text_units(units: impl Iterator<Item = u16>) -> Option<String> {
    let text: String = char::decode_utf16(units.take_while(|&u| u != 0))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    printable(&text)
}

/// Cleaned text; `None` if nothing is left. Labels come from hostile disks and go to terminals, so
/// no control character survives.
fn printable(text: &str) -> Option<String> {
    let clean: String = text
        .trim_end()
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    (!clean.is_empty()).then_some(clean)
}
