package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/goreleaser/nfpm/v2"
)

// TestVersions checks the version of each description of git, and that dpkg and rpm sort the
// packages of these versions as the commits follow each other.
func TestVersions(t *testing.T) {
	var earlier [2]string // the version of the .deb and that of the .rpm
	for _, c := range []struct{ described, want string }{
		{"abc1234-dirty", "0.0.0-gabc1234-dirty"},
		{"v1.2.3-rc.1", "1.2.3-rc.1"},
		{"v1.2.3-rc.1-4-gabc1234", "1.2.3-rc.1+4.gabc1234"},
		{"v1.2.3", "1.2.3"},
		{"v1.2.3-4-gffc1234", "1.2.3+4.gffc1234"},
		{"v1.2.3-10-gabc1234", "1.2.3+10.gabc1234"},
		{"v1.2.3-10-gabc1234-dirty", "1.2.3+10.gabc1234.dirty"},
		{"v1.2.4", "1.2.4"},
	} {
		got := version(c.described)
		if got != c.want {
			t.Errorf("%s is the version %s, want %s", c.described, got, c.want)
		}
		deb := between(t, "deb", got, "dlo_", "_amd64.deb")
		rpm := between(t, "rpm", got, "dlo-", "-1.x86_64.rpm")
		if earlier[0] != "" {
			if err := exec.Command("dpkg", "--compare-versions", earlier[0], "lt", deb).Run(); err != nil {
				t.Errorf("dpkg does not sort %s before %s: %v", earlier[0], deb, err)
			}
			order, err := exec.Command("rpm", "--eval", fmt.Sprintf("%%{lua: print(rpm.vercmp(%q, %q))}", earlier[1], rpm)).Output()
			if err != nil || strings.TrimSpace(string(order)) != "-1" {
				t.Errorf("rpm does not sort %s before %s: %s %v", earlier[1], rpm, order, err)
			}
		}
		earlier = [2]string{deb, rpm}
	}
}

// between returns the version in the name of a package.
func between(t *testing.T, format, version, before, after string) string {
	t.Helper()
	packager, err := nfpm.Get(format)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: version}
	name := packager.ConventionalFileName(nfpm.WithDefaults(r.describe("amd64", "")))
	return strings.TrimSuffix(strings.TrimPrefix(name, before), after)
}
