#!/bin/sh
# Loads a module by its name or by what the kernel calls it when it asks for one, with those that it
# depends on. The lists were made with the initramfs.

quiet=
for word; do
    case $word in
    -q | --quiet) quiet=1 ;;
    -r | --remove)
        echo "modprobe: this machine only loads modules; rmmod removes one" >&2
        exit 1
        ;;
    -*) ;;
    *)
        wanted=$word
        break
        ;;
    esac
done
name=$(echo "$wanted" | tr - _)
while read -r alias real; do
    [ "$alias" = "$name" ] && name=$real && break
done </lab/modules.alias
while read -r known files; do
    [ "$known" = "$name" ] || continue
    for file in $files; do
        loaded=$(basename "$file" .ko | tr - _)
        [ -d "/sys/module/$loaded" ] || insmod "/lab/modules/$file" || exit 1
    done
    exit 0
done </lab/modules.dep
[ -n "$quiet" ] || echo "modprobe: this machine has no module $wanted" >&2
exit 1
