package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
)

// names returns a resolver that knows only the given names.
func names(known map[string][]string) resolver {
	return func(_ context.Context, network, host string) ([]netip.Addr, error) {
		if network != "ip" {
			return nil, errors.New("asked for " + network)
		}
		var list []netip.Addr
		for _, text := range known[host] {
			list = append(list, netip.MustParseAddr(text))
		}
		if list == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return list, nil
	}
}

func TestANameIsResolvedBeforeItIsServed(t *testing.T) {
	t.Parallel()
	const alone = "only a loopback address is served"
	lookup := names(map[string][]string{
		"localhost": {"::1", "127.0.0.1", "::ffff:127.0.0.1"},
		"dlo.local": {"127.0.0.2"},
		"hijacked":  {"127.0.0.1", "203.0.113.7"},
		"router":    {"192.168.1.1"},
		"linked":    {"fe80::1%eth0"},
	})
	for listen, want := range map[string][]string{
		"127.0.0.1:8672": {"127.0.0.1:8672"},
		"[::1]:0":        {"[::1]:0"},
		"localhost:8672": {"127.0.0.1:8672", "[::1]:8672"},
		"dlo.local:1":    {"127.0.0.2:1"},
	} {
		if got, err := addresses(t.Context(), listen, alone, lookup); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", listen, got, err, want)
		}
	}
	for listen, want := range map[string]string{
		"0.0.0.0:8672":      "only a loopback address is served",
		"203.0.113.7:8672":  "only a loopback address is served",
		":8672":             "only a loopback address is served",
		"hijacked:8672":     "hijacked is 203.0.113.7 as well, and only a loopback address is served",
		"router:1":          "router is 192.168.1.1, and only a loopback address is served",
		"linked:1":          "linked is fe80::1%eth0, and only a loopback address is served",
		"nowhere:1":         "no such host",
		"127.0.0.1":         "it looks like 127.0.0.1:8672",
		"localhost":         "it looks like 127.0.0.1:8672",
		"[::1%lo]:8672":     "only a loopback address is served",
		"0x7f000001.x:8672": "no such host",
	} {
		got, err := addresses(t.Context(), listen, alone, lookup)
		var usage interface{ ExitCode() int }
		if len(got) > 0 || !errors.As(err, &usage) || usage.ExitCode() != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", listen, got, err, want)
		}
	}
}

// TestWhatWasCheckedIsServed checks that dlo listens on an IP address that it has checked. It must
// not look up the host name again, because the name could have another address by then.
func TestWhatWasCheckedIsServed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l, err := listen([]string{"192.0.2.1:0", "127.0.0.1:0"}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if host, _, _ := net.SplitHostPort(l.Addr().String()); host != "127.0.0.1" {
		t.Errorf("it listens at %s", l.Addr())
	}
	if _, err := listen([]string{
		taken.Addr().String(), "127.0.0.1:0",
	}, false); err == nil || !strings.Contains(err.Error(), "DLO_LISTEN") {
		t.Errorf("an address that is taken: %v", err)
	}
}

func TestANameThatIsListenedOnIsAnswered(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"dlo.local:0": "dlo.local:4711", "localhost:0": "localhost:4711", "127.0.0.2:0": "127.0.0.2:4711",
	} {
		if got := hostsOf(
			config.Config{Listen: listen}, []string{"127.0.0.2:4711"},
		); !slices.Contains(got, want) || !slices.Contains(got, "127.0.0.2:4711") {
			t.Errorf("%s: %v", listen, got)
		}
	}
	if got := hostsOf(config.Config{
		Listen: "dlo.local:0",
		Hosts:  []string{"only.example"},
	}, []string{"127.0.0.1:4711"}); !slices.Equal(got, []string{"only.example"}) {
		t.Errorf("with hosts: %v", got)
	}
}
