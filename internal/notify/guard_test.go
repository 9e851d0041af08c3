package notify

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestWhichAddressesAreDialled(t *testing.T) {
	t.Parallel()
	const (
		always  = "always"
		private = "with allow_private"
		never   = "never"
	)
	for _, c := range []struct{ address, when string }{
		{"8.8.8.8", always},
		{"2606:4700::1111", always},
		{"127.0.0.1", private},
		{"127.9.9.9", private},
		{"::1", private},
		{"10.1.2.3", private},
		{"172.16.0.1", private},
		{"172.31.255.255", private},
		{"172.32.0.1", always},
		{"192.168.1.1", private},
		{"fd12:3456::1", private},
		{"169.254.169.254", never},
		{"169.254.0.1", never},
		{"fe80::1", never},
		{"fe80::1%eth0", never},
		{"fd00:ec2::254", never},
		{"fd20:ce::254", never},
		{"100.64.0.1", never},
		{"100.100.100.200", never},
		{"0.0.0.0", never},
		{"0.1.2.3", never},
		{"::", never},
		{"224.0.0.1", never},
		{"ff02::1", never},
		{"255.255.255.255", never},
		{"192.0.0.192", never},
		{"198.18.0.1", never},
		{"::ffff:127.0.0.1", never},
		{"::ffff:8.8.8.8", never},
		{"::127.0.0.1", never},
		{"64:ff9b::7f00:1", never},
		{"64:ff9b::808:808", never},
		{"64:ff9b:1::a00:1", never},
		{"2002:7f00:1::", never},
		{"2001:0:4136:e378::1", never},
		{"2001:db8::1", never},
		{"fec0::1", never},
		{"5f00::1", never},
	} {
		t.Run(c.address, func(t *testing.T) {
			t.Parallel()
			a := netip.MustParseAddr(c.address)
			strict, lenient := newGuard(false, false).whyRefused(a), newGuard(true, false).whyRefused(a)
			if (strict == "") != (c.when == always) || (lenient == "") != (c.when != never) {
				t.Errorf("want %s, got %q, and with allow_private %q", c.when, strict, lenient)
			}
			if plain := newGuard(true, true).whyRefused(a); (plain == "") != (c.when == private) {
				t.Errorf("without TLS: %q", plain)
			}
		})
	}
}

// redirectTo changes how a guard connects. The guard can resolve only the names in the parameter
// "names", and each connection that it opens leads to the address "to". The result lists the
// addresses that the guard chose.
func redirectTo(g *guard, to string, names map[string][]string) *[]string {
	var dialled []string
	g.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, a := range names[host] {
			out = append(out, netip.MustParseAddr(a))
		}
		if out == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return out, nil
	}
	g.connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, a.String())
		return (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}
	return &dialled
}

func TestANameIsResolvedOnceAndWhatWasJudgedIsDialled(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	names := map[string][]string{
		"public.example":   {"8.8.8.8"},
		"inner.example":    {"127.0.0.1"},
		"mapped.example":   {"::ffff:10.0.0.1"},
		"metadata.example": {"169.254.169.254"},
		"both.example":     {"10.0.0.1", "::ffff:8.8.8.8"},
		"empty.example":    {},
	}
	for _, c := range []struct {
		host         string
		allowPrivate bool
		dialled, err string
	}{
		{"public.example", false, "8.8.8.8:443", ""},
		{"inner.example", false, "", "leads to 127.0.0.1, which is loopback: it needs allow_private"},
		{"inner.example", true, "127.0.0.1:443", ""},
		{"mapped.example", false, "", "leads to 10.0.0.1, which is private"},
		{"mapped.example", true, "10.0.0.1:443", ""},
		{"metadata.example", true, "", "link-local, where clouds keep metadata: never allowed"},
		{"both.example", false, "8.8.8.8:443", ""},
		{"empty.example", false, "", "no such host"},
		{"127.0.0.1", false, "", "the address 127.0.0.1 is loopback"},
		{"::ffff:127.0.0.1", true, "", "an IPv6 form of an IPv4 address: never allowed"},
		{"0x7f.1", true, "", "no such host"},
		{"2130706433", true, "", "no such host"},
	} {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			g := newGuard(c.allowPrivate, false)
			dialled := redirectTo(g, l.Addr().String(), names)
			conn, err := g.dial(t.Context(), "tcp", net.JoinHostPort(c.host, "443"))
			if conn != nil {
				conn.Close()
			}
			if got := strings.Join(*dialled, " "); got != c.dialled {
				t.Errorf("dialled %q, want %q", got, c.dialled)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			if literal := netip.Addr.IsValid(addrOf(c.host)); err != nil && errors.Is(err, ErrPermanent) != literal {
				t.Errorf("a name may lead elsewhere tomorrow, an address not: %v", err)
			}
		})
	}
}

func addrOf(s string) netip.Addr { a, _ := netip.ParseAddr(s); return a }

func TestLocalhostIsLoopback(t *testing.T) {
	t.Parallel()
	if _, err := newGuard(false, false).dial(
		t.Context(), "tcp", "localhost:443",
	); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
}
