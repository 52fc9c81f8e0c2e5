//! The program `trueline`, all of which is in the library.

use std::process::ExitCode;

/// The allocator of a program that is linked with musl, whose own has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    trueline::main()
}
