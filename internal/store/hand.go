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

// hand records which letters are being read at this moment, in a small file beside the store. In
// this file, each reader has 8 bytes that contain the serial of its letter, or 0. The file is
// written but never synced, so a note costs some microseconds, while a commit costs milliseconds. A
// note survives the death of the process. A letter is named only while it is being read, so a
// process that is killed at any other moment adds a crash to no letter. A power failure may lose a
// note, but no letter causes a power failure.
type hand struct{ file *os.File }

// These constants are the positions at which the background readers write their notes in the file.
// The last constant is the number of readers.
const (
	classifier = iota
	rereader
	hands
)

const noteSize = 8 // size of one reader's note, in bytes

// openHand opens and clears a file beside the store. In this file, background readers note the
// letters that they are reading. openHand returns the serials of the letters that were being read
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

// writeNote notes in the file which letter a background reader is reading. The parameter "at" is
// the position of the reader. The parameter "serial" identifies the letter; 0 = no letter.
func (h hand) writeNote(at int, serial int64) error {
	if _, err := h.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(serial)), int64(at*noteSize)); err != nil {
		return fmt.Errorf("note which letter is being read: %w", err)
	}
	return nil
}

// Reading records that the classifier now reads a letter. An id of "" means that no letter is being
// read. If the process dies before the next call, the next start adds a crash to the letter.
func (s *Store) Reading(id deadletter.ID) error {
	serial, _, _ := id.Split()
	return s.hand.writeNote(classifier, serial)
}

// Rereading records that a letter is now being read again. An id of "" means that no letter is
// being read again. If the process dies before the next call, the next start adds a crash to the
// letter.
func (s *Store) Rereading(id deadletter.ID) error {
	serial, _, _ := id.Split()
	return s.hand.writeNote(rereader, serial)
}

// countCrashes adds a crash to each letter that was being read when the last process ended. The
// last process may already have recorded the result of reading the letter. In that case,
// countCrashes skips the letter.
func (s *Store) countCrashes(ctx context.Context, serials []int64) error {
	return s.tx(ctx, classify, func(t *tx) error {
		for _, serial := range serials {
			if _, err := t.exec(`UPDATE letters SET crashes = crashes + 1 WHERE id = $1 AND (state = 'received' OR id IN
				(SELECT letter FROM unread))`, serial); err != nil {
				return err
			}
		}
		return nil
	})
}
