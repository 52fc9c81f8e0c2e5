//! Errors of the kernel, as errors of a store.

use rustix::io;
use trueline_geom::base::error::Errno;

/// The error of a store that an error of the kernel comes to.
pub(crate) fn from_kernel(from: io::Errno) -> Errno {
    match from {
        io::Errno::NODEV | io::Errno::NXIO | io::Errno::NOMEDIUM => Errno::NoDevice,
        io::Errno::NOSPC | io::Errno::DQUOT | io::Errno::FBIG => Errno::NoSpace,
        io::Errno::BADF | io::Errno::PERM | io::Errno::ROFS | io::Errno::ACCESS => Errno::ReadOnly,
        io::Errno::INVAL => Errno::Unaligned,
        _ => Errno::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_device_keep_their_meaning() {
        let told = [
            (io::Errno::IO, Errno::Io),
            (io::Errno::NODEV, Errno::NoDevice),
            (io::Errno::NXIO, Errno::NoDevice),
            (io::Errno::NOSPC, Errno::NoSpace),
            (io::Errno::ROFS, Errno::ReadOnly),
            (io::Errno::INVAL, Errno::Unaligned),
        ];
        assert!(told.iter().all(|&(from, to)| from_kernel(from) == to));
    }
}
