package segment_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/segment"
)

// TestMessagesComeBackAsTheyWere packs messages of all sizes, and then damages the segment. Each
// flipped bit and each missing byte must be noticed.
func TestMessagesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	want := map[int64]segment.Message{
		1:       {Properties: []byte{}, Body: []byte{}},
		7:       {Exchange: "shop.events", RoutingKey: "order.created", Properties: noise(40), Body: make([]byte, 70_000)},
		1 << 62: {RoutingKey: "ключ", Properties: noise(3), Body: noise(9000)},
	}
	var raw []byte
	for letter, m := range want {
		before := len(raw)
		raw = segment.Append(raw, letter, m)
		m.Size = len(raw) - before
		want[letter] = m
	}
	data := segment.Pack(raw)
	got, err := segment.Unpack(data, len(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range data {
		for _, damaged := range [][]byte{append([]byte{}, data...), data[:i]} {
			if len(damaged) == len(data) {
				damaged[i] ^= 1 << random.IntN(8)
			}
			got, err := segment.Unpack(damaged, len(raw))
			if err == nil && cmp.Equal(want, got) {
				continue // a bit of the frame's header may mean nothing
			}
			if !errors.Is(err, segment.ErrDamaged) {
				t.Fatalf("byte %d of %d bytes: %v", i, len(damaged), err)
			}
		}
	}
	if _, err := segment.Unpack(data, len(raw)-1); !errors.Is(err, segment.ErrDamaged) {
		t.Error("another size:", err)
	}
}

// FuzzUnpack unpacks what is no segment.
func FuzzUnpack(f *testing.F) {
	raw := segment.Append(nil, 5, segment.Message{Exchange: "e", Body: []byte("body")})
	f.Add(segment.Pack(raw), len(raw))
	f.Add(segment.Pack([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), 11)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if _, err := segment.Unpack(data, size); err != nil && !errors.Is(err, segment.ErrDamaged) {
			t.Error(err)
		}
	})
}
