package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/deadletteroffice/dlo/web"
)

// resolver returns the addresses of a name; net.Resolver.LookupNetIP is one.
type resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)

// addresses returns the addresses, host:port, that a listen address stands for, IPv4 first, each of
// them a loopback address. A name is resolved here, once: what is listened on is what was looked
// at. It refuses an address that others could reach, as there is no sign-in yet.
func addresses(ctx context.Context, listen string, lookup resolver) ([]string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, wrong("listen %q: %w; it looks like 127.0.0.1:8672", listen, err)
	}
	const only = "only a loopback address is served, because this version has no sign-in; put an authenticating proxy on this machine before 127.0.0.1:8672"
	literal, err := netip.ParseAddr(host)
	found, named := []netip.Addr{literal}, err != nil
	if named && host != "" {
		if found, err = lookup(ctx, "ip", host); err != nil {
			return nil, wrong("listen %s: what address is that? %w", listen, err)
		}
	}
	for i, ip := range found {
		found[i] = ip.Unmap()
		switch {
		case ip.Unmap().IsLoopback() && ip.Zone() == "":
		case !named || host == "":
			return nil, wrong("listen %s: %s", listen, only)
		case len(found) > 1:
			return nil, wrong("listen %s: %s is %s as well, and %s", listen, host, ip, only)
		default:
			return nil, wrong("listen %s: %s is %s, and %s", listen, host, ip, only)
		}
	}
	slices.SortFunc(found, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(a.BitLen(), b.BitLen()), a.Compare(b)) })
	var list []string
	for _, ip := range slices.Compact(found) {
		list = append(list, net.JoinHostPort(ip.String(), port))
	}
	return list, nil
}

// listen takes the first of the addresses that this machine has. One that is in use is not passed
// over: whoever opens the name would find the other program.
func listen(addresses []string) (net.Listener, error) {
	var failed []error
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l, nil
		}
		if failed = append(failed, err); errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("listen: %w; choose another address with listen or DLO_LISTEN", errors.Join(failed...))
}

// hostsOf is the Host allow list of a server that was told to listen on one address and does on
// another, with the port that it got: a name that it was told is answered as well.
func hostsOf(listen, address, publicURL string, configured []string) []string {
	hosts := web.Hosts(address, publicURL, configured)
	host, _, _ := net.SplitHostPort(listen)
	_, port, _ := net.SplitHostPort(address)
	if name := net.JoinHostPort(host, port); len(configured) == 0 && !slices.Contains(hosts, name) {
		hosts = append(hosts, name)
	}
	return hosts
}
