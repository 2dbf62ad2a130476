//! Switches on the loopback of a new network: programs serve functions to the engine on it.

use std::io;
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// The loopback is the first interface of every network.
const LOOPBACK: i32 = 1;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;

pub(super) fn bring_up() -> io::Result<()> {
    let channel = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let channel = channel.as_raw_fd();
    send(channel, &request(), MsgFlags::empty())?;
    let mut answer = [0; 64];
    let length = recv(channel, &mut answer, MsgFlags::empty())?;
    match error_of(&answer[..length]) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel's answer is not understood")),
    }
}

/// A message of the kernel's routing protocol: its header, then what is asked of which interface.
fn request() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend([0; 4]); // Family, padding and kind of interface.
    body.extend(LOOPBACK.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes()); // What to set,
    body.extend(IFF_UP.to_ne_bytes()); // and what of it to change.
    let mut message = Vec::new();
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message.extend(1_u32.to_ne_bytes()); // The number of this request.
    message.extend(0_u32.to_ne_bytes()); // From whomever.
    message.extend(body);
    message
}

/// The number in an acknowledgement: zero, or an error below zero.
fn error_of(answer: &[u8]) -> Option<i32> {
    let number = answer.get(16..20)?;
    Some(i32::from_ne_bytes(number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_says_how_long_it_is() {
        let request = request();
        assert_eq!(request.len(), 32);
        assert_eq!(request[..4], 32_u32.to_ne_bytes());
    }

    #[test]
    fn an_answer_without_a_number_is_none() {
        assert_eq!(error_of(&[0; 10]), None);
        assert_eq!(error_of(&[0; 36]), Some(0));
    }
}
