package deadletter

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ID identifies a letter. It is the text form of a UUIDv7 (RFC 9562). RabbitMQ gets it in the
// header dlo-id.
type ID string

// GroupID identifies a group. Pages and the API write it as G-418. Zero means that a letter is not
// in a group yet.
type GroupID int64

// OperationID identifies an operation. Pages and the API write it as O-77. Zero means no operation.
type OperationID int64

// String returns the id as pages and the API write it, and "" if there is no group.
func (g GroupID) String() string { return withPrefix("G-", int64(g)) }

// String returns the id as pages and the API write it, and "" if there is no operation.
func (o OperationID) String() string { return withPrefix("O-", int64(o)) }

func withPrefix(prefix string, n int64) string {
	if n == 0 {
		return ""
	}
	return prefix + strconv.FormatInt(n, 10)
}

// An ID consists of a serial and 62 random bits. The serial has 48 bits of Unix milliseconds and a
// 12-bit counter within the millisecond. The store sorts and finds letters by their serials.
// Because of the random bits, ids are hard to guess.

// NewID returns the id with the given serial and random bits. The serial must be below 1<<60.
func NewID(serial int64, random uint64) ID {
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(serial>>12)<<16|0x7000|uint64(serial&0xfff))
	binary.BigEndian.PutUint64(u[8:], random&^(3<<62)|1<<63)
	return idOf(u)
}

// SerialAt returns the first serial of the millisecond that contains the given time. It returns 0
// for a time before 1970, and the largest number for a time that is too late to have serials.
func SerialAt(at time.Time) int64 {
	switch ms := at.UnixMilli(); {
	case ms < 0:
		return 0
	case ms > math.MaxInt64>>12:
		return math.MaxInt64
	default:
		return ms << 12
	}
}

// RandomBits returns n numbers of 62 random bits each, for use in NewID.
func RandomBits(n int) []int64 {
	raw := make([]byte, 8*n)
	rand.Read(raw) // crypto/rand never returns an error (since Go 1.24)
	bits := make([]int64, n)
	for i := range bits {
		bits[i] = int64(binary.BigEndian.Uint64(raw[8*i:]) &^ (3 << 62))
	}
	return bits
}

// Split returns the serial and the random bits of an id. If the id is not a UUIDv7, the result "ok"
// is false.
func (id ID) Split() (serial int64, random int64, ok bool) {
	b, err := parseUUID(string(id))
	if err != nil || b[6]>>4 != 7 || b[8]>>6 != 2 {
		return 0, 0, false
	}
	head := binary.BigEndian.Uint64(b[:8])
	return int64(head>>16<<12 | head&0xfff), int64(binary.BigEndian.Uint64(b[8:]) &^ (3 << 62)), true
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

// ParseID parses the text form of a UUID, in upper or lower case.
func ParseID(s string) (ID, error) {
	u, err := parseUUID(s)
	if err != nil {
		return "", err
	}
	return idOf(u), nil
}

func parseUUID(s string) (u [16]byte, err error) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, fmt.Errorf(
			"%w: %q is not a letter id, which looks like 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20", ErrInvalid,
			Visible(Cut(s, 60)),
		)
	}
	digits := strings.ReplaceAll(s, "-", "")
	if n, err := hex.Decode(u[:], []byte(digits)); err != nil || n != 16 {
		return u, fmt.Errorf(
			"%w: %q is not a letter id: it has digits that are not hexadecimal", ErrInvalid, Visible(Cut(s, 60)),
		)
	}
	return u, nil
}

// Short returns the last 8 hex digits of an id. Pages show these digits as the name of a letter.
func (id ID) Short() string {
	if len(id) < 8 {
		return string(id)
	}
	return string(id[len(id)-8:])
}

// ParseOperationID parses the id of an operation, such as "O-77" or "77".
func ParseOperationID(s string) (OperationID, error) {
	n, err := parseNumbered(s, "O-")
	return OperationID(n), err
}

// ParseGroupID parses the id of a group, such as "G-418" or "418".
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

// Token identifies one attempt. It consists of 128 bits in hex and is sent in the header dlo-token.
// A letter that comes back is trusted only if it has a token that the store issued.
type Token string

// NewToken returns a new random token.
func NewToken() Token {
	var b [16]byte
	rand.Read(b[:])
	return Token(hex.EncodeToString(b[:]))
}

// Bytes returns the 16 bytes of the token. If the token is malformed, it returns nil.
func (t Token) Bytes() []byte {
	b, err := hex.DecodeString(string(t))
	if err != nil || len(b) != 16 {
		return nil
	}
	return b
}

// TokenFromBytes returns the token that consists of the given bytes.
func TokenFromBytes(b []byte) Token { return Token(hex.EncodeToString(b)) }
