package payload

import "testing"

// BenchmarkDecode reads the sample letter: base64, protobuf, tree, JSON and summary.
func BenchmarkDecode(b *testing.B) {
	body := std(sample(b))
	for name, mask := range map[string]*Mask{"plain": nil, "masked": pattern} {
		d := &Decoder{Types: schemas(), Mask: mask}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if doc := d.Decode(body, Hints{Type: email}, nil); Summary(doc) == "" {
					b.Fatal(doc.Problem)
				}
			}
		})
	}
}
