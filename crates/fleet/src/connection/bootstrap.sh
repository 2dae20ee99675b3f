# What runs first on a host: it takes the program in, and starts it. See openssh.rs for what is said
# to it and what it says.
#
# It is given to the user's login shell in one line between single quotes, which all shells
# understand. So there is no single quote, no backslash, and no exclamation mark but that of "!=".
umask 077
set -f
LC_ALL=C
export LC_ALL
say() { echo "disksmith-fleet $*"; }
say host "$(uname -s)" "$(uname -m)"
read -r word size hash sudo || exit 1
[ "$word" = go ] || exit 0
as=
if [ "$sudo" = yes ] && [ "$(id -u)" != 0 ]; then
    if why=$(sudo -n true 2>&1); then
        as="sudo -n"
    else
        say refused sudo "$why"
        exit 0
    fi
fi
sum=
for one in sha256sum "shasum -a 256" "openssl dgst -sha256 -r"; do
    if [ -z "$sum" ] && command -v "${one%% *}" >/dev/null 2>&1; then
        sum=$one
    fi
done
if [ -z "$sum" ]; then
    say refused sum
    exit 0
fi
# A folder of its own, in a place that has room and may execute.
dir=
tried=
clean() { if [ -n "$dir" ]; then rm -rf "$dir"; fi; }
trap clean EXIT
trap "exit 1" HUP INT TERM PIPE
for place in "${TMPDIR:-/tmp}" /tmp /var/tmp "${XDG_RUNTIME_DIR:-/dev/shm}" /dev/shm /run "${HOME:-/tmp}"; do
    if [ -n "$dir" ] || [ "${place#/}" = "$place" ]; then
        continue
    fi
    if dir=$(mktemp -d "$place/disksmith-agent.XXXXXXXX" 2>/dev/null); then
        free=$(df -Pk "$dir" 2>/dev/null | { read -r titles; read -r name all used free rest; echo "$free"; })
        # Without a first line that names a shell, this one runs it, where the kernel lets it be run.
        why=full
        if [ "${free:-0}" -ge $((size / 1024 + 64)) ] 2>/dev/null && echo "exit 0" 2>/dev/null > "$dir/try"; then
            why=noexec
            chmod 700 "$dir/try"
            if "$dir/try" 2>/dev/null; then
                why=
            fi
        fi
        rm -f "$dir/try"
        if [ -n "$why" ]; then
            tried="$tried $place:$why"
            rm -rf "$dir"
            dir=
        fi
    else
        dir=
        tried="$tried $place:unwritable"
    fi
done
if [ -z "$dir" ]; then
    say refused place "$tried"
    exit 0
fi
say ready
# A connection that hangs shall not leave the folder for hours.
limit=
if command -v timeout >/dev/null 2>&1; then
    limit="timeout 900"
fi
if $limit head -c "$size" > "$dir/disksmith" 2> "$dir/why"; then
    rm -f "$dir/why"
else
    read -r why < "$dir/why"
    say refused write "$why"
    exit 0
fi
got=$($sum < "$dir/disksmith")
if [ "${got%% *}" != "$hash" ]; then
    say refused hash "${got%% *}"
    exit 0
fi
chmod 700 "$dir/disksmith"
say received
$as "$dir/disksmith" agent
say ended "$?"
