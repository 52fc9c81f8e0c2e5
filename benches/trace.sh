#!/bin/sh
# trace.sh: what `trueline trace` costs the program that it traces: requests of fio to a loop device in memory, with and without it, in turns.
#
# A, as many as fit: requests a second, and the processor time of the trace. B, 50,000 a second (TRACE_RATE): requests a second, and the processor time
# of the whole machine. Bound: 2 % fewer requests. Figures are medians of TRACE_ROUNDS rounds. Needs root and tracefs; the device is in /dev/shm.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need trace fio=fio losetup=mount
trueline_binary
rounds=${TRACE_ROUNDS:-7} seconds=${TRACE_SECONDS:-3} rate=${TRACE_RATE:-50000}
mountpoint -q /sys/kernel/tracing || { echo "trace: skipped, tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing" >&2; exit 0; }
scratch=$(mktemp -d /dev/shm/trace.XXXXXX)
device=
trap 'losetup -d "$device" 2>/dev/null || true; rm -rf "$scratch"' EXIT
head -c 256M /dev/zero >"$scratch/disk"
device=$(losetup --find --show --direct-io=off "$scratch/disk")

# requests OPTION: requests a second of fio.
requests() {
    # shellcheck disable=SC2086 # no word or one
    fio --name=job --filename="$device" --direct=1 --ioengine=io_uring --iodepth=16 --rw=randwrite --bs=4k --size=256M \
        --time_based --runtime="$seconds" --output-format=terse $1 | cut -d';' -f49
}
# busy: processor time of the machine since its start that was not idle, in ticks of a hundredth.
busy() { awk '/^cpu /{ print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }
# turn NAME OPTION BOUND: both in turns; status 1 if fewer requests than that share are done while it traces.
turn() {
    for round in $(seq "$rounds"); do
        for kind in alone traced; do
            [ $((round % 2)) = 1 ] || case $kind in alone) kind=traced ;; *) kind=alone ;; esac
            before=$(busy)
            if [ $kind = traced ]; then
                "$trueline" trace "$device" --json >"$scratch/counts" 2>/dev/null &
                sleep 0.3
                count=$(requests "$2")
                own=$(awk '{ print $14 + $15 }' "/proc/$!/stat")
                kill -INT $!
                wait $! || true
                lost=$(sed -n 's/^  "lost": \([0-9]*\),$/\1/p' "$scratch/counts")
            else
                count=$(requests "$2") own=0 lost=0
            fi
            echo "$kind $count $(($(busy) - before)) $own $lost"
        done
    done | awk -v name="$1" -v seconds="$seconds" -v bound="$3" '
        { count[$1, ++n[$1]] = $2; busy[$1, n[$1]] = $3; own[$1, n[$1]] = $4; lost += $5 }
        function median(of, kind,    i, j, m, v) {
            m = n[kind]
            for (i = 1; i <= m; i++) v[i] = of[kind, i]
            for (i = 1; i <= m; i++) for (j = i + 1; j <= m; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
            return v[int((m + 1) / 2)]
        }
        END {
            printf "%-10s alone %d, traced %d requests/s: %.3f; machine busy %.2f and %.2f, trace %.3f of a processor; %d events lost\n", name,
                median(count, "alone"), median(count, "traced"), median(count, "traced") / median(count, "alone"),
                median(busy, "alone") / 100 / seconds, median(busy, "traced") / 100 / seconds, median(own, "traced") / 100 / seconds, lost
            exit median(count, "traced") / median(count, "alone") < bound
        }'
}
turn all '' 0
turn "$rate/s" "--rate_iops=$rate" 0.98
