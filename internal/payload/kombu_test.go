package payload

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// This is the body of a task of Celery 5.2.6. Python's zlib and bz2 have compressed it. kombu 5.2.4
// compresses a body in the same way if it is called with compression="gzip" or compression="bzip2".
const (
	task      = `[[17], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`
	kombuGzip = "789c8b8e36348fd551a8ae0562a5e4c49c9ca4c4e4ec62252b85bcd29c1c1d05a5d4a2223491e48c" +
		"c4cc3c646e7e510a945b1b0b00f26619a9"
	kombuBz2 = "425a6839314159265359284c345e00000e9b8050042090000a3e6d9a0a2000543500680034d04a08" +
		"80da83d432325414f6562f92789888b5819e2bc93ddf6d52476a0ea50308eb61dc0224f203020392" +
		"f8bb9229c284814261a2f0"
	bz2Bomb = "425a6839314159265359a220a29a010101c000c000000820003080291b680201a20100e2ee48a70a" +
		"121444145340" // 32 MiB of zeros
	bz2Tiny = "425a6839314159265359774bb01400000000800040200021184682ee48a70a120ee9760280" // "x"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestKombuCompresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, header, body, layers string }{
		{"gzip is zlib", "application/x-gzip", kombuGzip, "deflate"},
		{"by an alias", "zlib", kombuGzip, "deflate"},
		{"bzip2", "application/x-bz2", kombuBz2, "bzip2"},
		{"gzip of another client", "gzip", hex.EncodeToString(payloadtest.Gzipped(t, []byte(task))), "gzip"},
	} {
		l := deadletter.Letter{
			Body: unhex(t, c.body),
			Properties: deadletter.Properties{
				ContentType:     "application/json",
				ContentEncoding: "utf-8",
				Headers:         deadletter.Table{"compression": c.header},
			},
		}
		doc := (&Decoder{}).Letter(&l)
		if doc.Kind != JSON || string(doc.Body) != task || len(doc.Layers) != 1 || doc.Layers[0].Name != c.layers {
			t.Errorf("%s: %s of %+v, %v", c.name, doc.Kind, doc.Layers, doc.Steps)
			continue
		}
		edited, err := (&Decoder{}).Edit(l.Body, hintsOf(&l), strings.Replace(task, "17", "18", 1), nil)
		if c.layers == "bzip2" {
			if err == nil || !strings.Contains(err.Error(), "bzip2 can be read here and not written") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Body = edited.Body
		if again := (&Decoder{}).Letter(&l); !strings.Contains(string(again.Body), "18") || len(again.Layers) != 1 ||
			again.Layers[0].Name != c.layers || again.Layers[0].Bare {
			t.Errorf("%s: edited it is %q of %+v", c.name, again.Body, again.Layers)
		}
	}
}

func TestKombuCompressionsThatStay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, body, why string }{
		{"application/x-brotli", kombuGzip, "compression application/x-brotli: not known here"},
		{"application/x-lzma\n\u202e", kombuGzip, "not known here"},
		{"application/x-gzip", "00ff00ff", "deflate: it does not unpack"},
		{"application/x-bz2", "00ff00ff", "bzip2: it does not unpack"},
		{"application/zstd", "00ff00ff", "zstd: no magic bytes"},
	} {
		doc := (&Decoder{}).Decode(unhex(t, c.body), Hints{Compression: c.header}, nil)
		if text := stepsText(doc); doc.Kind != Binary || !strings.Contains(text, c.why) ||
			strings.Contains(text, "\u202e") {
			t.Errorf("%q: %s\n%s", c.header, doc.Kind, text)
		}
	}
}

func TestBzip2BombsAreCapped(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	b := budget.NewBudget()
	doc := (&Decoder{}).Decode(unhex(t, bz2Bomb), Hints{Compression: "bzip2"}, b)
	if !doc.TooLarge || doc.Problem != "too large to decode safely: more than 16 MiB when unpacked" {
		t.Errorf("%s %q", doc.Kind, doc.Problem)
	}
	checkWithin(t, b)
	tiny := bytes.Repeat(unhex(t, bz2Tiny), maxBzip2/(len(bz2Tiny)/2)+1)
	if doc := (&Decoder{}).Decode(tiny, Hints{Compression: "bzip2"}, nil); len(doc.Layers) > 0 ||
		!strings.Contains(stepsText(doc), "more than 1 MiB of bzip2 are not unpacked") {
		t.Errorf("%s", stepsText(doc))
	}
	b = budget.NewBudget()
	tiny = tiny[:len(tiny)-len(bz2Tiny)/2]
	if doc := (&Decoder{}).Decode(tiny, Hints{Compression: "bzip2"}, b); len(doc.Layers) != 1 || doc.Kind != Text {
		t.Errorf("%s", stepsText(doc))
	}
	checkWithin(t, b)
}
