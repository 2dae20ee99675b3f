# The tour, in the lab's machine. Each command is shown before it runs, and its status is held against what is true of
# the volumes. COLUMNS, BOLD and PLAIN come from outside.
wrong=0
say() { printf '\n%s\n' "$1" | fold -s -w "$COLUMNS"; }
part() { printf '\n%s== %s ==%s\n' "$BOLD" "$1" "$PLAIN"; }
show() { printf '\n%s$ %s%s\n' "$BOLD" "$1" "$PLAIN"; }
run() {
    show "$2"
    eval "$2" 2>&1
    status=$?
    [ $status -eq "$1" ] && return
    wrong=$((wrong + 1))
    say "(This ended with status $status. What is true of the volumes calls for $1.)"
}
# Reads of 16 KiB at random from the database's file, 50 a second, beside what comes next.
load='disksmith bench /data/ibdata1 --workload pattern=random,read=1,block=16k,threads=4,depth=1 \
    --rate 50 --seconds 10m --precision 0 > /tmp/service'
reads() { awk '{ sum += $1 } END { print sum + 0 }' /sys/block/md*/stat; }
begin_service() {
    show "$load &"
    before=$(reads)
    eval "$load" 2>&1 & service=$!
    until [ "$(reads)" -gt $((before + 50)) ]; do
        kill -0 $service 2>/dev/null || { cat /tmp/service; exit 3; }
        sleep 0.2
    done
}
end_service() {
    kill -TERM $service
    wait $service 2>/dev/null
}

part '1 of 4: a volume that was restored from a snapshot'
say '/dev/vda has been restored from a snapshot: the first read of each block fetches it from far away.
Is this volume any good?'
run 0 'disksmith bench /dev/vda --phase seek --seconds 5s'
say 'A cap, a bad volume, or only cold? Random places are read, each beside one that is warm:'
run 1 'disksmith warm --check /dev/vda'
say 'Cold. Each block is read once, many at a time:'
run 0 'disksmith warm /dev/vda'
run 0 'disksmith bench /dev/vda --phase seek --seconds 5s'

part '2 of 4: an array, and a file system aligned to it'
say 'Nothing is overwritten unless it is named.
The disks are new and hold zeros, so that nothing is to be synced first:'
run 0 'disksmith array create --name data --level 5 --assume-clean --fs ext4 --mount /data \
    --members /dev/vdb,/dev/vdc,/dev/vdd,/dev/vde --destroy /dev/vdb --destroy /dev/vdc \
    --destroy /dev/vdd --destroy /dev/vde'
run 0 'dd if=/dev/zero of=/data/ibdata1 bs=1M count=128 conv=fsync'

part '3 of 4: the slow member'
say 'A service reads at random, 50 times a second, and is slow. Which disk is it?'
begin_service
run 0 'disksmith watch /dev/md/data --count 25 | grep "^!"'
end_service
say 'It is replaced while the array is in use:'
run 0 'disksmith array replace data --member /dev/vdd --with /dev/vdf --destroy /dev/vdf'
run 0 'disksmith array list'

part '4 of 4: the spoilt block'
say 'A disk returns other bytes than were written, and no error: here 64 KiB of /dev/vdb.'
run 0 'dd if=/dev/urandom of=/dev/vdb bs=64k seek=512 count=1 conv=fsync'
say 'The check runs while the service reads on, at the rate that its latency allows:'
begin_service
run 1 'disksmith scrub data --locate'
end_service

say 'That was the tour. All of it works on real disks: disksmith --help'
[ $wrong -eq 0 ] || exit 1
