//! Files, block devices, and what the host says of them. All I/O of the program is here.
//!
//! [`device::sysfs::host`] lists this host's block devices, [`device::lsblk::parse`] another host's
//! from what its `lsblk` printed, and [`device::nvme::parse`] what `nvme id-ns` printed.
//! [`disk::file::open`] opens one image or device as a store, [`disk::file::open_for`] also for
//! writing.
//!
//! # Example
//! ```
//! use trueline_geom::base::store::Store;
//! use trueline_host::disk::file;
//!
//! let path = std::env::temp_dir().join(format!("trueline-host-{}", std::process::id()));
//! std::fs::write(&path, [7; 4096])?;
//! let image = file::open(&path)?;
//! let mut sector = [0; 512];
//! image.store.read_at(&mut sector, 3584)?;
//! assert_eq!((image.store.length(), sector), (4096, [7; 512]));
//! std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Folders
//! | folder | what is in it |
//! |---|---|
//! | [`device`] | what sysfs, udev, `lsblk`, `nvme` and stat(2) say of a disk |
//! | [`disk`] | images, devices and memory as stores; locks |
//! | [`engine`] | many requests at a time, through io_uring or threads |
//! | [`nbd`] | the NBD protocol: wire, sockets, TLS, URIs, the client |
//! | [`process`] | commands, signals, temporary files |
//! | [`tracefs`] | requests of block devices as the kernel sees them |
//! | [`ublk`] | the driver's control device and queues |

#![deny(unsafe_code)]

pub mod clock;
pub mod device;
pub mod disk;
pub mod engine;
pub(crate) mod errno;
pub mod error;

pub mod lock;
pub mod nbd;
pub mod process;
pub mod random;
pub mod tracefs;
pub mod ublk;
pub mod window;

pub use device::{Device, DeviceKind};
pub use error::Error;
