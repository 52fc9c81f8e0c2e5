#!/bin/sh
# python.sh: builds the Python package, installs it where tests/install.sh has put maturin, and runs its tests.
#
# The wheel is of the profile that the other tests have, so that little is built anew.
set -eu
cd "$(dirname "$0")/.."
skipped=${TRUELINE_SKIPPED:-/dev/null}
python=$PWD/target/python/bin/python
if ! "$python" -m maturin --version >/dev/null 2>&1; then
    echo "the Python package: no maturin in target/python" | tee -a "$skipped"
    exit 0
fi
echo "python: the package is built and tested"
rm -rf target/wheels
PATH="$PWD/target/python/bin:$PATH" maturin build --quiet --profile dev --locked -m crates/python/Cargo.toml -o target/wheels
"$python" -m pip --quiet install --no-deps --force-reinstall target/wheels/*.whl
export TRUELINE="$PWD/target/debug/trueline"
# Beside the sources the package without its native part would be found first.
cd target
"$python" -m unittest discover --quiet -s ../crates/python/tests -t ../crates/python/tests
if "$python" -m mypy --version >/dev/null 2>&1; then
    # Its own types, and what they say of the manual's examples.
    sed -n '/^```python/,/^```/p' ../docs/manual/python.md | sed 's/^```.*//' >manual.py
    for what in '-p trueline' manual.py; do
        # shellcheck disable=SC2086 # two words
        "$python" -m mypy --no-error-summary --config-file ../crates/python/pyproject.toml $what
    done
else
    echo "the Python package: no mypy for its types" | tee -a "$skipped"
fi
