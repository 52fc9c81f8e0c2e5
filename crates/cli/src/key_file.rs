//! Files that hold the passphrases of encrypted volumes (`--key-file`).

use crate::failure::Reason;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use trueline_geom::probe::unlock::Unlock;
use trueline_unlock::{Key, Keys, LONGEST_PASSPHRASE};
use zeroize::Zeroizing;

/// A passphrase, read from a file as cryptsetup reads one: every byte of it, newlines included.
#[derive(Clone)]
pub(crate) struct KeyFile {
    key: Key,
    typed: String,
}

impl KeyFile {
    /// Reads the file called `name`; `-` is stdin. Errors: it cannot be read, is empty, or larger
    /// than a key file may be.
    pub(crate) fn read(name: &str) -> Result<KeyFile, Reason> {
        let failed = |error: io::Error| Reason(format!("{name}: {error}"));
        let passphrase = match name {
            "-" => all(io::stdin().lock()),
            _ => File::open(name).and_then(all),
        };
        let passphrase = passphrase.map_err(failed)?;
        let source = if name == "-" { "stdin" } else { name }.to_string();
        match passphrase.len() {
            0 => Err(Reason(format!("{source} is empty: there is no passphrase in it"))),
            length if length > LONGEST_PASSPHRASE => Err(Reason(format!(
                "{source} is longer than {LONGEST_PASSPHRASE} bytes, the most that a key file has"
            ))),
            _ => Ok(KeyFile {
                key: Key { source, passphrase: Arc::new(passphrase) },
                typed: name.to_owned(),
            }),
        }
    }

    /// Its name, as it is typed.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }
}

/// The bytes of `file`, up to one more than a passphrase may have.
fn all(mut file: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    // A vector that grew would leave copies behind that are not wiped.
    let mut bytes = Zeroizing::new(vec![0; LONGEST_PASSPHRASE + 1]);
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Zeroizing::new(bytes[..length].to_vec()))
}

/// The keys that a graph opens volumes with; `None` without a file.
pub(crate) fn keys(files: &[KeyFile]) -> Option<Arc<dyn Unlock>> {
    let keys: Vec<Key> = files.iter().map(|file| file.key.clone()).collect();
    if keys.is_empty() { None } else { Some(Arc::new(Keys::new(keys))) }
}
