# sbom.jq: a CycloneDX bill of materials of the program, or of the Python package, from `cargo metadata`.
#
# --arg root, target, rustc, time; --rawfile tree: "name version" of every crate that is linked in, as
# `cargo tree` says (metadata join the features of all members); --rawfile lock: Cargo.lock.

# SHA-256 of each crate as it is downloaded, by "name version".
def checksums:
  [$lock | split("[[package]]\n")[1:][]
    | capture("name = \"(?<name>[^\"]+)\"\nversion = \"(?<version>[^\"]+)\"") as $package
    | capture("checksum = \"(?<sum>[0-9a-f]+)\"")
    | {key: "\($package.name) \($package.version)", value: .sum}]
  | from_entries;

def key: "\(.name) \(.version)";
def purl: "pkg:cargo/\(.name)@\(.version)";
def licence: if .license then {licenses: [{expression: (.license | gsub("/"; " OR "))}]} else {} end;

checksums as $sums
| ($tree | split("\n") | map({key: ., value: true}) | from_entries) as $linked
| (.packages | map(select($linked[key])) | map({key: .id, value: .}) | from_entries) as $packages
| first($packages[] | select(.name == $root)) as $program
| {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      timestamp: $time,
      component: ({
        type: "application", "bom-ref": ($program | purl), name: $root, version: $program.version,
        description: $program.description, purl: ($program | purl)
      } + ($program | licence)),
      properties: [{name: "trueline:target", value: $target}]
    },
    components: ([
      $packages[] | select(.id != $program.id)
      | {type: "library", "bom-ref": purl, name, version, purl: purl}
        + (if .description then {description: (.description | gsub("\\s+"; " "))} else {} end)
        + licence
        + ($sums[key] as $sum | if $sum then {hashes: [{alg: "SHA-256", content: $sum}]} else {} end)
    ] + [{
      type: "library", "bom-ref": "rust-std", name: "rust-std", version: $rustc,
      description: ("Rust's standard library for \($target)"
        + if ($target | endswith("-musl")) then ", with the musl C library" else "" end),
      licenses: [{expression: "MIT OR Apache-2.0"}]
    }] | sort_by(."bom-ref")),
    dependencies: ([
      .resolve.nodes[] | select($packages[.id]) | {
        ref: ($packages[.id] | purl),
        dependsOn: ([.deps[] | select(any(.dep_kinds[]; .kind == null)) | $packages[.pkg] // empty | purl]
          + (if .id == $program.id then ["rust-std"] else [] end) | unique)
      }
    ] | sort_by(.ref))
  }
