//! Random bytes from the kernel, for identifiers.

use crate::error::Error;
use rustix::rand::{GetRandomFlags, getrandom};
use std::path::Path;

/// An array of `N` random bytes from getrandom(2).
pub fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let mut done = 0;
    while done < N {
        let failed = |e| Error::os("read randomness from", Path::new("the kernel"), e);
        done +=
            rustix::io::retry_on_intr(|| getrandom(&mut bytes[done..], GetRandomFlags::empty()))
                .map_err(failed)?;
    }
    Ok(bytes)
}
