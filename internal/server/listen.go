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

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/web"
)

// resolver returns the IP addresses of a host name, as net.Resolver.LookupNetIP does.
type resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)

// allAddresses resolves each listen address of the configuration. For each of them, it returns a
// list of addresses of the form host:port.
func allAddresses(ctx context.Context, cfg config.Config, lookup resolver) ([][]string, error) {
	var all [][]string
	sockets := 0
	for _, listen := range append([]string{cfg.Listen}, cfg.Listens...) {
		list, err := addresses(ctx, listen, missingForRemote(cfg), lookup)
		if err != nil {
			return nil, err
		}
		if _, ok := socketOf(listen); ok {
			sockets++
		}
		all = append(all, list)
	}
	if sockets == len(all) && lacksName(cfg) {
		return nil, wrong(
			"listen %s: dlo would refuse every request, because it does not know the name by which people reach it: set public_url, or hosts",
			cfg.Listen,
		)
	}
	return all, nil
}

// addresses resolves a listen address to addresses of the form host:port, IPv4 first.
//
// The parameter "lacks" says what the configuration lacks before other machines may reach dlo. If
// it is not "", all addresses must be loopback addresses. A name is resolved only here, so that dlo
// listens on exactly the addresses that were checked.
func addresses(ctx context.Context, listen, lacks string, lookup resolver) ([]string, error) {
	if _, ok := socketOf(listen); ok { // the mode of the socket says who can connect
		return []string{listen}, nil
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, wrong("listen %q: %w; it looks like 127.0.0.1:8672, or unix:/run/dlo/dlo.sock", listen, err)
	}
	if lacks == "" && host == "" {
		return []string{listen}, nil
	}
	literal, err := netip.ParseAddr(host)
	found, named := []netip.Addr{literal}, err != nil
	if named && host != "" {
		if found, err = lookup(ctx, "ip", host); err != nil {
			return nil, wrong("listen %s: the name cannot be resolved to an address: %w", listen, err)
		}
	}
	for i, ip := range found {
		found[i] = ip.Unmap()
		switch {
		case lacks == "" || ip.Unmap().IsLoopback() && ip.Zone() == "":
		case !named || host == "":
			return nil, wrong("listen %s: %s", listen, lacks)
		case len(found) > 1:
			return nil, wrong("listen %s: %s is %s as well, and %s", listen, host, ip, lacks)
		default:
			return nil, wrong("listen %s: %s is %s, and %s", listen, host, ip, lacks)
		}
	}
	slices.SortFunc(
		found, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(a.BitLen(), b.BitLen()), a.Compare(b)) },
	)
	var list []string
	for _, ip := range slices.Compact(found) {
		list = append(list, net.JoinHostPort(ip.String(), port))
	}
	return list, nil
}

// maxConnections is the maximum number of connections that one address serves at the same time.
// Further connections wait. A process usually has 1,024 file descriptors, and the store and the
// brokers need some of them.
const maxConnections = 512

// missingForRemote returns what the configuration lacks to allow an address that other machines can
// reach. If nothing is missing, it returns "".
func missingForRemote(cfg config.Config) string {
	switch {
	case !cfg.Auth.On():
		return "other machines could reach it, and everybody there might do everything: an address other than loopback needs auth (auth.proxy, auth.users or auth.tokens); see docs/security.md"
	case cfg.TLS.Cert == "" && !cfg.Auth.Proxy.Set():
		return "passwords and tokens would cross the network in the clear: an address other than loopback needs tls, or auth.proxy for a proxy that has it; see docs/security.md"
	case lacksName(cfg):
		return "dlo would refuse every request, because it does not know the name by which people reach it: set public_url, or hosts"
	}
	return ""
}

// onSocket reports whether dlo listens on a Unix socket.
func (p *process) onSocket() bool {
	return slices.ContainsFunc(append(p.further, p.listener), func(l net.Listener) bool {
		return l.Addr().Network() == "unix"
	})
}

// lacksName reports whether the configuration does not contain the name by which people reach dlo.
func lacksName(cfg config.Config) bool { return len(cfg.Hosts) == 0 && cfg.PublicURL == "" }

// missingForOps checks the configuration of the address for probes and metrics. It returns what the
// configuration lacks to allow an address that other machines can reach. If nothing is missing, it
// returns "".
func missingForOps(cfg config.Config) string {
	if cfg.OpsOpen {
		return ""
	}
	return "other machines could read the metrics and the names of queues there without sign-in: set ops_open: true if they may, or choose a loopback address"
}

// listen listens on the first address in the list that this machine has. If that address is in use,
// listen returns an error and does not try the next one. If dlo listened on the next address
// instead, people who use the first one would reach the other program.
func listen(addresses []string, signIn bool) (net.Listener, error) {
	var failed []error
	for _, address := range addresses {
		if path, ok := socketOf(address); ok {
			return listenSocket(path, signIn)
		}
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

// hostsOf returns the host names that the server accepts in requests. The address in the
// configuration may differ from the actual address and port, so hostsOf returns the names of both.
func hostsOf(cfg config.Config, addresses []string) []string {
	if len(cfg.Hosts) > 0 {
		return cfg.Hosts
	}
	var hosts []string
	for i, listen := range append([]string{cfg.Listen}, cfg.Listens...) {
		if _, ok := socketOf(listen); ok {
			continue
		}
		host, _, _ := net.SplitHostPort(listen)
		_, port, _ := net.SplitHostPort(addresses[i])
		hosts = append(hosts, web.Hosts(addresses[i], cfg.PublicURL, nil)...)
		hosts = append(hosts, net.JoinHostPort(host, port))
	}
	if len(hosts) == 0 {
		hosts = web.Hosts("", cfg.PublicURL, nil)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
