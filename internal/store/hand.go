package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// hand notes which letters are being read at this moment, in a small file beside the store: 8 bytes
// for each of those who read, the serial of the letter or 0. The file is written and never synced.
// So a note costs some microseconds where a commit costs milliseconds, it outlives the process, and
// it names a letter only while that one is being read: a kill at any other moment charges nobody. A
// power cut may lose a note, and did not come of a letter.
type hand struct{ file *os.File }

// hands are those who read letters in the background, by their place in the file.
const (
	classifier = iota
	rereader
	hands
)

const noteSize = 8 // bytes

// openHand opens the file beside a store and returns the letters that were being read when the last
// process ended. From then on none is.
func openHand(path string) (hand, []int64, error) {
	f, err := os.OpenFile(path+".reading", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return hand{}, nil, err
	}
	h := hand{f}
	noted := make([]byte, hands*noteSize)
	if _, err := f.ReadAt(noted, 0); err != nil && !errors.Is(err, io.EOF) {
		return h, nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	var serials []int64
	for at := range hands {
		if serial := int64(binary.BigEndian.Uint64(noted[at*noteSize:])); serial != 0 {
			serials = append(serials, serial)
		}
		if err := h.note(at, 0); err != nil {
			return h, nil, err
		}
	}
	return h, serials, nil
}

// note writes which letter is being read, 0 for none.
func (h hand) note(at int, serial int64) error {
	if _, err := h.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(serial)), int64(at*noteSize)); err != nil {
		return fmt.Errorf("note which letter is being read: %w", err)
	}
	return nil
}

// Reading notes that a letter that was received is being read, "" that none is any more: should the
// process die meanwhile, the next start counts a crash against the letter.
func (s *Store) Reading(id deadletter.ID) error {
	serial, _, _ := id.Split()
	return s.hand.note(classifier, serial)
}

// Rereading is Reading for a letter that is to be read again.
func (s *Store) Rereading(id deadletter.ID) error {
	serial, _, _ := id.Split()
	return s.hand.note(rereader, serial)
}

// charge counts a crash against the letters that were being read when the last process ended, as
// far as they are still to be read.
func (s *Store) charge(ctx context.Context, serials []int64) error {
	return s.tx(ctx, classify, func(t *tx) error {
		for _, serial := range serials {
			if _, err := t.exec(`UPDATE letters SET crashes = crashes + 1 WHERE id = $1 AND (state = 'received' OR id IN (SELECT letter FROM unread))`, serial); err != nil {
				return err
			}
		}
		return nil
	})
}
