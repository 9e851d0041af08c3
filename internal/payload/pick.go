package payload

import (
	"bytes"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// PickReveals decodes a letter twice: as it is decoded now, and as the type in the parameter "typ".
// It reports whether the second result shows something that is masked in the first one.
func (d *Decoder) PickReveals(l *deadletter.Letter, typ string) bool {
	now := d.Letter(l)
	if !now.Masked {
		return false
	}
	picked := *l
	picked.Picked = typ
	then := d.Letter(&picked)
	if !bytes.Equal(now.Body, then.Body) { // other layers are removed
		return true
	}
	still := then.hiddenBytes()
	for i, hidden := range now.hiddenBytes() {
		if hidden && !still[i] {
			return true
		}
	}
	return false
}

// hiddenBytes returns, for each byte of the unwrapped body, whether it is masked.
func (d *Document) hiddenBytes() []bool {
	hidden := make([]bool, len(d.Body))
	if d.hideAll {
		return slices.Repeat([]bool{true}, len(d.Body))
	}
	if d.hidden != nil {
		d.hidden(len(d.Body), func(from, to int) {
			for i := max(from, 0); i < min(to, len(hidden)); i++ {
				hidden[i] = true
			}
		})
	}
	return hidden
}
