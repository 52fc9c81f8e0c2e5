//! Tables in the property list of a UDIF image.
//!
//! The list is XML as macOS writes it. It is searched for the one array that matters, and anything
//! that may mean something else there (comments, CDATA, entities of its own) makes it unreadable.

/// The contents of every `Data` in the array `blkx`; `None` for a list that is not as macOS writes
/// it.
pub(super) fn tables(xml: &[u8]) -> Option<Vec<Vec<u8>>> {
    let text = std::str::from_utf8(xml).ok()?;
    if ["<!--", "<![CDATA[", "<!ENTITY"].iter().any(|other| text.contains(other)) {
        return None;
    }
    let (_, array) = text.split_once("<key>blkx</key>")?;
    let (array, _) = array.trim_start().strip_prefix("<array>")?.split_once("</array>")?;
    let data = array.split("<key>Data</key>").skip(1);
    let data = data.map(|rest| {
        let (data, _) = rest.trim_start().strip_prefix("<data>")?.split_once("</data>")?;
        decode(data.as_bytes())
    });
    data.collect::<Option<Vec<_>>>().filter(|tables| !tables.is_empty())
}

/// The value of a digit of base64.
fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// The bytes of base64 (RFC 4648, 4) in lines; `None` for anything else.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut digits, mut pads) = (0, 0, 0);
    for &byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'=' if digits >= 2 => {
                pads += 1;
                0
            }
            // Nothing comes behind the padding.
            _ if pads > 0 => return None,
            _ => digit(byte)?,
        };
        (group, digits) = (group << 6 | value, digits + 1);
        if digits == 4 {
            let [_, three @ ..] = u32::to_be_bytes(group);
            bytes.extend_from_slice(three.get(..3 - pads)?);
            (group, digits) = (0, 0);
            if pads > 0 {
                pads = 3;
            }
        }
    }
    (digits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_strictly() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            (" Zm8=\n", Some(b"fo")),
            ("Zm9v\n\t\tYmFy", Some(b"foobar")),
            ("/+8A", Some(b"\xff\xef\0")),
            ("Zg=", None),
            ("Z===", None),
            ("Zg==Zg==", None),
            ("Zg=a", None),
            ("Zm9", None),
            ("Zm9*", None),
            ("====", None),
            ("Zm9v=", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), bytes, "{text:?}");
        }
    }

    #[test]
    fn tables_are_those_of_one_array() {
        let list = |inner: &str| {
            format!(
                "<?xml?><!DOCTYPE plist PUBLIC \"x\"><plist><dict><key>resource-fork</key><dict>{inner}</dict></dict></plist>"
            )
        };
        let other = "<key>plst</key><array><dict><key>Data</key><data>////</data></dict></array>";
        let one = "<dict><key>Name</key><string>a &amp; b</string><key>Data</key>\n\
            <data>\nZm9v\n</data><key>ID</key><string>1</string></dict>";
        let two = "<dict><key>Data</key><data>Zg==</data></dict>";
        let blkx = format!("{other}<key>blkx</key> <array>{one}{two}</array>{other}");
        let found = tables(list(&blkx).as_bytes());
        assert_eq!(found, Some(vec![b"foo".to_vec(), b"f".to_vec()]));
        for bad in [
            list(other),
            list("<key>blkx</key><array></array>"),
            list(&format!("<key>blkx</key><array>{one}")),
            list(&format!("<key>blkx</key><dict>{one}</dict>")),
            list(&format!("<!--{blkx}-->")),
            list(&blkx.replace("<data>", "<string>")),
            list(&blkx.replace("Zm9v", "Zm9&#118;")),
        ] {
            assert_eq!(tables(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(tables(b"\xff<key>blkx</key>"), None);
    }
}
