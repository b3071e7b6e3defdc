//! The best plain sockets: non-blocking calls straight from and to user memory, spinning.

use super::way::Way;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::net::{RecvFlags, SendFlags};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// One connection.
pub struct Bare {
    fd: OwnedFd,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Bare {
    /// Connects the two processes, with the options that are best for it.
    pub fn open(control: &mut TcpStream, here: IpAddr, first: bool) -> Result<Self, Box<dyn Error>> {
        let family = if here.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let fd = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let _ = ["reno", "cubic"].iter().find(|name| sockopt::set_tcp_congestion(&fd, name).is_ok());
        sockopt::set_tcp_nodelay(&fd, true)?;
        sockopt::set_socket_send_buffer_size(&fd, 512 << 10)?;
        let fd = if first {
            net::bind(&fd, &SocketAddr::new(here, 0))?;
            net::listen(&fd, 1)?;
            let port = SocketAddr::try_from(net::getsockname(&fd)?)?.port();
            control.write_all(&port.to_le_bytes())?;
            net::accept(&fd)?
        } else {
            let mut port = [0; 2];
            control.read_exact(&mut port)?;
            net::connect(&fd, &SocketAddr::new(control.peer_addr()?.ip(), u16::from_le_bytes(port)))?;
            fd
        };
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Bare { fd, out: Vec::new(), into: Vec::new() })
    }
}

impl Way for Bare {
    fn prepare(&mut self, len: usize) {
        self.out.resize(len.max(48), 1);
        self.into.resize(len.max(48), 1);
    }

    fn send(&mut self, len: usize) {
        let mut done = 0;
        while done < len {
            match net::send(&self.fd, &self.out[done..len], SendFlags::NOSIGNAL) {
                Ok(sent) => done += sent,
                Err(Errno::AGAIN) => {}
                Err(e) => panic!("send: {e}"),
            }
        }
    }

    fn recv(&mut self, len: usize) {
        let mut done = 0;
        while done < len {
            match net::recv(&self.fd, &mut self.into[done..len], RecvFlags::empty()) {
                Ok((_, 0)) => panic!("the other side has ended"),
                Ok((_, got)) => done += got,
                Err(Errno::AGAIN) => {}
                Err(e) => panic!("recv: {e}"),
            }
        }
    }
}
