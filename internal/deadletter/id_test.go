package deadletter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"pgregory.net/rapid"
)

func TestAnIDIsAUUIDOfVersion7(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 0, 0, 5_000_000, time.UTC)
	id := deadletter.NewID(deadletter.SerialAt(at)+0xabc, ^uint64(0))
	if id != "019aa030-9c05-7abc-bfff-ffffffffffff" && !strings.HasSuffix(string(id), "-7abc-bfff-ffffffffffff") {
		t.Error(id)
	}
	if got := id.Short(); got != "ffffffff" {
		t.Error(got)
	}
	serial, _, ok := id.Split()
	if !ok || time.UnixMilli(serial>>12).UTC() != at {
		t.Errorf("%s is of %s", id, time.UnixMilli(serial>>12).UTC())
	}
	if got := deadletter.ID("x").Short(); got != "x" {
		t.Error(got)
	}
}

func TestIDsKeepSerialAndOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		serials := rapid.SliceOfN(rapid.Int64Range(0, 1<<60-1), 1, 20).Draw(t, "serials")
		var ids []deadletter.ID
		for i, serial := range serials {
			random := rapid.Uint64().Draw(t, "random")
			id := deadletter.NewID(serial, random)
			got, bits, ok := id.Split()
			if !ok || got != serial || uint64(bits) != random&^(3<<62) || deadletter.NewID(got, uint64(bits)) != id {
				t.Fatalf("%s: serial %d, random %x, %v; want %d, %x", id, got, bits, ok, serial, random)
			}
			if parsed, err := deadletter.ParseID(strings.ToUpper(string(id))); err != nil || parsed != id {
				t.Fatal(parsed, err)
			}
			ids = append(ids, id)
			if i > 0 && serial != serials[i-1] && (ids[i-1] < id) != (serials[i-1] < serial) {
				t.Fatalf("%s and %s are not in the order of %d and %d", ids[i-1], id, serials[i-1], serial)
			}
		}
	})
}

func TestRandomBitsDiffer(t *testing.T) {
	t.Parallel()
	bits := deadletter.RandomBits(1000)
	if slices.Sort(bits); len(slices.Compact(bits)) != 1000 || bits[0] < 0 || bits[len(bits)-1] >= 1<<62 {
		t.Errorf("%d different of 1000, from %d to %d", len(slices.Compact(bits)), bits[0], bits[len(bits)-1])
	}
}

func TestWhatIsNoLetterID(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "x", "0197a3c2", "0197a3c25b1e7ac09d3f44e2a6b18c20", "0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c2",
		"0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c200", "0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c2g",
		"0197a3c2+5b1e-7ac0-9d3f-44e2a6b18c20", "0197a3c2-5b1e-7ac0-9d3f-44e2a6b1-c20",
		"{197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20}", "\x1b[2J", strings.Repeat("0", 1000),
	} {
		id, err := deadletter.ParseID(s)
		if !errors.Is(err, deadletter.ErrInvalid) || id != "" || len(err.Error()) > 300 ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %q, %v", s, id, err)
		}
		if _, _, ok := deadletter.ID(s).Split(); ok {
			t.Errorf("%q can be split", s)
		}
	}
	for _, s := range []string{"0197a3c2-5b1e-4ac0-9d3f-44e2a6b18c20", "0197a3c2-5b1e-7ac0-0d3f-44e2a6b18c20"} {
		if _, err := deadletter.ParseID(s); err != nil {
			t.Errorf("%s is a UUID: %v", s, err)
		}
		if _, _, ok := deadletter.ID(s).Split(); ok {
			t.Errorf("%s is not of version 7 and can be split", s)
		}
	}
}

func TestNumberedIDs(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"O-77", "o-77", "77"} {
		if id, err := deadletter.ParseOperationID(s); err != nil || id != 77 || id.String() != "O-77" {
			t.Errorf("%s: %s, %v", s, id, err)
		}
	}
	for _, s := range []string{"G-418", "g-418", "418"} {
		if id, err := deadletter.ParseGroupID(s); err != nil || id != 418 || id.String() != "G-418" {
			t.Errorf("%s: %s, %v", s, id, err)
		}
	}
	for _, s := range []string{
		"", "G-", "O-1", "G-0", "-1", "G--1", "G-x", "9223372036854775808", "G-1 OR 1=1", "\x1b[2J",
	} {
		if id, err := deadletter.ParseGroupID(s); !errors.Is(err, deadletter.ErrInvalid) ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %s, %v", s, id, err)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	a, b := deadletter.NewToken(), deadletter.NewToken()
	if a == b || len(a) != 32 || deadletter.TokenFromBytes(a.Bytes()) != a {
		t.Errorf("%s %s", a, b)
	}
	for _, s := range []deadletter.Token{"", "x", a[1:], a + "00", "zz" + a[2:]} {
		if s.Bytes() != nil {
			t.Errorf("%q has bytes", s)
		}
	}
}
