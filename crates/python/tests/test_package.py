"""The package against the program, whose lines it has to give: TRUELINE names it."""

import contextlib
import io
import json
import os
import pickle
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import trueline

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ["TRUELINE"]

# Types of what is in a report.
KINDS = {value for value in vars(trueline._report).values() if hasattr(value, "__required_keys__")}
KINDS = {kind for kind in KINDS if not kind.__name__.startswith("_")} - {trueline.Options}


def skipped(what):
    """Decorator of a test that this machine cannot run, which the list of skipped tests has."""
    with open(os.environ.get("TRUELINE_SKIPPED", os.devnull), "a") as file:
        file.write(f"the Python package: {what}\n")
    return unittest.skip(what)


def needs(module):
    """Decorator of a test that needs another module."""
    try:
        __import__(module)
    except ImportError:
        return skipped(f"no module {module} here")
    return lambda test: test


def disk(path, first):
    """Image of 64 MiB with one partition, in an MBR."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0x83, b"\0\2\0", first, 131072 - first)
    with open(path, "wb") as file:
        file.write(b"\0" * 446 + entry + b"\0" * 48 + b"\x55\xaa")
        file.truncate(64 << 20)


def qcow2(path):
    """Image of an empty disk of 64 MiB: a header, refcounts and an empty table."""
    cluster = 1 << 16
    header = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, 16, 64 << 20, 0, 1, 3 * cluster, cluster, 1, 0, 0)
    with open(path, "wb") as file:
        file.write(header)
        file.seek(cluster)
        file.write(struct.pack(">Q", 2 * cluster))
        file.seek(2 * cluster)
        file.write(struct.pack(">4H", 1, 1, 1, 1))
        file.truncate(4 * cluster)


class Disks(unittest.TestCase):
    """Disks with a partition on the grain, with one off it, and files that are none."""

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="trueline-python-"))
        self.addCleanup(shutil.rmtree, self.directory)
        disk(self.directory / "good.img", 2048)
        disk(self.directory / "bad.img", 63)
        (self.directory / "no.img").write_bytes(b"")
        self.targets = [str(self.directory / f"{name}.img") for name in ("good", "bad", "absent", "no")]

    def program(self, *options):
        words = [PROGRAM, "check", *options, *self.targets]
        return subprocess.run(words, capture_output=True).stdout


class Package(Disks):
    def test_reports_are_the_lines_of_the_program(self):
        for options, words in [
            ({}, []),
            ({"for_": "ssd-16k"}, ["--for", "ssd-16k"]),
            ({"physical": "4096+3584"}, ["--physical", "4096+3584"]),
            ({"grain": ["chunk=64k", "erase=1MiB"]}, ["--grain", "chunk=64k", "--grain", "erase=1MiB"]),
            ({"format": "raw", "follow": True, "logical": 4096}, ["--format=raw", "--follow", "--logical=4096"]),
            ({"follow": False, "for_": None}, []),
        ]:
            lines = self.program("--jsonl", *words).splitlines()
            self.assertEqual(list(trueline.check_many(self.targets, **options)), [json.loads(line) for line in lines])
            self.assertEqual(len(lines), len(self.targets))

    def test_a_report_has_its_verdict(self):
        good, bad = (trueline.check(target) for target in self.targets[:2])
        self.assertEqual((good["verdict"], bad["verdict"]), ("aligned", "misaligned"))
        self.assertEqual(bad["findings"][0]["rule"], "TL0001")
        # A path is as good as a name.
        self.assertEqual(trueline.check(self.directory / "bad.img"), bad)

    def test_types_have_the_keys_of_reports(self):
        report = trueline.check(self.targets[1])
        pairs = [(trueline.Report, report), (trueline.Image, report["image"])]
        pairs += [(trueline.Provider, provider) for provider in report["providers"]]
        pairs += [(trueline.Grain, grain) for p in report["providers"] for grain in p["grains"]]
        pairs += [(trueline.Table, p["table"]) for p in report["providers"] if p["table"]]
        pairs += [(trueline.Finding, finding) for finding in report["findings"]]
        qcow2(self.directory / "empty.qcow2")
        providers = trueline.check(self.directory / "empty.qcow2")["providers"]
        containers = [provider["container"] for provider in providers if "container" in provider]
        pairs += [(trueline.Container, container) for container in containers]
        writes = [container["first_write"] for container in containers]
        pairs += [(trueline.FirstWrite, write) for write in writes]
        pairs += [(trueline.TouchedRange, part) for write in writes for part in write["ranges"]]
        self.assertEqual({kind for kind, _ in pairs} ^ KINDS, {trueline.Unread})
        for kind, value in pairs:
            self.assertLessEqual(kind.__required_keys__, set(value), kind)
            self.assertLessEqual(set(value), kind.__required_keys__ | kind.__optional_keys__, kind)

    def test_types_have_the_keys_of_the_schema(self):
        schema = json.loads((ROOT / "docs/schema/jsonl.schema.json").read_text())
        kinds = {
            "image": trueline.Image,
            "provider": trueline.Provider,
            "grain": trueline.Grain,
            "table": trueline.Table,
            "container": trueline.Container,
            "first_write": trueline.FirstWrite,
            "touched_range": trueline.TouchedRange,
            "finding": trueline.Finding,
        }
        shapes = [(trueline.Report, schema["oneOf"][0]), (trueline.Unread, schema["oneOf"][1])]
        shapes += [(kind, schema["$defs"][name]) for name, kind in kinds.items()]
        self.assertEqual({kind for kind, _ in shapes}, KINDS)
        for kind, shape in shapes:
            self.assertEqual(set(shape["required"]), kind.__required_keys__, kind)
            self.assertEqual(set(shape["properties"]), kind.__required_keys__ | kind.__optional_keys__, kind)

    def test_errors_have_a_class(self):
        with self.assertRaises(trueline.Error) as raised:
            trueline.check(self.targets[2])
        error = raised.exception
        self.assertEqual((error.target, error.error_class), (self.targets[2], "not found"))
        self.assertIn("absent.img", str(error))
        self.assertEqual(vars(pickle.loads(pickle.dumps(error))), vars(error))

    def test_wrong_options_are_values_that_are_wrong(self):
        for options in [{"for_": "no-such"}, {"html": "x"}, {"jsonl": True}, {"logical": 3}, {"physical": "4096+4096"}]:
            with self.assertRaises(ValueError, msg=str(options)) as raised:
                trueline.check(self.targets[0], **options)
            self.assertNotIn("\n", str(raised.exception))
            with self.assertRaises(ValueError):
                trueline.check_many(self.targets, **options)
        with self.assertRaises(TypeError):
            trueline.check_many(self.targets[0])
        with self.assertRaises(TypeError):
            trueline.check(1)
        with self.assertRaises(TypeError):
            trueline.check_many(None)
        with self.assertRaises(ValueError):
            trueline.check_many(self.targets, threads=0)

    def test_targets_are_taken_as_they_are_wanted(self):
        taken = 0

        def endless():
            nonlocal taken
            while True:
                taken += 1
                yield self.targets[taken % 2]

        reports = trueline.check_many(endless(), threads=4)
        verdicts = [next(reports)["verdict"] for _ in range(100)]
        del reports
        self.assertEqual(verdicts, ["misaligned", "aligned"] * 50)
        self.assertLess(taken, 100 + 4 * 4 + 2)

    def test_an_error_of_the_list_is_the_callers(self):
        def broken():
            yield self.targets[0]
            raise OSError("no more")

        with self.assertRaises(OSError):
            list(trueline.check_many(broken()))

    def test_other_threads_go_on_while_one_waits(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.directory / "silent"))
        listener.listen()
        target = f"nbd+unix:///?socket={self.directory}/silent"
        reports = []
        waits = threading.Thread(target=lambda: reports.extend(trueline.check_many([target])))
        waits.start()
        # A server that says nothing.
        connection, _ = listener.accept()
        self.assertEqual(trueline.check(self.targets[0])["verdict"], "aligned")
        self.assertEqual(reports, [])
        connection.close()
        waits.join()
        self.assertEqual(reports[0]["error_class"], "remote")

    def silent(self, name="silent"):
        """Target on a server that takes a connection and says nothing."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.directory / name))
        listener.listen()
        return f"nbd+unix:///?socket={self.directory}/{name}"

    def test_an_interrupt_waits_for_no_server(self):
        target = self.silent()
        for program in ["trueline.check(T)", "list(trueline.check_many([T] * 9))", "next(trueline.check_many([T]))"]:
            # A shell's background jobs ignore interrupts, and so would the child.
            heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
            text = f"import trueline; {heed}; T = {target!r}; print(1, flush=True); {program}"
            child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            child.stdout.readline()
            # It is in the call, or about to be.
            threading.Event().wait(0.5)
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=30)
            self.assertIn(b"KeyboardInterrupt", errors, program)
            self.assertNotEqual(child.returncode, 0)

    def test_a_caller_that_leaves_waits_for_no_server(self):
        reports = trueline.check_many([self.targets[0], self.silent()])
        self.assertEqual(next(reports)["verdict"], "aligned")
        reports.close() if hasattr(reports, "close") else None
        del reports

    def test_a_slow_list_is_not_waited_for(self):
        go = threading.Event()

        def slow():
            yield self.targets[0]
            # The first is checked meanwhile.
            threading.Event().wait(2)
            yield self.targets[1]
            self.assertTrue(go.wait(30), "the first report was not there while the list went on")

        reports = trueline.check_many(slow())
        self.assertEqual(next(reports)["verdict"], "aligned")
        go.set()
        self.assertEqual(next(reports)["verdict"], "misaligned")

    def test_names_that_are_no_text_are_errors_of_their_own(self):
        report = next(trueline.check_many([os.fsdecode(b"\xff.img")]))
        self.assertEqual((report["error_class"], report["target"]), ("name", "\ufffd.img"))

    def test_a_process_that_was_forked_checks(self):
        trueline.check(self.targets[0])
        child = os.fork()
        if child == 0:
            os._exit(0 if trueline.check(self.targets[1])["verdict"] == "misaligned" else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


@needs("pyarrow")
class Arrow(Disks):
    def test_columns_are_those_of_the_schema(self):
        schema = json.loads((ROOT / "docs/schema/rows.schema.json").read_text())
        types = {"string": "string", "integer": "int64", "number": "double", "boolean": "bool", None: "string"}
        columns = [(name, types[shape.get("type")]) for name, shape in schema["properties"].items()]
        self.assertEqual([(field.name, str(field.type)) for field in trueline.SCHEMA], columns)

    def test_rows_are_the_lines_of_the_program(self):
        lines = [json.loads(line) for line in self.program("--rows", "--for", "ssd-16k").splitlines()]
        table = trueline.rows(self.targets, for_="ssd-16k")
        self.assertEqual(table.schema, trueline.SCHEMA)
        self.assertEqual(table.to_pylist(), lines)
        self.assertEqual(trueline.rows([]).num_rows, 0)

    def test_batches_are_bounded(self):
        from trueline import arrow

        kept, arrow.BATCH = arrow.BATCH, 4096
        self.addCleanup(setattr, arrow, "BATCH", kept)
        parts = list(trueline.batches(self.targets * 20))
        self.assertGreater(len(parts), 2)
        self.assertEqual(sum(part.num_rows for part in parts), trueline.rows(self.targets * 20).num_rows)

    def test_parquet_is_whole_or_not_there(self):
        import pyarrow.parquet

        path = self.directory / "fleet.parquet"
        count = trueline.write_parquet(self.targets, path)
        table = pyarrow.parquet.read_table(path)
        self.assertEqual(table, trueline.rows(self.targets))
        self.assertEqual(count, table.num_rows)

        def broken():
            yield self.targets[0]
            raise OSError("no more")

        with self.assertRaises(OSError):
            trueline.write_parquet(broken(), path)
        self.assertEqual(pyarrow.parquet.read_table(path), table)
        self.assertEqual(sorted(p.name for p in self.directory.glob(".fleet*")), [])
        # What a run that was killed left does not keep the next one away.
        (self.directory / f".fleet.parquet.{os.getpid()}.new").write_bytes(b"")
        link = self.directory / "link.parquet"
        link.symlink_to(path)
        trueline.write_parquet(self.targets[:1], link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(pyarrow.parquet.read_table(path), trueline.rows(self.targets[:1]))
        for wrong in [self.directory, "/dev/null"]:
            with self.assertRaises(ValueError):
                trueline.write_parquet(self.targets, wrong)


@needs("pyarrow")
class Manual(Disks):
    def test_what_the_manual_says_is_so(self):
        shutil.copy(self.targets[1], self.directory / "vm.qcow2")
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.directory)
        text = (ROOT / "docs/manual/python.md").read_text()
        examples = [block.split("```")[0] for block in text.split("```python\n")[1:]]
        self.assertGreaterEqual(len(examples), 3)
        with contextlib.redirect_stdout(io.StringIO()) as told:
            exec("\n".join(examples), {})
        self.assertIn("TL0001 s1 partition starts at byte 32256", told.getvalue())
        self.assertIn("absent.img not found", told.getvalue())


@needs("pyarrow")
class Examples(Disks):
    """Programs under contrib/python, run as they stand there."""

    def run_example(self, name):
        import pyarrow.parquet

        names, out = self.directory / "names", self.directory / "out"
        targets = self.targets * 5
        names.write_text("".join(f"{target}\n" for target in targets))
        out.mkdir()
        words = [sys.executable, ROOT / f"contrib/python/{name}_fleet.py", names, out]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        ran = subprocess.run(
            words, capture_output=True, text=True, cwd=self.directory, env=environment
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = pyarrow.parquet.read_table(out).to_pylist()
        wanted = trueline.rows(targets, for_="ssd-16k").to_pylist()
        key = lambda row: json.dumps(row, sort_keys=True)
        self.assertEqual(sorted(found, key=key), sorted(wanted, key=key))

    @needs("dask")
    def test_dask(self):
        self.run_example("dask")

    @needs("ray")
    def test_ray(self):
        self.run_example("ray")

    @needs("pyspark")
    def test_spark(self):
        self.run_example("spark")


if __name__ == "__main__":
    unittest.main()
