//! Differences between the architectures of machines. A machine has the architecture of the host, since it runs the
//! host's own binary.

/// An architecture, under its names in Debian and QEMU.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arch {
    /// Name in Rust and in the kernel.
    pub name: &'static str,
    /// Name in Debian.
    pub debian: &'static str,
    /// The emulator.
    pub qemu: &'static str,
    /// The Debian package of the emulator.
    pub qemu_package: &'static str,
    /// The package that depends on the newest cloud kernel.
    pub kernel: &'static str,
    /// The folder of libraries.
    pub triplet: &'static str,
    /// QEMU's machine type.
    pub machine: &'static str,
    /// The kernel's name of the first serial port.
    pub console: &'static str,
    /// Additional words of the kernel's command line for this architecture, with a space before them.
    pub parameters: &'static str,
}

const ALL: [Arch; 2] = [
    Arch {
        name: "x86_64",
        debian: "amd64",
        qemu: "qemu-system-x86_64",
        qemu_package: "qemu-system-x86",
        kernel: "linux-image-cloud-amd64",
        triplet: "x86_64-linux-gnu",
        machine: "q35",
        console: "ttyS0",
        // The kernel panics if it counts fewer than five ticks in the time of ten, as when a busy host does not run
        // the emulator (arch/x86/kernel/apic/io_apic.c, timer_irq_works).
        parameters: " no_timer_check",
    },
    Arch {
        name: "aarch64",
        debian: "arm64",
        qemu: "qemu-system-aarch64",
        qemu_package: "qemu-system-arm",
        kernel: "linux-image-cloud-arm64",
        triplet: "aarch64-linux-gnu",
        machine: "virt",
        console: "ttyAMA0",
        parameters: "",
    },
];

impl Arch {
    /// The host's architecture; `None` if the lab does not support it.
    pub(super) fn host() -> Option<&'static Arch> {
        ALL.iter().find(|arch| arch.name == std::env::consts::ARCH)
    }
}
