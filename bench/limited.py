"""A loop device that the kernel holds to a limit (the blkio controller of cgroup v1), for the scripts of this
folder. Needs root.
"""
import contextlib
import os
import stat
import sys
import time

import children
from children import run

BLKIO = "/sys/fs/cgroup/blkio"
WAYS = ("read", "write")


def join(groups):
    """Puts the process that calls it into control groups."""
    for group in groups:
        with open(os.path.join(group, "cgroup.procs"), "w") as procs:
            procs.write(str(os.getpid()))


class Limited:
    """A loop device full of random data, and a group that is held to `iops` requests a second on it, of
    reads and of writes each. Used by `with`, which takes down what is there of it.

    With `everyone` it is the group of all processes, and of what the kernel writes back for them. With `direct` the
    device does not go through the page cache.
    """

    def __init__(self, folder, name, mib, iops, everyone=False, direct=False):
        self.image = os.path.join(folder, name)
        self.point = os.path.join(folder, f"{name}-mounted")
        self.groups = [BLKIO if everyone else os.path.join(BLKIO, f"disksmith-{os.getpid()}-{name}")]
        self.mib, self.iops, self.everyone, self.direct = mib, iops, everyone, direct
        self.device = None

    def __enter__(self):
        try:
            with open(self.image, "wb") as file:
                for _ in range(self.mib):
                    file.write(os.urandom(1 << 20))
            os.mkdir(self.point)
            way = ["--direct-io=on"] if self.direct else []
            self.device = run("losetup", *way, "--find", "--show", self.image).strip()
            if not self.everyone:
                os.mkdir(self.groups[0])
            self._hold("iops", self.iops)
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(self, *_):
        self._take_down()

    def _take_down(self):
        """By what is there: a command that a signal cut short has not said how far it came."""
        # The last is taken down first, and a step that fails does not keep the others back.
        with children.taking_down(), contextlib.ExitStack() as steps:
            steps.callback(self._detach)
            if self.everyone:
                steps.callback(self._let_go)
            else:
                for group in self.groups:
                    steps.callback(remove_group, group)
            steps.callback(self._unmount)

    def _unmount(self):
        if os.path.ismount(self.point):
            run("umount", self.point)

    def _detach(self):
        for device in run("losetup", "--noheadings", "--output", "NAME", "--associated", self.image).split():
            with contextlib.ExitStack() as steps:
                steps.callback(run, "losetup", "--detach", device)
                for number in ("1", "2"):
                    steps.callback(forget_partition, device, number)

    def _let_go(self):
        for unit in ("iops", "bps") if self.device else ():
            self._hold(unit, 0)

    def _hold(self, unit, limit):
        number = os.stat(self.device).st_rdev
        for way in WAYS:
            with open(f"{self.groups[0]}/blkio.throttle.{way}_{unit}_device", "w") as file:
                file.write(f"{os.major(number)}:{os.minor(number)} {limit}")

    def hold_bytes(self, mib_per_s):
        """Holds it to so many bytes a second too; zero is no limit of them."""
        self._hold("bps", mib_per_s << 20)

    def halves(self):
        """Two partitions of it. The kernel is told of them, so that it need not know any table; there is none."""
        half = self.mib // 2 << 11
        for number, start in (("1", 2048), ("2", half)):
            run("addpart", self.device, number, str(start), str(half - 2048))
        parts = [f"{self.device}p{number}" for number in (1, 2)]
        for part in parts:
            with open(f"/sys/class/block/{os.path.basename(part)}/dev") as numbers:
                number = os.makedev(*map(int, numbers.read().split(":")))
            # Where no udev makes nodes, as in a container, one may be left that is another partition's.
            if os.path.exists(part) and os.stat(part).st_rdev != number:
                os.remove(part)
            if not os.path.exists(part):
                os.mknod(part, 0o600 | stat.S_IFBLK, number)
        return parts

    def start(self, *words, **options):
        """A command that is held to the limit."""
        groups = list(self.groups)
        return children.start(*words, preexec_fn=lambda: join(groups), **options)

    def run(self, *words, **options):
        """What a command prints that is held to the limit."""
        return children.output(self.start(*words, **options))


def forget_partition(device, number):
    if os.path.exists(f"/sys/class/block/{os.path.basename(device)}p{number}"):
        run("delpart", device, number)
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"{device}p{number}")


def remove_group(group):
    """The kernel may take a moment to let go of the last process of a group."""
    for _ in range(100):
        try:
            os.rmdir(group)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
    print(f"the group {group} is still in use", file=sys.stderr)
