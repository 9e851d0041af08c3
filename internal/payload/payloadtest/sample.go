package payloadtest

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Sample returns the body of the letter in the documentation. It has 157 bytes and one unknown
// field.
func Sample(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(`
		0a0e7265715f396632633431643037 62 10d5f802 1a22 0a10 64616e61406578616d706c652e636f6d
		120e44616e6120576869746669656c64 2213 0a0a77656c636f6d655f7633 1205656e2d4742
		2a12 0a0a66697273745f6e616d65120444616e61 2a0c 0a04706c616e12047465616d 3002
		3a0b 089edcffd70610 80a89763 4a10 5b1e7ac09d3f44e2a6b18c20f7e9d413
		aa010a0a056261747368 10d20f`), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
