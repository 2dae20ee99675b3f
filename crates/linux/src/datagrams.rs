//! Receives many datagrams in one call: recvmmsg(2).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

/// Buffers for datagrams, and the datagrams of the last call.
#[derive(Debug)]
pub struct Datagrams {
    room: Vec<u8>,
    /// Maximum size of a datagram, in bytes.
    largest: usize,
    lengths: Vec<usize>,
}

impl Datagrams {
    /// Buffers for `count` datagrams of at most `largest` bytes each.
    pub fn new(count: usize, largest: usize) -> Datagrams {
        Datagrams {
            room: vec![0; count * largest],
            largest,
            lengths: Vec::with_capacity(count),
        }
    }

    /// Receives the datagrams that are waiting, without blocking.
    ///
    /// # Errors
    /// `WouldBlock` if no datagram is waiting, or an error of the socket.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.lengths.clear();
        let mut parts: Vec<libc::iovec> = self
            .room
            .chunks_exact_mut(self.largest)
            .map(|room| libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: room.len(),
            })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .map(|part| {
                // SAFETY: all fields are numbers and pointers, for which zero bytes are values.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        // SAFETY: each message has one part, and each part is a separate range of `room` with its length. Parts and
        // room are neither moved nor used otherwise until the call returns.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let received = messages.iter().take(count);
        self.lengths
            .extend(received.map(|message| message.msg_len as usize));
        Ok(())
    }

    /// The datagrams of the last call.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let rooms = self.room.chunks_exact(self.largest);
        self.lengths
            .iter()
            .zip(rooms)
            .map(|(length, room)| &room[..*length])
    }

    /// True if all buffers were filled, so that more may be waiting.
    pub fn is_full(&self) -> bool {
        self.lengths.len() == self.room.len() / self.largest
    }
}

/// Number of datagrams that the kernel dropped at a socket since its creation, mostly because of a full buffer
/// (`SO_MEMINFO`). It wraps at 2³².
///
/// # Errors
/// When the kernel does not report it (before Linux 4.12).
pub fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    /// Numbers of `SO_MEMINFO`, the last of which is `SK_MEMINFO_DROPS` (linux/sock_diag.h).
    const NUMBERS: usize = 9;
    let mut numbers = [0_u32; NUMBERS];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `numbers`, which has as many.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match failed {
        0 if length as usize == size_of_val(&numbers) => Ok(numbers[NUMBERS - 1]),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[track_caller]
    fn wait_until(mut is_so: impl FnMut() -> bool) {
        let is_so = (0..60_000).any(|_| {
            let now = is_so();
            if !now {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            now
        });
        assert!(is_so, "datagrams are neither received nor dropped");
    }

    #[test]
    fn each_datagram_is_received_or_dropped() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(dropped(to.as_fd()).unwrap(), 0);
        rustix::net::sockopt::set_socket_recv_buffer_size(&to, 4096).unwrap();
        let sent = 200;
        for _ in 0..sent {
            from.send_to(&[b'a'; 1000], to.local_addr().unwrap())
                .unwrap();
        }
        let (mut datagrams, mut received, mut lost) = (Datagrams::new(8, 2000), 0, 0);
        // On a busy host the kernel delivers some datagrams later.
        wait_until(|| {
            while datagrams.receive(to.as_fd()).is_ok() {
                received += datagrams.iter().count();
            }
            lost = dropped(to.as_fd()).unwrap() as usize;
            received + lost >= sent
        });
        assert!(lost > 0 && received + lost == sent, "{received} {lost}");
    }

    #[test]
    fn datagrams_come_whole_and_in_order() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut datagrams = Datagrams::new(4, 16);
        let error = datagrams.receive(to.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        for text in ["a", "", "ccc", "dd", "e", "longer than there is room"] {
            from.send_to(text.as_bytes(), to.local_addr().unwrap())
                .unwrap();
        }
        let mut all: Vec<Vec<u8>> = Vec::new();
        wait_until(|| {
            while datagrams.receive(to.as_fd()).is_ok() {
                all.extend(datagrams.iter().map(<[u8]>::to_vec));
            }
            all.len() >= 6
        });
        let texts: Vec<&[u8]> = all.iter().map(|one| &one[..]).collect();
        assert_eq!(
            texts,
            [&b"a"[..], b"", b"ccc", b"dd", b"e", b"longer than ther"]
        );
    }
}
