package deadletter

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID names a letter: a UUIDv7 in its text form (RFC 9562), also sent to RabbitMQ as the header dlo-id.
type ID string

// GroupID names a group; pages and the API write it as G-418. Zero: not grouped yet.
type GroupID int64

// OperationID names an operation; pages and the API write it as O-77. Zero: none.
type OperationID int64

func (g GroupID) String() string     { return fmt.Sprintf("G-%d", int64(g)) }
func (o OperationID) String() string { return fmt.Sprintf("O-%d", int64(o)) }

// NewIDs returns n ids that sort in the order given, after every id of an earlier millisecond. At most 4,096 share a millisecond in order;
// beyond that the time of the id moves on by one.
func NewIDs(now time.Time, n int) []ID {
	random := make([]byte, 8*n)
	rand.Read(random) // never fails (crypto/rand, since Go 1.24)
	ids := make([]ID, n)
	for i := range ids {
		var u [16]byte
		binary.BigEndian.PutUint64(u[:8], uint64(now.UnixMilli()+int64(i>>12))<<16)
		binary.BigEndian.PutUint16(u[6:8], 0x7000|uint16(i&0xfff))
		copy(u[8:], random[8*i:])
		u[8] = u[8]&0x3f | 0x80
		ids[i] = idOf(u)
	}
	return ids
}

func idOf(u [16]byte) ID {
	var text [36]byte
	hex.Encode(text[0:8], u[0:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:36], u[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return ID(text[:])
}

// IDFromBytes is the inverse of ID.Bytes. It panics unless b holds 16 bytes: they come from our own store.
func IDFromBytes(b []byte) ID { return idOf([16]byte(b)) }

// ParseID reads a UUID in its text form, upper or lower case.
func ParseID(s string) (ID, error) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", fmt.Errorf("%w: %q is not a letter id, which looks like 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20", ErrInvalid, Visible(Cut(s, 60)))
	}
	var u [16]byte
	digits := strings.ReplaceAll(s, "-", "")
	if n, err := hex.Decode(u[:], []byte(digits)); err != nil || n != 16 {
		return "", fmt.Errorf("%w: %q is not a letter id: it has digits that are not hexadecimal", ErrInvalid, Visible(Cut(s, 60)))
	}
	return idOf(u), nil
}

// Bytes returns the 16 bytes of the UUID; nil when id is not one.
func (id ID) Bytes() []byte {
	parsed, err := ParseID(string(id))
	if err != nil {
		return nil
	}
	b, _ := hex.DecodeString(strings.ReplaceAll(string(parsed), "-", ""))
	return b
}

// Short returns the last 8 hex digits, by which pages name a letter.
func (id ID) Short() string {
	if len(id) < 8 {
		return string(id)
	}
	return string(id[len(id)-8:])
}

// ParseOperationID reads "O-77" or "77".
func ParseOperationID(s string) (OperationID, error) {
	n, err := parseNumbered(s, "O-")
	return OperationID(n), err
}

// ParseGroupID reads "G-418" or "418".
func ParseGroupID(s string) (GroupID, error) {
	n, err := parseNumbered(s, "G-")
	return GroupID(n), err
}

func parseNumbered(s, prefix string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(strings.ToUpper(s), prefix), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%w: %q is not an id such as %s77", ErrInvalid, Visible(Cut(s, 40)), prefix)
	}
	return n, nil
}

// Token marks one attempt on the wire, as the header dlo-token: 128 random bits in hex. A returning letter is believed only with a token that the store issued.
type Token string

// NewToken returns a fresh token.
func NewToken() Token {
	var b [16]byte
	rand.Read(b[:])
	return Token(hex.EncodeToString(b[:]))
}

// Bytes returns the 16 bytes of the token; nil when it is not one.
func (t Token) Bytes() []byte {
	b, err := hex.DecodeString(string(t))
	if err != nil || len(b) != 16 {
		return nil
	}
	return b
}

// TokenFromBytes is the inverse of Token.Bytes.
func TokenFromBytes(b []byte) Token { return Token(hex.EncodeToString(b)) }
