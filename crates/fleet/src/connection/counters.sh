# What "fleet top" runs on a host: for each line that it is sent, it prints the files in which the kernel counts, each line
# behind the name of its file, and then a line of its own. It sends nothing else, needs no program but grep and uname,
# writes nothing on the host, and ends when its input does. See openssh.rs for how it is given to a login shell.
LC_ALL=C
# grep before 3.6 takes options from there, such as colours.
GREP_OPTIONS=
export LC_ALL GREP_OPTIONS
say() { echo "disksmith-fleet $*"; }
say host "$(uname -s)" "$(uname -m)"
while read -r word; do
    stats=
    # Disks of their own, and no devices that are built on disks; see facts.rs.
    for size in /sys/class/block/*/size; do
        disk=${size%/size}
        case ${disk##*/} in loop[0-9]* | ram[0-9]* | zram[0-9]*) continue ;; esac
        if [ -e "$disk/partition" ] || [ -e "$disk/dm" ] || [ -e "$disk/md" ]; then
            continue
        fi
        sectors=0
        hidden=0
        { read -r sectors < "$size"; read -r hidden < "$disk/hidden"; } 2>/dev/null
        if [ "$sectors" != 0 ] && [ "$hidden" = 0 ]; then
            stats="$stats $disk/stat"
        fi
    done
    grep -H "" /proc/uptime /proc/loadavg /proc/net/dev /sys/class/net/*/device/uevent $stats 2>/dev/null
    say counted
done
