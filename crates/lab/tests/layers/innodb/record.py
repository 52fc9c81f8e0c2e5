#!/usr/bin/env python3
"""Records what MariaDB's InnoDB asks of its files for a seeded sequence of requests.

    record.py DIRECTORY > mariadb-10.11.txt

It takes mariadbd, mariadb-install-db, mariadb and strace, and a user that is not root. The server
runs without its purge and master threads (innodb_force_recovery=2) and flushes nothing unless it is
told to, so that two recordings of one seed are equal.
"""

import pathlib
import random
import re
import subprocess
import sys
import time

PAGES, SEED = 240, 1
directory = pathlib.Path(sys.argv[1]).resolve()
data, trace, socket = directory / "data", directory / "trace", directory / "socket"
OPTIONS = f"""--no-defaults --datadir={data} --socket={socket} --skip-networking --skip-grant-tables
    --skip-log-bin --innodb-use-native-aio=0 --innodb-log-file-size=8M --innodb-log-buffer-size=2M
    --innodb-buffer-pool-size=64M --innodb-buffer-pool-dump-at-shutdown=0
    --innodb-buffer-pool-load-at-startup=0 --innodb-stats-auto-recalc=0
    --innodb-max-dirty-pages-pct=99.9 --innodb-max-dirty-pages-pct-lwm=0
    --innodb-adaptive-flushing=0 --innodb-adaptive-hash-index=0 --innodb-flush-neighbors=0
    --innodb-read-ahead-threshold=0 --innodb-io-capacity=20000 --innodb-io-capacity-max=40000
    --innodb-force-recovery=2""".split()


class Server:
    """A server under strace, with one client."""

    def __enter__(self):
        calls = "trace=pwrite64,pread64,pwritev,preadv,fdatasync,fsync"
        self.server = subprocess.Popen(
            ["strace", "-f", "-y", "-qq", "-s0", "-ttt", "-e", "signal=none", "-e", calls]
            + ["-o", trace, "mariadbd", *OPTIONS],
            stderr=(directory / "log").open("w"),
        )
        while "ready for connections" not in (directory / "log").read_text():
            time.sleep(0.1)
        self.client = subprocess.Popen(
            ["mariadb", "--no-defaults", f"--socket={socket}", "-N", "--unbuffered"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        return self

    def __exit__(self, *_):
        self.ask("shutdown")
        self.server.wait()

    def ask(self, statement):
        """The lines that a statement answers with."""
        self.client.stdin.write(f"{statement};\nselect 'end of answer';\n")
        self.client.stdin.flush()
        lines = []
        while (line := self.client.stdout.readline().strip()) not in ("end of answer", ""):
            lines.append(line)
        assert self.client.poll() is None, f"{statement}: {lines}"
        return lines

    def status(self, name):
        """A counter of the server."""
        found = self.ask(f"show global status like '{name}'")
        return int(found[0].split("\t")[1])


def requests():
    """The requests of the trace: the time, the file, the operation, offset and length."""
    open_calls = {}
    for line in trace.read_text().splitlines():
        pid, at, call = line.split(None, 2)
        if call.startswith("<..."):
            begun, call = open_calls.pop(pid), call.split(">", 1)[1]
            at, call = begun[0], begun[1] + call
        if call.endswith("<unfinished ...>"):
            open_calls[pid] = (at, call.removesuffix("<unfinished ...>"))
            continue
        found = re.match(r"(\w+)\(\d+<([^>]*)>(?:, \"\"\.*, (\d+), (\d+))?", call)
        name, path, length, offset = found.groups()
        operation = "flush" if "sync" in name else name[1:].removesuffix("64")
        yield float(at), path.removeprefix(f"{data}/"), operation, offset or 0, length or 0


def main():
    """Makes the table, finds its pages, and records."""
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db",
         "--innodb-log-file-size=8M"], check=True, stdout=subprocess.DEVNULL)
    with Server() as server:
        # Three rows of a page; what asks for the second looks at no other page.
        server.ask("create database x")
        server.ask("use x")
        server.ask("create table x.t(id int primary key, v int not null, f varchar(7000) not null)"
                   " engine=innodb character set latin1")
        server.ask("insert into x.t select seq, 0, repeat('f', 4500) from"
                   f" seq_0_to_{3 * PAGES + 11}")
        # An undo page in each of the 128 rollback segments.
        server.ask("create table x.u(id int primary key, v int not null) engine=innodb")
        server.ask("insert into x.u values (0, 0)")
        for n in range(260):
            server.ask(f"update x.u set v = {n} where id = 0")
        # Statistics are there, so that nothing is read for them.
        server.ask("analyze table x.t, x.u")
        found = server.ask(
            "select page_number, number_records from information_schema.innodb_buffer_page"
            " where table_name = '`x`.`t`' and page_type = 'INDEX' order by page_number")
    # The root, a page with the first two rows, and pages of three rows.
    pages = [line.split("\t") for line in found][2:]
    assert [records for _, records in pages[:PAGES]] == ["3"] * PAGES, found
    record({int(number) * 16384: page for page, (number, _) in enumerate(pages[:PAGES])})


def asks(draw):
    """Seeded requests: writes and reads of pages, and checkpoints."""
    writes = 0
    while writes < 300:
        kind = draw.randrange(60)
        count = 1 if draw.randrange(8) else 1 + draw.randrange(24)
        if kind == 0:
            yield "flush", 0, 0
        elif kind < 12:
            yield "read", draw.randrange(PAGES - count), count
        else:
            yield "write", draw.randrange(PAGES - count), count
            writes += 1
    yield "flush", 0, 0


def record(places):
    """Prints a sequence and its requests."""
    times = []
    with Server() as server:
        server.ask("set global innodb_max_dirty_pages_pct=0")
        server.ask(f"select v from x.t where id = {3 * PAGES + 9} union select v from x.u")
        time.sleep(3)
        server.ask("set global innodb_max_dirty_pages_pct=99.9")
        version = server.ask("select version()")[0]
        print(f"# {version}, seed {SEED}; record.py")
        print("# of a page of the table: its number; of the log and of the system's: the offset")
        lsn = server.status("Innodb_lsn_current")
        print(f"lsn {lsn}")
        for n, (kind, first, count) in enumerate(asks(random.Random(SEED))):
            time.sleep(0.002)
            begin = time.time()
            ids = ", ".join(str(3 * page + 3) for page in range(first, first + count))
            if kind == "write":
                server.ask(f"update x.t set v = {n + 1} where id in ({ids})")
            elif kind == "read":
                for row in ids.split(", "):
                    server.ask(f"select v from x.t where id = {row} for update")
            else:
                server.ask("set global innodb_max_dirty_pages_pct=0")
                while server.status("Innodb_buffer_pool_pages_dirty"):
                    time.sleep(0.1)
                time.sleep(2)
                server.ask("set global innodb_max_dirty_pages_pct=99.9")
            now = server.status("Innodb_lsn_current")
            times.append((begin, f"{kind} {first} {count} {now - lsn}"))
            lsn = now
        times.append((time.time(), "end"))
    done = sorted(requests())
    for (begin, ask), (end, _) in zip(times, times[1:]):
        print(ask)
        for at, path, operation, offset, length in done:
            if begin <= at < end:
                file = {"ib_logfile0": "log", "ibdata1": "system", "x/t.ibd": "table"}[path]
                if file == "table" and operation != "flush":
                    offset = places[int(offset)]
                print(f"  {file} {operation} {offset} {length}")


main()
