//! What kind of place an address is (the special-purpose registries of IANA, RFC 6890).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address lies, as seen from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The public internet.
    Public,
    /// A network of one's own: a company's, a carrier's, a VPN's.
    Private,
    /// This machine.
    Loopback,
    /// This link, where clouds keep the metadata of a machine.
    LinkLocal,
    /// No place to connect to: unspecified, multicast, documentation, not assigned.
    Reserved,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Public => "public",
            Place::Private => "private",
            Place::Loopback => "loopback",
            Place::LinkLocal => "link-local",
            Place::Reserved => "reserved",
        })
    }
}

impl Place {
    /// The place of an address. One that carries an IPv4 address is where that one is.
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => v4(address),
            IpAddr::V6(address) => carried(address).map_or_else(|| v6(address), v4),
        }
    }
}

fn v4(address: Ipv4Addr) -> Place {
    match address.octets() {
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Place::Private,
        // Shared with the customers of a carrier (RFC 6598), and what VPNs hand out.
        [100, 64..=127, ..] => Place::Private,
        // For measurements (RFC 2544), and what a VPN hands out that answers for the name server: every name is there.
        [198, 18..=19, ..] => Place::Private,
        [127, ..] => Place::Loopback,
        [169, 254, ..] => Place::LinkLocal,
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] => Place::Reserved,
        // Documentation.
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Place::Reserved,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => Place::Reserved,
        _ => Place::Public,
    }
}

fn v6(address: Ipv6Addr) -> Place {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Place::Loopback,
        // Unique local, and site-local as it was called before.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Place::Private,
        [0xfe80..=0xfebf, ..] => Place::LinkLocal,
        // Protocols (Teredo and ORCHID among them), then documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Place::Reserved,
        // All that is assigned as global unicast.
        [0x2000..=0x3fff, ..] => Place::Public,
        _ => Place::Reserved,
    }
}

/// The IPv4 address that a packet ends up at: mapped, 6to4 (RFC 3056), NAT64 (RFC 6052).
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_from_its_first_to_its_last_address() {
        for (place, addresses) in [
            (
                Place::Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.0.1 \
                 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.167.0.1 192.169.0.0 198.17.0.1 \
                 198.20.0.0 203.0.112.1 203.0.114.0 223.255.255.255 2000:: 2001:200:: 2001:db7:: 2001:db9:: \
                 2606:4700::1111 3ffe:: 3fff:1000:: ::ffff:1.1.1.1 2002:101:101::1 64:ff9b::1.1.1.1",
            ),
            (
                Place::Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 \
                 100.127.255.255 198.18.0.0 198.19.255.255 fc00:: fdff:ffff:: fd00:ec2::254 fec0::1 \
                 ::ffff:10.0.0.5 ::ffff:c0a8:1 2002:a00:5::1 64:ff9b::10.0.0.5",
            ),
            (
                Place::Loopback,
                "127.0.0.0 127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 2002:7f00:1:: 64:ff9b::7f00:1",
            ),
            (
                Place::LinkLocal,
                "169.254.0.0 169.254.169.254 169.254.255.255 fe80:: fe80::1 febf:ffff:: ::ffff:169.254.169.254 \
                 2002:a9fe:a9fe::1 64:ff9b::169.254.169.254",
            ),
            (
                Place::Reserved,
                "0.0.0.0 0.255.255.255 192.0.0.0 192.0.0.255 192.88.99.1 192.0.2.1 198.51.100.1 203.0.113.255 224.0.0.1 \
                 239.255.255.255 240.0.0.0 255.255.255.255 :: ::2 ::127.0.0.1 ::fffe:1.1.1.1 64:ff9b:1::1.1.1.1 100::1 \
                 2001::1 2001:1ff:ffff:: 2001:db8::1 3fff::1 3fff:fff:: 1fff:: 4000:: 5f00::1 fbff:: fe00:: ff00:: \
                 ff02::1 ffff:: ::ffff:0.0.0.0 64:ff9b::240.0.0.1",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(Place::of(address.parse().unwrap()), place, "{address}");
            }
        }
    }
}
