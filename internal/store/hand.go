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

// hand records which letters are being read at this moment, in a small file beside the store. Each
// reader has 8 bytes in it: the serial of its letter, or 0. The file is written but never synced. A
// note therefore costs some microseconds, while a commit costs milliseconds. A note survives the
// process. It names a letter only while that letter is being read, so a kill at any other moment
// charges no letter. A power failure may lose a note, but no letter causes a power failure.
type hand struct{ file *os.File }

// These are the positions in the file for the background readers of letters.
const (
	classifier = iota
	rereader
	hands
)

const noteSize = 8 // bytes

// openHand opens the file beside a store and clears it. It returns the letters that were being read
// when the last process ended.
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
		if err := h.writeNote(at, 0); err != nil {
			return h, nil, err
		}
	}
	return h, serials, nil
}

// writeNote writes a note to the file: the reader at the given position reads this letter; 0 =
// none.
func (h hand) writeNote(at int, serial int64) error {
	if _, err := h.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(serial)), int64(at*noteSize)); err != nil {
		return fmt.Errorf("note which letter is being read: %w", err)
	}
	return nil
}

// Reading registers a received letter as being read. An id of "" means that no letter is being
// read. If the process dies before the next call, the next start charges a crash to the letter.
func (s *Store) Reading(id deadletter.ID) error {
	serial, _, _ := id.Split()
	return s.hand.writeNote(classifier, serial)
}

// Rereading is like Reading, but for a letter that is being read again.
func (s *Store) Rereading(id deadletter.ID) error {
	serial, _, _ := id.Split()
	return s.hand.writeNote(rereader, serial)
}

// charge adds a crash to each letter that was being read when the last process ended, unless the
// letter has been read since.
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
