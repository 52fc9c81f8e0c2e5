//! Random bytes from the kernel, for identities.

use crate::error::Error;
use rustix::rand::{GetRandomFlags, getrandom};
use std::path::Path;

/// `N` random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let mut done = 0;
    while done < N {
        let failed = |e| Error::os("read randomness from", Path::new("the kernel"), e);
        done += rustix::io::retry_on_intr(|| getrandom(&mut bytes[done..], GetRandomFlags::empty())).map_err(failed)?;
    }
    Ok(bytes)
}
