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

// resolver returns the addresses of a name, like net.Resolver.LookupNetIP.
type resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)

// addresses returns the addresses that a listen address stands for, as host:port, IPv4 first. All
// of them must be loopback addresses. Addresses that other machines could reach are rejected,
// because there is no sign-in yet. A name is resolved only here, so that dlo listens on exactly the
// addresses that were checked.
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

// listen listens on the first of the addresses that this machine has. It does not skip an address
// that is in use, because the listen address would then lead people to the other program.
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

// hostsOf returns the host names that a server accepts in requests. The configured listen address
// may differ from the actual address and port. Requests that use the configured name are accepted
// too.
func hostsOf(listen, address, publicURL string, configured []string) []string {
	hosts := web.Hosts(address, publicURL, configured)
	host, _, _ := net.SplitHostPort(listen)
	_, port, _ := net.SplitHostPort(address)
	if name := net.JoinHostPort(host, port); len(configured) == 0 && !slices.Contains(hosts, name) {
		hosts = append(hosts, name)
	}
	return hosts
}
