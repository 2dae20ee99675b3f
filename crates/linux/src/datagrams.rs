//! Many datagrams in one call: recvmmsg(2).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

/// Room for datagrams, and those that were received last.
#[derive(Debug)]
pub struct Datagrams {
    room: Vec<u8>,
    /// Bytes of the largest.
    largest: usize,
    lengths: Vec<usize>,
}

impl Datagrams {
    /// Room for so many datagrams of at most so many bytes each.
    pub fn new(count: usize, largest: usize) -> Datagrams {
        Datagrams {
            room: vec![0; count * largest],
            largest,
            lengths: Vec::with_capacity(count),
        }
    }

    /// Receives the datagrams that are there, without waiting for more.
    ///
    /// # Errors
    /// Where there is none (`WouldBlock`), or the socket has an error.
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
        // SAFETY: each message has one part, and each part is a piece of `room` of its own with its length. Parts and
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

    /// The datagrams that were received last.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let rooms = self.room.chunks_exact(self.largest);
        self.lengths
            .iter()
            .zip(rooms)
            .map(|(length, room)| &room[..*length])
    }

    /// True if there may be more than were received last.
    pub fn is_full(&self) -> bool {
        self.lengths.len() == self.room.len() / self.largest
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

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
        while datagrams.receive(to.as_fd()).is_ok() {
            all.extend(datagrams.iter().map(<[u8]>::to_vec));
        }
        let texts: Vec<&[u8]> = all.iter().map(|one| &one[..]).collect();
        assert_eq!(
            texts,
            [&b"a"[..], b"", b"ccc", b"dd", b"e", b"longer than ther"]
        );
    }
}
