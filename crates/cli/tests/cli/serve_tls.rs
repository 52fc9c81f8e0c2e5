//! `serve` through TLS: certificates, foreign clients, our own.

use crate::skip::skip;
use crate::{Scratch, run, run_with, scratch, zeroes};
use std::path::Path;
use std::process::{Command, Stdio};

/// True if a program is installed; prints that the test is skipped if not.
pub(super) fn has(name: &str) -> bool {
    let found = Command::new(name)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if !found {
        skip(&format!("no {name} here"));
    }
    found
}

/// Runs a shell's lines in `directory`; their output.
pub(super) fn shell(directory: &Path, lines: &str) -> String {
    let ran =
        Command::new("sh").args(["-ec", lines]).current_dir(directory).output().expect("a shell");
    assert!(ran.status.success(), "{lines}\n{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// A new key, as openssl has it said.
const NEW: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// An authority, a server and a client with its certificates in `all`, and the authority alone in
/// `stranger`; [`None`] without openssl.
fn certificates() -> Option<Scratch> {
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        skip("no openssl here");
        return None;
    }
    let scratch = scratch();
    let mut lines = format!(
        "mkdir all stranger; cd all\nopenssl req -x509 {NEW} -keyout ca-key.pem -out ca-cert.pem -subj /CN=authority -days 2\n"
    );
    for (name, extension) in [
        ("server", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ("client", "extendedKeyUsage=clientAuth"),
    ] {
        lines += &format!(
            "openssl req {NEW} -keyout {name}-key.pem -out {name}.csr -subj /CN=localhost\necho \
                {extension} > {name}.ext\nopenssl x509 -req -in {name}.csr -CA ca-cert.pem -CAkey \
                ca-key.pem -CAcreateserial -out {name}-cert.pem -days 2 -extfile {name}.ext\n"
        );
    }
    shell(scratch.path(), &(lines + "cp ca-cert.pem ../stranger"));
    Some(scratch)
}

#[test]
fn clients_come_through_tls() {
    let Some(scratch) = certificates() else { return };
    if !has("nbdinfo") || !has("nbdcopy") {
        return;
    }
    shell(scratch.path(), "head -c 3000000 /dev/urandom > disk; truncate -s 3M disk");
    let serve = |more: &[&str], command: &str| {
        let arguments =
            [&["serve", "disk", "--tls-certificates", "all"], more, &["--run", command]].concat();
        run_with(scratch.path(), &arguments)
    };
    let info = serve(&[], "nbdinfo \"$uri\"");
    assert!(
        info.code == Some(0) && info.stdout.starts_with("protocol: newstyle-fixed with TLS"),
        "{}{}",
        info.stdout,
        info.stderr
    );
    assert_eq!(serve(&[], "nbdcopy \"$uri\" copy").code, Some(0));
    assert_eq!(
        serve(&["--tls-verify-peer"], "nbdcopy -C 4 \"$uri\" again && nbdcopy again \"$uri\"").code,
        Some(0)
    );
    shell(scratch.path(), "cmp disk copy; cmp disk again");
    // A client without a certificate, or without TLS, is not served.
    let stranger = "nbdinfo \"$(echo \"$uri\" | sed s,/all,/stranger,)\"";
    assert_eq!(serve(&["--tls-verify-peer"], stranger).code, Some(1));
    assert_eq!(
        serve(&[], stranger).code,
        Some(0),
        "only a client that must prove himself needs a certificate"
    );
    let plain = "nbdinfo \"nbd+unix:///?socket=$unixsocket\"";
    let refused = serve(&[], plain);
    assert!(refused.code == Some(1) && refused.stderr.contains("opt_go"), "{}", refused.stderr);
    for more in [&["--tls", "on"][..], &["--tls", "off"]] {
        assert_eq!(serve(more, plain).code, Some(0));
    }
    assert!(
        serve(
            &["--tls", "on"],
            "nbdinfo \"nbds+unix:///?socket=$unixsocket&tls-certificates=all\""
        )
        .stdout
        .contains("with TLS")
    );
}

/// One line on stderr for a client without a valid certificate, with its address; none for the
/// others.
#[test]
fn a_client_without_a_valid_certificate_is_named() {
    let Some(scratch) = certificates() else { return };
    if !has("nbdinfo") {
        return;
    }
    let stranger = "nbdinfo \"$uri\" >/dev/null && ! nbdinfo \"$(echo \"$uri\" | sed \
        s,/all,/stranger,)\" 2>/dev/null";
    let options = [
        "serve",
        "md:1m",
        "--nbd",
        "tcp:127.0.0.1:0",
        "--tls-certificates",
        "all",
        "--tls-verify-peer",
        "--no-counters",
    ];
    let ran = run_with(scratch.path(), &[&options[..], &["--run", stranger]].concat());
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(0), 1), "{}", ran.stderr);
    let from = ran
        .stderr
        .strip_prefix("trueline: client 127.0.0.1:")
        .and_then(|rest| rest.split_once(' '));
    let (port, said) = from.unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(
        port.parse::<u16>().is_ok()
            && said.starts_with("was cut off: TLS: ")
            && said.contains("certificate"),
        "{}",
        ran.stderr
    );
}

/// The printed address, and that in the command's environment, is a target as it stands.
#[test]
fn the_own_client_comes_through_tls() {
    let Some(scratch) = certificates() else { return };
    zeroes(scratch.path(), "disk", 1 << 20);
    let own = |arguments: &str| format!("'{}' {arguments}", env!("CARGO_BIN_EXE_trueline"));
    let serve = |more: &[&str], command: &str| {
        let arguments = [
            &["serve", "disk", "--no-counters", "--tls-certificates", "all"],
            more,
            &["--run", command],
        ]
        .concat();
        run_with(scratch.path(), &arguments)
    };
    let made = serve(&["--tls-verify-peer"], &own("part create -s gpt \"$uri\""));
    assert_eq!(made.code, Some(0), "{}{}", made.stdout, made.stderr);
    assert!(run(scratch.path(), "check disk").stdout.contains("gpt"));
    let tcp = serve(&["--nbd", "tcp:127.0.0.1:0"], &own("check \"$uri\""));
    assert!(tcp.stdout.contains("gpt"), "{}{}", tcp.stdout, tcp.stderr);
    let stranger =
        serve(&["--tls-verify-peer"], &own("check \"$(echo \"$uri\" | sed s,/all,/stranger,)\""));
    assert!(
        stranger.code == Some(2)
            && stranger.stderr.lines().filter(|line| line.contains("open nbds+unix:")).count() == 1,
        "{}{}",
        stranger.stdout,
        stranger.stderr
    );
    // Without a directory, an authority that the machine trusts vouches for the server; if it
    // trusts none, none does.
    let machine = "nbds+unix:///?socket=$unixsocket";
    let trusted = serve(
        &[],
        &format!("SSL_CERT_FILE=all/ca-cert.pem {}", own(&format!("check \"{machine}\""))),
    );
    assert!(trusted.stdout.contains("gpt"), "{}{}", trusted.stdout, trusted.stderr);
    shell(
        scratch.path(),
        &format!(
            "openssl req -x509 {NEW} -keyout other.key -out other.pem -subj /CN=other -days 2"
        ),
    );
    for (trusts, why) in [
        ("/dev/null", "use the certificates of this machine: "),
        ("other.pem", "invalid peer certificate"),
    ] {
        let distrusted =
            serve(&[], &format!("SSL_CERT_FILE={trusts} {}", own(&format!("check \"{machine}\""))));
        assert!(
            distrusted.code == Some(2) && distrusted.stderr.contains(why),
            "{}{}",
            distrusted.stdout,
            distrusted.stderr
        );
    }
    if !has("nbdkit") {
        return;
    }
    let kit = "nbdkit -U - --tls=require --tls-certificates=all --tls-verify-peer file disk --run";
    let check = own("check \"nbds+unix:///?socket=$unixsocket&tls-certificates=all\"");
    assert!(shell(scratch.path(), &format!("{kit} {}", quoted(&check))).contains("gpt"));
}

/// A word of a shell's, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[test]
fn qemu_comes_through_tls() {
    let Some(scratch) = certificates() else { return };
    if !has("qemu-img") {
        return;
    }
    shell(scratch.path(), "head -c 3000000 /dev/urandom > disk; truncate -s 3M disk");
    let convert = "qemu-img convert --object tls-creds-x509,id=t,endpoint=client,dir=all \
        --image-opts \
        driver=nbd,server.type=unix,server.path=$unixsocket,tls-creds=t,tls-hostname=localhost -O \
        raw copy";
    let arguments = [
        "serve",
        "--read-only",
        "disk",
        "--tls-certificates",
        "all",
        "--tls-verify-peer",
        "--run",
        convert,
    ];
    let converted = run_with(scratch.path(), &arguments);
    assert_eq!(converted.code, Some(0), "{}", converted.stderr);
    shell(scratch.path(), "cmp disk copy");
}

#[test]
fn certificates_that_are_none() {
    let scratch = scratch();
    shell(scratch.path(), "mkdir empty wrong; echo nothing > wrong/server-cert.pem");
    let refused = |arguments: &str| {
        run(scratch.path(), &format!("serve md:1m --nbd unix:s {arguments}")).refused().to_owned()
    };
    assert_eq!(
        refused("--tls require"),
        "trueline: serve: TLS needs --tls-certificates DIR with server-cert.pem and server-key.pem; pre-shared keys are not supported"
    );
    assert_eq!(
        refused("--tls-certificates empty"),
        "trueline: read empty/server-cert.pem: no such file or device: check the name"
    );
    assert_eq!(
        refused("--tls-certificates wrong"),
        "trueline: use wrong/server-cert.pem: there is no certificate in it: put a certificate in PEM form there"
    );
    let Some(certificates) = certificates() else { return };
    shell(certificates.path(), "cd all; cp client-key.pem server-key.pem");
    let other = run(certificates.path(), "serve md:1m --nbd unix:s --tls-certificates all");
    assert!(
        other.refused().ends_with("check that server-key.pem is the key of server-cert.pem"),
        "{}",
        other.stderr
    );
}
