#!/bin/sh
# The first process of the lab's machine. It loads the kernel's modules, runs the command with its
# output going to two ports of its own, and reports on a third how it ended. The machine is ended
# from outside, once all of that has arrived there.

bb=/usr/bin/busybox
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 TERM=dumb

say() { echo "lab: $*" >/dev/console; }
# Nothing can be done here without what failed. The console says it; the host reads that.
stop() { say "stopped: $*"; while :; do $bb sleep 3600; done; }

$bb mkdir -p /proc /sys /dev /tmp /run /mnt /root /var/tmp
$bb mount -t devtmpfs dev /dev
$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
$bb mkdir -p /dev/pts /dev/shm
$bb mount -t devpts pts /dev/pts
$bb mount -t tmpfs shm /dev/shm
$bb mount -t tmpfs tmp /tmp
$bb mount -t tmpfs run /run
$bb --install -s /usr/bin
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
ln -s /proc/self/mounts /etc/mtab
mkdir -p /run/mdadm /run/lock
hostname lab
ip link set lo up 2>/dev/null

while read -r module; do
    insmod "/lab/modules/$module" || say "the module $module could not be loaded"
done </lab/modules.now
# Disks are known when their driver is: what comes later would be missed.
read -r disks own </lab/disks
tries=0
while set -- /sys/block/vd*; [ "$disks" -gt 0 ] && { [ ! -e "$1" ] || [ $# -lt "$disks" ]; }; do
    tries=$((tries + 1))
    [ $tries -gt 300 ] && stop "only $# of $disks disks have appeared"
    sleep 0.1
done

# The ports are announced by name, some time after their driver.
port() {
    for tries in $(seq 300); do
        for known in /sys/class/virtio-ports/*; do
            read -r name <"$known/name" 2>/dev/null || continue
            if [ "$name" = "$1" ] && [ -c "/dev/${known##*/}" ]; then
                echo "/dev/${known##*/}"
                return
            fi
        done
        sleep 0.1
    done
    stop "there is no port $1"
}
stdout=$(port lab.stdout)
stderr=$(port lab.stderr)
exec 3<>"$(port lab.control)"

# What outlives a power cut: a disk, if there is one.
mkdir -p /lab/state
for disk in /sys/block/vd*; do
    [ "$own" != none ] || break
    [ "$(cat "$disk/serial" 2>/dev/null)" = lab-state ] || continue
    disk=/dev/${disk##*/}
    # The host knows whether anything can be lost. By this label it knows its disk again.
    if [ "$own" = new ]; then
        mkfs.ext4 -q -F -L lab-state "$disk" >/dev/console 2>&1 || stop "the state disk has no room"
    fi
    mount "$disk" /lab/state 2>/dev/console || stop "the state disk cannot be mounted"
done
export DISKSMITH_LEDGER=/lab/state/ledger.db

# Pipes stand between the command and the ports: a port cannot be opened twice, and a command may
# open /dev/stderr itself. The bytes are counted, so that the host knows when it has all of them.
mkfifo /run/stdout /run/stderr
mkfifo /run/stdout.count /run/stderr.count
wc -c </run/stdout.count >/run/stdout.bytes &
relays=$!
tee "$stdout" </run/stdout >/run/stdout.count &
relays="$relays $!"
wc -c </run/stderr.count >/run/stderr.bytes &
relays="$relays $!"
tee "$stderr" </run/stderr >/run/stderr.count &
relays="$relays $!"

# Whether output is still on its way.
relaying() {
    for relay in $relays; do
        kill -0 "$relay" 2>/dev/null && return
    done
    return 1
}

# What the processes of a group do and run.
group() { ps -o pgid,stat,pid,args | grep "^ *$1 "; }

# The host can ask for an interruption, once; the command leads a group of its own, which may not be
# there yet. A shell that is about to start a program can lose an interruption: dash leaves it until
# the program has ended, and its child ignores it until it has become the program. So a command that
# is younger than five seconds gets it when two looks have seen the same programs, asleep.
while read -r word <&3; do
    [ "$word" = interrupt ] || continue
    until [ -s /run/command.pid ]; do sleep 0.1; done
    leader=$(cat /run/command.pid)
    began=$(stat -c %Y /run/command.pid)
    seen=
    while [ $(($(date +%s) - began)) -lt 5 ]; do
        now=$(group "$leader")
        [ "$now" = "$seen" ] && ! echo "$now" | grep -q "^ *$leader *[RD]" && break
        seen=$now
        sleep 0.2
    done
    kill -INT "-$leader"
    break
done &

# The relays end when nobody holds the pipes open any more: they are to outlive the preparation.
exec 4>/run/stdout 5>/run/stderr
# By its path: busybox would otherwise start the shell that it has itself.
run() { setsid /bin/sh "$1" </dev/null >&4 2>&5 3>&- 4>&- 5>&-; }
# Ends the relays, and waits for what is on its way, however long it takes. What was left in the
# background may hold the pipes open: it is given a moment, and then ended.
drain() {
    exec 4>&- 5>&-
    tries=0
    while relaying; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -gt 20 ] || continue
        for process in /proc/[0-9]*; do
            case " 1 $relays " in *" ${process##*/} "*) continue ;; esac
            for open in "$process"/fd/*; do
                if [ "$open" -ef /run/stdout ] || [ "$open" -ef /run/stderr ]; then
                    kill -KILL "${process##*/}" 2>/dev/null
                fi
            done
        done
    done
}
# How it ended, and how many bytes the host is to wait for.
report() {
    read -r out </run/stdout.bytes
    read -r err </run/stderr.bytes
    echo "$1 $2 ${out:-0} ${err:-0}" >&3
    while :; do sleep 3600; done
}

if [ -e /lab/prepare ]; then
    run /lab/prepare
    status=$?
    if [ $status -ne 0 ]; then
        drain
        report unprepared $status
    fi
fi
echo started >&3
run /lab/command
status=$?
drain
kill -KILL "-$(cat /run/command.pid)" 2>/dev/null

for file in ledger.db ledger.db-wal; do
    [ -e "/lab/state/$file" ] || continue
    # Exactly as much as was announced, also when somebody still writes to it.
    size=$(stat -c %s "/lab/state/$file")
    echo "file $file $size" >&3
    head -c "$size" "/lab/state/$file" >&3
done
sync
# What is mounted on the volumes is left clean for whoever uses them next. It is named by its device:
# the place may have blanks in its name.
grep '^/dev/' /proc/mounts | cut -d ' ' -f 1 | tac | while read -r device; do
    umount -r "$device" 2>/dev/null
done
mdadm --stop --scan >/dev/null 2>&1
sync
report end $status
