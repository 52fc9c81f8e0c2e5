//! Options of other NBD servers, and their names here.

/// Options of nbdkit or qemu-nbd, and the advice for them.
type Hint = (&'static [&'static str], &'static str);

/// The common options of nbdkit (1.32) and qemu-nbd (7.2), without those that are the same here.
const HINTS: [Hint; 32] = [
    (&["-p", "--port"], "say --nbd tcp:PORT, or tcp:ADDRESS:PORT"),
    (&["-b", "--bind", "-i", "--ip-addr", "--ipaddr"], "say --nbd tcp:ADDRESS:PORT"),
    (
        &["-U", "--unix", "-k", "--socket"],
        "say --nbd unix:PATH; with --run there is a socket without (nbdkit's -U -)",
    ),
    (
        &["-f", "--format", "--foreground"],
        "leave it out: serve stays in the foreground without --fork, and images are served as raw bytes",
    ),
    (
        &["-t", "--persistent", "--threads"],
        "leave it out: serve stays until it is ended, and has the threads that it needs",
    ),
    (
        &["-e", "--shared"],
        "say --connections N for qemu-nbd's --shared, --export NAME for nbdkit's -e",
    ),
    (&["-x", "--export-name", "--exportname"], "say --export NAME"),
    (&["--readonly"], "say --read-only or -r"),
    (
        &["-o", "--oldstyle"],
        "say --offset N for qemu-nbd's -o; nbdkit's oldstyle protocol is not spoken",
    ),
    (
        &["-P", "--pid-file", "--partition"],
        "say --pidfile FILE; a partition is named in the target: disk.img#p1",
    ),
    (
        &["-s", "--snapshot"],
        "say --overlay mem for qemu-nbd's --snapshot; --run CMD is what nbdkit's --single is for",
    ),
    (&["--single", "--stdin"], "say --run CMD, or let libnbd start the server with a socket"),
    (
        &["-l", "--load-snapshot"],
        "snapshots inside of images are qemu-nbd's: its export is a target, nbd+unix:///?socket=PATH",
    ),
    (
        &["-c", "--connect"],
        "say --ublk for a block device of this kernel, or connect nbd-client to --nbd",
    ),
    (&["-d", "--disconnect"], "end the server: Ctrl-C, or kill $(cat PIDFILE)"),
    (&["-n", "--nocache", "--cache"], "say --direct to go around the page cache"),
    (&["--aio"], "leave it out: requests are done by threads"),
    (&["--discard"], "leave it out: what is trimmed is discarded"),
    (
        &["--detect-zeroes"],
        "there is none: zeros are written, unless a client asks for WRITE_ZEROES",
    ),
    (
        &["-v", "--verbose", "-D", "--debug"],
        "say --top to see requests, --record FILE to have each of them",
    ),
    (&["--description"], "leave it out: exports are described by what is on them"),
    (&["-A", "--allocation-depth"], "the context trueline:overlay tells what an --overlay holds"),
    (&["-B", "--bitmap"], "the context trueline:overlay tells what an --overlay holds"),
    (&["--log"], "say --log-format json for programs, 2>FILE for a file"),
    (&["--tls-creds", "--object"], "say --tls-certificates DIR"),
    (
        &["--tls-psk", "--tls-hostname", "--tls-authz"],
        "say --tls-certificates DIR: there are no pre-shared keys",
    ),
    (
        &["--image-opts"],
        "name the image: raw files, devices, nbd:// of a server that reads another format",
    ),
    (&["-L", "--list"], "say --run 'nbdinfo --list \"$uri\"'"),
    (
        &["--filter"],
        "say --overlay (cow), --offset (offset), --fault (error, delay), --emulate, --record (log), --strict (blocksize-policy)",
    ),
    (
        &["-u", "--user", "-g", "--group"],
        "start it as that user: systemd's User= and socket activation",
    ),
    (&["--vsock", "--swap", "--selinux-label"], "there is none"),
    (
        &["--timeout", "--mask-handshake", "--no-sr"],
        "there is none: limits are in the manual, docs/manual/serve.md",
    ),
];

/// The advice for an `option` of another server, as it was typed.
pub(crate) fn hint(option: &str) -> Option<&'static str> {
    let option = option.split_once('=').map_or(option, |(option, _)| option);
    let named = |names: &&[&str]| names.contains(&option);
    HINTS.iter().find(|(names, _)| named(names)).map(|(_, hint)| *hint)
}
